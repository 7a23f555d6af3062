"""Element types: code in an instruction, size, name in assembly, numpy type on the host."""

from enum import IntEnum

import ml_dtypes
import numpy as np


class DType(IntEnum):
    """Code of an element type.  Codes are stable."""

    FP32 = 0
    BF16 = 1
    FP16 = 2
    TF32 = 3
    FP8_E5M2 = 4
    FP8_E4M3 = 5
    FP8_E3M4 = 6
    FP8_E4M3FN = 7
    INT8 = 8
    UINT8 = 9
    INT16 = 10
    UINT16 = 11
    INT32 = 12
    UINT32 = 13

    @property
    def text(self):
        """Name in assembly and program files."""
        return self.name.lower()

    @property
    def itemsize(self):
        """Bytes of an element."""
        return _ITEMSIZE[self]

    @property
    def numpy(self):
        """numpy dtype that holds it on the host."""
        return _NUMPY[self]


SUPPORTED = tuple(DType)
FP8 = (DType.FP8_E5M2, DType.FP8_E4M3, DType.FP8_E3M4, DType.FP8_E4M3FN)
NARROW = (DType.BF16, DType.FP16, *FP8)
"""Types that `sat` and `stochastic` apply to as results."""
MATMUL = (DType.FP32, DType.TF32, *NARROW)
"""Types that the tensor engine multiplies."""
TRANSPOSED = (*NARROW, DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)
"""Types of one or two bytes, whose bits the tensor engine can pass."""

_NUMPY = {
    DType.FP32: np.dtype(np.float32),
    DType.BF16: np.dtype(ml_dtypes.bfloat16),
    DType.FP16: np.dtype(np.float16),
    DType.TF32: np.dtype(np.float32),
    DType.FP8_E5M2: np.dtype(ml_dtypes.float8_e5m2),
    DType.FP8_E4M3: np.dtype(ml_dtypes.float8_e4m3),
    DType.FP8_E3M4: np.dtype(ml_dtypes.float8_e3m4),
    DType.FP8_E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    DType.INT8: np.dtype(np.int8),
    DType.UINT8: np.dtype(np.uint8),
    DType.INT16: np.dtype(np.int16),
    DType.UINT16: np.dtype(np.uint16),
    DType.INT32: np.dtype(np.int32),
    DType.UINT32: np.dtype(np.uint32),
}
_ITEMSIZE = {dtype: numpy_type.itemsize for dtype, numpy_type in _NUMPY.items()}
_BY_TEXT = {dtype.text: dtype for dtype in DType}


def parse_dtype(text):
    """The DType named `text` in assembly; ValueError lists the supported names."""
    if text not in _BY_TEXT:
        raise ValueError(f"no dtype {text!r}; supported: {', '.join(d.text for d in SUPPORTED)}")
    return _BY_TEXT[text]


def dtype_of(array):
    """The DType whose host type is `array.dtype`; TypeError when there is none."""
    for dtype, numpy_type in _NUMPY.items():
        if numpy_type == array.dtype and dtype is not DType.TF32:
            return dtype
    raise TypeError(f"numpy dtype {array.dtype} has no counterpart on the chip")
