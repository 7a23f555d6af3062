"""How good the functions of the scalar engine are: `python -m verif.function_accuracy` measures
them and writes docs/functions.json, docs/functions.md and docs/functions.png.

Steps, special values and BF16 results (all inputs) take seconds and are kept current by a test;
FP32 results are those of a sample, or of all 2^32 inputs for the functions named with --all.
`--only` without a name measures nothing and writes the page anew.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
from tqdm import tqdm

from golden.arith.functions.program import apply
from isa.fields import Function
from isa.functions import PROGRAMS
from verif.function_errors import Errors, bf16, fp32, sample
from verif.function_reference import SLOPE

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, RESULTS, PLOT = (DOCS / f"functions.{ending}" for ending in ("md", "json", "png"))
SAMPLE = 16_000_000
"""Size that `sample` is asked for; the results say how many inputs they come from."""
BLOCK = 1 << 15
"""Inputs at a time: as many as stay in the cache."""

FORMULAS = {
    Function.COPY: "z",
    Function.RELU: "max(z, 0)",
    Function.EXP: "e^z",
    Function.LOG: "ln z",
    Function.SQRT: "sqrt(z)",
    Function.RSQRT: "1 / sqrt(z)",
    Function.RECIPROCAL: "1 / z",
    Function.SIGMOID: "1 / (1 + e^-z)",
    Function.TANH: "tanh z",
    Function.GELU: "z Phi(z)",
    Function.GELU_TANH: "z / 2 (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3)))",
    Function.GELU_DERIVATIVE: "Phi(z) + z phi(z)",
    Function.SILU: "z sigmoid(z)",
    Function.SILU_DERIVATIVE: "sigmoid(z) (1 + z sigmoid(-z))",
    Function.SOFTPLUS: "ln(1 + e^z)",
    Function.MISH: "z tanh(softplus(z))",
    Function.ERF: "erf z",
    Function.SIN: "sin z",
    Function.COS: "cos z",
    Function.ARCTAN: "arctan z",
    Function.SQUARE: "z^2",
    Function.ABS: "abs(z)",
    Function.SIGN: "sign(z), +-0 as it is",
    Function.PRELU: "z, below 0 imm2 z",
}
SPECIALS = ("-inf", "-0", "+0", "+inf", "nan")

_TEXT = """# Functions of the scalar engine

Written by `python -m verif.function_accuracy`; do not edit. The definition of every result is the
program in `isa/functions.py`: z = src0 * scale + bias, a product and a sum each rounded to FP32,
then steps of one product, one sum and one function by table. n steps take n cycles for an element
of every partition. NaN gives the canonical NaN; a product below 2^-126 is zero of its sign.

All that follows is measured at z, which is what `golden.arith.functions.program.apply` takes. The
instruction comes to z by its product and its sum, whose roundings are not part of the errors here:
a product below 2^-126 is zero of its sign, so a subnormal src0 with scale 1 and bias 0 gives the
result at a zero; and a zero product plus a zero bias is z = -0 only where both are -0. With bias
+0, which is what no bias means, z is never -0.

The reference is float64 (`verif/function_reference.py`). FP32: worst error in ulp of the exact
result and the input where it is, over {inputs}; worst absolute
error where |f| < 1, which is what counts beside a zero of f (log at 1, tanh just above 2^-11, sine
and cosine at large angles, derivatives); the size below which results become zero, where that is
more than 2^-126. BF16: all 65 536 inputs; results that are not the nearest BF16 number, and how
many of them became zero. FP16 and FP8 (e5m2, e4m3, e3m4, e4m3fn), all inputs: narrowed to the
format of z every FP8 result is the nearest number; of 65 536 FP16 results at most 15 are not, and
all are within 0.501 ulp, but for gelu_derivative (0.7) beside its zero.

| function | z -> | steps | FP32 ulp | at | absolute | zero below | BF16 ulp | not nearest | zero |
|---|---|---|---|---|---|---|---|---|---|
{accuracy}

![error in ulp over the input](functions.png)

## Special values

Results at z, not at src0: an instruction whose bias is +0 has no z = -0, and gives what stands
under +0 in its place; with bias -0 it gives both. sin and cos are NaN from |z| = 98304 on. imm2 of
prelu is 0.25 here.

