"""The slow unit of a lane: quotients and powers, one element at a time."""

from amaranth.hdl import Module, Mux
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hdl.arith.divide import DIVIDE_STEPS, Fp32Divide
from hdl.arith.power import POWER_LAST, POWER_STEPS, Power
from isa.fields import SLOW_CYCLES

if max(DIVIDE_STEPS, POWER_STEPS) > SLOW_CYCLES or SLOW_CYCLES > POWER_LAST + 1:
    raise ValueError(f"SLOW_CYCLES is {SLOW_CYCLES}, a quotient takes {DIVIDE_STEPS} and a power "
                     f"{POWER_STEPS} to {POWER_LAST + 1}")


class SlowControl(data.Struct):
    """step: cycles since the operands are there, 0 .. SLOW_CYCLES - 1.  power: a ** b, else a / b.
    swap: b for a and a for b.
    """

    step: 5
    power: 1
    swap: 1


class SlowUnit(wiring.Component):
    """o = a / b or a ** b in the last step; a tile.

    Members
    -------
    a, b : In(32)
        FP32 bits; stable from step 0 on.
    control : In(SlowControl)
    o : Out(32)
        The result, while the step is SLOW_CYCLES - 1.
    """

    tile_parameters = ()

    def __init__(self):
        super().__init__({"a": In(32), "b": In(32), "control": In(SlowControl), "o": Out(32)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.divide = divide = Fp32Divide()
        m.submodules.power = power = Power()
        for unit in (divide, power):
            m.d.comb += [
                unit.a.eq(Mux(self.control.swap, self.b, self.a)),
                unit.b.eq(Mux(self.control.swap, self.a, self.b)),
                unit.step.eq(self.control.step),
            ]
        m.d.comb += self.o.eq(Mux(self.control.power, power.o, divide.o))
        return m
