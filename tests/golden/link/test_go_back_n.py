"""The search finds the safe windows and the first unsafe ones; all sizes at night."""

import pytest

from verif.go_back_n import TABLE, search


@pytest.mark.parametrize(
    ("modulus", "window", "halves", "safe"), [row for row in TABLE if row[:2] < (8, 7)]
)
def test_small_windows(modulus, window, halves, safe):
    assert search(modulus, window, halves)[0] == safe


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("modulus", "window", "halves", "safe"), [row for row in TABLE if row[:2] >= (8, 7)]
)
def test_large_windows(modulus, window, halves, safe):
    assert search(modulus, window, halves)[0] == safe
