"""Random programs, legal and free of races by construction, and their mutants.

A program fills SBUF and PSUM areas from HBM, runs `size` random actions on all five sequencers and
all DMA engines over few bytes, so that hazards of every kind between all pairs of agents are
common, and brings everything back to HBM between guard bytes. Every program ends; the result does
not depend on timing.
"""

import random
from dataclasses import replace

import numpy as np

from isa.address_map import SEQUENCERS, Sequencer, sbuf_address
from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.encoding import Descriptor, decode, encode
from isa.fields import RegOp, Space
from isa.pattern import AccessPattern
from isa.program import Program
from verif.programs.data import mixed_bytes
from verif.programs.datapath import Datapath
from verif.programs.flow import ENGINES, Flow
from verif.programs.order import Placer
from verif.programs.patterns import Area, Patterns
from verif.programs.spec import HBM, Box, Copy, Spec, box_of
from verif.programs.transfers import Transfers

_SBUF_BYTES = (256, 128)
_PSUM_BYTES = (128, 64)
_HBM_BYTES = 2048
_GUARD_BYTES = 64
GUARD = 0xA5


def generate(config, seed, size=40):
    """A Program of about `size` actions for chips of `config`; the same for the same arguments."""
    return _Generator(config, seed).program(size)


def mutate_waits(program):
    """Pairs (text, Program): the program without one of its waits, for each wait in turn."""
    for number, stream in enumerate(program.streams):
        for index, word in enumerate(stream.words):
            instruction, fields = decode(word)
            if not fields["wait"]:
                continue
            text = f"{stream.sequencer.text}[{index}] {instruction.name} without its wait"
            bare = dict.fromkeys(("wait", "wait_reg", "wait_semaphore", "wait_value"), 0)
            words = list(stream.words)
            words[index] = encode(instruction.name, {**fields, **bare})
            streams = list(program.streams)
            streams[number] = replace(stream, words=words)
            yield text, replace(program, streams=streams)


