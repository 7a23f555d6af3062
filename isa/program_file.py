"""Program files: `save` and `load`.

Layout, little-endian: magic (8), format version (u32), zero (u32), length of the file (u64),
SHA-256 (32) over the file with these 32 bytes zeroed, length of the header (u64), header (JSON),
then the raw sections in the order of the header: words of each stream, of each descriptor block,
data of each tensor that has some.
"""

import hashlib
import json
import os
import struct
from dataclasses import asdict, fields
from pathlib import Path

from isa.address_map import Sequencer
from isa.dtypes import parse_dtype
from isa.geometry import DESCRIPTOR_BYTES, INSTRUCTION_BYTES, ISA_VERSION, Config
from isa.program import DescriptorBlock, Program, ProgramError, Stream, Tensor
from isa.windows import IngressWindow

MAGIC = b"CELOSIA\0"
FORMAT = 1
_PREFIX = struct.Struct("<8sIIQ32sQ")
_HASH_AT = slice(24, 56)
SUFFIX = ".celosia"


def save(program, path):
    """Write a program file (replacing it whole); ProgramError when the program breaks a rule of
    placement.
    """
    content = dumps(program, str(path))
    path = Path(path)
    draft = path.with_name(path.name + f".{os.getpid()}.tmp")
    draft.write_bytes(content)
    os.replace(draft, path)


