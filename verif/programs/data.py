"""Initial data over the full range: random codes, specials, ordinary numbers, both dtypes."""

import numpy as np

from verif.vectors import BF16, FP32, corner_codes

_CHUNK = 32


def mixed_bytes(generator, size):
    """`size` bytes in chunks of different styles. generator: numpy Generator."""
    chunks = [
        _STYLES[generator.integers(len(_STYLES))](generator) for _ in range(-(-size // _CHUNK))
    ]
    return b"".join(chunks)[:size]


def _any(generator):
    return generator.bytes(_CHUNK)


def _fp32_corners(generator):
    return generator.choice(corner_codes(FP32), _CHUNK // 4).astype("<u4").tobytes()


def _bf16_corners(generator):
    return generator.choice(corner_codes(BF16), _CHUNK // 2).astype("<u2").tobytes()


def _fp32_numbers(generator):
    return generator.normal(size=_CHUNK // 4).astype("<f4").tobytes()


def _bf16_numbers(generator):
    upper = generator.normal(size=_CHUNK // 2).astype("<f4").view("<u4") >> np.uint32(16)
    return upper.astype("<u2").tobytes()


def _bf16_wide(generator):
    """Exponents all over the range, so that products overflow and underflow."""
    sign, exponent = generator.integers(0, 2, _CHUNK // 2), generator.integers(0, 255, _CHUNK // 2)
    return (
        BF16.join(sign, exponent, generator.integers(0, 128, _CHUNK // 2)).astype("<u2").tobytes()
    )


_STYLES = (
    _any,
    _fp32_corners,
    _bf16_corners,
    _fp32_numbers,
    _fp32_numbers,
    _bf16_numbers,
    _bf16_numbers,
    _bf16_numbers,
    _bf16_wide,
)
