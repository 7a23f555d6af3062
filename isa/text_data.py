"""Initial data in assembly text: the `.data` directive and its inverse."""

import re

import numpy as np

from isa.dtypes import DType
from isa.pattern import Reg
from isa.text import TextError, parse_float, parse_integer

_BYTES_PER_LINE = 32
_LEAST_ZEROS = 64
_SYNTAX = "write hex DIGITS, values NUMBER ..., or zero BYTES"


def append_data(tensor, kind, words):
    """Add the bytes of one .data directive to a tensor; TextError when they are wrong or too
    many.
    """
    if kind == "hex":
        digits = "".join(words)
        if len(digits) % 2 or not re.fullmatch(r"[0-9a-fA-F]+", digits):
            raise TextError(
                f".data hex {digits[:40]!r} is no list of bytes; write an even number of "
                "hexadecimal digits"
            )
        content = bytes.fromhex(digits)
    elif kind == "values" and words:
        content = b"".join(_element(tensor.dtype, word) for word in words)
    elif kind == "zero" and len(words) == 1:
        count = parse_integer(words[0], "bytes")
        if not 0 <= count <= tensor.size_bytes:
            raise TextError(
                f".data zero {count}, tensor {tensor.name!r} has {tensor.size_bytes} bytes; "
                "write fewer"
            )
        content = bytes(count)
    else:
        raise TextError(f".data {kind!r} is not understood; {_SYNTAX}")
    tensor.data = (tensor.data or b"") + content
    if len(tensor.data) > tensor.size_bytes:
        raise TextError(
            f"tensor {tensor.name!r} has {len(tensor.data)} bytes of data; its shape has "
            f"{tensor.size_bytes}"
        )


def format_data(tensor):
    """The .data lines of a tensor."""
    data, at = tensor.data, 0
    while at < len(data):
        run = len(data) - at - len(data[at:].lstrip(b"\0")) if data[at] == 0 else 0
        if run >= _LEAST_ZEROS:
            yield f".data {tensor.name} zero {run}"
            at += run
        else:
            yield f".data {tensor.name} hex {data[at : at + _BYTES_PER_LINE].hex()}"
            at += _BYTES_PER_LINE


def _element(dtype, text):
    value = parse_float(text, "value")
    if isinstance(value, Reg):
        raise TextError(f"value {text!r} is a register; write a number")
    number = np.uint32(value.value).view(np.float32)
    if dtype == DType.FP32:
        return np.uint32(value.value).tobytes()
    return np.asarray(number).astype(dtype.numpy).tobytes()
