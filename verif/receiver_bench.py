"""Bench of the link receiver in Amaranth's simulator: beats in, everything that comes out by cycle.

The flits are built by `golden.link.flit`, whose CRC is checked against an independent one.
"""

import random
from dataclasses import dataclass, field

from amaranth.hdl import Value
from amaranth.sim import Simulator

from golden.link.flit import build
from isa.link import (
    GRANULE_BYTES,
    LONG_GRANULES,
    NO_PACKET,
    SHORT_GRANULES,
    FlitType,
    Format,
)

SESSION, EPOCH = 0x1234ABCD, 2
VERDICT_CYCLES = 3
MODULUS = 1024


@dataclass
class Step:
    """Inputs of a cycle: `beat` (bytes) or None for a gap."""

    beat: bytes | None = None
    enable: int = 1
    clear: int = 0
    nak_taken: int = 0
    session: int = SESSION
    epoch: int = EPOCH


@dataclass
class Flits:
    """A sender without a memory: builds flits, one after another."""

    rng: random.Random = field(default_factory=lambda: random.Random(1))
    sequence: int = 0
    session: int = SESSION
    epoch: int = EPOCH

    def flit(self, kind, flit_format=Format.SHORT, body=b"", session=None, **slot):
        """Bytes of a flit; fields that are not named are random where any value is legal."""
        rng = self.rng
        fields = {
            "type": kind,
            "epoch": self.epoch,
            "acknowledge": rng.randrange(MODULUS),
            "credit_a_vc": rng.randrange(8),
            "credit_a": rng.randrange(4096),
            "credit_b_vc": rng.randrange(8),
            "credit_b": rng.randrange(4096),
            "congestion": rng.randrange(4),
            "first": NO_PACKET,
            **slot,
        }
        return build(flit_format, body, fields, self.session if session is None else session)

    def data(self, granules, next_format=Format.SHORT, flit_format=Format.SHORT, **slot):
        """The next payload flit, with random payload."""
        rng = self.rng
        fields = {
            "sequence": self.sequence,
            "payload": 1,
            "vc": rng.randrange(8),
            "valid": granules,
            "first": rng.choice([NO_PACKET, rng.randrange(granules)]),
            "next_format": next_format,
            **slot,
        }
        if "sequence" not in slot:
            self.sequence = (self.sequence + 1) % MODULUS
        body = rng.randbytes(GRANULE_BYTES * granules)
        return self.flit(FlitType.DATA, flit_format, body, **fields)

    def idle(self, next_format=Format.SHORT, kind=FlitType.CONTROL, **slot):
        """A flit without payload at this place of the stream."""
        fields = {"sequence": (self.sequence - 1) % MODULUS, "next_format": next_format, **slot}
        return self.flit(kind, **fields)

    def replay(self, next_format=Format.SHORT, **slot):
        """A REPLAY flit at this place of the stream."""
        return self.idle(next_format, FlitType.REPLAY, **slot)

    def stream(self, count, share_long=0.4, share_idle=0.2, announced=Format.SHORT, **slot):
        """`count` clean flits in a random mix; the last one announces a short one."""
        flits = []
        for index in range(count):
            following = Format(index < count - 1 and self.rng.random() < share_long)
            if announced == Format.LONG:
                flits.append(self.data(LONG_GRANULES, following, Format.LONG, **slot))
            elif self.rng.random() < share_idle:
                flits.append(self.idle(following))
            else:
                flits.append(self.data(self.rng.randint(1, SHORT_GRANULES), following, **slot))
            announced = following
        return flits


def beats(link, flits):
    """Steps of flits (or any bytes of whole beats) back to back."""
    size = link.beat_bytes
    return [Step(flit[i : i + size]) for flit in flits for i in range(0, len(flit), size)]


def with_gaps(steps, rng, share):
    """The same steps with cycles without a beat between them."""
    result = []
    for step in steps:
        while rng.random() < share:
            result.append(Step(None))
        result.append(step)
    return result


