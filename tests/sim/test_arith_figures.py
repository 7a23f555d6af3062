"""docs/arithmetic: its figures keep their bars, are those of the units, and the page shows them."""

import copy
import json
import re

import pytest

from hdl.arith.divide import DIVIDE_STEPS, Fp32Divide
from hdl.arith.power import POWER_STEPS, Power
from hdl.scalar.lane import TABLE_STAGES, LaneTiming, ScalarLane
from hdl.vector.lane import VectorLane
from isa.fields import SLOW_CYCLES
from sim import arith_report, fmax
from sim.arith_report import (
    DATA,
    FMAX_BAR,
    FMAX_STAGES,
    PAGE,
    PLOT,
    measure,
    misses,
    page,
    promise,
)
from sim.arith_units import UNITS

_OLD = "docs/arithmetic.json is old: run make arith-report"


@pytest.fixture(scope="module")
def data():
    return json.loads(DATA.read_text())


def test_every_unit_is_measured(data):
    assert list(data["units"]) == list(UNITS), _OLD
    for name, figures in data["units"].items():
        unit = UNITS[name]
        kept = [figures["stages"], figures["latency"], figures["rate"]]
        assert kept == [unit.stages, unit.cycles, unit.rate], (name, _OLD)
        built = unit.build()
        # What a unit says of itself, where its time does not come with its operands.
        if unit.latency is None and hasattr(built, "latency"):
            assert built.latency == unit.cycles, name
        assert figures["LUT"] > 0 and figures["MHz"] > 0, name
        assert figures["FF"] > 0 or unit.cycles == 0, name


def test_bars_hold(data):
    assert misses(data) == []
    bars = {name: unit.bars for name, unit in UNITS.items() if unit.bars}
    assert bars == {
        "PE": {"LUT": 560, "DSP": 1},
        "decoder": {"LUT": 155},
        "FP32 adder": {"LUT": 500},
        "cast, BF16 alone": {"LUT": 145},
    }
    assert (FMAX_BAR, FMAX_STAGES) == (65, 8)


def test_a_missed_bar_is_told(data):
    worse = copy.deepcopy(data)
    worse["units"]["FP32 adder"]["LUT"] = 501
    worse["units"]["PE"]["DSP"] = 2
    worse["fmax"][-1]["MHz"] = 64.9
    assert misses(worse) == [
        "PE: 2 DSP, at most 1 are allowed",
        "FP32 adder: 501 LUT, at most 500 are allowed",
        "PE of 8 stages: 64.9 MHz, at least 65.0",
    ]


def test_curve_has_every_number_of_stages(data):
    assert [point["stages"] for point in data["fmax"]] == list(range(1, 9)), _OLD
    for point in data["fmax"]:
        assert (point["multiply"], point["add"]) == fmax.SPLITS[point["stages"]], _OLD
        assert point["multiply"] + point["add"] == point["stages"]
    assert data["fmax"][-1]["MHz"] > 2 * data["fmax"][0]["MHz"]
    assert PLOT.exists()


def test_page_is_current(data):
    assert PAGE.read_text() == page(data), "run python -m sim.arith_report --page"


def test_the_page_tells_figures_and_errors(data):
    text = page(data)
    for figures in data["units"].values():
        assert f"| {figures['LUT']} |" in text
    assert "exp 0.9" in text and "log 4.2e-08 absolute" in text


@pytest.mark.parametrize("name", [name for name, unit in UNITS.items() if unit.bars])
def test_figures_are_those_of_the_unit(data, name, tmp_path, monkeypatch):
    """Yosys is deterministic and its version pinned."""
    monkeypatch.setattr(arith_report, "OUT", tmp_path)
    assert measure(name) | {"MHz": data["units"][name]["MHz"]} == data["units"][name], _OLD


def test_bars_are_measured_without_the_page(monkeypatch, capsys):
    """`make report`: figures of now against the bars."""
    monkeypatch.setattr(arith_report, "measure", lambda name: {"LUT": 500, "DSP": 1})
    assert arith_report.main(["--bars"]) == 1
    printed = capsys.readouterr()
    assert "FP32 adder        500 LUT of 500\n" in printed.out
    assert printed.err.splitlines() == [
        "error: decoder: 500 LUT, at most 155 are allowed",
        "error: cast, BF16 alone: 500 LUT, at most 145 are allowed",
    ]


def stated(part):
    return " ".join(promise(part).split())


@pytest.mark.parametrize("part", dict.fromkeys(unit.part for unit in UNITS.values()))
def test_every_unit_tells_its_contract(part):
    """What it computes, formats, rate, latency, source."""
    wanted = ("[a-z_]+ = ", "Formats: |words of 32 bits", "a cycle|result in", "latency|cycles")
    for pattern in (*wanted, "Sources?: "):
        assert re.search(pattern, stated(part)), pattern


@pytest.mark.parametrize(
    ("part", "name", "cycles"),
    [
        (Fp32Divide, "DIVIDE_STEPS", DIVIDE_STEPS),
        (Power, "POWER_STEPS", POWER_STEPS),
        (VectorLane, "SLOW_CYCLES", SLOW_CYCLES),
    ],
)
def test_stated_cycles_are_those_of_the_unit(part, name, cycles):
    found = re.findall(rf"{name} = (\d+) cycles|one result in (\d+) cycles", stated(part))
    assert found and {int(a or b) for a, b in found} == {cycles}


@pytest.mark.parametrize("stages", range(1, 7))
def test_stated_latency_of_the_scalar_lane(stages):
    formula = "`LaneTiming.result` = 2 + 2 * stages + `TABLE_STAGES` * stages cycles"
    assert formula in stated(ScalarLane)
    assert LaneTiming(stages).result == 2 + 2 * stages + TABLE_STAGES * stages


def test_unknown_unit_is_named(capsys):
    with pytest.raises(SystemExit):
        arith_report.main(["adder"])
    assert "no unit 'adder'; there are PE, " in capsys.readouterr().err


def test_a_tool_that_fails_is_told(tmp_path):
    with pytest.raises(RuntimeError, match="yosys ended with 1, log in .*/yosys.log"):
        fmax.run(tmp_path, "yosys", "raise SystemExit(1)")
    with pytest.raises(
        RuntimeError, match=r"nextpnr: not installed; run pip install -e '.\[fmax\]"
    ):
        fmax.run(tmp_path, "nextpnr", "import no_such_module_at_all")
