"""Run-time checks, elaborated only for `EmitPlatform(checks=True)` (simulation) and formal.

A failed check stops the simulator with its message; production Verilog carries none of it.
"""

from amaranth.hdl import Assert, Signal

from hdl.lib.tile import EmitPlatform


def checks_enabled(platform):
    """True when checks belong into what is being elaborated."""
    return (isinstance(platform, EmitPlatform) and platform.checks) or platform == "formal"


def check(m, platform, condition, message):
    """`condition` must hold at every clock edge (outside reset)."""
    if checks_enabled(platform):
        m.d.sync += Assert(condition, message)


def check_stream(m, platform, port, name):
    """Once valid, a stream stays valid with the same payload until it is taken."""
    if not checks_enabled(platform):
        return
    payload = port.payload.as_value() if hasattr(port.payload, "as_value") else port.payload
    was_held = Signal(name=f"{name}_held")
    was_payload = Signal(len(payload), name=f"{name}_payload")
    stable = Signal(name=f"{name}_stable")
    m.d.sync += [was_held.eq(port.valid & ~port.ready), was_payload.eq(payload)]
    m.d.comb += stable.eq(~was_held | (port.valid & (was_payload == payload)))
    m.d.sync += Assert(stable, f"stream {name}: valid or payload changed before it was taken")
