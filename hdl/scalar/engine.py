"""The scalar engine."""

from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.lib.issue import EngineSignature
from hdl.lib.tile import add_tile
from hdl.memory.ports import PsumRead, PsumWrite, SbufRead, SbufWrite
from hdl.memory.reader import Reader
from hdl.memory.writer import Writer
from hdl.scalar.control import ScalarLaunch, ScalarOp, decode_scalar_op
from hdl.scalar.lane import ScalarLane
from hdl.vector.dispatch import Dispatch

_LANE_BITS = 32


class ScalarEngine(wiring.Component):
    """activation over P lanes, in order: func(src0 * scale + bias).

    One element of every partition a cycle; consecutive instructions follow without a bubble, except
    * with columns: 1 cycle each, as they come through the same reader, and 1;
    * behind an instruction whose result it reads: until that is written.

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
        stages = self.config.vector_stages
        m.submodules.dispatch = dispatch = Dispatch(
            readers=1, column_reader=0, op_shape=ScalarOp, decode=decode_scalar_op)
        m.submodules.read = read = Reader(self.config)
        m.submodules.write = write = Writer(self.config)
        m.submodules.launch = launch = ScalarLaunch(stages=stages)

        connect(m, flipped(self.engine), dispatch.engine)
        connect(m, dispatch.read0, read.request)
        connect(m, dispatch.write, write.request)
        connect(m, dispatch.op, launch.op)
        connect(m, read.sbuf, flipped(self.src_sbuf))
        connect(m, read.psum, flipped(self.src_psum))
        connect(m, write.sbuf, flipped(self.dst_sbuf))
        connect(m, write.psum, flipped(self.dst_psum))
        m.d.comb += [
            dispatch.fetched.eq(read.fetched),
            dispatch.written.eq(write.done),
            launch.src_valid.eq(read.out.valid), read.out.ready.eq(launch.src_ready),
            write.i.valid.eq(launch.output_valid), launch.output_ready.eq(write.i.ready),
        ]
        results = []
        for p in range(self.config.partitions):
            lane = add_tile(m, platform, f"lane{p}", ScalarLane(stages=stages))
            m.d.comb += [
                lane.control.eq(launch.control), lane.immediate.eq(launch.immediate),
                lane.src.eq(read.out.p.data.word_select(p, _LANE_BITS)),
            ]
            results.append(lane.o)
        m.d.comb += write.i.p.data.eq(Cat(results))
        return m
