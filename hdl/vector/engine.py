"""The vector engine."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.lib.issue import EngineSignature
from hdl.lib.tile import add_tile
from hdl.memory.ports import PsumRead, PsumWrite, SbufRead, SbufWrite
from hdl.memory.reader import Reader
from hdl.memory.writer import Writer
from hdl.vector.control import VectorControl
from hdl.vector.dispatch import Dispatch
from hdl.vector.lane import VectorLane
from hdl.vector.op import VectorOp, decode_vector_op

_LANE_BITS = 32


class VectorEngine(wiring.Component):
    """tensor_tensor, tensor_scalar, tensor_copy, tensor_reduce and memset over P lanes, in order.

    One element of every partition a cycle; consecutive instructions follow without a bubble, except
    * behind a tensor_reduce: its join, at most 4 * vector_stages + 4 cycles;
    * tensor_scalar with columns behind tensor_tensor: the columns, 1 cycle each, and 1;
    * behind an instruction whose result it reads: until that is written.

    Parameters
    ----------
    config : isa.geometry.Config

    Members
    -------
    engine : In(EngineSignature)
    src0_sbuf, src1_sbuf : Out(SbufRead), src0_psum, src1_psum : Out(PsumRead)
    dst_sbuf : Out(SbufWrite), dst_psum : Out(PsumWrite)
    """

    def __init__(self, config):
        self.config = config
        super().__init__({
            "engine": In(EngineSignature()),
            "src0_sbuf": Out(SbufRead(config)), "src0_psum": Out(PsumRead(config)),
            "src1_sbuf": Out(SbufRead(config)), "src1_psum": Out(PsumRead(config)),
            "dst_sbuf": Out(SbufWrite(config)), "dst_psum": Out(PsumWrite(config)),
        })

    def elaborate(self, platform):
        m = Module()
        stages = self.config.vector_stages
        m.submodules.dispatch = dispatch = Dispatch(
            readers=2, column_reader=1, op_shape=VectorOp, decode=decode_vector_op)
        m.submodules.read0 = read0 = Reader(self.config)
        m.submodules.read1 = read1 = Reader(self.config)
        m.submodules.write = write = Writer(self.config)
        m.submodules.control = control = VectorControl(stages=stages)

        connect(m, flipped(self.engine), dispatch.engine)
        connect(m, dispatch.read0, read0.request)
        connect(m, dispatch.read1, read1.request)
        connect(m, dispatch.write, write.request)
        connect(m, dispatch.op, control.op)
        connect(m, read0.sbuf, flipped(self.src0_sbuf))
        connect(m, read0.psum, flipped(self.src0_psum))
        connect(m, read1.sbuf, flipped(self.src1_sbuf))
        connect(m, read1.psum, flipped(self.src1_psum))
        connect(m, write.sbuf, flipped(self.dst_sbuf))
        connect(m, write.psum, flipped(self.dst_psum))
        m.d.comb += [
            dispatch.fetched.eq(Cat(read0.fetched, read1.fetched)),
            dispatch.written.eq(write.done),
            control.src0_valid.eq(read0.out.valid), read0.out.ready.eq(control.src0_ready),
            control.src1_valid.eq(read1.out.valid), read1.out.ready.eq(control.src1_ready),
            write.i.valid.eq(control.output_valid), control.output_ready.eq(write.i.ready),
        ]
        results = []
        for p in range(self.config.partitions):
            lane = add_tile(m, platform, f"lane{p}", VectorLane(stages=stages))
            m.d.comb += [
                lane.control.eq(control.control), lane.immediate.eq(control.immediate),
                lane.src0.eq(read0.out.p.data.word_select(p, _LANE_BITS)),
                lane.src1.eq(read1.out.p.data.word_select(p, _LANE_BITS)),
            ]
            results.append(lane.o)
        m.d.comb += write.i.p.data.eq(Cat(results))
        return m
