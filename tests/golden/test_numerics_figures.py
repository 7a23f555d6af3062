"""The figures of docs/numerics.md: what they claim holds, and their data are current."""

import json

import numpy as np
import pytest

from golden.arith import formats
from golden.arith.convert import narrow
from verif.matmul_accuracy import ALTERNATIVES, DOCS, KINDS, OURS, data, measure, ours
from verif.rounding_walk import LANES, WALKS

COMMITTED = json.loads((DOCS / "matmul-accuracy.json").read_text())


@pytest.fixture(scope="module")
def small():
    return measure((64, 512))


@pytest.mark.parametrize("kind", KINDS)
def test_the_committed_errors_are_measured_ones(small, kind):
    places = [COMMITTED["sizes"].index(size) for size in (64, 512)]
    for name in (*OURS, *ALTERNATIVES):
        expected = [COMMITTED["errors"][kind][name][place] for place in places]
        assert small[kind][name] == pytest.approx(expected, rel=1e-3, abs=1e-12), name


@pytest.mark.parametrize("name", OURS)
def test_n17_error_grows_no_faster_than_that_of_fp32(name):
    """From K = 64 to 16 K no dtype exceeds the bound of a chain of FP32 sums, rms about
    2^-25 sqrt(K) relative for positive data, and none a fixed one for data of both signs.
    """
    for size, positive, normal in zip(
        COMMITTED["sizes"],
        COMMITTED["errors"]["positive"][name],
        COMMITTED["errors"]["normal"][name],
        strict=True,
    ):
        assert positive < 2**-25 * np.sqrt(size)
        assert normal < 2**-24


def test_alternatives_lose_digits_where_all_terms_are_positive():
    found = COMMITTED["errors"]["positive"]
    largest = -1
    assert found["bf16, truncating chain"][largest] > 1000 * found["bf16"][largest]
    assert found["bf16, bf16 accumulator"][largest] > 1e6 * found["bf16"][largest]
    assert found["fp32, native chain"][largest] > 2 * found["fp32, four passes"][largest]


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp32, four passes"])
def test_n11_the_reversed_order_gives_other_bits(name):
    """So that no test of the order is blind."""
    form = OURS[name]
    codes = [narrow(x, form) for x in data(256, "normal")]
    forwards, backwards = ours(*codes, form), ours(*codes, form, reverse=True)
    assert (forwards.view(np.uint32) != backwards.view(np.uint32)).mean() > 0.3


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.form.name)
def test_n18_n19_small_terms_count_when_rounded_stochastically(walk):
    assert (walk.run() == walk.start).all(), "to nearest no step moves"
    exact, sigma = walk.exact
    last = walk.run(seed=1)[-1].astype(np.float64)
    assert abs(last.mean() - exact) < 4 * sigma / np.sqrt(LANES)
    # The sample variance of normal numbers: 4 sigma of a chi-square with LANES - 1 degrees
    assert 0.5 < last.std(ddof=1) / sigma < 1.5
    again = walk.run(seed=1)[-1]
    assert (again == last).all() and (walk.run(seed=2)[-1] != again).any()


def test_exact_values_never_move():
    exact = np.tile(np.float32([0.0, -0.0, 1.0, -2.5, 2.0**-20, np.inf]), (LANES, 1))
    words = np.random.default_rng(3).integers(0, 1 << 32, exact.shape, dtype=np.uint32)
    for form in formats.FORMATS[2:]:
        representable = narrow(exact, form)
        assert (narrow(exact, form, random=words) == representable)[:, :4].all()
