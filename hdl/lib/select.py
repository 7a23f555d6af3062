"""Choosing one of several wide values."""

from amaranth.hdl import Mux
from amaranth.utils import ceil_log2


def select_value(index, values):
    """The value whose number is `index`, as a tree of multiplexers.

    Cheaper to simulate than a shift by a variable, which `word_select` of a packed vector becomes.
    `index` has as many bits as `values` need; numbers beyond the last value give any of them.
    """
    if len(index) != ceil_log2(len(values)):
        raise ValueError(f"{len(values)} values and {len(index)} bits of index")
    values = list(values)
    for bit in range(len(index)):
        pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
        values = [
            Mux(index[bit], pair[1], pair[0]) if len(pair) == 2 else pair[0] for pair in pairs
        ]
    return values[0]


def or_tree(values):
    """OR of the values in a balanced tree."""
    values = list(values)
    while len(values) > 1:
        values = [
            values[i] | values[i + 1] if i + 1 < len(values) else values[i]
            for i in range(0, len(values), 2)
        ]
    return values[0]
