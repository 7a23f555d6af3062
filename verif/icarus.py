"""Emitted SystemVerilog in Icarus against the component in Amaranth's simulator, by cycles.

Proves that what is emitted (tiles, RAM texts) does what was elaborated, and that no unknown value
(X) reaches an output.
"""

import subprocess
from pathlib import Path

from amaranth.hdl import Module, Signal, Value
from amaranth.lib.wiring import Flow
from amaranth.sim import Simulator

from hdl.emit import emit

_TIMEOUT_SECONDS = 120
_BENCH = """
module bench;
  reg clk = 0, rst = 1;
  reg [{in_top}:0] stimuli [0:{last}];
  reg [{in_top}:0] now = 0;
  wire [{out_top}:0] result;
  integer cycle;
  {name} dut (.clk(clk), .rst(rst){connections});
  initial begin
    $readmemh("stimuli.hex", stimuli);
    for (cycle = 0; cycle < 3; cycle = cycle + 1) begin #1 clk = 1; #1 clk = 0; end
    rst = 0;
    for (cycle = 0; cycle <= {last}; cycle = cycle + 1) begin
      now = stimuli[cycle];
      #1 $display("%b", result);
      clk = 1; #1 clk = 0;
    end
    $finish;
  end
endmodule
"""


def ports(component):
    """({input name: signal}, {output name: signal}) with the names that they have in Verilog."""
    inputs, outputs = {}, {}
    for path, member, value in component.signature.flatten(component):
        name = "__".join(str(part) for part in path)
        (inputs if member.flow == Flow.In else outputs)[name] = Value.cast(value)
    return inputs, outputs


def amaranth_trace(component, stimuli):
    """{output: value} of every cycle, before its edge; stimuli are {input: value}, held."""
    inputs, outputs = ports(component)
    trace = []

    async def bench(ctx):
        for stimulus in stimuli:
            for name, value in stimulus.items():
                ctx.set(inputs[name], value)
            _, _, *values = await ctx.tick().sample(*outputs.values())
            trace.append(dict(zip(outputs, values, strict=True)))

    around = Module()  # has a clock even if the component is combinational
    beat = Signal()
    around.submodules.component = component
    around.d.sync += beat.eq(~beat)
    simulator = Simulator(around)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return trace


def icarus_trace(component, stimuli, folder):
    """{output: binary text} of every cycle, 0, 1 and x, of the emitted component."""
    folder = Path(folder)
    inputs, outputs = ports(component)
    held = dict.fromkeys(inputs, 0)
    lines = []
    for stimulus in stimuli:
        held.update(stimulus)
        word, low = 0, 0
        for name, signal in inputs.items():
            word |= held[name] << low
            low += len(signal)
        lines.append(f"{word:x}")
    (folder / "stimuli.hex").write_text("\n".join(lines))
    connections, widths = "", {}
    for vector, group in (("now", inputs), ("result", outputs)):
        low = 0
        for name, signal in group.items():
            connections += f", .{name}({vector}[{low} +: {len(signal)}])"
            low += len(signal)
        widths[vector] = low
    text = emit(component, "dut_under_test") + _BENCH.format(
        in_top=widths["now"] - 1, out_top=widths["result"] - 1, last=len(lines) - 1,
        name="dut_under_test", connections=connections)
    (folder / "bench.sv").write_text(text)
    _run(["iverilog", "-g2012", "-s", "bench", "-o", "bench.vvp", "bench.sv"], folder)
    trace = []
    for line in _run(["vvp", "bench.vvp"], folder).split():
        end, values = len(line), {}
        for name, signal in outputs.items():
            values[name] = line[end - len(signal):end]
            end -= len(signal)
        trace.append(values)
    return trace


def assert_same(make, stimuli, folder, *, unknown_until_valid=()):
    """The component that `make()` gives behaves alike in both simulators.

    unknown_until_valid : names of outputs whose bits may be X in Icarus (data without reset, told
    to be valid by another output); elsewhere an X fails.
    """
    expected = amaranth_trace(make(), stimuli)
    got = icarus_trace(make(), stimuli, folder)
    assert len(got) == len(expected) == len(stimuli) > 0
    known = 0
    for cycle, (mine, theirs) in enumerate(zip(expected, got, strict=True)):
        for name, bits in theirs.items():
            text = f"{mine[name]:0{len(bits)}b}"
            if name not in unknown_until_valid:
                assert bits == text, f"cycle {cycle} {name}: Icarus {bits}, Amaranth {text}"
            known += sum(bit in "01" for bit in bits)
            assert all(a == b or a in "xz" for a, b in zip(bits, text, strict=True)), (
                f"cycle {cycle} {name}: Icarus {bits}, Amaranth {text}")
    return known


def _run(command, folder):
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                            timeout=_TIMEOUT_SECONDS, check=False)
    if result.returncode:
        raise RuntimeError(f"{command[0]} failed: {result.stdout[-500:]}{result.stderr[-2000:]}")
    return result.stdout
