"""Which operators, spaces, dtypes and modes the compute instructions take together: an oracle.

Written from docs/numerics.md, the arguments in docs/isa.md and decisions 6, 14 and 16, not from the
rules in `isa.instructions`, which assembler, golden model and decoder share.  Codes are those of
docs/isa.md.  `verif.legality_cases` enumerates combinations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from isa.address_map import Cause

FP32, BF16, FP16, TF32, E5M2, E4M3, E3M4, E4M3FN = range(8)
INT8, UINT8, INT16, UINT16, INT32, UINT32 = range(8, 14)
DTYPES = range(14)
PAIRED = (E5M2, E4M3, E3M4, E4M3FN)
"""The FP8 formats: two weights in a processing element."""
ROUNDED = (BF16, FP16, *PAIRED)
"""Results that a program says the rounding of.  TF32 is always rounded to nearest, integers are
and saturate, FP32 loses nothing.
"""
MULTIPLIED = (FP32, TF32, *ROUNDED)
PASSED = (*ROUNDED, INT8, UINT8, INT16, UINT16)
"""Elements of one or two bytes, which a transpose passes."""

SBUF, PSUM = 1, 2
ON_CHIP = (SBUF, PSUM)

BYPASS, DIVIDE, POWER = 0, 6, 7
VALUES = range(1, 19)
"""Operators on FP32 values: add, subtract, ... logical_xor."""
FAST = tuple(op for op in VALUES if op not in (DIVIDE, POWER))
"""Those that op1 may be."""
WORDS = (*range(32, 38), *range(40, 55))
"""Raw operators: bitwise_and ... shift_right_arithmetic, int_add ... uint_less_equal."""
REDUCING = (1, 4, 5)
"""add, max, min."""
SCANNING = (1, 2, 3, 4, 5)
"""add, subtract, multiply, max, min."""
FUNCTIONS = range(24)

WHOLE = 0
"""The part of an operand that is not FP32; the halves of an FP32 one are 1, 2, 3."""


@dataclass(frozen=True)
class Law:
    """Broken where `broken(fields)`: refused with `cause`, in a message that names `about`.

    coded: only codes without a name break it, which no text can say.
    """

    cause: Cause
    about: str
    says: str
    broken: Callable
    coded: bool = False


_operator = partial(Law, Cause.BAD_OPERATOR)
_space = partial(Law, Cause.BAD_SPACE)
_dtype = partial(Law, Cause.BAD_DTYPE)


def _operand(slot, spaces=ON_CHIP, dtypes=DTYPES):
    """It lies in one of these spaces and has one of these dtypes."""
    where, what = f"{slot}.space", f"{slot}.dtype"
    anywhere, anything = spaces == ON_CHIP, dtypes == DTYPES
    return (
        _space(slot, f"memory of {slot}", lambda f: f[where] not in spaces, anywhere),
        _dtype(slot, f"dtype of {slot}", lambda f: f[what] not in dtypes, anything),
    )


def _column(slot):
    """An immediate, or an element in each partition of any dtype."""
    where, what = f"{slot}.space", f"{slot}.dtype"
    return (
        _space(slot, f"memory of {slot}", lambda f: f[where] > PSUM, True),
        _dtype(slot, f"dtype of {slot}", lambda f: f[where] and f[what] not in DTYPES, True),
    )


def _among(path, allowed, coded=False):
    return _operator(path, f"values of {path}", lambda f: f[path] not in allowed, coded)


def _rounding(raw=False, copy=False):
    """sat and stochastic say how a result is rounded (numerics.md): it must be one that is."""
    for flag in ("sat", "stochastic"):
        yield _dtype(
            flag,
            f"{flag}: the format of the result is rounded",
            lambda f, flag=flag: f[flag] and f["dst.dtype"] not in ROUNDED,
        )
        if raw:
            yield _operator(
                flag,
                f"{flag}: raw operators combine bits (decision 16)",
                lambda f, flag=flag: f[flag] and f["op0"] in WORDS,
            )
        if copy:
            yield _dtype(
                flag,
                f"{flag}: copies between equal dtypes move bits (decision 6)",
                lambda f, flag=flag: f[flag] and f["src0.dtype"] == f["dst.dtype"] in ROUNDED,
            )


def _joined(says, first, second):
    """An instruction is raw as a whole or not at all (decision 16)."""
    return _operator("op0 and op1", says, lambda f: f["op0"] in first and f["op1"] in second)


def _weights(says, transpose, dtypes):
    return _dtype(
        "dtype", says, lambda f: f["transpose"] == transpose and f["src0.dtype"] not in dtypes
    )


_MODES = (
    _dtype(
        "part",
        "fp32 passes by halves (decision 14)",
        lambda f: f["src0.dtype"] == FP32 and f["part"] == WHOLE,
    ),
    _dtype(
        "part",
        "what is not fp32 has no halves",
        lambda f: f["src0.dtype"] != FP32 and f["part"] != WHOLE,
    ),
    _dtype(
        "double_row",
        "double rows are pairs of FP8 (decision 14)",
        lambda f: f["double_row"] and f["src0.dtype"] not in PAIRED,
    ),
    _operator(
        "transpose and double_row",
        "a transpose has no double rows",
        lambda f: f["transpose"] and f["double_row"],
    ),
)


LAWS = {
    "load_stationary": (
        _operand("src0", (SBUF,))[0],
        _weights("weights are multiplied", 0, MULTIPLIED),
        _weights("a transpose passes one or two bytes", 1, PASSED),
        *_MODES,
    ),
    "multiply_moving": (
        *_operand("src0", (SBUF,), MULTIPLIED),
        *_operand("dst", (PSUM,), (FP32,)),
        *_MODES,
    ),
    "tensor_tensor": (
        *_operand("src0"),
        *_operand("src1"),
        *_operand("dst"),
        _among("op0", (*VALUES, *WORDS)),
        *_rounding(raw=True),
    ),
    "tensor_scalar": (
        *_operand("src0"),
        *_operand("dst"),
        *_column("column0"),
        *_column("column1"),
        _among("op0", (*VALUES, *WORDS)),
        _among("op1", (BYPASS, *FAST, *WORDS)),
        _joined("raw, then not", WORDS, FAST),
        _joined("not raw, then raw", VALUES, WORDS),
        *_rounding(raw=True),
    ),
    "tensor_copy": (*_operand("src0"), *_operand("dst"), *_rounding(copy=True)),
    "tensor_reduce": (
        *_operand("src0"),
        *_operand("dst"),
        _among("op0", REDUCING),
        _among("reduce_dims", (1, 2, 3, 4)),
        *_rounding(),
    ),
    "memset": (*_operand("dst"), *_rounding()),
    "tensor_tensor_scan": (
        *_operand("src0"),
        *_operand("src1"),
        *_operand("dst"),
        *_column("column0"),
        _among("op0", SCANNING),
        _among("op1", SCANNING),
        *_rounding(),
    ),
    "rand_set_state": _operand("src0", dtypes=(UINT32,)),
    "rand_get_state": _operand("dst", dtypes=(UINT32,)),
    "activation": (
        *_operand("src0"),
        *_operand("dst"),
        *_column("column0"),
        *_column("column1"),
        _among("func", FUNCTIONS, coded=True),
        *_rounding(),
    ),
}
"""{instruction: its Laws}."""

ORDER = (Cause.BAD_OPERATOR, Cause.BAD_SPACE, Cause.BAD_DTYPE)
"""Of several Causes the first is reported."""


def broken(name, fields):
    """The Laws of instruction `name` that these fields break."""
    return [law for law in LAWS[name] if law.broken(fields)]


def cause_of(laws):
    """The Cause that is reported where these Laws are broken, NONE where none is."""
    return min((law.cause for law in laws), key=ORDER.index, default=Cause.NONE)
