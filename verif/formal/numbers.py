"""What the proofs of arithmetic share: any words, order and value of codes, units with faults."""

from amaranth.hdl import Cat, Mux, Signal

from hdl.arith.fp32 import EXPONENT, EXPONENT_ONES, FRACTION, MAGNITUDE
from hdl.arith.pipeline import bind
from verif.formal.harness import AnyConst


class Faulty:
    """Mixin of a unit whose values at a cut point may be changed.

    faults: {cut point: function of the unit and its values there -> {name: changed value}}.
    """

    def __init__(self, faults, **options):
        self._faults = faults or {}
        self.seen = {}
        """{cut point: values behind it}"""
        super().__init__(**options)

    def cut(self, m, point, **values):
        if point in self._faults:
            values |= self._faults[point](self, values)
        self.seen[point] = super().cut(m, point, **values)
        return self.seen[point]


def word(m, name, width=32):
    """A signal that may have any value."""
    signal = Signal(width, name=name)
    m.d.comb += signal.eq(AnyConst(width))
    return signal


def is_nan(x):
    return (x[EXPONENT] == EXPONENT_ONES) & x[FRACTION].any()


def is_zero(x):
    return ~x[MAGNITUDE].any()


def order(code, sign):
    """A signed integer that is ordered like the numbers of a format whose sign is bit `sign`.

    Both zeros are 0.
    """
    return Mux(code[sign], -code[:sign], code[:sign])


def fields(m, name, code, form):
    """(significand, exponent of its lowest bit) of a finite code, by the formula of `formats`."""
    code = code[form.padding :]
    exponent = code[form.fraction_bits : form.fraction_bits + form.exponent_bits]
    normal = exponent.any()
    significand = bind(m, f"{name}_significand", Cat(code[: form.fraction_bits], normal))
    scale = Mux(normal, exponent, 1) - (form.bias + form.fraction_bits)
    return significand, bind(m, f"{name}_scale", scale)


def same_value(m, short, wide):
    """Whether two (significand, scale) are the same number; `wide` has the more bits, and the
    lower scale unless both are zero.
    """
    (few, high), (many, low) = short, wide
    distance = bind(m, f"{few.name}_distance", high - low)
    fits = (distance >= 0) & (distance < len(many))
    both = few.any() & many.any() & fits & ((few << distance[: len(many).bit_length()]) == many)
    return both | (~few.any() & ~many.any())
