"""How the polynomials of `isa.coefficients` were made. Run by hand only, with mpmath installed: the
committed numbers are the specification.

Each polynomial is the one of least weighted error (Remez exchange on a grid), rounded to FP32 one
coefficient after the other from the lowest, the rest fitted again to what each rounding left.

Usage: python -m golden.arith.functions.minimax [NAME...]
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
import numpy as np

GRID = 900
ROUNDS = 40


@dataclass(frozen=True)
class Fit:
    """P(t) of degree `degree` for x in [low, high]; P approximates `value(x)`, t = place(x), and
    |weight(x) (P - value)| is made small.
    """

    value: Callable
    place: Callable
    weight: Callable
    low: float
    high: float
    degree: int


def minimax(values, places, weights, powers):
    """Coefficients of `powers` of least weighted error on the grid, and that error."""
    count = len(powers) + 1
    last = len(places) - 1
    # Chebyshev points in the number of the grid point, whose spacing follows the argument.
    chosen = [round(last * (1 - mp.cos(mp.pi * i / (count - 1))) / 2) for i in range(count)]
    for _ in range(ROUNDS):
        matrix, right = mp.matrix(count), mp.matrix(count, 1)
        for row, point in enumerate(chosen):
            for column, power in enumerate(powers):
                matrix[row, column] = places[point] ** power
            matrix[row, count - 1] = (-1) ** row / weights[point]
            right[row] = values[point]
        solved = mp.lu_solve(matrix, right)
        errors = [
            w * (v - sum(solved[i] * t**power for i, power in enumerate(powers)))
            for v, t, w in zip(values, places, weights, strict=True)
        ]
        level, worst = abs(solved[count - 1]), max(abs(e) for e in errors)
        if worst <= level * mp.mpf("1.001"):
            break
        chosen = _exchanged(errors, count)
        if chosen is None:
            break
    return [solved[i] for i in range(len(powers))], worst


def _exchanged(errors, count):
    """The extreme point of each stretch of one sign, cut to `count` from the smaller end."""
    best: list[int] = []
    for point, error in enumerate(errors):
        if best and (error > 0) == (errors[best[-1]] > 0):
            if abs(error) > abs(errors[best[-1]]):
                best[-1] = point
        else:
            best.append(point)
    while len(best) > count:
        best.pop(0 if abs(errors[best[0]]) < abs(errors[best[-1]]) else -1)
    return best if len(best) == count else None


def fitted(fit: Fit):
    """(FP32 coefficients from the lowest, weighted error before and after rounding)."""
    # Dense at both ends.
    span = fit.high - fit.low
    points = [
        fit.low + span * (1 - mp.cos(mp.pi * (i + mp.mpf(1) / 2) / GRID)) / 2 for i in range(GRID)
    ]
    values = [mp.mpf(fit.value(x)) for x in points]
    places = [mp.mpf(fit.place(x)) for x in points]
    weights = [mp.mpf(fit.weight(x)) for x in points]
    found: list[float] = []
    first = error = mp.mpf(0)
    for power in range(fit.degree + 1):
        rest = [
            v - sum(c * t**i for i, c in enumerate(found))
            for v, t in zip(values, places, strict=True)
        ]
        solved, error = minimax(rest, places, weights, range(power, fit.degree + 1))
        first = first or error
        found.append(float(np.float32(float(solved[0]))))
    error = max(
        abs(w * (v - sum(c * t**i for i, c in enumerate(found))))
        for v, t, w in zip(values, places, weights, strict=True)
    )
    return found, first, error


def tail(a):
    """Phi(-a) e^(a^2 / 2)."""
    return mp.erfc(a / mp.sqrt(2)) / 2 * mp.exp(a * a / 2)


def scaled_erfc(a):
    """erfc(a) e^(a^2)."""
    return mp.erfc(a) * mp.exp(a * a)


def cardinal(function):
    """function(x) / x of an odd function."""
    return lambda x: function(x) / x


def excess(function):
    """(function(x) / x - 1) / x^2."""
    return lambda x: (function(x) / x - 1) / (x * x)


def inverse(x):
    """The place 1 / (x + 5/2)."""
    return 1 / (x + mp.mpf(5) / 2)


def square(x):
    """The place x^2."""
    return x * x


FITS = {
    # Relative to Phi(-a), down to where it is below 2^-126.
    "tail": Fit(tail, inverse, lambda a: 1 / tail(a), 0, 13.3, 8),
    # Relative to erf(a), up to where it rounds to 1.
    "erfc": Fit(scaled_erfc, inverse, lambda a: mp.exp(-a * a) / mp.erf(a), 0.6875, 3.95, 4),
    "erf": Fit(cardinal(mp.erf), square, lambda a: a / mp.erf(a), 0, 0.6875, 4),
    "log1p": Fit(cardinal(mp.log1p), lambda e: e, lambda e: e / mp.log1p(e), 0, 0.125, 4),
    # A little beyond pi / 2, as far as the rounding of z / pi lets the remainder come.
    "sine": Fit(excess(mp.sin), square, lambda r: r**3 / mp.sin(r), 0, 1.578, 3),
    "arctangent": Fit(excess(mp.atan), square, lambda m: m**3 / mp.atan(m), 0, 1, 7),
}


def main():
    parser = argparse.ArgumentParser(description="The polynomials of `isa.coefficients`.")
    parser.add_argument("name", nargs="*", default=list(FITS), help=f"of {', '.join(FITS)}")
    mp.mp.dps = 40
    for name in parser.parse_args().name:
        found, first, error = fitted(FITS[name])
        print(f"{name}: error {mp.nstr(first, 3)}, rounded {mp.nstr(error, 3)}")
        print("    " + ", ".join(value.hex() for value in found))


if __name__ == "__main__":
    main()
