"""The only module that knows Amaranth's back ends: components in, SystemVerilog out.

Logic is written as continuous assignments and registers as `always_ff`; there are no `always_comb`
blocks.  A block that gives its output a default and then another value shows both to an
event-driven simulator, and where two blocks read different bits of each other's vectors that never
ends.  Amaranth's own conversion keeps such blocks, so the Yosys passes are run here, through a
private hook of Amaranth 0.5.
"""

import os
import re

import amaranth
from amaranth._toolchain.yosys import find_yosys
from amaranth.back import rtlil

from hdl.lib.tile import EmitPlatform

os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")

_PASSES = ("proc -norom", "memory_collect", "write_verilog -norename -sv")
_YOSYS_VERSION = (0, 40)

_EMPTY_VECTOR = re.compile(r"^ *(?:wire|reg) \[-1:0\] [^;]*;\n", re.MULTILINE)
"""Declarations of signals of no width, which nothing uses; Verilog would read them as two bits."""

_MULTIPLEXER = re.compile(
    r"""^\ \ function\ \[(?P<msb>\d+):0\]\ (?P<name>\w+)\ ;\n
    (?:.*\n){2}? .* input\ \[(?P<cases>\d+):0\]\ s;\n
    (?:.*\n)*? \ \ endfunction\n
    \ \ assign\ (?P<result>.*?)\ =\ (?P=name)\ \((?P<arguments>.*)\);$""",
    re.MULTILINE | re.VERBOSE,
)
"""A multiplexer with a one-hot select, which Yosys writes as a function and its one call. Verilator
numbers calls from instance to instance, and would compile the code of each instance anew."""


def emit(component, name, *, checks=False):
    """SystemVerilog of `component` as module `name`, with every tile it uses, as one text.

    The same component gives the same bytes.  A tile with a method `verilog` (name -> text) is not
    elaborated: its text is taken.  `checks` adds the run-time protocol checks (simulation only).
    """
    if not amaranth.__version__.startswith("0.5."):
        raise RuntimeError(
            f"hdl.emit uses a private hook of Amaranth 0.5 and this is {amaranth.__version__}; "
            "install amaranth~=0.5.10"
        )
    platform = EmitPlatform(checks=checks)
    texts = [rtlil.convert(component, name=name, platform=platform, emit_src=False)]
    written = []
    done = set()
    while len(done) < len(platform.tiles):
        for module, tile in list(platform.tiles.items()):
            if module not in done:
                done.add(module)
                if hasattr(tile, "verilog"):
                    written.append(tile.verilog(module))
                    continue
                texts.append(rtlil.convert(tile, name=module, platform=platform, emit_src=False))
    return "\n".join([_verilog("\n".join(texts)), *written])


def _verilog(rtlil_text):
    script = "\n".join([f"read_rtlil <<rtlil\n{rtlil_text}\nrtlil", *_PASSES])
    yosys = find_yosys(lambda version: version >= _YOSYS_VERSION)
    text = yosys.run(["-q", "-"], script, ignore_warnings=True)
    text = _EMPTY_VECTOR.sub("", text.replace("\\$procmux$", "procmux_"))
    return _MULTIPLEXER.sub(_selection, text)


def _selection(found):
    """The assignment `name`(a, b, s) of a function as a chain of choices."""
    name, result = found["name"], found["result"]
    width = int(found["msb"]) + 1
    a, b, s = _arguments(found["arguments"])
    cases = int(found["cases"]) + 1
    lines = [
        f"  wire [{width * cases - 1}:0] {name}_b = {b} ;",
        f"  wire [{cases - 1}:0] {name}_s = {s} ;",
        f"  assign {result} =",
    ]
    for case in range(cases):
        low = width * case
        lines.append(f"    {name}_s[{case}] ? {name}_b[{low + width - 1}:{low}] :")
    return "\n".join([*lines, f"    {a} ;"])


def _arguments(text):
    """The parts of `text` between the commas that are in no braces, brackets or parentheses."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]
