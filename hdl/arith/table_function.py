"""exp, log, square roots and reciprocal of FP32 numbers: one integer datapath around one ROM."""

from types import SimpleNamespace

from amaranth.hdl import C, Cat, Module, Mux
from amaranth.lib.wiring import In, Out

from golden.arith.functions.exponential import LOG2_E
from golden.arith.functions.logarithm import LN_2
from hdl.arith.fp32 import BIAS, EXPONENT, EXPONENT_ONES, FRACTION, NAN_BITS, SIGN
from hdl.arith.pipeline import PipelinedUnit, bind
from hdl.arith.shift import leading_zeros, shift_left, shift_right_sticky
from hdl.arith.table_rom import C0_BITS, C1_BITS, C2_BITS, TABLE_AT, is_negative, table_rom
from hdl.lib.tile import add_tile
from isa.functions import Table

_COARSE = 3  # exp's place in a segment has 19 bits; the square leaves out the lowest three.
_PRODUCT_BITS = 62  # |log2 x| ln 2, in Q55.
_TOP_EXPONENT = _PRODUCT_BITS - 1 - 55
_POINT = _PRODUCT_BITS - 24  # Place of the lowest bit of the result's significand.
_GUARD_OF_EXP = 19  # Bit of exp's product that is its guard bit where it is shifted least.

_SPECIALS = (0x00000000, 0x3F800000, 0x7F800000, NAN_BITS)
_ZERO, _ONE, _INFINITY, _NAN = (C(index, 2) for index in range(4))

_ROM = {
    Table.EXP: "exp2",
    Table.LOG: "log2",
    Table.SQRT: "sqrt_even",
    Table.RSQRT: "rsqrt_even",
    Table.RECIPROCAL: "reciprocal",
}
"""Table of each function; that of an odd exponent is the next one."""


