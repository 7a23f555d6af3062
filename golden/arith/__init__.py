"""Arithmetic of Celosia as numpy functions: the definition that the hardware is held against.

One sentence describes all of it: no operand is ever flushed, a multiplication whose FP32 result is
subnormal returns signed zero, additions are plain IEEE binary32 rounded to nearest even. The one
NaN that arithmetic produces is `0x7FC00000` (bf16 `0x7FC0`).

`float32`: element-wise operations and reductions; `bfloat16`: casts; `matmul`: the chain of the
tensor engine. Importing this package fails where the process flushes float32 subnormals.
"""

from golden.arith.selftest import require_subnormals

require_subnormals()
