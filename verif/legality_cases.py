"""Combinations of operators, spaces, dtypes and modes for the Laws of `verif.legality`: every code
of the fields that a law joins, the others at random; and the instructions that have them.
"""

import itertools
import random

from verif.legality import (
    BYPASS,
    DTYPES,
    FAST,
    FP32,
    FUNCTIONS,
    LAWS,
    ON_CHIP,
    PSUM,
    REDUCING,
    SCANNING,
    UINT32,
    VALUES,
    WORDS,
    broken,
)

_FLAGS = ("sat", "stochastic")
_MODES = ("part", "double_row", "transpose")
_SIZES = {"space": 4, "dtype": 16, "op0": 256, "op1": 256, "func": 256, "reduce_dims": 8, "part": 4}
_NEAR = 64
"""Codes of an operator that are tried where two operators are joined."""
STRATA = {
    "load_stationary": (("src0.space", "src0.dtype", *_MODES),),
    "multiply_moving": (
        ("src0.dtype", "dst.dtype", *_MODES),
        ("src0.space", "dst.space", "accumulate", "double_row", "transpose"),
    ),
    "tensor_tensor": (
        ("op0", "dst.dtype", *_FLAGS),
        ("src0.dtype", "src1.dtype", "dst.dtype"),
        ("src0.space", "src1.space", "dst.space", *_FLAGS),
    ),
    "tensor_scalar": (
        ("op0", "op1"),
        ("op0", "dst.dtype", *_FLAGS),
        ("op1", *_FLAGS),
        ("src0.dtype", "dst.dtype", *_FLAGS),
        ("src0.space", "dst.space", "column0.space", "column1.space"),
        ("column0.space", "column0.dtype", "column1.space"),
        ("column1.space", "column1.dtype", "column0.space"),
    ),
    "tensor_copy": (
        ("src0.dtype", "dst.dtype", *_FLAGS),
        ("src0.space", "dst.space", *_FLAGS),
    ),
    "tensor_reduce": (
        ("op0", "reduce_dims"),
        ("dst.dtype", *_FLAGS, "reduce_dims"),
        ("src0.dtype", "dst.dtype", *_FLAGS),
        ("src0.space", "dst.space"),
    ),
    "memset": (("dst.space", "dst.dtype", *_FLAGS),),
    "tensor_tensor_scan": (
        ("op0", "op1"),
        ("src0.dtype", "src1.dtype"),
        ("src0.dtype", "dst.dtype", *_FLAGS),
        ("src0.space", "src1.space", "dst.space"),
        ("column0.space", "column0.dtype"),
    ),
    "rand_set_state": (("src0.space", "src0.dtype"),),
    "rand_get_state": (("dst.space", "dst.dtype"),),
    "activation": (
        ("func", *_FLAGS),
        ("src0.dtype", "dst.dtype", *_FLAGS),
        ("src0.space", "dst.space"),
        ("column0.space", "column0.dtype", "column1.space"),
        ("column1.space", "column1.dtype", "column0.space"),
    ),
}
"""{instruction: tuples of fields whose codes are enumerated together}."""
MIXED = 600
"""Combinations of each instruction in which any field may have any code."""

LEGAL = 400
"""Combinations of each instruction that break no law, from which the other fields come."""

_UNTOLD = {"tensor_scalar": ("reverse0", "reverse1")}
"""Fields that no law speaks of."""


def _codes(path, joined=False):
    last = path.rpartition(".")[2]
    size = _SIZES.get(last, 2)
    return range(min(size, _NEAR) if joined and last in ("op0", "op1") else size)


def _likely(name, path):
    """Codes of a field that most laws of the instruction allow."""
    slot, _, last = path.rpartition(".")
    if slot.startswith("column") and last == "space":
        return (0, *ON_CHIP)
    if name == "multiply_moving" and slot == "dst":
        return (PSUM,) if last == "space" else (FP32,)
    operators = {"tensor_reduce": (REDUCING,), "tensor_tensor_scan": (SCANNING, SCANNING)}
    first, *second = operators.get(name, ((*VALUES, *WORDS), (BYPASS, *FAST, *WORDS)))
    return {
        "space": ON_CHIP,
        "dtype": (UINT32,) if name.startswith("rand") else DTYPES,
        "op0": first,
        "op1": second[0] if second else (),
        "func": FUNCTIONS,
        "reduce_dims": (1, 2, 3, 4),
    }.get(last, _codes(path))


def legal(name, rng):
    """Fields of one combination that no law forbids, at random."""
    paths = {path: None for stratum in STRATA[name] for path in stratum}
    paths |= dict.fromkeys(_UNTOLD.get(name, ()))
    while True:
        fields = {path: rng.choice(_likely(name, path)) for path in paths}
        if not broken(name, fields):
            return fields


def combinations(name):
    """Yields {field: code} of instruction `name`: each stratum in full, then mixed ones."""
    rng = random.Random(name)
    pool = [legal(name, rng) for _ in range(LEGAL)]
    for stratum in STRATA[name]:
        joined = {"op0", "op1"} <= set(stratum)
        for values in itertools.product(*(_codes(path, joined) for path in stratum)):
            yield rng.choice(pool) | dict(zip(stratum, values, strict=True))
    for _ in range(MIXED):
        fields = dict(rng.choice(pool))
        for path in fields:
            if rng.random() < 0.15:
                fields[path] = rng.choice(_codes(path))
        yield fields


def sample(name, each, mixed=0.0, keep=lambda combination: True):
    """Yields (combination, broken Laws): of those that one Law decides `each` for every format of
    the result, of legal ones three times as many, of all others the share `mixed`; only those to
    `keep`.
    """
    rng = random.Random(name)
    counts = {}
    for combination in filter(keep, combinations(name)):
        laws = broken(name, combination)
        if len(laws) > 1:
            if rng.random() < mixed:
                yield combination, laws
            continue
        form = combination.get("dst.dtype", combination.get("src0.dtype"))
        key = (laws[0].says, form) if laws else combination.get("double_row", 0)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= (each if laws else 3 * each):
            yield combination, laws


def instruction_fields(name, combination):
    """All fields of an instruction with this combination whose operands are otherwise right on
    every chip: an element in each of 4 partitions, or states; K = 4 and M = 1.
    """
    elements = 6 if name.startswith("rand") else 1
    fields = dict(combination)
    for index, slot in enumerate(path[:-6] for path in combination if path.endswith(".space")):
        if slot.startswith("column"):
            fields[f"{slot}.offset"] = 64 * index if combination[f"{slot}.space"] else 0
        else:
            alone = name == "multiply_moving" and slot == "dst"
            fields |= {f"{slot}.partition_count": 1 if alone else 4, f"{slot}.offset": 64 * index}
            fields |= {f"{slot}.step0": 1, f"{slot}.count0": elements}
            fields |= {f"{slot}.count{i}": 1 for i in (1, 2, 3)}
    return fields


class Tally:
    """Counts, for instruction `name`, what was accepted and which Law alone decided."""

    def __init__(self, name):
        self.name = name
        self.accepted = 0
        self.alone = dict.fromkeys((law.says for law in LAWS[name]), 0)

    def add(self, laws):
        """One combination that breaks `laws`."""
        self.accepted += not laws
        if len(laws) == 1:
            self.alone[laws[0].says] += 1

    def check(self, least=1):
        """Every Law decided alone `least` times, and as many combinations broke none."""
        assert self.accepted >= least, f"{self.name}: accepted {self.accepted}"
        seldom = {says: count for says, count in self.alone.items() if count < least}
        assert not seldom, f"{self.name}: {seldom}"
