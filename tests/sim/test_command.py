"""`make sim`'s command line: what it accepts, what it says about bad input, what it writes."""

import json

import pytest

from celosia.programs import gemm
from celosia.programs.case import tensor_bound
from isa.disassembler import disassemble
from isa.geometry import preset
from isa.program_file import save
from sim import __main__ as command


@pytest.fixture
def report(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "OUT", tmp_path)
    return tmp_path / "report.json"


def run(*arguments):
    return command.main(["--config", "tiny", *arguments])


def test_program_file_and_assembly_run_alike(tmp_path, report, capsys):
    case = gemm.build_sizes(preset("tiny"), 9, 6, 7, 1, "nine")
    binary, text = tmp_path / "nine.celosia", tmp_path / "nine.casm"
    save(case.program, binary)
    text.write_text(disassemble(case.program))
    rows = []
    for path in (binary, text):
        assert run(str(path)) == 0
        (row,) = json.loads(report.read_text())["programs"]
        rows.append(
            {key: value for key, value in row.items() if key != "simulated_cycles_per_second"}
        )
    assert rows[0] == rows[1]
    assert rows[0]["match"] and rows[0]["mismatches"] == 0 and rows[0]["instructions"] > 20
    assert "equal" in capsys.readouterr().out


def test_report_names_what_was_asked(report):
    assert run("odd_gemm") == 0
    facts = json.loads(report.read_text())
    assert (facts["config"], facts["simulator"]) == ("tiny", "verilator")
    assert set(facts["programs"][0]) == {
        "name",
        "cycles",
        "bound_cycles",
        "tensor_utilisation",
        "match",
        "mismatches",
        "instructions",
        "simulated_cycles_per_second",
    }


@pytest.mark.parametrize(
    "content, reason",
    [(b"", "truncated"), (b"not a program at all" * 10, "magic"), (None, "no program")],
    ids=["empty", "foreign", "absent"],
)
def test_bad_program_file(tmp_path, report, capsys, content, reason):
    path = tmp_path / "bad.celosia"
    if content is not None:
        path.write_bytes(content)
    assert run(str(path)) == 1
    message = capsys.readouterr().err
    assert message.startswith("error:") and "bad.celosia" in message, reason


def test_program_for_another_configuration(tmp_path, report, capsys):
    path = tmp_path / "small.celosia"
    save(gemm.build_sizes(preset("small"), 16, 16, 16, 1, "x").program, path)
    assert run(str(path)) == 1
    assert "small" in capsys.readouterr().err


def test_malformed_assembly_names_file_and_line(tmp_path, report, capsys):
    path = tmp_path / "bad.casm"
    path.write_text(".config tiny\n.stream sync\n  fly_away\n")
    assert run(str(path)) == 1
    assert "bad.casm:3" in capsys.readouterr().err


def test_mismatch_gives_a_non_zero_status(report, capsys, monkeypatch):
    """A model that is wrong on purpose."""
    from golden.engines.vector import VectorEngine

    monkeypatch.setattr(VectorEngine, "tensor_copy", lambda self, operation: None)
    assert run("odd_gemm") == 1
    text = capsys.readouterr().out
    assert "DIFFERENT" in text and "again with make sim" in text


def test_bound_counts_every_tile():
    config = preset("small")
    assert tensor_bound(config, [[256]] * 256) == 256 * 256 + 4 + 31
    assert tensor_bound(config, [[3], [40]]) == 16 + 40 + 4 + 31