class TableFunction(PipelinedUnit):
    """o = table(i); for NONE o = i, bit for bit. One result a cycle, latency `stages`.

    Equals `exp`, `log`, `sqrt`, `rsqrt` and `reciprocal` of `golden.arith.functions` bit for bit at
    every input. All share the ROM, the quadratic and the rounding; exp has a product before the
    ROM, log a product and a normalising shift behind the quadratic.

    Segments: normalise | times log2 e | place | round to the argument | ROM, square | terms | sum |
    absolute | times ln 2 | count leading zeros | shift | round, with a register behind each of them
    at 12 stages.

    Formats: binary32. Sources: piecewise quadratics over 128 segments from committed tables
    (`golden.arith.functions.segment`), after Pineiro, Oberman, Muller, Bruguera: High-speed
    function approximation using a minimax quadratic interpolator, IEEE Trans. Computers 54, 2005;
    IEEE 754-2019, 9.2.1 (special values).

    Parameters
    ----------
    stages, enable : int, bool
        See `PipelinedUnit`. From one stage on the ROM is a block RAM.

    Members
    -------
    i : In(32)
        binary32; any code.
    table : In(isa.functions.Table)
        Travels with i. A code without a member gives an undefined result.
    en : In(1), only with `enable`
    o : Out(32)
    """

    PLACEMENT = (
        (),
        ("rom",),
        ("rom", "logarithm"),
        ("product", "rom", "logarithm"),
        ("product", "rom", "absolute", "count"),
        ("normalise", "place", "rom", "absolute", "count"),
        ("normalise", "place", "rom", "sum", "logarithm", "shift"),
        ("normalise", "product", "place", "rom", "sum", "logarithm", "count"),
        ("normalise", "product", "place", "rom", "sum", "logarithm", "count", "shift"),
        ("normalise", "product", "place", "round", "rom", "sum", "logarithm", "count", "shift"),
        (
            *("normalise", "product", "place", "round", "rom", "terms", "sum", "logarithm"),
            *("count", "shift"),
        ),
        (
            *("normalise", "product", "place", "round", "rom", "terms", "sum", "absolute"),
            *("logarithm", "count", "shift"),
        ),
        (
            *("normalise", "product", "place", "round", "rom", "terms", "sum", "absolute"),
            *("logarithm", "count", "shift", "output"),
        ),
    )
    SURPLUS = "logarithm"

    def __init__(self, *, stages=0, enable=False):
        members = {"i": In(32), "table": In(Table), "o": Out(32)}
        super().__init__(members, stages=stages, enable=enable)

    def elaborate(self, platform):
        m = Module()
        s = self._normalise(m)
        s = self._argument(m, s)
        s = self._quadratic(m, platform, s)
        s = self._times_ln2(m, s)
        m.d.comb += self.o.eq(self._round(m, s))
        return m

    def _cut(self, m, point, s, **values):
        """The cut point, with what travels along unchanged: all of the operand for NONE too."""
        along = ("table", "passed", "special", "which", "sign")
        return self.cut(m, point, **{name: getattr(s, name) for name in along}, **values)

    def _normalise(self, m):
        """|i| = significand * 2^(exponent - 23), significand of 24 bits; the special results."""
        sign, exponent, fraction = self.i[SIGN], self.i[EXPONENT], self.i[FRACTION]
        normal = bind(m, "normal", exponent.any())
        ones = bind(m, "ones", exponent == EXPONENT_ONES)
        some = bind(m, "some", fraction.any())
        zero = bind(m, "zero", ~normal & ~some)
        exp, log, sqrt, rsqrt, reciprocal = (
            bind(m, f"is_{table.name.lower()}", self.table == table) for table in _ROM
        )
        outside = sign & ~zero & (log | sqrt | rsqrt)
        nan = bind(m, "nan", (ones & some) | outside)
        at_zero = Mux(exp, _ONE, Mux(sqrt, _ZERO, _INFINITY))
        at_infinity = Mux(rsqrt | reciprocal | (exp & sign), _ZERO, _INFINITY)
        sign_at_zero = log | (sign & ~exp)
        along = SimpleNamespace(
            table=self.table,
            passed=self.i,
            special=zero | ones | nan,
            which=Mux(nan, _NAN, Mux(zero, at_zero, at_infinity)),
            # Sign of the result, of log's only if it is special.
            sign=~nan & Mux(zero, sign_at_zero, sign & reciprocal),
        )
        significand = bind(m, "significand", Cat(fraction, normal))
        zeros = leading_zeros(m, "zeros", significand)
        biased = Cat(exponent[0] | ~normal, exponent[1:])
        return self._cut(
            m,
            "normalise",
            along,
            significand=shift_left(m, "normalised", significand, zeros[:5]),
            exponent=(biased - BIAS - zeros[:5])[:9].as_signed(),
            negative=sign,
        )

    def _argument(self, m, s):
        """Table, segment, place in it; the exponent of the result, for log that of the operand."""
        s = self._cut(
            m,
            "product",
            s,
            product=s.significand * C(LOG2_E, 31),
            fraction=s.significand[:23],
            exponent=s.exponent,
            negative=s.negative,
        )

        # Place: x log2(e) in Q26. At a shift of 36 and more nothing but the sticky bit is left.
        down = bind(m, "down", (7 - s.exponent)[:9].as_signed())
        far = bind(m, "far", down[6:8].any())
        amount = bind(m, "amount", (down[:6] | far.replicate(6)) & (~down[8]).replicate(6))
        wide, lost = shift_right_sticky(m, "place", s.product[_GUARD_OF_EXP:], amount)
        sticky = lost | s.product[:_GUARD_OF_EXP].any()
        s = self._cut(
            m,
            "place",
            s,
            z=wide[1:],
            round_up=wide[0] & (sticky | wide[1]),
            fraction=s.fraction,
            exponent=s.exponent,
            negative=s.negative,
        )

        # Round, then negate: -(z + round_up) = ~z + 1 - round_up.
        flipped = Cat(s.z, C(0, 1)) ^ s.negative.replicate(36)
        z = bind(m, "z", (flipped + (s.round_up ^ s.negative))[:36])
        half = bind(m, "half", s.exponent >> 1)
        number, exponent = C(0, 3), s.exponent
        by_exponent = {
            Table.EXP: z[26:].as_signed(),
            Table.LOG: s.exponent,
            Table.SQRT: half,
            Table.RSQRT: ~half,
            Table.RECIPROCAL: ~s.exponent,
        }
        for table, name in _ROM.items():
            chosen = bind(m, f"with_{table.name.lower()}", s.table == table)
            number = Mux(chosen, C(TABLE_AT[name], 3), number)
            exponent = Mux(chosen, by_exponent[table], exponent)
        number = bind(m, "number", number)
        odd = s.exponent[0] & ((s.table == Table.SQRT) | (s.table == Table.RSQRT))
        exp = bind(m, "exp", s.table == Table.EXP)
        return self._cut(
            m,
            "round",
            s,
            address=Cat(Mux(exp, z[19:26], s.fraction[16:]), number[0] | odd, number[1:3]),
            t=Mux(exp, z[:19], Cat(C(0, _COARSE), s.fraction[:16])),
            exponent=exponent,
        )

    def _quadratic(self, m, platform, s):
        """|logarithm| in Q27 with its sign for log, else y in Q27."""
        registered = "rom" in self._registers  # Its register is inside, as that of a block RAM.
        rom = add_tile(m, platform, "rom", table_rom(registered=registered))
        m.d.comb += rom.address.eq(s.address)
        if registered:
            m.d.comb += rom.en.eq(self.en if self.enable else 1)
        coarse = s.t[_COARSE:]
        s = self._cut(
            m,
            "rom",
            s,
            t=s.t,
            square=(coarse * coarse)[16:],
            exponent=s.exponent,
        )

        log = bind(m, "log_terms", s.table == Table.LOG)
        c0, c1 = rom.data[:C0_BITS], rom.data[C0_BITS : C0_BITS + C1_BITS]
        c2 = rom.data[-C2_BITS:]
        slope = Cat(c1, _sign(m, s.table, 1)).as_signed() * s.t
        curve = Cat(c2, _sign(m, s.table, 2)).as_signed() * s.square
        s = self._cut(
            m,
            "terms",
            s,
            # Rounded as it is added up; log2's table stays below 2^27, where its exponent begins.
            start=Cat(C(8, 4), c0[:27], Mux(log, s.exponent, c0[27])).as_signed(),
            slope=slope[11 + _COARSE :].as_signed(),
            curve=curve[10:].as_signed(),
            exponent=s.exponent,
        )
        s = self._cut(
            m, "sum", s, y=(s.start + s.slope + s.curve)[4:41].as_signed(), exponent=s.exponent
        )
        below = bind(m, "below", s.y[-1])
        return self._cut(
            m,
            "absolute",
            s,
            y=((s.y ^ below.replicate(37)) + below)[:35],
            below=below,
            exponent=s.exponent,
        )

    def _times_ln2(self, m, s):
        """The significand with its lowest bit at `_POINT`, and the bits below it."""
        log = bind(m, "log_product", s.table == Table.LOG)
        # y is in [1, 2], else in [1/2, 1].
        upper = bind(m, "upper", (s.table == Table.EXP) | (s.table == Table.SQRT))
        value = bind(m, "value", Mux(upper, s.y[:29], Cat(C(0, 1), s.y[:28])))
        product = bind(m, "ln2_product", (s.y * C(LN_2, 28))[:_PRODUCT_BITS])
        s = self._cut(
            m,
            "logarithm",
            s,
            total=Mux(log, product, Cat(C(0, _POINT - 4), value)),
            below=s.below,
            exponent=s.exponent,
        )
        log = bind(m, "log_count", s.table == Table.LOG)
        zeros = leading_zeros(m, "log_zeros", s.total[:_PRODUCT_BITS])
        s = self._cut(
            m,
            "count",
            s,
            total=s.total,
            amount=zeros[:6] & log.replicate(6),
            exponent=(Mux(log, _TOP_EXPONENT - zeros[:6], s.exponent) + BIAS - 1)[:11].as_signed(),
            below=s.below,
            empty=log & zeros[6],
        )
        total = shift_left(m, "log_normal", s.total, s.amount)
        return self._cut(
            m,
            "shift",
            s,
            significand=total[_POINT:],
            guard=total[_POINT - 1],
            sticky=total[: _POINT - 1].any(),
            exponent=s.exponent,
            below=s.below,
            empty=s.empty,
        )

    def _round(self, m, s):
        """Rounded and packed: the significand's leading one adds to the exponent, which is one low.

        A sum below the smallest normal is zero, one beyond the largest is infinity.
        """
        round_up = s.guard & (s.sticky | s.significand[0])
        total = (Cat(C(0, 23), s.exponent).as_signed() + s.significand + round_up)[:35]
        total = bind(m, "total", total.as_signed())
        exponent = bind(m, "packed_exponent", total[23:].as_signed())
        zero = bind(m, "packed_zero", s.empty | (exponent <= 0))
        infinite = bind(m, "packed_infinite", exponent >= EXPONENT_ONES)
        regular = Mux(zero, 0, Mux(infinite, _SPECIALS[2], total[:31]))[:31]
        special = C(0, 31)
        for index, code in enumerate(_SPECIALS):
            special = Mux(s.which == index, C(code, 31), special)
        magnitude = Mux(s.special, special, regular)
        value = Cat(magnitude, s.sign | (s.below & ~s.special))
        result = Mux(s.table == Table.NONE, s.passed, value)
        return self.cut(m, "output", o=result).o


def _sign(m, table, column):
    """1 where c1 (column 1) or c2 (2) of the table is negative."""
    negative = [function for function, name in _ROM.items() if is_negative(name, column)]
    found = C(0, 1)
    for function in negative:
        found = found | (table == function)
    return bind(m, f"c{column}_sign", found)
