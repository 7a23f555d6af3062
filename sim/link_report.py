"""`make link-report`: efficiency, latency, goodput and area of a link, measured in RTL simulation.

    python -m sim.link_report [--quick]

Two ports of 64 B a beat and 8 lanes on the channel of `verif.link_bench`.  Prints a line per figure
with its bar, writes build/link/report.json and build/link/goodput.png; exit status 1 when a figure
misses its bar.
"""

import argparse
import json
import math
import sys

from tqdm import tqdm

from isa.link import CELL_BYTES, GRANULE_BYTES, LONG_CELLS, LONG_GRANULES, LinkConfig
from sim.build import ROOT
from sim.link_area import link_area
from verif.link_bench import Scenario, link_bench

OUT = ROOT / "build" / "link"
LINK = LinkConfig()
ROUND_TRIP = 150
"""Cycles from the slot of a bad flit to the effect of its NAK at which goodput is measured."""
BEYOND_RTT = 10
"""Of them, those that register RTT (from the stamp of a frame to its echo) does not count."""
RATES = (1e-9, 1e-8, 1e-7, 1e-6, 3e-6, 1e-5)
BARS = {
    "flit_efficiency": (">=", 0.974),
    "write_1k_efficiency": (">=", 0.959),
    "write_256_efficiency": (">=", 0.917),
    "short_flit_cycles": ("<=", 13),
    "long_flit_cycles": ("<=", 22),
    "sustained_slots": (">=", 0.99),
    "goodput_ber_1e-8": (">=", 0.999),
    "bad_flit_cycles": ("<=", 165),
    "goodput_ber_1e-6": (">=", 0.92),
    "flip_flops": ("<=", 17_999),
}


def bench():
    return link_bench(beat_bytes=LINK.beat_bytes, lanes=LINK.lanes)


def saturated(cycles, **changes):
    """Both directions full: packets of one size on VC 0, one on the way in at all times."""
    return bench().run(Scenario(cycles=cycles, warm_cycles=4000, vcs=1, **changes))


def wire_bytes(run):
    return run["cycles"] * LINK.beat_bytes


def efficiency(run, data_granules, packet_granules):
    """Data bytes received over bytes on the wire, the worse of the two directions."""
    granules = min(run["granules_a"], run["granules_b"])
    return granules * GRANULE_BYTES * data_granules / packet_granules / wire_bytes(run)


def sustained(run):
    """Share of the wire's bytes that are flits with payload, the worse direction."""

    def share(side):
        long = run[f"TX_LONG_{side}"]
        cells = long * LONG_CELLS + run[f"TX_DATA_{side}"] - long
        return cells * CELL_BYTES / wire_bytes(run)

    return min(share("a"), share("b"))


def latency(granules):
    """Cycles from the last beat in to the last beat out, idle link, channel without delay: the
    least; a skip step on the way adds one.
    """
    run = bench().run(
        Scenario(cycles=20_000, rate=0.004, minimum=granules, maximum=granules, vcs=1)
    )
    return max(run["latency_min_a"], run["latency_min_b"])


def delay_for_round_trip():
    """Channel delay in symbols at which the round trip of a NAK is ROUND_TRIP."""
    idle = Scenario(cycles=100, vcs=0)
    rtt = bench().run(idle)["rtt_a"]
    return (ROUND_TRIP - BEYOND_RTT - rtt) // 2


def step_error_rate(bit_error_rate):
    """Chance of an error in a step of independent bits."""
    return -math.expm1(8 * LINK.beat_bytes * math.log1p(-bit_error_rate))


ONE_DIRECTION = (("vcs_b", 0),)
"""Side B sends no payload: its flits carry acknowledgements only."""


def with_errors(bit_error_rate, delay, cycles, *, sides=ONE_DIRECTION):
    """A run of packets of 1 KiB with errors in both directions."""
    return saturated(
        cycles,
        minimum=65,
        delay=delay,
        sides=sides,
        step_error_rate=step_error_rate(bit_error_rate),
        cycle_limit=10 * cycles,
    )


def goodput(run):
    """Granules that B received against the most that the format carries."""
    best = LONG_GRANULES / LONG_CELLS / CELL_BYTES * LINK.beat_bytes
    best *= LINK.skip_cycles / (LINK.skip_cycles + 1)
    return run["granules_b"] / run["cycles"] / best


