"""FloatNarrow, FloatDecode and PeMultiply: numbers keep their value and their order."""

from amaranth.hdl import C, Cat, Module, Mux, Signal

from golden.arith import formats
from hdl.arith.decode import FloatDecode, OperandFormat
from hdl.arith.fp32 import BIAS, EXPONENT, EXPONENT_ONES, SIGN
from hdl.arith.narrow import FloatNarrow, NarrowFormat
from hdl.arith.operand import SIGNIFICAND_BITS, Operand
from hdl.arith.pe_mac import PeMultiply
from hdl.arith.pipeline import bind
from verif.formal.harness import AnyConst, Harness
from verif.formal.numbers import Faulty, fields, is_nan, order, same_value, word


class _Narrow(Faulty, FloatNarrow):
    pass


class _Decode(Faulty, FloatDecode):
    pass


class _Multiply(Faulty, PeMultiply):
    pass


def _narrow_faults(form):
    top = form.fraction_bits

    def flushes(_, values):
        """Subnormal results become zero."""
        count = values["count"]
        normal = values["exponent"].any() | count[top:].any()
        return {"count": count & normal.replicate(len(count))}

    def drops_carry(_, values):
        """A fraction that rounds up to the next power of two loses its leading one."""
        count = values["count"]
        return {"count": Cat(count[: top + 1], C(0, len(count) - top - 1))}

    return {"flushes": {"round": flushes}, "drops_carry": {"round": drops_carry}}


class Cast(Harness):
    """FloatNarrow to one format, to nearest and stochastically, saturating or not.

    Mutations: `_narrow_faults`.
    """

    def __init__(self, form, **options):
        super().__init__(**options)
        self.form = form

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        form = getattr(formats, self.form.name)
        fraction, sign = form.padding + form.fraction_bits, form.bits - 1
        stochastic, saturate = word(m, "stochastic", 1), word(m, "saturate", 1)
        random = word(m, "random", 24)

        def narrow(name, x):
            unit = _Narrow(_narrow_faults(form).get(self.mutation or ""))
            m.submodules[name] = unit
            m.d.comb += [
                unit.i.eq(x),
                unit.format.eq(self.form),
                unit.stochastic.eq(stochastic),
                unit.saturate.eq(saturate),
                unit.random.eq(random),
            ]
            return unit.o

        a, b = word(m, "a"), word(m, "b")
        low, high = narrow("narrow_a", a), narrow("narrow_b", b)
        no_number = form.overflow if form.has_inf else form.max_code

        def number(code):
            return code[:sign] <= no_number

        ordered = ~(is_nan(a) | is_nan(b)) & (order(a, SIGN) <= order(b, SIGN))
        numbers = bind(m, "numbers", ordered & number(low) & number(high))
        self.prove(m, "monotone", ~numbers | (order(low, sign) <= order(high, sign)))
        # Only infinity has no number to become, and what lies beyond the largest one.
        self.prove(m, "monotone", ~is_nan(a) | (low == form.nan))
        self.reach(
            m,
            "monotone",
            numbers & (low != high) & stochastic & ~low[fraction:sign].any(),
        )

        # b has the value of a code: so that is what becomes of it, rounded however.
        code = Cat(C(0, form.padding), word(m, "code", form.bits - form.padding))
        same = same_value(m, fields(m, "code", code, form), fields(m, "b", b, formats.FP32))
        finite = code[:sign] <= form.max_code
        exact = bind(m, "exact", same & finite & (b[EXPONENT] != EXPONENT_ONES))
        self.prove(m, "exact", ~(exact & (code[sign] == b[SIGN])) | (high == code))
        subnormal = ~code[fraction:sign].any() & code[:sign].any()
        self.reach(m, "exact", exact & subnormal & stochastic & random.all())
        return m


def _short_low(_, values):
    """The low half of FP32 loses its top bit."""
    significand, top = values["significand"], SIGNIFICAND_BITS - 1
    return {"significand": Cat(significand[:top], significand[top] & ~values["low"])}


_DECODE_FAULTS = {
    "flushes": {"select": lambda _, values: {"subnormal": C(0, 1)}},
    "cuts_payload": {"select": lambda _, values: {"payload": C(0, 1)}},
    "special_twice": {"select": lambda _, values: {"finite": C(0, 1)}},
    "short_low": {"select": _short_low},
}


