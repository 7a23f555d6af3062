"""Functions of the scalar engine, FP32 to FP32, as integer datapaths around small tables.

Every input has a defined result: one canonical NaN, subnormal operands honoured, a result below
2^-126 flushed to zero of its sign. The tables are the specification: integers that are committed
and checked when they are loaded, never computed.
"""
