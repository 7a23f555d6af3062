"""How the tables were made. Run by hand only: the committed integers are the specification.

Each function is cut into 128 segments of its argument's fraction v in [0, 1); u in [0, 1) is the
place inside the segment. Per segment: a quadratic through the three Chebyshev nodes; its c2
rounded; c1 refitted to what remains, as the integer whose error over the grid, computed with the
integer datapath of `segment`, spans least; c0 put where the errors are `c0 +- half the span`
(midrange). Values come from `decimal` at 40 digits, so the result depends on no library of floats.

`log2` has c0 of segment 0 pinned to 0, which makes log(1) exactly +0.

Usage: python -m golden.arith.functions.generate OUT.json
"""

import hashlib
import json
import sys
from decimal import Decimal, getcontext
from pathlib import Path

SEGMENTS = 128
C0_BITS, C1_BITS, C2_BITS = 27, 26, 25
GUARD = 4
GRID = [*range(0, 1 << 16, 256), (1 << 16) - 1]
C1_CANDIDATES = range(-6, 7)

getcontext().prec = 40
ONE, TWO = Decimal(1), Decimal(2)
LN2 = TWO.ln()

FUNCTIONS = {
    "exp2": lambda v: (v * LN2).exp(),
    "reciprocal": lambda v: ONE / (ONE + v),
    "rsqrt_even": lambda v: ONE / (ONE + v).sqrt(),
    "rsqrt_odd": lambda v: ONE / (TWO * (ONE + v)).sqrt(),
    "sqrt_even": lambda v: (ONE + v).sqrt(),
    "sqrt_odd": lambda v: (TWO * (ONE + v)).sqrt(),
    "log2": lambda v: (ONE + v).ln() / LN2,
}
PINNED = {("log2", 0): 0}


def nearest(value):
    return int(value.to_integral_value())


def quadratic(f):
    """(c1, c2) of the quadratic through f at the Chebyshev nodes 1/2 and 1/2 +- sqrt(3)/4."""
    half, reach = ONE / 2, Decimal(3).sqrt() / 4
    low, mid, high = (f(half - reach), f(half), f(half + reach))
    c2 = (high - 2 * mid + low) / (2 * reach * reach)
    return (high - low) / (2 * reach) - c2, c2


def segment(f, pinned=None):
    """[c0, c1, c2] for f(u), u in [0, 1]."""
    start, curve = quadratic(f)
    c2 = nearest(curve * (1 << C2_BITS))
    # The slope at the middle is kept when c2 moves by its rounding.
    start += curve - Decimal(c2) / (1 << C2_BITS)
    scale = 1 << (C0_BITS + GUARD)
    exact = [nearest(f(Decimal(t) / (1 << 16)) * scale) for t in GRID]
    rest = [y - (c2 * ((t * t) >> 16) >> 10) for t, y in zip(GRID, exact, strict=True)]
    best = None
    for step in C1_CANDIDATES:
        c1 = nearest(start * (1 << C1_BITS)) + step
        wanted = [y - (c1 * t >> 11) for t, y in zip(GRID, rest, strict=True)]
        low, high = min(wanted), max(wanted)
        c0 = nearest(Decimal(low + high) / (2 << GUARD)) if pinned is None else pinned
        worst = max(high - (c0 << GUARD), (c0 << GUARD) - low)
        if best is None or (worst, abs(step)) < best[0]:
            best = (worst, abs(step)), [c0, c1, c2]
    assert best is not None
    return best[1]


def table(name):
    f = FUNCTIONS[name]
    return [
        segment(lambda u, i=i: f((i + u) / SEGMENTS), PINNED.get((name, i)))
        for i in range(SEGMENTS)
    ]


def text(tables):
    """JSON with one segment a line."""
    parts = []
    for name, rows in tables.items():
        lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        parts.append(f' "{name}": [\n{lines}\n ]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main():
    data = text({name: table(name) for name in FUNCTIONS}).encode()
    Path(sys.argv[1]).write_bytes(data)
    print(hashlib.sha256(data).hexdigest())


if __name__ == "__main__":
    main()
