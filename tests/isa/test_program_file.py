"""Program files: what is written comes back; anything else is refused with ProgramError and a
reason.
"""

import hashlib
import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.address_map import Sequencer
from isa.dtypes import DType
from isa.encoding import Descriptor, encode, encode_descriptor
from isa.geometry import preset
from isa.program import DescriptorBlock, Program, ProgramError, Stream, Tensor
from isa.program_file import MAGIC, dumps, load, loads, save

TINY = preset("tiny")
PREFIX = struct.Struct("<8sIIQ32sQ")


def make_program():
    halt, nop = encode("halt", {}), encode("nop", {"wait": 1})
    copy = encode_descriptor(Descriptor(src_address=0, dst_address=64, row_bytes=64))
    return Program(
        TINY,
        [
            Stream(Sequencer.SYNC, 0x1000, [nop, halt], ["a.py:1", "a.py:1"]),
            Stream(Sequencer.VECTOR, 0x1100, [halt], []),
        ],
        [DescriptorBlock("load", 0x2000, [copy, copy])],
        [
            Tensor("x", "hbm", 0, (4, 4), DType.FP32, "input", 0, bytes(range(64))),
            Tensor("w", "hbm", 0x40, (3,), DType.BF16, "constant", 0, b"abcdef"),
            Tensor("y", "hbm", 0x80, (2, 2), DType.FP32, "output"),
            Tensor("t", "sbuf", 16, (2, 5), DType.BF16, "scratch", 2),
            Tensor("p", "psum", 256, (4, 64), DType.FP32, "scratch"),
        ],
        {Sequencer.SYNC: {"start": 0, "end": 2}, Sequencer.VECTOR: {}},
        {"loaded": 0, "done": 255},
    )


