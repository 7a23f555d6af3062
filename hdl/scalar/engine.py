"""The scalar engine."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.lib.issue import EngineSignature
from hdl.memory.ports import PsumRead, PsumWrite, SbufRead, SbufWrite
from hdl.memory.reader import Reader
from hdl.memory.writer import Writer
from hdl.scalar.control import ScalarOp, decode_scalar_op
from hdl.scalar.core import ScalarCore
from hdl.vector.dispatch import Dispatch


class ScalarEngine(wiring.Component):
    """activation, rand_set_state and rand_get_state over P lanes, in order.

    One step of `isa.functions` on one element of every partition a cycle: a function of n steps
    gives a result every n cycles. Consecutive instructions follow without a bubble, except
    * with columns: 1 cycle each, as they come through the same reader, and 1;
    * behind an instruction whose result it reads: until that is written;
    * after a function of n steps whose last batch has fewer than 4 * vector_stages + 3 elements:
      (n - 1) times what is missing.

    Parameters
    ----------
    config : isa.geometry.Config

    Members
    -------
    engine : In(EngineSignature)
    src_sbuf : Out(SbufRead), src_psum : Out(PsumRead)
    dst_sbuf : Out(SbufWrite), dst_psum : Out(PsumWrite)
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "engine": In(EngineSignature()),
            "src_sbuf": Out(SbufRead(config)), "src_psum": Out(PsumRead(config)),
            "dst_sbuf": Out(SbufWrite(config)), "dst_psum": Out(PsumWrite(config)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.dispatch = dispatch = Dispatch(
            readers=1, column_reader=0, op_shape=ScalarOp, decode=decode_scalar_op)
        m.submodules.read = read = Reader(self.config)
        m.submodules.write = write = Writer(self.config)
        m.submodules.core = core = ScalarCore(
            stages=self.config.vector_stages, partitions=self.config.partitions)

        connect(m, flipped(self.engine), dispatch.engine)
        connect(m, dispatch.read0, read.request)
        connect(m, dispatch.write, write.request)
        connect(m, dispatch.op, core.op)
        connect(m, read.sbuf, flipped(self.src_sbuf))
        connect(m, read.psum, flipped(self.src_psum))
        connect(m, write.sbuf, flipped(self.dst_sbuf))
        connect(m, write.psum, flipped(self.dst_psum))
        m.d.comb += [
            dispatch.fetched.eq(read.fetched),
            dispatch.written.eq(write.done),
            core.src.valid.eq(read.out.valid), core.src.p.eq(read.out.p.data),
            read.out.ready.eq(core.src.ready),
            write.i.valid.eq(core.o.valid), write.i.p.data.eq(core.o.p),
            core.o.ready.eq(write.i.ready),
        ]
        return m
