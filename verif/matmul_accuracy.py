"""Error of matrix products against float64: our chain, and what others use.

    python -m verif.matmul_accuracy

Writes docs/matmul-accuracy.json and docs/matmul-accuracy.png.  Each figure is the root mean square,
over SIDE x SIDE outputs, of |result - exact| / sum_k |a_k b_k|, where exact is the float64 product
of the operands as rounded to their dtype; so it is the error of the arithmetic alone.  Data are
standard normal numbers, or their magnitudes (all positive: truncation cannot cancel).

Ours are chains of ROWS rows (`golden.arith.matmul`), added up in PSUM.  The alternatives, on the
same BF16 data: a chain that truncates each sum to FP32, a chain that rounds each sum to BF16; on
the same FP32 data: a chain of FP32 products and sums, which our array does not have.
"""

import json
import math
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
from tqdm import tqdm

from golden.arith import formats, matmul
from golden.arith.convert import narrow
from isa.fields import Part

DOCS = Path(__file__).parents[1] / "docs"
SIZES = tuple(64 << i for i in range(9))
SIDE, ROWS = 24, 128
PASSES = (
    (Part.LOW, Part.LOW),
    (Part.LOW, Part.HIGH_FINITE),
    (Part.HIGH_FINITE, Part.LOW),
    (Part.HIGH, Part.HIGH),
)
OURS = {
    "bf16": formats.BF16,
    "fp16": formats.FP16,
    "tf32": formats.TF32,
    "fp8 e4m3": formats.FP8_E4M3,
    "fp8 e4m3fn": formats.FP8_E4M3FN,
    "fp8 e3m4": formats.FP8_E3M4,
    "fp8 e5m2": formats.FP8_E5M2,
    "fp32, four passes": formats.FP32,
}
ALTERNATIVES = ("bf16, truncating chain", "bf16, bf16 accumulator", "fp32, native chain")
_STYLES = dict(zip(ALTERNATIVES, ("k--", "k:", "k-."), strict=True))
KINDS = ("normal", "positive")


def data(size, kind, seed=1):
    """(a, b), float32 [size, SIDE] each."""
    rng = np.random.default_rng([seed, size])
    pair = rng.standard_normal((2, size, SIDE), dtype=np.float32)
    return np.abs(pair) if kind == "positive" else pair


def ours(a, b, form, reverse=False):
    """The product of codes in PSUM; `reverse`: rows from the last to the first."""
    if reverse:
        a, b = a[::-1], b[::-1]
    total = None
    for start in range(0, len(a), ROWS):
        tile = slice(start, start + ROWS)
        for parts in PASSES if form == formats.FP32 else ((Part.FULL, Part.FULL),):
            left, right = (
                matmul.operand(np.ascontiguousarray(x[tile]), form, part)
                for x, part in zip((a, b), parts, strict=True)
            )
            term = matmul.chain(left, right)
            total = term if total is None else matmul.accumulate(total, term)
    return total


def truncating(a, b):
    """FP32 chain whose sums lose what does not fit."""
    total = np.zeros((SIDE, SIDE), np.float32)
    for x, y in zip(a, b, strict=True):
        exact = total.astype(np.float64) + np.outer(x, y).astype(np.float64)
        near = exact.astype(np.float32)
        beyond = np.abs(near.astype(np.float64)) > np.abs(exact)
        total = np.where(beyond, np.nextafter(near, np.float32(0)), near)
    return total


def narrow_accumulator(a, b):
    """Chain whose sums are rounded to BF16."""
    total = np.zeros((SIDE, SIDE), np.float32)
    for x, y in zip(a, b, strict=True):
        total = (total + np.outer(x, y)).astype(ml_dtypes.bfloat16).astype(np.float32)
    return total


def native(a, b):
    """Chain of FP32 products and sums."""
    total = np.zeros((SIDE, SIDE), np.float32)
    for x, y in zip(a, b, strict=True):
        total += np.outer(x, y)
    return total


def error(result, a, b):
    """Root mean square over the outputs, a and b as float64."""
    scale = np.abs(a).T @ np.abs(b)
    return float(np.sqrt(np.mean(((result.astype(np.float64) - a.T @ b) / scale) ** 2)))


def measure(sizes=SIZES, progress=False):
    """{kind: {name: [error of each size]}}."""
    found = {kind: {name: [] for name in (*OURS, *ALTERNATIVES)} for kind in KINDS}
    steps = [(kind, size) for kind in KINDS for size in sizes]
    for kind, size in tqdm(steps, disable=not progress, unit="size"):
        a, b = data(size, kind)
        row = found[kind]
        for name, form in OURS.items():
            codes = [narrow(x, form) for x in (a, b)]
            exact = [_values(x, form) for x in codes]
            row[name].append(error(ours(*codes, form), *exact))
        wide = [x.astype(ml_dtypes.bfloat16).astype(np.float32) for x in (a, b)]
        exact = [x.astype(np.float64) for x in wide]
        row[ALTERNATIVES[0]].append(error(truncating(*wide), *exact))
        row[ALTERNATIVES[1]].append(error(narrow_accumulator(*wide), *exact))
        row[ALTERNATIVES[2]].append(error(native(a, b), a.astype(np.float64), b.astype(np.float64)))
    return found


def _values(codes, form):
    """What codes stand for, float64."""
    if form == formats.FP32:
        return codes.view(np.float32).astype(np.float64)
    return matmul.operand(codes, form).astype(np.float64)


def plot(found, path):
    """The curves of `measure` over SIZES."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.6), sharey=True)
    for axis, kind in zip(axes, KINDS, strict=True):
        for name, values in found[kind].items():
            style = _STYLES.get(name, "o-")
            # Exact products have no place on a logarithmic axis.
            some = [value or math.nan for value in values]
            axis.loglog(SIZES, some, style, markersize=3, label=name)
        axis.set_title(f"{kind} data")
        axis.set_xlabel("K")
        axis.grid(True, which="major", alpha=0.3)
    axes[0].set_ylabel("rms error / sum |a b|")
    axes[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main():
    found = measure(progress=sys.stderr.isatty())
    facts = {"sizes": SIZES, "rows": ROWS, "errors": found}
    (DOCS / "matmul-accuracy.json").write_text(json.dumps(facts, indent=1) + "\n")
    plot(found, DOCS / "matmul-accuracy.png")
    for kind in KINDS:
        for name, values in found[kind].items():
            print(f"{kind:9}{name:24}" + "  ".join(f"{value:.1e}" for value in values))


if __name__ == "__main__":
    main()