class _Generator:
    def __init__(self, config, seed):
        self._config = config
        self._rng = random.Random(f"{config.name} {seed}")
        self._numpy = np.random.default_rng(self._rng.getrandbits(64))
        self._builder = ProgramBuilder(config)
        self._placer = Placer(self._builder, self._rng)
        psum = config.psum_bytes
        self._sbuf = [
            Area(Space.SBUF, 0, _SBUF_BYTES[0]),
            Area(Space.SBUF, config.sbuf_bytes - _SBUF_BYTES[1], config.sbuf_bytes),
        ]
        self._psum = [
            Area(Space.PSUM, 0, _PSUM_BYTES[0]),
            Area(Space.PSUM, psum - _PSUM_BYTES[1], psum),
        ]
        areas = self._sbuf + self._psum
        hbm = [(*self._hbm("input0", "input"), False), (*self._hbm("work", "scratch"), True)]
        patterns = Patterns(config, self._rng)
        self._datapath = Datapath(config, self._rng, patterns, areas, largest=48)
        self._transfers = Transfers(config, self._rng, hbm, areas)
        self._flow = Flow(self._placer, self._datapath, self._transfers, areas)

    def program(self, size) -> Program:
        """Fill, `size` actions, bring back."""
        self._fill()
        for _ in range(size):
            self._action()
        self._bring_back()
        return self._builder.build()

    def _hbm(self, name, role):
        data = mixed_bytes(self._numpy, _HBM_BYTES)
        tensor = self._builder.hbm_tensor(name, (_HBM_BYTES // 4,), DType.FP32, role, data)
        return tensor.address, tensor.address + _HBM_BYTES

    def _engine(self):
        return self._rng.randrange(self._config.dma_engines)

    def _fill(self):
        rows = self._config.partitions
        for number, area in enumerate(self._sbuf):
            data = mixed_bytes(self._numpy, rows * area.size)
            shape = (rows, area.size // 4)
            tensor = self._builder.hbm_tensor(f"fill{number}", shape, DType.FP32, "input", data)
            self._move(area, tensor.address, to_hbm=False)
        for area in self._psum:
            target = self._whole(area)
            spec = Spec("memset", {"dst": target, "imm0": self._datapath.bits()})
            if self._rng.random() < 0.8:
                source = replace(target, space=Space.SBUF, offset=self._sbuf[0].low)
                spec = Spec("tensor_copy", {"src0": source, "dst": target}, [box_of(source)])
            spec.writes = [box_of(target)]
            self._placer.place(Sequencer.VECTOR, spec)

    def _whole(self, area):
        dims = ((1, area.size // 4),)
        return AccessPattern(area.space, DType.FP32, 0, self._config.partitions, area.low, dims)

    def _move(self, area, address, *, to_hbm):
        """All bytes of an SBUF area to or from dense rows in HBM."""
        rows, stride = self._config.partitions, self._config.sbuf_stride_bytes
        inside = Box(int(Space.SBUF), 0, rows, area.low, area.high)
        outside = Box(HBM, 0, 1, address, address + rows * area.size)
        here, there = (sbuf_address(self._config, 0, area.low), stride), (address, area.size)
        (src, src_stride), (dst, dst_stride) = (here, there) if to_hbm else (there, here)
        descriptor = Descriptor(
            src_address=src,
            dst_address=dst,
            row_bytes=area.size,
            count=(rows, 1, 1),
            src_stride=(src_stride, 0, 0),
            dst_stride=(dst_stride, 0, 0),
        )
        reads, writes = ([inside], [outside]) if to_hbm else ([outside], [inside])
        copy = Copy(descriptor, reads, writes)
        self._placer.copy(self._rng.choice(SEQUENCERS), self._engine(), [copy])

    def _action(self):
        rng, placer = self._rng, self._placer
        kind = rng.choices(
            ("datapath", "copy", "access", "loop", "skip", "pipeline", "idle"),
            (50, 18, 8, 9, 5, 6, 6),
        )[0]
        sequencer = rng.choice(SEQUENCERS)
        if kind == "datapath":
            engine = rng.choice(ENGINES)
            for spec in self._datapath.specs(engine):
                placer.place(engine, spec)
        elif kind == "copy":
            self._copies(sequencer)
        elif kind == "access":
            spec = self._transfers.access(lambda: placer.register(sequencer))
            placer.place(sequencer, spec)
        elif kind == "loop":
            self._flow.loop(sequencer)
        elif kind == "skip":
            self._flow.skip(sequencer)
        elif kind == "pipeline":
            self._flow.pipeline()
        else:
            self._idle(sequencer)

    def _copies(self, sequencer):
        found = [self._transfers.copy()]
        for _ in range(self._rng.choice((0, 0, 1, 3))):
            more = self._transfers.copy()
            if not any(_clash(more, other) for other in found):
                found.append(more)
        self._placer.copy(sequencer, self._engine(), found)

    def _idle(self, sequencer):
        """Something without an access to memory."""
        rng, placer, stream = self._rng, self._placer, self._placer.stream(sequencer)
        choice = rng.randrange(5)
        if choice == 0 and sequencer in ENGINES:
            placer.place(sequencer, self._datapath.no_work(sequencer))
        elif choice == 1:
            stream.notify(imm=rng.getrandbits(32))
        elif choice == 2:
            placer.place(sequencer, Spec("nop", {}))
        elif choice == 3:
            stream.dma_trigger(dma_engine=self._engine(), address=0, imm=rng.choice((0, -1)))
        else:
            for _ in range(rng.randint(1, 4)):
                second = {"imm": rng.getrandbits(32)}
                if rng.random() < 0.5:
                    second = {"rb": placer.register(sequencer)}
                stream.reg_alu(
                    rd=placer.register(sequencer),
                    ra=placer.register(sequencer),
                    alu_op=rng.choice(tuple(RegOp)),
                    **second,
                )

    def _bring_back(self):
        self._guard(0)
        for number, area in enumerate(self._sbuf):
            self._output(number, area)
        for number, area in enumerate(self._psum, len(self._sbuf)):
            source = self._whole(area)
            target = replace(source, space=Space.SBUF, offset=self._sbuf[0].low)
            reads, writes = [box_of(source)], [box_of(target)]
            spec = Spec("tensor_copy", {"src0": source, "dst": target}, reads, writes)
            self._placer.place(Sequencer.VECTOR, spec)
            self._output(number, Area(Space.SBUF, self._sbuf[0].low, self._sbuf[0].low + area.size))
        for sequencer in SEQUENCERS:
            if not len(self._placer.stream(sequencer)):
                self._placer.stream(sequencer).nop()

    def _output(self, number, area):
        shape = (self._config.partitions, area.size // 4)
        tensor = self._builder.hbm_tensor(f"output{number}", shape, DType.FP32, "output")
        self._guard(number + 1)
        self._move(area, tensor.address, to_hbm=True)

    def _guard(self, number):
        data = bytes([GUARD]) * _GUARD_BYTES
        shape = (_GUARD_BYTES // 4,)
        self._builder.hbm_tensor(f"guard{number}", shape, DType.FP32, "constant", data)


def _clash(a, b):
    return any(x.meets(y) for x in a.writes for y in b.reads + b.writes) or any(
        x.meets(y) for x in b.writes for y in a.reads
    )