class Decoded(Harness):
    """FloatDecode of every format that has one word. Mutations: `_DECODE_FAULTS`."""

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        for target in NarrowFormat:
            form = getattr(formats, target.name)
            name, sign = form.name, form.bits - 1
            if self.only not in (None, name, f"{name}_nan"):
                continue
            unit = _Decode(_DECODE_FAULTS.get(self.mutation or ""))
            m.submodules[name] = unit
            # What lies above the code is ignored.
            raw = word(m, f"{name}_raw")
            m.d.comb += [unit.i.eq(raw), unit.format.eq(OperandFormat[target.name])]
            code, o = raw[: form.bits], unit.o
            magnitude = code[:sign]
            # What lies in the padding is ignored, but for the difference of infinity and NaN.
            zero, infinite = (
                ~code[form.padding : sign].any(),
                (magnitude == form.overflow) & form.has_inf,
            )
            nan = magnitude > (form.overflow if form.has_inf else form.max_code)
            wide = o.significand, bind(m, f"{name}_lowest", o.exponent - (SIGNIFICAND_BITS - 1))
            same = same_value(m, fields(m, name, code, form), wide)
            regular = bind(m, f"{name}_regular", ~(zero | infinite | nan))
            self.prove(m, name, Cat(o.zero, o.inf, o.nan) == Cat(zero, infinite, nan))
            self.prove(m, name, ~regular | (same & o.significand[-1]))
            self.prove(m, name, nan | (o.sign == code[sign]))
            exponent = magnitude[form.padding + form.fraction_bits :]
            self.reach(m, name, regular & ~exponent.any())
            if form.padding:
                hidden = bind(m, f"{name}_hidden", code[: form.padding].any())
                self.prove(m, f"{name}_nan", ~(exponent.all() & hidden) | o.nan)
                shown = magnitude[form.padding : form.padding + form.fraction_bits].any()
                self.reach(m, f"{name}_nan", exponent.all() & hidden & ~shown)
        return m


class Halves(Harness):
    """FloatDecode of a binary32 by halves: high = bits & FFFFF000, low = the rest.

    Mutations: `_DECODE_FAULTS`.
    """

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        x = word(m, "x")
        half = SIGNIFICAND_BITS
        significand, scale = fields(m, "x", x, formats.FP32)
        special = bind(m, "special", x[EXPONENT] == EXPONENT_ONES)
        subnormal = bind(m, "subnormal", ~x[EXPONENT].any())
        parts, flags, values = {}, {}, {}
        for name, form in (
            ("high", OperandFormat.FP32_HIGH),
            ("high_finite", OperandFormat.FP32_HIGH_FINITE),
            ("low", OperandFormat.FP32_LOW),
        ):
            unit = _Decode(_DECODE_FAULTS.get(self.mutation or ""))
            m.submodules[name] = unit
            m.d.comb += [unit.i.eq(x), unit.format.eq(form)]
            o = parts[name] = unit.o
            flags[name] = Cat(o.zero, o.inf, o.nan)
            values[name] = o.significand, bind(m, f"{name}_lowest", o.exponent - (half - 1))

        # Infinity and NaN are in the high half alone, and in none where all must be finite.
        expected = {
            "high": (significand[half:], scale + half, Cat(special & ~is_nan(x), is_nan(x))),
            "high_finite": (significand[half:], scale + half, C(0, 2)),
            "low": (significand[:half], scale, C(0, 2)),
        }
        for name, (bits, lowest, kind) in expected.items():
            o = parts[name]
            bits = bind(m, f"{name}_bits", bits)
            zero = Mux(special, C(name != "high"), ~bits.any())
            same = same_value(m, (bits, lowest), values[name])
            regular = bind(m, f"{name}_regular", ~special & bits.any())
            self.prove(m, name, flags[name] == Cat(zero, kind))
            self.prove(m, name, ~regular | (same & o.significand[-1]))
            self.prove(m, name, is_nan(x) | (o.sign == x[SIGN]))
            rare = special if name == "high_finite" else regular & subnormal
            self.reach(m, name, rare & x[:half].all())

        # Both in units of 2^-11 of the lowest bit of x: a half that is normalised reaches there.
        places, inside = [], []
        for name in ("high", "low"):
            many, low = values[name]
            place = bind(m, f"{name}_place", low - scale + (half - 1))
            inside.append(parts[name].zero | ((place >= 0) & (place < 2 * half)))
            shifted = (many << place[: (2 * half).bit_length()])[: 3 * half]
            places.append(Mux(parts[name].zero, 0, shifted))
        total = bind(m, "total", places[0] + places[1])
        whole = inside[0] & inside[1] & (total == significand << (half - 1))
        self.prove(m, "recombine", special | whole)
        self.reach(m, "recombine", subnormal & ~x[22:31].any() & x[11:13].all() & x[0])
        return m


_MULTIPLY_FAULTS = {
    "exponent_high": {"multiply": lambda _, values: {"exponent": values["exponent"] + 1}},
}


class Products(Harness):
    """PeMultiply.  Mutations: `_MULTIPLY_FAULTS`."""

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        one = Operand.const({"significand": 1 << (SIGNIFICAND_BITS - 1)})
        operand = Signal(Operand)
        m.d.comb += operand.eq(AnyConst(len(operand.as_value())))
        results = []
        for index, (a, b) in enumerate(((one, operand), (operand, one))):
            unit = _Multiply(_MULTIPLY_FAULTS.get(self.mutation or ""))
            m.submodules[f"multiply{index}"] = unit
            m.d.comb += [unit.a.eq(a), unit.b.eq(b), unit.active.eq(1)]
            results.append(unit.o)
        number = ~(operand.nan | operand.inf | operand.zero) & operand.significand[-1]
        normal = number & (operand.exponent > -BIAS) & (operand.exponent <= BIAS)
        expected = Cat(
            C(0, 24 - SIGNIFICAND_BITS),
            operand.significand[:-1],
            (operand.exponent + BIAS)[:8],
            operand.sign,
        )
        for result in results:
            self.prove(m, "one", ~normal | (result == expected))
        self.reach(m, "one", normal & operand.significand.all() & (operand.exponent == 1 - BIAS))
        return m
