"""The only module that knows Amaranth's back ends: components in, SystemVerilog out.

Output is SystemVerilog (`always_comb` / `always_ff`), because `always @*` with constant inputs
never runs on event-driven simulators.  That flavour is a private hook of Amaranth 0.5, used here
and nowhere else.
"""

import os
import re

import amaranth
from amaranth.back import rtlil, verilog

from hdl.lib.tile import EmitPlatform

_EMPTY_VECTOR = re.compile(r"^ *(?:wire|reg) \[-1:0\] [^;]*;\n", re.MULTILINE)
"""Declarations of signals of no width, which nothing uses; Verilog would read them as two bits."""

os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")


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
    converted = verilog._convert_rtlil_text("\n".join(texts), write_verilog_opts=("-sv",))  # noqa: SLF001
    return "\n".join([_EMPTY_VECTOR.sub("", converted), *written])