| function | -inf | -0 | +0 | +inf |
|---|---|---|---|---|
{specials}
"""


def specials(function):
    """Results at `SPECIALS` as text."""
    z = np.array([float(text) for text in SPECIALS], np.float32)
    return [_number(value) for value in apply(function, z, np.float32(SLOPE))]


def cheap(function):
    """What a test can measure anew."""
    errors = bf16(function)
    return {
        "steps": len(PROGRAMS[function]),
        "specials": specials(function),
        "bf16_ulp": round(errors.worst, 4),
        "bf16_not_nearest": errors.wrong,
        "bf16_zero": errors.lost,
    }


def everywhere(function):
    """Errors over all 2^32 inputs; minutes."""
    errors = Errors()
    blocks = range(0, 1 << 32, BLOCK)
    within = np.arange(BLOCK, dtype=np.uint32)
    for start in tqdm(blocks, desc=function.name.lower(), unit_scale=BLOCK, unit="input"):
        codes = within + np.uint32(start)
        errors.join(fp32(function, codes.view(np.float32)))
    return errors


def measured(function, complete):
    """Everything about a function, for the file of results."""
    if complete:
        errors = everywhere(function)
    else:
        errors = Errors()
        for x in np.array_split(sample(SAMPLE), SAMPLE // BLOCK):
            errors.join(fp32(function, x))
    return {**cheap(function), "fp32": asdict(errors)}


def page(results):
    """The page for the results by name of function."""
    rows, special_rows = [], []
    for function in Function:
        name = function.name.lower()
        found = results[name]
        errors = found["fp32"]
        mark = "*" if errors["inputs"] >= 1 << 32 else ""
        zero = f"{errors['lost_below']:.1e}" if errors["lost"] else ""
        at = f"{errors['at']:.9g}" if errors["worst"] else ""
        cells = (
            *(name, f"`{FORMULAS[function]}`", found["steps"], _ulp(errors["worst"]) + mark, at),
            *(f"{errors['absolute']:.1e}" if errors["absolute"] else "0", zero),
            *(f"{found['bf16_ulp']:.3f}", found["bf16_not_nearest"], found["bf16_zero"]),
        )
        rows.append(_row(cells))
        special_rows.append(_row((name, *found["specials"][:-1])))
    return _TEXT.format(
        accuracy="\n".join(rows),
        specials="\n".join(special_rows),
        inputs=_inputs([results[function.name.lower()]["fp32"]["inputs"] for function in Function]),
    )


def _inputs(counts):
    """What the FP32 errors come from, as text."""
    sampled = sorted({count for count in counts if count < 1 << 32})
    if not sampled:
        return "all 2^32 inputs"
    ends = [f"{count:_}".replace("_", " ") for count in sampled]
    span = ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"
    return f"{span} inputs or, marked *, all 2^32"


def _row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _ulp(value):
    return f"{value:.2f}" if value < 1000 else f"{value:.1e}"


def _number(value):
    return "NaN" if np.isnan(value) else f"{value:.8g}"


def plot(path):
    """Worst error in ulp by input, each function over the inputs where it does something."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = [f for f in Function if len(PROGRAMS[f]) > 2 or f in (Function.EXP, Function.LOG)]
    figure, axes = pyplot.subplots(4, 4, figsize=(16, 11), layout="constrained")
    for axis, function in zip(axes.flat, names, strict=False):
        low, high = _PLOTTED.get(function, (-16, 16))
        edges = np.linspace(low, high, 401)
        worst = []
        for left, right in zip(edges, edges[1:], strict=False):
            x = np.random.default_rng(1).uniform(left, right, 4000).astype(np.float32)
            worst.append(fp32(function, x).worst)
        axis.semilogy(edges[:-1], np.maximum(worst, 0.3), linewidth=0.9)
        axis.set_title(function.name.lower(), fontsize=10)
        axis.axhline(1, color="0.7", linewidth=0.6)
        axis.set_ylim(0.3, 1e4)
    for axis in axes.flat[len(names) :]:
        axis.set_visible(False)
    figure.supylabel("worst error, ulp of FP32")
    figure.supxlabel("z")
    figure.savefig(path, dpi=80)


_PLOTTED = {
    Function.EXP: (-87, 88),
    Function.LOG: (0.01, 4),
    Function.SIGMOID: (-87, 20),
    Function.SILU: (-87, 20),
    Function.SILU_DERIVATIVE: (-87, 20),
    Function.SOFTPLUS: (-87, 20),
    Function.MISH: (-87, 20),
    Function.TANH: (-4, 4),
    Function.ERF: (-4, 4),
    Function.ARCTAN: (-4, 4),
    Function.GELU_TANH: (-11, 6),
    Function.GELU: (-13, 6),
    Function.GELU_DERIVATIVE: (-13, 6),
}


def main():
    parser = argparse.ArgumentParser(description="Accuracy of the scalar engine's functions.")
    names = [function.name.lower() for function in Function]
    parser.add_argument(
        "--all",
        nargs="*",
        default=[],
        choices=names,
        metavar="NAME",
        help="functions measured at all 2^32 inputs, a few minutes each",
    )
    parser.add_argument(
        "--only",
        nargs="*",
        default=names,
        choices=names,
        metavar="NAME",
        help="functions measured anew",
    )
    arguments = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in tqdm(arguments.only, desc="functions"):
        results[name] = measured(Function[name.upper()], name in arguments.all)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    if not set(names) - set(results):
        PAGE.write_text(page(results))
        plot(PLOT)


if __name__ == "__main__":
    main()
