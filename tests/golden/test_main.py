"""The command line: `python -m golden`."""

import numpy as np
import pytest

from golden.__main__ import main
from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.geometry import preset
from isa.program_file import save
from verif.random_program import mutate_waits
from verif.sample_programs import chain, gemm

TINY = preset("tiny")


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "gemm.celosia"
    save(gemm(TINY, 8), path)
    return path


def test_a_good_program(program, tmp_path, capsys):
    assert (
        main([str(program), "--config", "tiny", "--dump", str(tmp_path / "out"), "--seed", "3"])
        == 0
    )
    text = capsys.readouterr().out
    assert "tensor  halted" in text
    assert "c: fp32 (8, 8) sha256" in text
    c = np.load(tmp_path / "out" / "c.npy")
    assert c.shape == (8, 8) and c.any()


def test_inputs_from_files(program, tmp_path, capsys):
    np.save(tmp_path / "a.npy", np.zeros((8, 8), np.uint16))
    assert main([str(program), "--input", f"a={tmp_path / 'a.npy'}", "--dump", str(tmp_path)]) == 0
    assert not np.load(tmp_path / "c.npy").any()
    assert main([str(program), "--input", f"nothing={tmp_path / 'a.npy'}"]) == 2
    np.save(tmp_path / "a.npy", np.zeros((8, 9), np.uint16))
    assert main([str(program), "--input", f"a={tmp_path / 'a.npy'}"]) == 2
    assert "(8, 8)" in capsys.readouterr().err


def test_hazards_and_errors_are_printed(tmp_path, capsys):
    path = tmp_path / "bad.celosia"
    _, mutant = next(iter(mutate_waits(chain(TINY))))
    save(mutant, path)
    assert main([str(path)]) == 1
    assert "nothing orders" in capsys.readouterr().out
    assert main([str(path), "--check", "none"]) == 0
    builder = ProgramBuilder(TINY)
    builder.sync.nop(wait=(0, 1))
    save(builder.build(), path)
    assert main([str(path)]) == 1
    assert "WAIT_TIMEOUT: waits for semaphore 0 >= 1, which is 0" in capsys.readouterr().out


def test_bf16_outputs_are_codes_and_summaries_tell_of_nan(tmp_path, capsys):
    builder = ProgramBuilder(TINY)
    out = builder.hbm_tensor("out", (4, 4), DType.BF16, "output")
    tile = builder.sbuf("tile", (4, 4), DType.BF16)
    builder.vector.memset(dst=tile, imm0=float("nan"))
    builder.dma_copy(engine=0, via=builder.vector, src=tile, dst=out)
    path = tmp_path / "nan.celosia"
    save(builder.build(), path)
    assert main([str(path), "--dump", str(tmp_path)]) == 0
    assert "16 not finite" in capsys.readouterr().out
    assert (np.load(tmp_path / "out.npy") == 0x7FC0).all()


def test_programs_that_cannot_be_used(program, tmp_path, capsys):
    assert main([str(tmp_path / "none.celosia")]) == 2
    assert main([str(program), "--config", "small"]) == 2
    assert main([str(program), "--config", "nothing"]) == 2
    program.write_bytes(program.read_bytes()[:-1])
    assert main([str(program)]) == 2
    assert capsys.readouterr().err.count("error:") == 4
