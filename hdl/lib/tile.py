"""Tiles: components that appear many times and are emitted as one Verilog module.

Amaranth makes a module of every component object.  A repeated part (PE row, lane, bank, RAM) is
therefore added with `add_tile`: under an `EmitPlatform` it becomes an `Instance` of a module that
is emitted once per set of parameters; under any other platform (Amaranth's simulator, formal) it is
an ordinary submodule.
"""

from amaranth.hdl import ClockSignal, Instance, ResetSignal
from amaranth.lib.wiring import In


class EmitPlatform:
    """Collects the tiles met during elaboration.

    Attributes
    ----------
    tiles : dict
        Module name -> tile component, in the order of first use.
    checks : bool
        Elaborate the run-time protocol checks (`hdl.lib.check`).
    """

    def __init__(self, *, checks=False):
        self.tiles = {}
        self.checks = checks


def tile_name(tile):
    """Verilog module name of a tile: its class and its `tile_parameters`."""
    parts = [type(tile).__name__.lower(), *(str(value).lower() for value in tile.tile_parameters)]
    return "_".join(parts)


def add_tile(m, platform, name, tile):
    """Add `tile` to module `m` as submodule or instance `name`; use its ports afterwards as usual.

    A tile is a `wiring.Component` in the `sync` domain with an attribute `tile_parameters`: a tuple
    of the constructor parameters that decide its logic.  A tile without registers sets
    `tile_combinational = True` (it has no clock ports).
    """
    if not isinstance(platform, EmitPlatform):
        m.submodules[name] = tile
        return tile
    module = tile_name(tile)
    platform.tiles.setdefault(module, tile)
    ports = {}
    if not getattr(tile, "tile_combinational", False):
        ports = {"i_clk": ClockSignal("sync"), "i_rst": ResetSignal("sync")}
    for path, member, value in tile.signature.flatten(tile):
        prefix = "i_" if member.flow == In else "o_"
        ports[prefix + "__".join(str(part) for part in path)] = value
    m.submodules[name] = Instance(module, **ports)
    tile._MustUse__used = True  # noqa: SLF001  the definition is elaborated once, by the emitter
    return tile
