# amaranth: UnusedElaboratable=no
"""Run-time checks: silent on good streams, loud on bad ones, absent from production Verilog."""

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In
from amaranth.sim import Simulator

from hdl.emit import emit
from hdl.lib.check import check, check_stream, checks_enabled
from hdl.lib.issue import ColumnOperand
from hdl.lib.tile import EmitPlatform


class Checked(wiring.Component):
    """A stream and a condition under check, on the platform given or the one that elaborates."""

    def __init__(self, shape=8, platform=None):
        self.platform = platform
        super().__init__({"s": In(stream.Signature(shape)), "ok": In(1, init=1)})

    def elaborate(self, platform):
        m, beat = Module(), Signal()
        m.d.sync += beat.eq(~beat)  # there is a clock without checks too
        check_stream(m, self.platform or platform, self.s, "s")
        check(m, self.platform or platform, self.ok, "unit: not ok")
        return m


def run(steps, dut):
    """Steps are (valid, ready, payload, ok)."""
    async def bench(ctx):
        signals = dut.s.valid, dut.s.ready, dut.s.p, dut.ok
        for step in steps:
            for signal, value in zip(signals, step, strict=True):
                ctx.set(signal, value)
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


GOOD = [(0, 0, 1, 1), (1, 0, 5, 1), (1, 0, 5, 1), (1, 1, 5, 1), (1, 1, 6, 1), (0, 1, 7, 1),
        (1, 1, 8, 1)]


def test_good_streams_pass():
    run(GOOD, Checked(platform="formal"))


@pytest.mark.parametrize("bad", [
    [(1, 0, 5, 1), (0, 0, 5, 1), (0, 0, 5, 1)],
    [(1, 0, 5, 1), (1, 0, 6, 1), (1, 1, 6, 1)],
    [(1, 0, 5, 1), (1, 1, 6, 1), (0, 0, 0, 1)],
])
def test_bad_streams_fail(bad):
    with pytest.raises(AssertionError, match="stream s"):
        run(GOOD + bad, Checked(platform="formal"))


def test_bad_conditions_fail():
    with pytest.raises(AssertionError, match="unit: not ok"):
        run([(0, 0, 0, 1), (0, 0, 0, 0)], Checked(platform="formal"))


def test_structures_are_checked():
    dut = Checked(shape=ColumnOperand, platform="formal")
    first, other = (
        {"space": 1, "dtype": 0, "partition": 0, "offset": offset} for offset in (4, 8))
    run([(1, 0, first, 1), (1, 1, first, 1)], Checked(shape=ColumnOperand, platform="formal"))
    with pytest.raises(AssertionError, match="stream s"):
        run([(1, 0, first, 1), (1, 0, other, 1), (1, 1, other, 1)], dut)


def test_only_where_wanted():
    assert "not ok" in emit(Checked(), "checked", checks=True)
    assert "not ok" not in emit(Checked(), "checked")
    assert "assert" not in emit(Checked(), "checked")
    assert not checks_enabled(None)
    assert not checks_enabled(EmitPlatform())
    run([(1, 0, 5, 0), (0, 0, 5, 0)], Checked())
