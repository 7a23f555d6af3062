"""The systolic array: rows, skew in front, de-skew behind."""

from amaranth.hdl import Cat, Const, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.lib.delay import DelayLine
from hdl.lib.tile import add_tile
from hdl.tensor.edge import LANE_BITS, MOVING_BITS
from hdl.tensor.pe_group import GROUP
from hdl.tensor.pe_row import PeRow, control_layout


class PeArray(wiring.Component):
    """P x P processing elements: each cycle a moving column in and a column of results out.

    result[m] = sum over the active rows k, in order, of weight[k, m] * moving[k], from +0; FP32,
    every step rounded.  A term of a double row is the rounded sum of two products; a transposing
    one is the 16 bits of the weight, as they are, where the moving element is not zero.

    No valid bits: the result of the inputs of a cycle is out exactly `latency` cycles later.  Skew
    is internal: all inputs of a cycle belong together, and so do all results.

    Parameters
    ----------
    config : isa.geometry.Config

    Attributes
    ----------
    latency : int
        1 + pe_multiply_stages + P * pe_add_stages + P / 4 - 1, and with double_row pe_add_stages
        more.

    Members
    -------
    control : In(control_layout(P / 4, double_row))
        Swap tag, formats, modes and weight beat; see `PeRow` for their order.
    moving : In(P * 32), active : In(P)
        Raw element of each row, and whether the row takes part.
    weights : In(P * 64)
        Raw weights for each row, see `PeRow`.
    results : Out(P * 32)
        FP32, column 0 lowest.
    """

    def __init__(self, config):
        self._config = config
        size = config.partitions
        self._groups = size // GROUP
        adders = size + int(config.double_row)
        self.latency = (
            1 + config.pe_multiply_stages + adders * config.pe_add_stages + self._groups - 1
        )
        super().__init__(
            {
                "control": In(control_layout(self._groups, config.double_row)),
                "moving": In(MOVING_BITS * size),
                "active": In(size),
                "weights": In(LANE_BITS * GROUP * size),
                "results": Out(32 * size),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, groups = self._config, self._groups
        control = self.control
        sums = Const(0, 32 * config.partitions)  # Every accumulator starts at +0.
        lane_bits = MOVING_BITS + 1 + LANE_BITS * GROUP
        for k in range(config.partitions):
            row = add_tile(
                m,
                platform,
                f"row{k}",
                PeRow(
                    groups=groups,
                    multiply_stages=config.pe_multiply_stages,
                    add_stages=config.pe_add_stages,
                    double_row=config.double_row,
                ),
            )
            lane = Cat(
                self.moving.word_select(k, MOVING_BITS),
                self.active[k],
                self.weights.word_select(k, LANE_BITS * GROUP),
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
