"""The tensor engine: a systolic array, BF16 in and FP32 out, and its control."""
