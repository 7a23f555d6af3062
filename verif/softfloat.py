"""Berkeley SoftFloat on arrays of codes: the oracle that shares no code with the project.

Round to nearest even. NaNs are made canonical afterwards, because SoftFloat has NaN codes of its
own; the flush of products is applied to its correctly rounded result.
"""

import numpy as np
import softfloatpy

_NAN32 = 0x7FC00000
_NAN16 = 0x7FC0
_SIGN32 = np.uint32(0x80000000)
_EXPONENT32 = np.uint32(0x7F800000)


def add(a, b):
    """a + b for uint32 codes."""
    return _canonical(_map(softfloatpy.f32_add, a, b))


def subtract(a, b):
    """a - b for uint32 codes."""
    return _canonical(_map(softfloatpy.f32_sub, a, b))


def multiply(a, b):
    """a * b for uint32 codes, then subnormal results to signed zero."""
    product = _map(softfloatpy.f32_mul, a, b)
    subnormal = (product & _EXPONENT32) == 0
    return _canonical(np.where(subnormal, product & _SIGN32, product))


def divide(a, b):
    """a / b for uint32 codes."""
    return _canonical(_map(softfloatpy.f32_div, a, b))


def compare(a, b):
    """(a = b, a < b, a <= b) for uint32 codes, quiet: false with NaN."""
    operations = (softfloatpy.f32_eq, softfloatpy.f32_lt_quiet, softfloatpy.f32_le_quiet)
    from_bytes = softfloatpy.Float32.from_bytes
    pairs = [(from_bytes(x), from_bytes(y)) for x, y in zip(_codes(a), _codes(b), strict=True)]
    return tuple(np.array([bool(operation(x, y)) for x, y in pairs]) for operation in operations)


def narrow(x):
    """uint16 BF16 codes of uint32 FP32 codes."""
    wide = [softfloatpy.Float32.from_bytes(code) for code in _codes(x)]
    rounded = b"".join(softfloatpy.f32_to_bf16(number).to_bytes() for number in wide)
    result = np.frombuffer(rounded, ">u2").astype(np.uint16)
    return np.where((result & 0x7FFF) > 0x7F80, np.uint16(_NAN16), result)


def _map(operation, a, b):
    from_bytes = softfloatpy.Float32.from_bytes
    results = [
        operation(from_bytes(x), from_bytes(y)).to_bytes()
        for x, y in zip(_codes(a), _codes(b), strict=True)
    ]
    return np.frombuffer(b"".join(results), ">u4").astype(np.uint32)


def _codes(array):
    raw = np.asarray(array, np.uint32).astype(">u4").tobytes()
    return (raw[index : index + 4] for index in range(0, len(raw), 4))


def _canonical(code):
    return np.where((code & ~_SIGN32) > _EXPONENT32, np.uint32(_NAN32), code)
