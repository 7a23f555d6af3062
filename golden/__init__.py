"""The golden model: bit-exact numpy definitions of what the chip computes.

Imports `isa` only, never `hdl`: the two are written independently so that they can disagree.
"""
