"""Programs for two chips: on the RTL over several channels and on the golden model, compared."""

from dataclasses import dataclass

from celosia.programs.case import PairCase
from isa.geometry import Config
from sim.channel import RANDOM, both
from sim.device import run_pair, tensor_of
from sim.image import compare

NOISY = "noisy"
_SHOWN = ("CRC_ERRORS", "NAK_SENT", "NAK_RECEIVED", "REPLAYS", "REPLAYED_FLITS", "RECOVERIES")


def conditions(config):
    """{name: sim.channel.Channel}: perfect wires, and one error in about 400 cycles with skew."""
    lanes = config.link.lanes
    noisy = {
        "delay": 20,
        "skew": tuple(5 * lane % 7 for lane in range(lanes)),
        "offset": tuple(11 * lane % 32 for lane in range(lanes)),
        "invert": tuple(lane % 2 for lane in range(lanes)),
        "error_rate": RANDOM // (400 * lanes),
        "error_burst": 5,
    }
    return {"clean": both(delay=4), NOISY: both(**noisy)}


@dataclass
class PairVerdict:
    """What is known about a pair of programs behind its runs over one channel."""

    case: PairCase
    config: Config
    channel: str
    statuses: list
    comparisons: list
    lines: list
    good: bool

    @property
    def name(self):
        return f"{self.case.name}, {self.channel}"

    def counter(self, name):
        """Sum of a link counter over both chips."""
        return sum(port[name] for status in self.statuses for port in status.links)

    def row(self):
        """Entry of report.json."""
        first = self.statuses[0]
        cycles = max(status.cycles for status in self.statuses)
        macs = self.case.macs / (len(self.statuses) * self.config.array**2)
        return {
            "name": self.case.name,
            "channel": self.channel,
            "cycles": cycles,
            "bound_cycles": self.case.bound_cycles,
            "tensor_utilisation": macs / cycles if cycles else 0.0,
            "match": all(comparison.match for comparison in self.comparisons),
            "mismatches": sum(comparison.count for comparison in self.comparisons),
            "instructions": sum(
                s.retired for status in self.statuses for s in status.image.sequencers.values()
            ),
            "simulated_cycles_per_second": first.simulated_cycles / first.seconds,
            **{name.lower(): self.counter(name) for name in _SHOWN},
        }


def run(case, config, *, simulator, seed, waves=None):
    """A PairVerdict for each channel condition.  waves: function (condition) -> path or None."""
    golden = run_pair("golden", config, case.programs)
    verdicts = []
    for name, channel in conditions(config).items():
        rtl = run_pair(
            simulator,
            config,
            case.programs,
            channel=channel,
            seed=seed,
            waves=waves(name) if waves else None,
            checks=False,
        )
        verdicts.append(_judge(case, config, name, golden, rtl))
    return verdicts


def _judge(case, config, name, golden, rtl):
    pairs = list(zip(rtl, golden, case.programs, strict=True))
    comparisons = [compare(got.image, wanted.image, program) for got, wanted, program in pairs]
    verdict = PairVerdict(case, config, name, rtl, comparisons, [], True)
    lines = verdict.lines
    for label, statuses in (("golden", golden), ("rtl", rtl)):
        for chip, status in enumerate(statuses):
            lines += [f"{label}: chip {chip}: {error}" for error in status.errors]
        outputs = [
            {t.name: tensor_of(status.image, t) for t in program.with_role("output")}
            for status, program in zip(statuses, case.programs, strict=True)
        ]
        try:
            lines += [f"{label}: {line}" for line in case.judge(outputs)]
        except AssertionError as error:
            lines.append(f"{label}: {error}")
            verdict.good = False
    for chip, comparison in enumerate(comparisons):
        if not comparison.match:
            lines += [f"chip {chip}: {line}" for line in str(comparison).splitlines()]
    lines.append("link: " + ", ".join(f"{n.lower()} {verdict.counter(n)}" for n in _SHOWN))
    verdict.good &= all(comparison.match for comparison in comparisons)
    verdict.good &= all(status.ok for status in (*golden, *rtl))
    if name == NOISY and not (
        verdict.counter("NAK_RECEIVED") and verdict.counter("REPLAYED_FLITS")
    ):
        lines.append("link: the noise led to no NAK or to no replayed flit")
        verdict.good = False
    return verdict
