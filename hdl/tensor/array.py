"""The systolic array: rows, skew in front, de-skew behind."""

from amaranth.hdl import Cat, Const, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.delay import DelayLine
from hdl.lib.tile import add_tile
from hdl.tensor.pe_group import GROUP
from hdl.tensor.pe_row import PeRow, control_layout


class PeArray(wiring.Component):
    """P x P processing elements: each cycle a moving column in and a column of results out.

    result[m] = sum over the active rows k, in order, of weight[k, m] * moving[k], from +0; FP32,
    every step rounded. No valid bits: the result of the inputs of a cycle is out exactly `latency`
    cycles later.  Skew is internal: all inputs of a cycle belong together, and so do all results.

    Parameters
    ----------
    config : isa.geometry.Config

    Attributes
    ----------
    latency : int
        1 + pe_multiply_stages + P * pe_add_stages + P / 4 - 1.

    Members
    -------
    control : In(control_layout(P / 4))
        Swap tag and weight beat; see `PeRow` for their order.
    moving : In(P * 16), active : In(P)
        BF16 element of each row, and whether the row takes part.
    weights : In(P * 64)
        Four BF16 weights for each row.
    results : Out(P * 32)
        FP32, column 0 lowest.
    """

    def __init__(self, config):
        self._config = config
        size = config.partitions
        self._groups = size // GROUP
        self.latency = (
            1 + config.pe_multiply_stages + size * config.pe_add_stages + self._groups - 1
        )
        super().__init__(
            {
                "control": In(control_layout(self._groups)),
                "moving": In(16 * size),
                "active": In(size),
                "weights": In(16 * GROUP * size),
                "results": Out(32 * size),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, groups = self._config, self._groups
        control = self.control
        sums = Const(0, 32 * config.partitions)  # Every accumulator starts at +0.
        lane_bits = 16 + 1 + 16 * GROUP
        for k in range(config.partitions):
            row = add_tile(
                m,
                platform,
                f"row{k}",
                PeRow(
                    groups=groups,
                    multiply_stages=config.pe_multiply_stages,
                    add_stages=config.pe_add_stages,
                ),
            )
            lane = Cat(
                self.moving.word_select(k, 16),
                self.active[k],
                self.weights.word_select(k, 16 * GROUP),
            )
            if k:
                # Data only: whatever the line holds after reset does no harm without control.
                skew = add_tile(
                    m,
                    platform,
                    f"skew{k}",
                    DelayLine(
                        width=lane_bits,
                        cycles=k * config.pe_add_stages,
                    ),
                )
                m.d.comb += skew.i.eq(lane)
                lane = skew.o
            m.d.comb += [
                row.control_in.eq(control),
                Cat(row.moving, row.active, row.weights).eq(lane),
                row.sums_in.eq(sums),
            ]
            control, sums = row.control_out, row.sums_out

        results = []
        for g in range(groups):
            result = sums.word_select(g, 32 * GROUP)
            cycles = groups - 1 - g
            if cycles:
                line = add_tile(
                    m,
                    platform,
                    f"deskew{g}",
                    DelayLine(
                        width=32 * GROUP,
                        cycles=cycles,
                    ),
                )
                m.d.comb += line.i.eq(result)
                result = line.o
            results.append(result)
        m.d.comb += self.results.eq(Cat(*results))
        return m
