# amaranth: UnusedElaboratable=no
"""Lanes: the emitted Verilog does what Amaranth simulates, from training to data; their size."""

import re

import pytest

from hdl.emit import emit
from hdl.link.lane_rx import LaneReceive
from hdl.link.lane_tx import LaneTransmit
from isa.link import LinkConfig, Width
from verif.icarus import assert_same, ports
from verif.lane_channel import Channel, LaneBench


def recorded(link, width):
    """([inputs] of the transmitter, of the receiver), cycle by cycle, of a run with faults."""
    lanes = link.lanes
    channel = Channel(
        link, delays=[i * 5 % 8 for i in range(lanes)], inverted=0b0110, reversed_=True
    )
    bench = LaneBench(link, channel)
    steps = [], []

    def record():
        for part, stimuli in zip((bench.tx, bench.rx), steps, strict=True):
            inputs, _ = ports(part)
            stimuli.append({name: bench.ctx.get(signal) for name, signal in inputs.items()})

    bench.before_tick = record

    async def script(b):
        b.ready = b.offer = 0.95
        await b.restart(width)
        await b.cycle(40)
        b.same(10)
        b.set(b.tx, inject_rate=1 << 31, inject_burst=5)
        await b.cycle(20)
        b.set(b.tx, inject_rate=0, send=3)
        b.set(b.rx, prbs=1)
        await b.cycle(20)
        b.set(b.rx, clear=1)
        b.set(b.tx, clear=1, send=0)
        await b.cycle(4)

    bench.run(script)
    return steps


@pytest.mark.icarus
@pytest.mark.parametrize(
    ("beat_bytes", "lanes", "width"),
    [(16, 4, Width.FULL), (32, 4, Width.HIGH_HALF), (64, 4, Width.QUARTER2)],
)
def test_emitted(tmp_path, beat_bytes, lanes, width):
    link = LinkConfig(beat_bytes=beat_bytes, lanes=lanes, deskew_depth=16)
    for make, stimuli in zip((LaneTransmit, LaneReceive), recorded(link, width), strict=True):
        assert_same(lambda make=make: make(link), stimuli, tmp_path)


REGISTER = re.compile(r"^ *reg (?:\[(\d+):0\] )?(\\?[^\s;]+) ?(?: = [^;]*)?;", re.MULTILINE)
"""What has an assignment at a clock edge besides is a register; memories have a range behind."""


def registers(verilog):
    """Bits of the registers of an emitted text, tiles times their instances."""
    modules = {}
    for text in re.split(r"^(?=(?:\(\*[^\n]*\*\)\n)*module )", verilog, flags=re.MULTILINE):
        name = re.search(r"^module (\\?\S+?) ?\(", text, re.MULTILINE)
        if name:
            modules[name.group(1)] = text

    def bits(name):
        text, count = modules[name], 0
        for high, register in REGISTER.findall(text):
            if re.search(rf"{re.escape(register)} ?(?:\[[^]]*\])? <= ", text):
                count += int(high or 0) + 1
        for instance in re.findall(r"^ *(\\?\S+) +\\?\S+ +\(", text, re.MULTILINE):
            count += bits(instance) if instance in modules else 0
        return count

    return bits("top")


def test_size():
    """Registers of both directions at 64 B and 8 lanes; the whole link has a bound of 18,000."""
    link = LinkConfig(beat_bytes=64, lanes=8)
    sizes = [registers(emit(part(link), "top")) for part in (LaneTransmit, LaneReceive)]
    assert 1000 < sizes[0] < 1400 and 1000 < sizes[1] < 1700, sizes
