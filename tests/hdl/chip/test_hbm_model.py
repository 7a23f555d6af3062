"""The HBM simulation model under its self-checking bench, in Verilator and in Icarus."""

import os
import re
import shutil
import subprocess

import pytest

from sim.build import MAKE_VALUES, ROOT, verilator_binary

MODELS = ROOT / "sim" / "models"
SOURCES = [MODELS / "hbm_check.sv", MODELS / "hbm.sv"]
TIMINGS = {
    "fast": "latency=1",
    "slow": "latency=60 jitter=15",
    "reordering": "latency=5 jitter=31 reorder=1",
    "stalling": "latency=3 jitter=15 reorder=1 stall=90 seed=5",
    "throttled": "latency=4 rate=64",
}


def counts(text):
    """Numbers of the bench's last line."""
    found = re.search(r"reads (\d+) writes (\d+) errors (\d+) overtakes (\d+) failed (\d+)", text)
    assert found, text
    return dict(
        zip(
            ("reads", "writes", "errors", "overtakes", "failed"),
            map(int, found.groups()),
            strict=True,
        )
    )


def judge(name, cycles, moved):
    assert moved["failed"] == 0
    assert moved["errors"] > 0, "accesses outside the memory were among them"
    assert (moved["overtakes"] > 0) == ("reorder" in TIMINGS[name])
    per_port = (moved["reads"] + moved["writes"]) / 2 / cycles
    low, high = {"fast": (0.4, 1.0), "throttled": (0.15, 0.26)}.get(name, (0.02, 1.0))
    assert low <= per_port <= high, f"{per_port:.3f} beats a cycle and port"


def plusargs(name, cycles):
    return [f"+{item}" for item in (*TIMINGS[name].split(), f"cycles={cycles}")]


@pytest.fixture(scope="module")
def verilator_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hbm")
    command = [
        verilator_binary(),
        "--cc",
        "--exe",
        "--build",
        "-O3",
        "--x-assign",
        "fast",
        "-Wall",
        "--top-module",
        "hbm_check",
        "--Mdir",
        str(folder),
        *map(str, SOURCES),
        str(MODELS / "hbm_check.cpp"),
    ]
    # Warnings are errors here: the model is lint-clean.
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MAKEFLAGS": " ".join(MAKE_VALUES)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "Vhbm_check"


@pytest.mark.parametrize("name", TIMINGS)
def test_under_verilator(verilator_model, name):
    cycles = 100_000
    done = subprocess.run(
        [str(verilator_model), *plusargs(name, cycles)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    judge(name, cycles, counts(done.stdout))
    seconds = float(re.search(r"seconds (\S+)", done.stdout)[1])
    print(f"{name}: {cycles / seconds:,.0f} cycles/s with its bench, {counts(done.stdout)}")


@pytest.mark.icarus
@pytest.mark.parametrize("name", ["fast", "stalling"])
def test_under_icarus(tmp_path, name):
    """Four-state: an X in an answer would not compare equal."""
    top = tmp_path / "top.sv"
    top.write_text(
        "module top; reg clk = 0; wire done, failed; hbm_check bench(clk, done, failed);\n"
        "always #5 clk = ~clk; always @(posedge done) $finish; endmodule\n"
    )
    program = tmp_path / "hbm.vvp"
    subprocess.run(
        [
            shutil.which("iverilog"),
            "-g2012",
            "-s",
            "top",
            "-o",
            str(program),
            str(top),
            *map(str, SOURCES),
        ],
        check=True,
    )
    done = subprocess.run(
        ["vvp", str(program), *plusargs(name, 6000)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    judge(name, 6000, counts(done.stdout))


@pytest.mark.icarus
def test_the_bench_sees_a_broken_model(tmp_path):
    """The bench itself: a model that swaps two bytes, or forgets a strobe, fails it."""
    top = tmp_path / "top.sv"
    top.write_text(
        "module top; reg clk = 0; wire done, failed; hbm_check bench(clk, done, failed);\n"
        "always #5 clk = ~clk; always @(posedge done) $finish; endmodule\n"
    )
    good = (MODELS / "hbm.sv").read_text()
    for was, now in (
        ("if (wstrb[p*16+b])", "if (wstrb[p*16])"),
        ("word < END ? 2'd0 : 2'd3", "2'd0"),
        ("rlast[p] <= s_beats[p] == 9'd1", "rlast[p] <= 1'b1"),
        ("s_addr[p] + 64'd16", "s_addr[p] + 64'd32"),
    ):
        assert was in good
        broken = tmp_path / "hbm.sv"
        broken.write_text(good.replace(was, now))
        program = tmp_path / "hbm.vvp"
        subprocess.run(
            [
                "iverilog",
                "-g2012",
                "-s",
                "top",
                "-o",
                str(program),
                str(top),
                str(SOURCES[0]),
                str(broken),
            ],
            check=True,
        )
        done = subprocess.run(
            ["vvp", str(program), "+cycles=3000"],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        assert counts(done.stdout)["failed"] == 1, now
