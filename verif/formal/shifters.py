"""Shifters and the count of leading zeros at several widths."""

from amaranth.hdl import C, Module, Signal

from hdl.arith.pipeline import bind
from hdl.arith.shift import leading_zeros, shift_left, shift_right_sticky
from verif.formal.harness import Harness
from verif.formal.numbers import word

WIDTHS = (5, 8, 12, 24, 28, 48)
"""Those of the units, and one that is no multiple of anything."""


class Shifts(Harness):
    """The shifters at each of `WIDTHS`, against operators and a search from the top.

    Mutations: "skips_bit" of the count, "short" amounts, "forgets" what the last level drops.
    """

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        for width in WIDTHS:
            value = word(m, f"value{width}", width)
            amount = word(m, f"amount{width}", width.bit_length())
            full = 1 << (width - 1).bit_length()

            count = Signal(range(2 * full), name=f"count{width}")
            m.d.comb += count.eq(2 * full - 1)
            for bit in range(width):
                with m.If(value[bit]):
                    m.d.comb += count.eq(width - 1 - bit)
            counted = value | (self.mutation == "skips_bit")
            got = leading_zeros(m, f"zeros{width}", counted)
            self.prove(m, "leading_zeros", got == count)
            self.reach(m, "leading_zeros", value == 1)

            moved = amount[:-1] if self.mutation == "short" else amount
            left = shift_left(m, f"left{width}", value, moved)
            self.prove(m, "shift_left", left == (value << amount)[:width])
            self.reach(m, "shift_left", left == 1 << (width - 1))

            right, sticky = shift_right_sticky(m, f"right{width}", value, amount)
            if self.mutation == "forgets":
                sticky = sticky & ~amount[-1]
            lost = bind(m, f"lost{width}", value & ~((C(-1, width) << amount)[:width]))
            self.prove(m, "shift_right", right == value >> amount)
            self.prove(m, "shift_right", sticky == lost.any())
            self.reach(m, "shift_right", sticky & right.any() & amount[-1])
        return m
