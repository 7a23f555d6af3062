"""Stage 1 of a sequencer alone, in Amaranth's simulator."""

from amaranth.sim import Simulator

from hdl.sequencer.prepare import Prepare


class PrepareBench:
    """`Prepare` of a sequencer, whose registers and following stage the bench plays."""

    def __init__(self, config, sequencer):
        self.dut = Prepare(config, sequencer)
        self.registers = [0] * 64
        self.simulator = Simulator(self.dut)
        self.simulator.add_clock(1e-6)

    def run(self, cases):
        """cases: generator that yields (word, 64 registers) and is sent (output of `work_layout`,
        cycles that it took).
        """
        dut = self.dut

        async def bench(ctx):
            ctx.set(dut.o.ready, 1)
            try:
                word, values = next(cases)
                while True:
                    self.registers = values
                    ctx.set(dut.i.p.word, word)
                    ctx.set(dut.i.valid, 1)
                    await ctx.tick().until(dut.i.ready)
                    ctx.set(dut.i.valid, 0)
                    cycles = 0
                    output = None
                    while output is None:
                        cycles += 1
                        assert cycles < 100
                        index = ctx.get(dut.index)
                        ctx.set(dut.value, self.registers[index])
                        _, _, valid, payload = await ctx.tick().sample(dut.o.valid, dut.o.p)
                        output = payload if valid else None
                    word, values = cases.send((output, cycles))
            except StopIteration:
                pass

        self.simulator.add_testbench(bench)
        self.simulator.run()