def sealed(header, raw=b""):
    """A file with a right length and hash round any header and sections."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = text + raw
    prefix = PREFIX.pack(MAGIC, 1, 0, PREFIX.size + len(body), bytes(32), len(text))
    return prefix[:24] + hashlib.sha256(prefix + body).digest() + prefix[56:] + body


def parts(content):
    """(header, raw sections) of a good file."""
    length = PREFIX.unpack_from(content)[5]
    return json.loads(content[PREFIX.size : PREFIX.size + length]), content[PREFIX.size + length :]


def test_round_trip(tmp_path):
    program = make_program()
    assert loads(dumps(program)) == program
    save(program, tmp_path / "p.celosia")
    assert load(tmp_path / "p.celosia") == program
    assert load(tmp_path / "p.celosia", TINY) == program
    assert [p.name for p in tmp_path.iterdir()] == ["p.celosia"]
    assert sealed(*parts(dumps(program)))[:8] == MAGIC


def test_another_pipeline_depth_runs_the_same_program():
    deeper = TINY.with_(pe_add_stages=4, name="deep")
    assert loads(dumps(make_program()), deeper).config is deeper


def test_what_the_program_says():
    program = make_program()
    assert program.launch() == {Sequencer.SYNC: (0x1000, 2), Sequencer.VECTOR: (0x1100, 1)}
    assert program.tensor("t").row_bytes == 10
    assert [t.name for t in program.with_role("scratch")] == ["t", "p"]
    assert program.stream(Sequencer.SYNC).line(1) == "a.py:1"
    assert program.stream(Sequencer.VECTOR).line(0) == ""
    assert program.stream(Sequencer.TENSOR) is None
    assert (program.config_name, program.arch_hash) == ("tiny", TINY.arch_hash)
    with pytest.raises(KeyError, match="no tensor 'z'; there are x, w, y, t, p"):
        program.tensor("z")


def test_hbm_image():
    program = make_program()
    image = dict(program.hbm_image())
    assert image[0x1000] == b"".join(program.streams[0].words)
    assert image[0x2000] == b"".join(program.descriptors[0].words)
    assert image[0] == bytes(range(64))
    assert image[0x40] == b"abcdef"
    assert 0x80 not in image
    given_x = np.arange(16, dtype=np.float32).reshape(4, 4)
    image = dict(program.hbm_image({"x": given_x, "y": bytes(16)}))
    assert image[0] == given_x.tobytes()
    assert image[0x80] == bytes(16)
    assert (
        program.tensor("x").array() == np.frombuffer(bytes(range(64)), np.float32).reshape(4, 4)
    ).all()


@pytest.mark.parametrize(
    "data, message",
    [
        (
            {"x": np.zeros((4, 3), np.float32)},
            r"tensor 'x' is fp32 \(4, 4\), the data is float32 \(4, 3\)",
        ),
        ({"x": np.zeros((4, 4))}, "the data is float64"),
        ({"x": b"abc"}, "tensor 'x' has 64 bytes, the data has 3"),
        ({"t": bytes(20)}, "tensor 't' lies in sbuf"),
        ({"nobody": b""}, "data for 'nobody': no such tensor"),
    ],
)
def test_hbm_image_refuses_wrong_data(data, message):
    with pytest.raises(ValueError, match=message):
        make_program().hbm_image(data)


def test_every_truncation_is_refused():
    content = dumps(make_program())
    for length in range(len(content)):
        with pytest.raises(ProgramError, match="f.celosia: .*; "):
            loads(content[:length], file="f.celosia")
    with pytest.raises(ProgramError, match="truncated or extended"):
        loads(content + b"\0")


def test_every_flipped_byte_is_refused():
    content = dumps(make_program())
    for at in range(len(content)):
        for bits in (0x01, 0x80, 0xFF):
            broken = bytearray(content)
            broken[at] ^= bits
            with pytest.raises(ProgramError):
                loads(bytes(broken))


def test_flips_in_each_section_say_corrupt():
    content = dumps(make_program())
    header_length = PREFIX.unpack_from(content)[5]
    sections = {
        "hash": 30,
        "header length": 58,
        "header": PREFIX.size + 5,
        "words": PREFIX.size + header_length + 130,
        "descriptors": PREFIX.size + header_length + 3 * 128 + 1,
        "data": len(content) - 1,
    }
    for at in sections.values():
        broken = bytearray(content)
        broken[at] ^= 4
        with pytest.raises(ProgramError, match="is corrupt"):
            loads(bytes(broken))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(content):
    for candidate in (content, MAGIC + content, sealed(content)):
        with pytest.raises(ProgramError):
            loads(candidate)


def test_header_nested_too_deep_is_refused():
    with pytest.raises(ProgramError):
        loads(sealed(b"[" * 200_000))


def test_other_magic_and_format():
    content = dumps(make_program())
    with pytest.raises(ProgramError, match="starts with b'XELOSIA.*a program file starts with"):
        loads(b"X" + content[1:])
    with pytest.raises(ProgramError, match="has file format 2; this software reads format 1"):
        loads(content[:8] + b"\2" + content[9:])


def test_other_isa_version():
    header, raw = parts(dumps(make_program()))
    with pytest.raises(
        ProgramError, match="is for ISA version 2; this is version 1: assemble it again"
    ):
        loads(sealed(header | {"isa": 2}, raw))


def test_other_configuration():
    content = dumps(make_program())
    with pytest.raises(
        ProgramError,
        match="'tiny' .*array 4 instead of 16.*; this chip is 'small': assemble it for 'small'",
    ):
        loads(content, preset("small"))
    header, raw = parts(content)
    with pytest.raises(ProgramError, match="configuration that differs from its hash"):
        loads(sealed(header | {"config": header["config"] | {"array": 8}}, raw))
    with pytest.raises(ProgramError, match="has a bad configuration .*array = 5"):
        loads(sealed(header | {"config": header["config"] | {"array": 5}}, raw))
    with pytest.raises(ProgramError, match="values of a wrong type"):
        loads(sealed(header | {"config": header["config"] | {"array": "4"}}, raw))
    with pytest.raises(ProgramError, match="has a bad configuration"):
        loads(sealed(header | {"config": {}}, raw))


BAD_VALUES = [None, -1, 1 << 70, "zz", [], {}, True, 1.5]


def mutations(item, path=()):
    """Every place of a JSON value, deepest first."""
    children = (
        item.items()
        if isinstance(item, dict)
        else enumerate(item)
        if isinstance(item, list)
        else ()
    )
    for key, value in children:
        yield from mutations(value, (*path, key))
        yield (*path, key)


def changed(header, path, value):
    copy = json.loads(json.dumps(header))
    at = copy
    for key in path[:-1]:
        at = at[key]
    if value is KeyError:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return copy


def test_a_header_with_anything_wrong_never_escapes_program_error():
    """A right hash round a wrong header: loaded as it is written, or refused; no other
    exception.
    """
    header, raw = parts(dumps(make_program()))
    refused = tried = 0
    for path in list(mutations(header)):
        for value in [*BAD_VALUES, KeyError]:
            tried += 1
            try:
                loads(sealed(changed(header, path, value), raw))
            except ProgramError as error:
                refused += 1
                assert error.what and error.right
    assert tried > 500
    assert refused > 0.9 * tried


def test_too_little_and_too_much_behind_the_header():
    header, raw = parts(dumps(make_program()))
    with pytest.raises(ProgramError, match="ends within a section"):
        loads(sealed(header, raw[:-1]))
    with pytest.raises(ProgramError, match="has 1 bytes after the last section"):
        loads(sealed(header, raw + b"\0"))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(
        ProgramError, match="nothing.celosia: cannot be read .*; give a program file"
    ):
        load(tmp_path / "nothing.celosia")


def broken(change):
    program = make_program()
    change(program)
    return program


def rename(program):
    program.tensors[0].name = "r3"


PLACEMENT = [
    (lambda p: setattr(p.tensors[0], "address", 0x20), "tensor 'x' .* and tensor 'w' .* overlap"),
    (
        lambda p: setattr(p.streams[1], "address", 0x1080),
        "stream of sync .* and stream of vector .* overlap",
    ),
    (
        lambda p: setattr(p.descriptors[0], "address", 0x1080),
        "overlap; everything in HBM has its own place",
    ),
    (
        lambda p: setattr(p.tensors[2], "address", TINY.hbm_bytes - 4),
        r"tensor 'y' has bytes .*; HBM has 0\.\.0xfffff",
    ),
    (lambda p: setattr(p.tensors[2], "address", -16), "tensor 'y' has bytes -0x10"),
    (
        lambda p: setattr(p.streams[0], "address", 0x1040),
        "stream of sync is at 0x1040; must be a multiple of 128",
    ),
    (
        lambda p: setattr(p.descriptors[0], "address", 0x2010),
        "descriptor block 'load' is at 0x2010; must be a multiple of 128",
    ),
    (
        lambda p: p.streams[0].words.append(b"short"),
        "has a word of another size; every word has 128 bytes",
    ),
    (
        lambda p: p.streams.append(Stream(Sequencer.SYNC, 0x4000, [])),
        "two streams for sync; a sequencer has one stream",
    ),
    (rename, "tensor has the name 'r3'; a name has letters"),
    (lambda p: setattr(p.tensors[0], "name", "1x"), "tensor has the name '1x'"),
    (lambda p: setattr(p.tensors[0], "name", "w"), "tensor 'w' is there twice"),
    (lambda p: setattr(p.descriptors[0], "name", "x"), "descriptor block 'x' is there twice"),
    (
        lambda p: setattr(p.tensors[0], "space", "ram"),
        "lies in 'ram'; must be one of hbm, sbuf, psum",
    ),
    (lambda p: setattr(p.tensors[0], "role", "in"), "has role 'in'; must be one of input"),
    (lambda p: setattr(p.tensors[0], "shape", ()), "must be one or more positive integers"),
    (lambda p: setattr(p.tensors[0], "shape", (4, 0)), "must be one or more positive integers"),
    (lambda p: setattr(p.tensors[0], "data", b"abc"), "has 3 bytes of data; its shape has 64"),
    (lambda p: setattr(p.tensors[1], "data", None), "is a constant without data"),
    (lambda p: setattr(p.tensors[3], "data", bytes(20)), "'t' in sbuf has data; only hbm tensors"),
    (
        lambda p: setattr(p.tensors[2], "address", 0x82),
        "tensor 'y' is at 0x82; must be a multiple of 4",
    ),
    (lambda p: setattr(p.tensors[2], "partition", 1), "hbm has no partitions"),
    (
        lambda p: setattr(p.tensors[3], "partition", 3),
        r"tensor 't' has partitions 3\.\.4; this chip has 0\.\.3",
    ),
    (
        lambda p: setattr(p.tensors[3], "address", 8190),
        r"has bytes 8190\.\.8199 of a partition; sbuf has 0\.\.8191",
    ),
    (lambda p: setattr(p.tensors[4], "address", 1920), r"psum has 0\.\.2047"),
    (
        lambda p: setattr(p.tensors[3], "shape", (4,)),
        "in sbuf it starts with the partitions and has more",
    ),
    (
        lambda p: p.semaphores.update(much=256),
        r"semaphore 'much' has index 256; must be in 0\.\.255",
    ),
    (lambda p: p.semaphores.update({"a b": 1}), "semaphore has the name 'a b'"),
    (
        lambda p: p.labels[Sequencer.SYNC].update(far=3),
        r"label 'far' of sync is at 3; must be in 0\.\.2",
    ),
]


@pytest.mark.parametrize(
    "change, message", PLACEMENT, ids=lambda v: v[:40] if isinstance(v, str) else ""
)
def test_placement(change, message, tmp_path):
    with pytest.raises(ProgramError, match=message):
        save(broken(change), tmp_path / "p.celosia")
    assert not list(tmp_path.iterdir())


def test_a_loaded_program_is_checked_too():
    header, raw = parts(dumps(make_program()))
    header["tensors"][0]["address"] = 0x1000
    with pytest.raises(ProgramError, match="f: .* overlap"):
        loads(sealed(header, raw), file="f")
