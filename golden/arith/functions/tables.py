"""The tables, read from `tables.json` and refused if they are not the specified ones.

One int64 array [128, 3] (c0, c1, c2) per function of the fraction v in [0, 1):

    exp2         2^v                      rsqrt_even   1 / sqrt(1 + v)
    reciprocal   1 / (1 + v)              rsqrt_odd    1 / sqrt(2 (1 + v))
    log2         log2(1 + v)              sqrt_even    sqrt(1 + v)
                                          sqrt_odd     sqrt(2 (1 + v))
"""

import hashlib
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PATH = Path(__file__).with_name("tables.json")
DIGEST = "8b547fcdd414bff236bcd47f4f3d93d5f56168a9c9d236ad62d58dd9b39cb4c1"
"""SHA-256 of the file."""


def load(data: bytes) -> dict[str, NDArray[np.int64]]:
    """The tables in `data`; `ValueError` unless its SHA-256 is `DIGEST`."""
    found = hashlib.sha256(data).hexdigest()
    if found != DIGEST:
        raise ValueError(f"tables.json has SHA-256 {found}, specified is {DIGEST}")
    tables = {name: np.array(rows, np.int64) for name, rows in json.loads(data).items()}
    for table in tables.values():
        table.flags.writeable = False
    return tables


TABLES = load(PATH.read_bytes())


def columns(*names: str) -> tuple[NDArray[np.int64], ...]:
    """c0, c1, c2 of the named tables one behind the other, contiguous."""
    joined = np.concatenate([TABLES[name] for name in names])
    return tuple(np.ascontiguousarray(joined[:, i]) for i in range(3))
