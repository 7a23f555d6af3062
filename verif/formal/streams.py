"""Streams of hdl/lib: nothing is lost, repeated or reordered, and offers stand until taken."""

from amaranth.hdl import Cat, Module, Signal

from hdl.lib.arbiter import RoundRobin, one_hot_index, one_hot_mux
from hdl.lib.fifo import StreamFifo
from hdl.lib.merge import StreamMerge
from hdl.lib.stall import StallGate
from verif.formal.harness import AnyConst, AnySeq, Harness

WIDTH = 3


class Overflowing(StreamFifo):
    """Mutant: takes a payload that it has no room for."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.i.ready.eq(1)
        return m


class Restless(StreamMerge):
    """Mutant: a new request may take the place of an offer."""

    def elaborate(self, platform):
        m = Module()
        inputs = [getattr(self, f"i{i}") for i in range(self.count)]
        m.submodules.arbiter = arbiter = RoundRobin(self.count)
        m.d.comb += [
            arbiter.request.eq(Cat(i.valid for i in inputs)),
            arbiter.advance.eq(self.o.ready),
            self.source.eq(arbiter.grant),
            self.o.valid.eq(self.source.any()),
            self.index.eq(one_hot_index(self.source, self.count)),
            self.o.p.eq(one_hot_mux(self.source, [i.p for i in inputs])),
        ]
        m.d.comb += [i.ready.eq(self.source[n] & self.o.ready) for n, i in enumerate(inputs)]
        return m


class DropsOne(StreamMerge):
    """Mutant: tells every source that its payload has been taken."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += [getattr(self, f"i{n}").ready.eq(self.o.ready) for n in range(self.count)]
        return m


class Forgetful(StallGate):
    """Mutant: a stall takes an offer back."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += [
            self.o.valid.eq(self.i.valid & ~self.stall),
            self.i.ready.eq(self.o.ready & ~self.stall),
        ]
        return m


class LowestFirst(RoundRobin):
    """Mutant: fixed priority."""

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.grant.eq(self.request & (~self.request + 1)[: self.count])
        return m


def offer(harness, m, port, name, payload=None):
    """Drives a stream as a neighbour that keeps the rules: an offer stands until it is taken."""
    held, held_payload = Signal(name=f"{name}_held"), Signal(WIDTH, name=f"{name}_held_payload")
    m.d.comb += port.valid.eq(AnySeq(1))
    m.d.comb += port.payload.eq(AnySeq(WIDTH) if payload is None else payload)
    m.d.sync += [held.eq(port.valid & ~port.ready), held_payload.eq(port.payload)]
    harness.assume(m, ~held | (port.valid & (port.payload == held_payload)))


def stands(harness, m, port, name):
    """Property `name`: an offer on the output stands until it is taken."""
    held, held_payload = Signal(), Signal(WIDTH)
    m.d.sync += [held.eq(port.valid & ~port.ready), held_payload.eq(port.payload)]
    harness.prove(m, name, ~held | (port.valid & (port.payload == held_payload)))
    harness.reach(m, name, held & port.ready)


class Fifo(Harness):
    """StreamFifo: payload n of the output is payload n of the input.  Mutation "overflow"."""

    def __init__(self, depth, **options):
        super().__init__(**options)
        self.depth = depth

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        design = Overflowing if self.mutation == "overflow" else StreamFifo
        m.submodules.fifo = fifo = design(WIDTH, depth=self.depth)
        put, taken = Signal(WIDTH + 1), Signal(WIDTH + 1)
        m.d.comb += fifo.o.ready.eq(AnySeq(1))
        offer(self, m, fifo.i, "i", payload=put[:WIDTH])
        m.d.sync += [
            put.eq(put + (fifo.i.valid & fifo.i.ready)),
            taken.eq(taken + (fifo.o.valid & fifo.o.ready)),
        ]
        self.prove(m, "fifo_order", ~fifo.o.valid | (fifo.o.payload == taken[:WIDTH]))
        self.prove(m, "fifo_order", fifo.level == (put - taken)[: WIDTH + 1])
        stands(self, m, fifo.o, "fifo_stands")
        self.reach(m, "fifo_order", (fifo.level == self.depth) & taken.any())
        return m


class Merge(Harness):
    """StreamMerge: combinational, so each payload is followed in its cycle.

    Mutations "restless", "drops".
    """

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        mutants = {"restless": Restless, "drops": DropsOne}
        design = mutants.get(self.mutation or "", StreamMerge)
        m.submodules.merge = merge = design(WIDTH, 3)
        inputs = [merge.i0, merge.i1, merge.i2]
        m.d.comb += merge.o.ready.eq(AnySeq(1))
        for n, port in enumerate(inputs):
            offer(self, m, port, f"i{n}")
        takes = Cat(port.valid & port.ready for port in inputs)
        self.prove(m, "merge_once", sum(takes) == (merge.o.valid & merge.o.ready))
        for n, port in enumerate(inputs):
            self.prove(m, "merge_once", ~merge.source[n] | port.valid)
            same = (merge.o.payload == port.payload) & (merge.index == n) & merge.source[n]
            self.prove(m, "merge_once", ~(port.valid & port.ready) | same)
        self.prove(m, "merge_once", merge.o.valid == Cat(port.valid for port in inputs).any())
        stands(self, m, merge.o, "merge_stands")
        self.reach(m, "merge_once", takes[2] & inputs[0].valid)
        return m


class Gate(Harness):
    """StallGate between neighbours that keep the rules.  Mutation "forgetful"."""

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        design = Forgetful if self.mutation == "forgetful" else StallGate
        m.submodules.gate = gate = design(WIDTH)
        m.d.comb += [gate.o.ready.eq(AnySeq(1)), gate.stall.eq(AnySeq(1))]
        offer(self, m, gate.i, "i")
        stands(self, m, gate.o, "gate_stands")
        return m


class Fairness(Harness):
    """RoundRobin: whoever keeps asking is granted behind at most count - 1 others.

    Mutation "lowest_first".
    """

    COUNT = 3

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        design = LowestFirst if self.mutation == "lowest_first" else RoundRobin
        m.submodules.arbiter = arbiter = design(self.COUNT)
        m.d.comb += [arbiter.request.eq(AnySeq(self.COUNT)), arbiter.advance.eq(AnySeq(1))]
        one, passed = AnyConst(self.COUNT), Signal(3)
        who = Signal(self.COUNT)
        m.d.comb += who.eq(one)
        self.assume(m, (who != 0) & ((who & (who - 1)[: self.COUNT]) == 0))
        asks, granted = (arbiter.request & who).any(), (arbiter.grant & who).any()
        with m.If(~asks | (granted & arbiter.advance)):
            m.d.sync += passed.eq(0)
        with m.Elif(arbiter.advance & ~passed.all()):
            m.d.sync += passed.eq(passed + 1)
        self.prove(m, "fairness", passed < self.COUNT)
        grants = sum(arbiter.grant)
        self.prove(m, "fairness", grants == arbiter.request.any())
        self.prove(m, "fairness", (arbiter.grant & ~arbiter.request) == 0)
        self.reach(m, "fairness", granted & (passed == self.COUNT - 1))
        return m
