"""The proofs of arithmetic.

The units are combinational here, so what holds of one step holds of every operand.
"""

from collections.abc import Callable
from typing import NamedTuple

from golden.arith import formats
from hdl.arith.narrow import NarrowFormat
from verif.formal.addition import Monotone, Sums
from verif.formal.conversion import Cast, Decoded, Halves, Products
from verif.formal.harness import Harness
from verif.formal.shifters import WIDTHS, Shifts


class OneStep(NamedTuple):
    """A proof of one step.  claims: {name: (text, mutation)}, as in `properties.Claim`."""

    name: str
    build: Callable[..., Harness]
    size: str
    claims: dict
    slow: bool = False


def _monotone(bits, name, size, slow):
    return OneStep(
        name=name,
        build=lambda **options: Monotone(bits, **options),
        size=size,
        slow=slow,
        claims={"monotone": ("Fp32Add: a <= b gives a + c <= b + c", "near_only")},
    )


def _cast(form):
    name = getattr(formats, form.name).name
    return OneStep(
        name=f"narrow_{name}",
        build=lambda **options: Cast(form, **options),
        size="any binary32, to nearest and with any random bits, saturating or not",
        claims={
            "monotone": (
                f"FloatNarrow to {name}: a <= b gives codes in this order; NaN gives the canonical",
                "drops_carry",
            ),
            "exact": (
                f"FloatNarrow to {name}: a number of the format becomes its own code",
                "flushes",
            ),
        },
    )


ONE_STEP = (
    OneStep(
        name="add",
        build=Sums,
        size="any two binary32",
        claims={
            "commutes": ("Fp32Add: a + b = b + a, bit for bit", "sign_of_a"),
            "negative_zero": ("Fp32Add: x + -0 = x, NaN canonical", "no_negative_zero"),
            "positive_zero": ("Fp32Add: x + +0 = x, and +0 for -0", "hidden_one"),
            "cancels": ("Fp32Add: x - x = +0 of finite x, else NaN", "cancels_to_sign"),
            "symmetric": (
                "Fp32Add: -a + -b = -(a + b) unless it is zero or NaN",
                "rounds_by_sign",
            ),
        },
    ),
    _monotone(23, "add_order", "any three binary32", slow=True),
    _monotone(4, "add_order_coarse", "any three binary32 with 4 bits of fraction", slow=False),
    *(_cast(form) for form in NarrowFormat),
    OneStep(
        name="decode",
        build=Decoded,
        size="every code, any bits above it",
        claims={
            name: (f"FloatDecode of {name}: the operand is the number of the code", "flushes")
            for name in (getattr(formats, form.name).name for form in NarrowFormat)
        }
        | {
            "tf32_nan": (
                "FloatDecode of tf32: a NaN stays one whose bits lie in the padding alone",
                "cuts_payload",
            )
        },
    ),
    OneStep(
        name="decode_fp32",
        build=Halves,
        size="any binary32",
        claims={
            "high": (
                "FloatDecode of FP32_HIGH: the operand is bits & FFFFF000; infinity, NaN",
                "flushes",
            ),
            "high_finite": (
                "FloatDecode of FP32_HIGH_FINITE: likewise; 0 of those",
                "special_twice",
            ),
            "low": ("FloatDecode of FP32_LOW: the operand is the rest; 0 of those", "flushes"),
            "recombine": (
                "FloatDecode: high + low is the number of the binary32, to the bit",
                "short_low",
            ),
        },
    ),
    OneStep(
        name="multiply",
        build=Products,
        size="every operand",
        claims={
            "one": ("PeMultiply: 1.0 * x = x * 1.0 = x for every normal x", "exponent_high"),
        },
    ),
    OneStep(
        name="shift",
        build=Shifts,
        size=f"{', '.join(map(str, WIDTHS))} bits",
        claims={
            "leading_zeros": ("leading_zeros finds the highest one", "skips_bit"),
            "shift_left": ("shift_left is multiplication by a power of two", "short"),
            "shift_right": (
                "shift_right_sticky is division by one, and tells whether anything is lost",
                "forgets",
            ),
        },
    ),
)
