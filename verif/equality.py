"""Comparison of bit patterns with a report that one can act on."""

import numpy as np


def assert_same(got, expected, *, seed=None, **operands):
    """Fails unless two integer arrays are equal, naming the first mismatch and its operands.

    `operands` are arrays that belong to the results element by element.
    """
    got, expected = np.atleast_1d(np.asarray(got)), np.atleast_1d(np.asarray(expected))
    assert got.shape == expected.shape, f"shape {got.shape}, expected {expected.shape}"
    assert got.dtype.kind in "iu", f"bit patterns expected, not {got.dtype}"
    assert expected.dtype.kind in "iu", f"bit patterns expected, not {expected.dtype}"
    assert got.size > 0, "nothing was compared"
    wrong = np.argwhere(got != expected)
    if not len(wrong):
        return
    first = tuple(int(index) for index in wrong[0])
    inputs = ", ".join(
        f"{name}={int(np.broadcast_to(array, got.shape)[first]):08x}"
        for name, array in operands.items()
    )
    raise AssertionError(
        f"{len(wrong)} of {got.size} differ, first at {list(first)}: "
        f"got {int(got[first]):08x}, expected {int(expected[first]):08x}"
        + (f" for {inputs}" if inputs else "")
        + (f" (seed {seed})" if seed is not None else "")
    )
