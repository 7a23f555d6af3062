"""The cocotb test of every chip simulation: clock, reset, go, then sleep until the host script is
done.
"""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, SimTimeoutError, with_timeout

PERIOD_NS = 2


@cocotb.test()
async def run(dut):
    """Passes when the testbench finishes its script within CELOSIA_CYCLE_LIMIT cycles."""
    limit = int(os.environ["CELOSIA_CYCLE_LIMIT"])
    dut.go.value = 0
    dut.rst.value = 1
    # Low first: everything in front of the registers is settled at the first edge.
    Clock(dut.clk, PERIOD_NS, unit="ns").start(start_high=False)
    await ClockCycles(dut.clk, 4)
    dut.rst.value = 0
    dut.go.value = 1
    try:
        await with_timeout(RisingEdge(dut.done), limit * PERIOD_NS, "ns")
    except SimTimeoutError:
        raise AssertionError(f"the host script did not finish within {limit} cycles") from None
