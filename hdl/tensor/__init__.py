"""The tensor engine: a systolic array of FP32-accumulating BF16 processing elements and its control."""
