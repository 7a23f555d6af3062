"""`make link-report`: efficiency, latency, goodput and area of a link, measured in RTL simulation.

    python -m sim.link_report [--quick]

Two ports of 64 B a beat and 8 lanes on the channel of `verif.link_bench`.  Prints a line per figure
with its bar, writes build/link/report.json and build/link/goodput.png; exit status 1 when a figure
misses its bar.
"""

import argparse
import json
import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import chain

from tqdm import tqdm

from isa.link import CELL_BYTES, GRANULE_BYTES, LONG_CELLS, LONG_GRANULES, LinkConfig
from sim.build import ROOT
from sim.link_area import link_area
from verif.link_bench import Scenario, link_bench

OUT = ROOT / "build" / "link"
LINK = LinkConfig()
ROUND_TRIP = 150
"""Cycles of round trip at which goodput is measured (docs/decisions/0013): from the slot that ends
a bad flit to the effect of its NAK."""
RATES = (1e-9, 1e-8, 1e-7, 1e-6, 3e-6, 1e-5)
BARS = {
    "flit_efficiency": (">=", 0.974),
    "write_1k_efficiency": (">=", 0.959),
    "write_256_efficiency": (">=", 0.917),
    "short_flit_cycles": ("<=", 13),
    "long_flit_cycles": ("<=", 22),
    "sustained_slots": (">=", 0.99),
    "goodput_ber_1e-8": (">=", 0.999),
    "goodput_ber_1e-6": (">=", 0.92),
    "goodput_ber_1e-8_closed_form": (">=", 0.999),
    "goodput_ber_1e-6_closed_form": (">=", 0.92),
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


ONE_DIRECTION = (("vcs_b", 0),)
"""Side B sends no payload: its flits carry acknowledgements only."""


def step_error_rate(bit_error_rate):
    """Chance of an error in a step of independent bits."""
    return -math.expm1(8 * LINK.beat_bytes * math.log1p(-bit_error_rate))


def with_errors(bit_error_rate, delays, cycles, *, sides=ONE_DIRECTION, seed=1):
    """A run of packets of 1 KiB with errors in both directions; `delays` in symbols, of both."""
    return saturated(
        cycles,
        minimum=65,
        sides=(*sides, *zip(("delay_a", "delay_b"), delays, strict=True)),
        step_error_rate=step_error_rate(bit_error_rate),
        cycle_limit=10 * cycles,
        seed=seed,
    )


def delays_for(round_trip, run=None):
    """Symbols of delay of both directions at which a NAK takes `round_trip` cycles, from its way
    over a channel without delay (`run`); ValueError below that.
    """
    shortest = (run or with_errors(1e-5, (0, 0), 20_000))["nak_way_min_a"]
    if round_trip < shortest:
        raise ValueError(f"round trip of {round_trip} cycles: at least {shortest}")
    return (round_trip - shortest) // 2, (round_trip - shortest + 1) // 2


def _sum(runs, name):
    return sum(run[name] for run in runs)


def goodput(*runs):
    """Granules that B received against the most that the format carries."""
    best = LONG_GRANULES / LONG_CELLS / CELL_BYTES * LINK.beat_bytes
    best *= LINK.skip_cycles / (LINK.skip_cycles + 1)
    return _sum(runs, "granules_b") / _sum(runs, "cycles") / best


def cost_of_a_bad_flit(*runs):
    """Cycles without new payload for each bad flit that B has seen, its own time among them."""
    return (1 - goodput(*runs)) * _sum(runs, "cycles") / _sum(runs, "CRC_ERRORS_b")


def closed_form(bit_error_rate, cost_cycles):
    """Goodput of go-back-N where each bad flit costs so many cycles."""
    bad = -math.expm1(8 * CELL_BYTES * LONG_CELLS * math.log1p(-bit_error_rate))
    return (1 - bad) / (1 - bad + bad * cost_cycles / LINK.long_beats)


def measure(quick):
    """(figures of report.json, [(bit error rate, goodput one way, goodput both ways full)])."""
    part = 200_000 if quick else 2_000_000
    parts = {1e-8: 12, 1e-6: 8}
    bench()
    delays = delays_for(ROUND_TRIP)
    by_register = delays_for(ROUND_TRIP + _beyond_register(delays))
    with ThreadPoolExecutor(os.cpu_count()) as pool:

        def errors(rate, cycles=part, places=delays, **changes):
            return pool.submit(with_errors, rate, places, cycles, **changes)

        # The long ones first
        one = {
            rate: [errors(rate, seed=seed) for seed in range(1, 1 + parts.get(rate, 1))]
            for rate in sorted(RATES, key=lambda rate: -parts.get(rate, 1))
        }
        both = {rate: errors(rate, sides=()) for rate in RATES}
        longer = [errors(1e-6, places=by_register, seed=seed) for seed in (1, 2)]
        kilo = pool.submit(saturated, 40_000, minimum=65)
        small = pool.submit(saturated, 40_000, minimum=17, maximum=17)
        short, long = pool.submit(latency, 3), pool.submit(latency, LONG_GRANULES)
        area = pool.submit(link_area, LINK)
        futures = [*chain(*one.values()), *both.values(), *longer, kilo, small, short, long, area]
        for _ in tqdm(as_completed(futures), total=len(futures), disable=None, leave=False):
            pass
    one = {rate: [run.result() for run in runs] for rate, runs in one.items()}
    kilo, small = kilo.result(), small.result()
    cost = cost_of_a_bad_flit(*one[1e-6])
    longer = cost_of_a_bad_flit(*(run.result() for run in longer))
    figures = {
        "flit_efficiency": efficiency(kilo, 1, 1),
        "write_1k_efficiency": efficiency(kilo, 64, 65),
        "write_256_efficiency": efficiency(small, 16, 17),
        "short_flit_cycles": short.result(),
        "long_flit_cycles": long.result(),
        "sustained_slots": min(sustained(kilo), sustained(small)),
        "goodput_ber_1e-8": goodput(*one[1e-8]),
        "goodput_ber_1e-6": goodput(*one[1e-6]),
        "bad_flits_ber_1e-8": _sum(one[1e-8], "CRC_ERRORS_b"),
        "bad_flits_ber_1e-6": _sum(one[1e-6], "CRC_ERRORS_b"),
        "bad_flit_cycles": cost,
        "goodput_ber_1e-8_closed_form": closed_form(1e-8, cost),
        "goodput_ber_1e-6_closed_form": closed_form(1e-6, cost),
        "rtt_register": one[1e-6][0]["rtt_a"],
        "bad_flit_cycles_rtt_register_150": longer,
        "goodput_ber_1e-6_rtt_register_150": closed_form(1e-6, longer),
        "flip_flops": area.result()["flip_flops"],
    }
    curve = [(rate, goodput(*one[rate]), goodput(both[rate].result())) for rate in RATES]
    return figures, curve


def _beyond_register(delays):
    """Cycles that the way of a NAK is longer than register RTT says."""
    return (
        ROUND_TRIP
        - bench().run(
            Scenario(cycles=100, vcs=0, sides=(("delay_a", delays[0]), ("delay_b", delays[1])))
        )["rtt_a"]
    )


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
        [closed_form(rate, ROUND_TRIP + LINK.long_beats) for rate in fine],
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
    """Whether a figure keeps its bar; one without a bar does."""
    relation, bar = BARS.get(name, (">=", value))
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
        text = f"{value:.5f}" if isinstance(value, float) else f"{value}"
        bar = "   bar {} {}".format(*BARS[name]) if name in BARS else ""
        print(f"{name:33} {text:>10}{bar}{'' if meets(name, value) else '   MISSED'}")
    print("bit error rate: goodput with one direction full, with both")
    for rate, one, both in curve:
        print(f"{rate:14.0e}: {one:.4f} {both:.4f}")
    print(f"plot in {(OUT / 'goodput.png').relative_to(ROOT)}")
    return int(not all(meets(name, value) for name, value in figures.items()))


if __name__ == "__main__":
    sys.exit(main())
