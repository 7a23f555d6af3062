"""`make bench`: speed of hardware, simulation, emission and golden model, as ratios to bounds.

    python -m sim.bench [NAME ...]

Prints a line per figure and writes build/bench/report.json: a list of {"name", "value", "bound",
"ratio", "bar", "ok"}.  ratio is value / bound; `bar` says what it must be.  Seconds are of this
machine at this moment: run it on an idle one.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass

import numpy as np
from tqdm import tqdm

from celosia.programs import back_to_back, gemm
from golden.arith import convert, matmul
from golden.arith.formats import BF16, FORMATS
from golden.arith.functions.program import apply
from golden.chip import GoldenChip
from isa.encoding import decode_descriptor
from isa.functions import PROGRAMS
from isa.geometry import WORD_BYTES, preset
from sim.build import ROOT, bare_executable
from sim.rtl import chip_model, run_jobs
from sim.script import Job, prepare_directory

OUT = ROOT / "build" / "bench"


@dataclass
class Figure:
    """One measured figure.  bar: ">= x" or "<= x" for value / bound."""

    name: str
    value: float
    bound: float
    bar: str

    @property
    def ratio(self):
        return self.value / self.bound

    @property
    def ok(self):
        relation, limit = self.bar.split()
        return self.ratio >= float(limit) if relation == ">=" else self.ratio <= float(limit)

    def as_row(self):
        return {**asdict(self), "ratio": self.ratio, "ok": bool(self.ok)}


def tensor_rate():
    """Matmuls from SBUF, new weights each: what as many again cost, against the bound.

    The difference of two runs leaves out the loads into SBUF and the way through the array.
    """
    config = preset("small")
    for columns in (64, 128, 512):
        rounds = 65536 // (back_to_back.TILES * columns)
        cases = [
            back_to_back.build(config, columns=columns, repeats=n * rounds) for n in (1, 2)
        ]
        batch = run_jobs(config, [Job(case.program) for case in cases], checks=False)
        less, more = (result.cycles for result in batch.results)
        bound = cases[1].bound_cycles - cases[0].bound_cycles
        yield Figure(
            f"tensor engine, N = {columns}, new weights each: bound / cycles", bound, more - less,
            ">= 0.99",
        )


def gemm_utilisation():
    """256^3 on `small`, first DMA to last."""
    config = preset("small")
    case = gemm.build(config)
    result = run_jobs(config, [Job(case.program)], checks=False).results[0]
    yield Figure(
        "gemm 256^3 on small: tensor utilisation",
        case.macs / config.array**2,
        result.cycles,
        ">= 0.90",
    )
    read = sum(stream.size_bytes for stream in case.program.streams)
    moved = sum(_descriptor_bytes(block) for block in case.program.descriptors)
    port = WORD_BYTES * config.hbm_ports
    roofline = min(1.0, (case.macs / config.array**2) / ((moved + read) / port))
    yield Figure(
        "gemm 256^3 on small: utilisation / roofline of the HBM port",
        case.macs / config.array**2 / result.cycles,
        roofline,
        ">= 0.90",
    )


def _descriptor_bytes(block):
    total = 0
    for word in block.words:
        d = decode_descriptor(word)
        total += d.row_bytes * int(np.prod(d.count))
    return total


def simulation_speed():
    """Whole `small` chip under cocotb, and the same model in a bare C++ loop."""
    config = preset("small")
    case = gemm.build(config)
    jobs = [Job(case.program)] * 6
    model = chip_model(config, checks=False)
    batch = run_jobs(config, jobs, checks=False, keep=OUT / "cocotb")
    directory, arguments, _ = prepare_directory(config, jobs, keep=OUT / "bare")
    executable = bare_executable(model, ROOT / "sim" / "bare.cpp")
    start = time.perf_counter()
    done = subprocess.run(
        [executable, *arguments], capture_output=True, text=True, check=True, cwd=directory
    )
    bare = time.perf_counter() - start
    cycles = int(done.stdout.split()[-1])
    yield Figure("simulation of small: cycles/s", cycles / batch.seconds, 25_000, ">= 1.0")
    yield Figure(
        "simulation of small: cocotb's share of the wall time",
        (batch.seconds - bare) / batch.seconds,
        1.0,
        "<= 0.10",
    )


def emission():
    """Emission of trn2 in a process of its own."""
    out = OUT / "trn2"
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "hdl.verilog", "--config", "trn2", "--out", str(out)],
        check=True,
        capture_output=True,
        cwd=ROOT,
    )
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    yield Figure("emission of trn2: seconds", seconds, 90, "<= 1.0")
    yield Figure("emission of trn2: peak bytes", peak, 2e9, "<= 1.0")
    yield Figure(
        "emission of trn2: bytes of Verilog", (out / "celosia.sv").stat().st_size, 25e6, "<= 1.0"
    )


def build_time():
    """Verilated build of `small` from scratch and from the cache."""
    config = preset("small")
    model = chip_model(config, checks=False)
    shutil.rmtree(model.directory)
    for label, limit in (("from scratch", 180), ("cached", 5)):
        start = time.perf_counter()
        chip_model(config, checks=False)
        yield Figure(
            f"Verilated build of small, {label}: seconds",
            time.perf_counter() - start,
            limit,
            "<= 1.0",
        )


def golden_speed():
    """gemm 512^3 at 128 x 128 geometry against the plain vectorised float32 chain of the same
    tiles.  The second run on a chip counts: the first one pays for fresh pages of its memories.
    """
    config = preset("trn2").with_(hbm_bytes=64 << 20)
    case = gemm.build_sizes(config, 512, 512, 512, 1, "gemm_512")
    plain = min(_plain_chain(512, config.array) for _ in range(3))
    chip = GoldenChip(config)
    chip.run(case.program)
    start = time.perf_counter()
    chip.run(case.program)
    yield Figure(
        "golden gemm 512^3 at 128 x 128: seconds / plain float32 chain",
        time.perf_counter() - start,
        plain,
        "<= 2.0",
    )


def golden_arithmetic():
    """Rates of the golden arithmetic on one core against what the contract asks for."""
    rng = np.random.default_rng(1)
    x = np.abs(rng.normal(size=1 << 20).astype(np.float32)) * np.float32(4)
    words = rng.integers(0, 1 << 32, x.size, dtype=np.uint32)
    for function in PROGRAMS:
        rate = x.size / _best(lambda f=function: apply(f, x))
        name = f"golden {function.name.lower()}: elements / s, of 50 M"
        yield Figure(name, rate, 50e6, ">= 1.0")
    for form in FORMATS:
        codes = convert.narrow(x, form)
        for label, run in (
            ("widen", lambda codes=codes, form=form: convert.widen(codes, form)),
            ("narrow", lambda form=form: convert.narrow(x, form)),
            ("narrow, stochastic", lambda form=form: convert.narrow(x, form, random=words)),
        ):
            rate = x.size / _best(run)
            name = f"golden {label} {form.name}: elements / s, of 100 M"
            yield Figure(name, rate, 100e6, ">= 1.0")
    a, b = (
        convert.widen(convert.narrow(rng.normal(size=size).astype(np.float32), BF16), BF16)
        for size in ((128, 128), (128, 512))
    )
    rate = 128 * 128 * 512 / _best(lambda: matmul.chain(a, b))
    yield Figure("golden tile 128 x 128 x 512, bf16: MAC / s, of 2 G", rate, 2e9, ">= 1.0")


def _best(run, rounds=7):
    """Least seconds of a few runs."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def _plain_chain(size, edge):
    """Seconds of the float32 multiply-add chain over size^3, tile by tile."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((edge, n), dtype=np.float32) for n in (edge, size))
    product, total = np.empty((edge, size), np.float32), np.zeros((edge, size), np.float32)
    start = time.perf_counter()
    for _ in range((size // edge) ** 2):
        for k in range(edge):
            np.multiply(a[k][:, None], b[k][None, :], out=product)
            np.add(total, product, out=total)
    return time.perf_counter() - start


BENCHES = {
    "tensor": tensor_rate,
    "gemm": gemm_utilisation,
    "simulation": simulation_speed,
    "emission": emission,
    "build": build_time,
    "golden": golden_speed,
    "arithmetic": golden_arithmetic,
}


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m sim.bench", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(BENCHES)}; all by default")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(BENCHES)
    if unknown:
        parser.error(f"no bench {', '.join(sorted(unknown))}; choose from {', '.join(BENCHES)}")
    OUT.mkdir(parents=True, exist_ok=True)
    figures = []
    for name in tqdm(
        options.names or BENCHES, unit="bench", disable=not sys.stderr.isatty(), leave=False
    ):
        for figure in BENCHES[name]():
            figures.append(figure)
            mark = "ok  " if figure.ok else "MISS"
            print(
                f"{mark} {figure.name}: {figure.value:.4g} / {figure.bound:.4g} "
                f"= {figure.ratio:.4f} (bar {figure.bar})",
                flush=True,
            )
    (OUT / "report.json").write_text(
        json.dumps([figure.as_row() for figure in figures], indent=1) + "\n"
    )
    return int(not all(figure.ok for figure in figures))


if __name__ == "__main__":
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    sys.exit(main())