def load(path, config=None):
    """The Program in a file; ProgramError says file, what is wrong, what would be right.

    config: the Config of the chip that shall run it; a program for another architecture is refused.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ProgramError(
            f"cannot be read ({error.strerror})", "give a program file", str(path)
        ) from None
    return loads(content, config, str(path))


def dumps(program, file=None):
    """The bytes of a program file."""
    program.check(file)
    sources, table = [], {}
    header = {
        "isa": ISA_VERSION,
        "config": program.config.as_dict(),
        "arch_hash": f"{program.arch_hash:#018x}",
        "streams": [
            {
                "sequencer": s.sequencer.text,
                "address": s.address,
                "count": len(s.words),
                "lines": [_intern(line, sources, table) for line in s.lines],
            }
            for s in program.streams
        ],
        "descriptors": [
            {"name": d.name, "address": d.address, "count": len(d.words)}
            for d in program.descriptors
        ],
        "tensors": [
            {
                "name": t.name,
                "space": t.space,
                "partition": t.partition,
                "address": t.address,
                "shape": list(t.shape),
                "dtype": t.dtype.text,
                "role": t.role,
                "data": t.data is not None,
            }
            for t in program.tensors
        ],
        "labels": {sequencer.text: labels for sequencer, labels in program.labels.items()},
        "semaphores": program.semaphores,
        "source": sources,
    }
    if program.windows:
        header["windows"] = [asdict(window) for window in program.windows]
    text = json.dumps(header, separators=(",", ":")).encode()
    sections = [b"".join(part.words) for part in (*program.streams, *program.descriptors)]
    sections += [t.data for t in program.tensors if t.data is not None]
    body = text + b"".join(sections)
    prefix = _PREFIX.pack(MAGIC, FORMAT, 0, _PREFIX.size + len(body), bytes(32), len(text))
    digest = hashlib.sha256(prefix + body).digest()
    return prefix[: _HASH_AT.start] + digest + prefix[_HASH_AT.stop :] + body


def loads(content, config=None, file=None):
    """The Program in the bytes of a program file; errors as `load`."""
    try:
        header, raw = _open(content)
        program = _program(header, raw, config)
        program.check()
    except ProgramError as error:
        raise ProgramError(error.what, error.right, file) from None
    return program


def _intern(line, sources, table):
    if line not in table:
        table[line] = len(sources)
        sources.append(line)
    return table[line]


def _open(content):
    """(header, raw sections) once magic, format, length and hash are right."""
    if len(content) < _PREFIX.size:
        raise ProgramError(
            f"has {len(content)} bytes", f"a program file has at least {_PREFIX.size}"
        )
    magic, version, zero, length, digest, header_length = _PREFIX.unpack_from(content)
    if magic != MAGIC:
        raise ProgramError(f"starts with {magic!r}", f"a program file starts with {MAGIC!r}")
    if version != FORMAT or zero != 0:
        raise ProgramError(
            f"has file format {version}", f"this software reads format {FORMAT}: assemble it again"
        )
    if length != len(content):
        raise ProgramError(
            f"has {len(content)} bytes", f"it says that it has {length}: truncated or extended"
        )
    blank = content[: _HASH_AT.start] + bytes(32) + content[_HASH_AT.stop :]
    if hashlib.sha256(blank).digest() != digest:
        raise ProgramError("is corrupt (its SHA-256 differs)", "assemble or copy it again")
    if header_length > length - _PREFIX.size:
        raise ProgramError(
            f"has a header of {header_length} bytes", f"at most {length - _PREFIX.size} fit"
        )
    try:
        header = json.loads(content[_PREFIX.size : _PREFIX.size + header_length])
    except (ValueError, RecursionError) as error:
        raise ProgramError(f"has a header that is no JSON ({error})", "assemble it again") from None
    return header, content[_PREFIX.size + header_length :]


def _program(header, raw, config):
    version = _get(header, "isa", int)
    if version != ISA_VERSION:
        raise ProgramError(
            f"is for ISA version {version}", f"this is version {ISA_VERSION}: assemble it again"
        )
    config = _config(header, config)
    cursor = _Cursor(raw)
    sources = _get(header, "source", list)
    streams = [_stream(item, cursor, sources) for item in _get(header, "streams", list)]
    blocks = [
        DescriptorBlock(
            _get(item, "name", str),
            _get(item, "address", int),
            cursor.words(_get(item, "count", int), DESCRIPTOR_BYTES),
        )
        for item in _get(header, "descriptors", list)
    ]
    tensors = [_tensor(item, cursor) for item in _get(header, "tensors", list)]
    cursor.finish()
    labels = {
        _sequencer(name): _indices(table) for name, table in _get(header, "labels", dict).items()
    }
    return Program(
        config,
        streams,
        blocks,
        tensors,
        labels,
        _indices(_get(header, "semaphores", dict)),
        [_window(item) for item in header.get("windows", ())],
    )


def _config(header, wanted):
    """The Config in the header, or `wanted` when it is the same architecture."""
    facts = _get(header, "config", dict)
    if any(type(fact) is not (str if name == "name" else int) for name, fact in facts.items()):
        raise ProgramError("has a configuration with values of a wrong type", "assemble it again")
    try:
        stored = Config(**facts)
    except (TypeError, ValueError) as error:
        raise ProgramError(f"has a bad configuration ({error})", "assemble it again") from None
    if _get(header, "arch_hash", str) != f"{stored.arch_hash:#018x}":
        raise ProgramError("has a configuration that differs from its hash", "assemble it again")
    if wanted is None:
        return stored
    if stored.arch_hash != wanted.arch_hash:
        names = [f.name for f in fields(Config) if f.metadata["architectural"]]
        differing = ", ".join(
            f"{name} {getattr(stored, name)} instead of {getattr(wanted, name)}"
            for name in names
            if getattr(stored, name) != getattr(wanted, name)
        )
        raise ProgramError(
            f"is for configuration {stored.name!r} ({differing})",
            f"this chip is {wanted.name!r}: assemble it for {wanted.name!r}",
        )
    return wanted


def _stream(item, cursor, sources):
    indices = _get(item, "lines", list)
    count = _get(item, "count", int)
    if (
        any(type(i) is not int or not 0 <= i < len(sources) for i in indices)
        or len(indices) > count
    ):
        raise ProgramError("has source lines that do not exist", "assemble it again")
    if any(not isinstance(line, str) for line in sources):
        raise ProgramError("has a source line that is no text", "assemble it again")
    return Stream(
        _sequencer(_get(item, "sequencer", str)),
        _get(item, "address", int),
        cursor.words(count, INSTRUCTION_BYTES),
        [sources[i] for i in indices],
    )


def _tensor(item, cursor):
    shape = _get(item, "shape", list)
    if any(type(n) is not int for n in shape):
        raise ProgramError(f"has a tensor of shape {shape}", "a shape has integers")
    try:
        dtype = parse_dtype(_get(item, "dtype", str))
    except ValueError as error:
        raise ProgramError(str(error), "assemble it again") from None
    tensor = Tensor(
        _get(item, "name", str),
        _get(item, "space", str),
        _get(item, "address", int),
        tuple(shape),
        dtype,
        _get(item, "role", str),
        _get(item, "partition", int),
    )
    if _get(item, "data", bool):
        tensor.data = cursor.take(tensor.size_bytes)
    return tensor


def _window(item):
    ports = {name: _get(item, name, int) for name in ("port", "first", "end")}
    try:
        return IngressWindow(
            **ports, writes=_get(item, "writes", bool), reads=_get(item, "reads", bool)
        )
    except ValueError as error:
        raise ProgramError(str(error), "assemble it again") from None


def _sequencer(text):
    try:
        return Sequencer[text.upper()]
    except KeyError:
        known = ", ".join(s.text for s in Sequencer)
        raise ProgramError(f"has a stream for sequencer {text!r}", f"there are {known}") from None


def _indices(table):
    if type(table) is not dict or any(type(index) is not int for index in table.values()):
        raise ProgramError("has a name whose index is no integer", "assemble it again")
    return dict(table)


def _get(item, key, kind):
    """item[key] of exactly that type."""
    if not isinstance(item, dict) or key not in item or type(item[key]) is not kind:
        raise ProgramError(
            f"has a header without a valid {key!r}",
            f"it must be a {kind.__name__}: assemble it again",
        )
    return item[key]


class _Cursor:
    """Takes the raw sections one after the other."""

    def __init__(self, raw):
        self._raw = raw
        self._at = 0

    def take(self, size):
        if not 0 <= size <= len(self._raw) - self._at:
            raise ProgramError(
                f"ends within a section of {size} bytes",
                f"{len(self._raw) - self._at} bytes are left",
            )
        self._at += size
        return self._raw[self._at - size : self._at]

    def words(self, count, size):
        content = self.take(count * size)
        return [content[i : i + size] for i in range(0, len(content), size)]

    def finish(self):
        if self._at != len(self._raw):
            raise ProgramError(
                f"has {len(self._raw) - self._at} bytes after the last section", "assemble it again"
            )
