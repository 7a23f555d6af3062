"""Arithmetic units with a chosen number of register stages.

A unit is written once, as combinational segments between named cut points; `stages` decides at
which of them registers stand.
"""

from types import SimpleNamespace

from amaranth.hdl import Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In


class PipelinedUnit(wiring.Component):
    """Base of the arithmetic units.

    A new operation may enter every cycle in which the registers advance, and its result appears at
    `o` `latency` such cycles later, combinationally when `latency` is 0. There are no valid bits
    and no reset: what the registers hold before the first result is not defined.

    Parameters
    ----------
    members : dict
        Ports of the unit.
    stages : int
        Number of registers from input to output, at least 0. Beyond the number of sensible cut
        points more registers queue up at `SURPLUS`, for retiming.
    enable : bool
        Adds the input `en`. The registers advance when it is 1, and always when it is absent.

    Attributes
    ----------
    latency : int
        Equal to `stages`.
    PLACEMENT : tuple of tuple of str
        Names of the cut points in use, for each number of stages from 0 upwards.
    SURPLUS : str
        The cut point that takes the stages beyond the last entry of `PLACEMENT`.
    """

    PLACEMENT: tuple[tuple[str, ...], ...] = ((), ("output",))
    SURPLUS: str = "output"

    def __init__(self, members, *, stages=0, enable=False):
        if not isinstance(stages, int) or isinstance(stages, bool) or stages < 0:
            raise ValueError(f"stages must be a non-negative integer, not {stages!r}")
        if not isinstance(enable, bool):
            raise TypeError(f"enable must be a bool, not {enable!r}")
        self.stages = stages
        self.enable = enable
        planned = self.PLACEMENT[min(stages, len(self.PLACEMENT) - 1)]
        surplus = stages - len(planned)
        self._registers = [*planned, *[self.SURPLUS] * surplus]
        super().__init__({**members, **({"en": In(1)} if enable else {})})

    @property
    def latency(self):
        return self.stages

    @property
    def tile_parameters(self):
        """What decides the logic, for emission as a shared tile."""
        return (self.stages, int(self.enable))

    def cut(self, m, point, **values):
        """The values behind the cut point, as a namespace of signals with the same names."""
        depth = self._registers.count(point)
        behind = {}
        for name, value in values.items():
            current = value if isinstance(value, Signal) else bind(m, f"{point}_{name}", value)
            for index in range(depth):
                register = Signal.like(
                    current, name=f"{point}_{name}_q{index}", init=0, reset_less=True
                )
                # A register that keeps its value by a multiplexer, not a conditional assignment:
                # one flat process a register simulates fastest.
                held = Mux(self.en, current, register) if self.enable else current
                m.d.sync += register.eq(held)
                current = register
            behind[name] = current
        return SimpleNamespace(**behind)


def bind(m, name, value):
    """A signal of the same width equal to `value`, so that logic used twice is emitted once."""
    signal = Signal(Value.cast(value).shape(), name=name)
    m.d.comb += signal.eq(value)
    return signal