def cost_of_a_bad_flit(run):
    """Cycles without new payload for each bad flit that B has seen, its own time among them."""
    return (1 - goodput(run)) * run["cycles"] / run["CRC_ERRORS_b"]


def predicted(bit_error_rate, cost_cycles):
    """Closed form of go-back-N, what is to be expected: each bad flit costs so many cycles."""
    bad = -math.expm1(8 * CELL_BYTES * LONG_CELLS * math.log1p(-bit_error_rate))
    return (1 - bad) / (1 - bad + bad * cost_cycles / LINK.long_beats)


def measure(quick):
    """(figures of report.json, [(bit error rate, goodput one way, goodput both ways full)])."""
    scale = 1 if quick else 5
    progress = tqdm(total=6 + 2 * len(RATES), disable=not sys.stderr.isatty(), leave=False)

    def done(value):
        progress.update()
        return value

    kilo = done(saturated(40_000, minimum=65))
    small = done(saturated(40_000, minimum=17, maximum=17))
    figures = {
        "flit_efficiency": efficiency(kilo, 1, 1),
        "write_1k_efficiency": efficiency(kilo, 64, 65),
        "write_256_efficiency": efficiency(small, 16, 17),
        "short_flit_cycles": done(latency(3)),
        "long_flit_cycles": done(latency(LONG_GRANULES)),
        "sustained_slots": min(sustained(kilo), sustained(small)),
    }
    delay = delay_for_round_trip()
    curve = []
    for rate in RATES:
        cycles = scale * (400_000 if rate < 1e-6 else 100_000)
        one = done(goodput(with_errors(rate, delay, cycles)))
        both = done(goodput(with_errors(rate, delay, cycles, sides=())))
        curve.append((rate, one, both))
    # What is to be expected, whatever errors a run happens to have: from a cost over many of them
    cost = done(cost_of_a_bad_flit(with_errors(1e-6, delay, scale * 800_000)))
    figures["goodput_ber_1e-8"], figures["goodput_ber_1e-6"] = (
        predicted(rate, cost) for rate in (1e-8, 1e-6)
    )
    figures["bad_flit_cycles"] = cost
    figures["flip_flops"] = done(link_area(LINK)["flip_flops"])
    progress.close()
    return figures, curve


def plot(curve, path):
    """Measured goodput over the bit error rate, with the closed form."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    rates, values, both = zip(*curve, strict=True)
    fine = [10 ** (-9 + i / 25) for i in range(101)]
    axes.semilogx(
        fine,
        [predicted(rate, ROUND_TRIP + LINK.long_beats) for rate in fine],
        label=f"closed form, loss of a flit and {ROUND_TRIP} cycles",
    )
    axes.semilogx(rates, values, "o", label="RTL simulation, one direction full")
    axes.semilogx(rates, both, "s", label="RTL simulation, both directions full")
    axes.set_xlabel("bit error rate")
    axes.set_ylabel("goodput / clean link")
    axes.set_title(f"Go-back-N over {ROUND_TRIP} cycles of round trip, 64 B a cycle, 8 lanes")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def meets(name, value):
    relation, bar = BARS[name]
    return value >= bar if relation == ">=" else value <= bar


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m sim.link_report", description="Figures.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the cycles")
    options = parser.parse_args(arguments)
    OUT.mkdir(parents=True, exist_ok=True)
    figures, curve = measure(options.quick)
    (OUT / "report.json").write_text(json.dumps(figures, indent=1) + "\n")
    plot(curve, OUT / "goodput.png")
    for name, value in figures.items():
        relation, bar = BARS[name]
        text = f"{value:.5f}" if isinstance(value, float) else f"{value}"
        verdict = "" if meets(name, value) else "   MISSED"
        print(f"{name:22} {text:>10}   bar {relation} {bar}{verdict}")
    print("bit error rate: goodput with one direction full, with both")
    for rate, one, both in curve:
        print(f"{rate:14.0e}: {one:.4f} {both:.4f}")
    print(f"plot in {(OUT / 'goodput.png').relative_to(ROOT)}")
    return int(not all(meets(name, value) for name, value in figures.items()))


if __name__ == "__main__":
    sys.exit(main())