def flip(flit, *bits):
    """The flit with those bits inverted."""
    value = int.from_bytes(flit, "little")
    for bit in bits:
        value ^= 1 << bit
    return value.to_bytes(len(flit), "little")


def outputs_of(component):
    """{name: value} of all outputs."""
    return {
        "__".join(str(part) for part in path): Value.cast(value)
        for path, member, value in component.signature.flatten(component)
        if member.flow.name == "Out"
    }


def run_receiver(dut, link, steps, *, rtt=1000, drain=None):
    """{output: value} of each cycle, before its edge, of `steps` and the cycles behind them."""
    outputs = outputs_of(dut)
    names = list(outputs)
    trace = []
    quiet = [Step()] * (4 * link.long_beats if drain is None else drain)

    async def bench(ctx):
        ctx.set(dut.rtt, rtt)
        last = None
        for step in [*steps, *quiet]:
            ctx.set(dut.i_valid, step.beat is not None)
            if step.beat is not None:
                ctx.set(dut.i_data, int.from_bytes(step.beat, "little"))
            rest = (step.enable, step.clear, step.nak_taken, step.session, step.epoch)
            if rest != last:
                last = rest
                ctx.set(dut.enable, step.enable)
                ctx.set(dut.clear, step.clear)
                ctx.set(dut.reverse.nak_taken, step.nak_taken)
                ctx.set(dut.peer_session, step.session)
                ctx.set(dut.peer_epoch, step.epoch)
            _, _, *values = await ctx.tick().sample(*outputs.values())
            trace.append(dict(zip(names, values, strict=True)))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return trace


PULSES = (
    "acknowledge__valid", "credit__valid", "error", "nak_limit", "progress", "peer_command",
    "rx_short", "rx_long", "rx_data", "crc_errors", "sequence_gaps", "duplicates", "nak_repeats",
    "epoch_drops", "poison_received",
)  # fmt: skip


def events(trace):
    """[(cycle, {name: value})] of cycles in which something happened, `deliver` apart."""
    found = []
    for cycle, values in enumerate(trace):
        now = {name: values[name] for name in PULSES if values[name]}
        if values["acknowledge__valid"]:
            now["acknowledge"] = (values["acknowledge__acknowledge"], values["acknowledge__nak"])
        if values["credit__valid"]:
            now["credit"] = tuple(values[f"credit__{name}"] for name in ("a_vc", "a", "b_vc", "b"))
        if now:
            found.append((cycle, now))
    return found


def totals(trace):
    """{event: how often}."""
    return {name: sum(values[name] != 0 for values in trace) for name in PULSES}


def delivered(trace, link):
    """[(vc, bytes, first or NO_PACKET, poison, cycle of the first beat)] of each flit delivered.

    Checks that the beats of a flit are full but for the last one and carry one VC and poison.
    """
    size, full = GRANULE_BYTES, link.beat_granules
    flits = []
    for cycle, values in enumerate(trace):
        beat = {
            name.removeprefix("deliver__"): value
            for name, value in values.items()
            if name.startswith("deliver__")
        }
        if not beat["valid"]:
            continue
        assert 1 <= beat["granules"] <= full, f"cycle {cycle}: {beat['granules']} granules"
        if beat["start"]:
            flits.append([beat["vc"], b"", NO_PACKET, beat["poison"], cycle])
        flit = flits[-1]
        assert (flit[0], flit[3]) == (beat["vc"], beat["poison"]), f"cycle {cycle}: flits mixed"
        assert len(flit[1]) % (full * size) == 0, f"cycle {cycle}: a beat in mid flit is not full"
        if beat["first_valid"]:
            assert flit[2] == NO_PACKET, f"cycle {cycle}: a second `first`"
            assert beat["first"] < beat["granules"], f"cycle {cycle}: `first` beyond the beat"
            flit[2] = len(flit[1]) // size + beat["first"]
        flit[1] += beat["data"].to_bytes(size * full, "little")[: size * beat["granules"]]
    return [tuple(flit) for flit in flits]
