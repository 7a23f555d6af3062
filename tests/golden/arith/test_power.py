"""power: special values as C99 writes them, errors against float64."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from golden.arith import bfloat16
from golden.arith.power import power
from verif.equality import assert_same
from verif.known_cases import POWERS

SEED = 25
COUNT = 300_000
TINY, HUGE = 2.0**-126, 3.4e38
BF16_ULP = 1 << 16
"""In ulp of FP32."""


def real(code):
    return np.asarray(code, np.uint32).view(np.float32)


def draw(limit, count, seed):
    """a over all positive numbers and close to 1, |b| up to `limit`."""
    rng = np.random.default_rng(seed)
    a = np.exp2(rng.uniform(-149, 128, count))
    near = 1 + rng.uniform(-1, 1, count) * np.exp2(rng.integers(-23, 0, count))
    a = np.where(rng.random(count) < 0.5, near, a).astype(np.float32)
    return a, (limit * rng.uniform(-1, 1, count)).astype(np.float32)


def errors(a, b):
    """|power(a, b) - a ** b| in ulp of it, for results in the normal range, with a and b."""
    with np.errstate(all="ignore"):
        exact = np.power(a.astype(np.float64), b.astype(np.float64))
    normal = (exact >= TINY) & (exact <= HUGE)
    a, b, exact = a[normal], b[normal], exact[normal]
    ulp = np.exp2(np.floor(np.log2(exact)) - 23)
    return np.abs(power(a, b).astype(np.float64) - exact) / ulp, exact, a, b


@pytest.mark.parametrize("name", POWERS)
def test_known_power(name):
    a, b, expected = POWERS[name]
    assert_same(power(real([a]), real([b])).view(np.uint32), [expected])


@pytest.mark.parametrize(
    ("limit", "bar"), [(1, 160), (16, 160), (64, 160), (1024, 256), (1 << 16, 1 << 14)]
)
def test_error_by_the_size_of_the_exponent(limit, bar):
    """In FP32 ulp; up to 2^16 far below the 2^15 that half a BF16 ulp has."""
    found, *_ = errors(*draw(limit, COUNT, SEED))
    assert len(found) > COUNT // 4
    assert bar / 8 < found.max() < bar < BF16_ULP / 2


@pytest.mark.parametrize("limit", [2, 64, 1 << 16])
def test_bf16_results_are_within_one_ulp(limit):
    _, exact, a, b = errors(*draw(limit, COUNT, SEED + 1))
    found = bfloat16.narrow(power(a, b)).astype(np.int64)
    # Nearest in float64, rounded once: float64's own rounding is far below what is cut.
    ulp = np.exp2(np.floor(np.log2(exact)) - 7)
    nearest = (np.rint(exact / ulp) * ulp).astype(np.float32).view(np.uint32) >> 16
    assert np.abs(found - nearest.astype(np.int64)).max() <= 1
    assert (found == nearest).mean() > 0.9


def test_negative_numbers_have_the_magnitude_of_positive_ones():
    rng = np.random.default_rng(SEED)
    a = np.exp2(rng.uniform(-60, 60, 5000)).astype(np.float32)
    b = rng.integers(-40, 41, 5000).astype(np.float32)
    positive, negative = power(a, b), power(-a, b)
    odd = b.astype(np.int64) % 2 != 0
    assert_same(negative.view(np.uint32), np.where(odd, -positive, positive).view(np.uint32))


def test_the_oracle_agrees_with_decimal():
    """float64's power is itself good to some 2^-50."""
    a, b = draw(16, 200, SEED + 2)
    with localcontext() as context, np.errstate(all="ignore"):
        context.prec = 50
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            exact = Decimal(x) ** Decimal(y)
            if Decimal(TINY) <= exact <= Decimal(HUGE):
                assert abs(Decimal(float(np.power(x, y))) / exact - 1) < Decimal(2) ** -49


def test_shapes_broadcast():
    assert power(np.ones((3, 1), np.float32), np.ones((1, 4), np.float32)).shape == (3, 4)


@pytest.mark.nightly
@pytest.mark.parametrize("limit", [1, 16, 1 << 13])
def test_error_at_length(limit):
    found, *_ = errors(*draw(limit, 20 * COUNT, SEED + 3))
    assert found.max() < (160 if limit <= 64 else 1 << 11)
