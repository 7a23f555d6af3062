"""One core: five sequencers, three engines, SBUF, PSUM, semaphores."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.chip.trigger_router import TriggerRouter
from hdl.dma.layout import Trigger
from hdl.lib.axi import AxiRead
from hdl.lib.issue import Issue
from hdl.lib.localbus import LocalBus
from hdl.lib.stall import StallGate
from hdl.memory.ports import PsumNarrow, SbufNarrow
from hdl.memory.psum import Psum
from hdl.memory.sbuf import Sbuf
from hdl.scalar.engine import ScalarEngine
from hdl.sequencer.ports import SEMAPHORE_BITS, DmaTrigger, SemaphoreUpdate, SequencerControl
from hdl.sequencer.semaphores import Semaphores
from hdl.sequencer.sequencer import Sequencer
from hdl.tensor.engine import TensorEngine
from hdl.vector.engine import VectorEngine
from isa.address_map import SEQUENCERS
from isa.address_map import Sequencer as SequencerIndex
from isa.geometry import PSUM_BANKS


def stall_bits(config):
    """Width of the `stall` input: grants of SBUF and PSUM banks (read, write), streams of each
    sequencer.
    """
    return 2 * config.sbuf_banks + 2 * PSUM_BANKS + len(SEQUENCERS)


class Core(wiring.Component):
    """Everything that computes.  Its outside is memory ports, control and streams, all in the one
    clock domain.

    Members
    -------
    control0 .. control4 : In(SequencerControl), fetch0 .. : Out(AxiRead), bus0 .. : Out(LocalBus)
        Of each sequencer, by `isa.address_map.Sequencer`.
    trigger0 .. : Out stream of Trigger, for each DMA engine
    sbuf_port0 .. : In(SbufNarrow), update0 .. : In stream of SemaphoreUpdate
        Of each DMA engine, then of the bus.
    psum_port : In(PsumNarrow)
        Of the bus.
    semaphore_index, semaphore_value : In, Out
        Read port of the semaphores for the bus.
    clear, clearing, clear_overflow, overflow, overflow_semaphore
        Of the semaphores.
    column_active, load_active : Out(1)
    stall : In(stall_bits(config))
        Simulation only, default 0: a bit takes a grant away or holds a sequencer's streams back in
        this cycle.
    """

    def __init__(self, config):
        self.config = config
        agents = config.dma_engines + 1
        super().__init__(
            {
                **{f"control{s}": In(SequencerControl()) for s in range(len(SEQUENCERS))},
                **{f"fetch{s}": Out(AxiRead(config)) for s in range(len(SEQUENCERS))},
                **{f"bus{s}": Out(LocalBus()) for s in range(len(SEQUENCERS))},
                **{
                    f"trigger{e}": Out(stream.Signature(Trigger)) for e in range(config.dma_engines)
                },
                **{f"sbuf_port{i}": In(SbufNarrow(config)) for i in range(agents)},
                **{f"update{i}": In(stream.Signature(SemaphoreUpdate)) for i in range(agents)},
                "psum_port": In(PsumNarrow(config)),
                "semaphore_index": In(SEMAPHORE_BITS),
                "semaphore_value": Out(32),
                "clear": In(1),
                "clearing": Out(1),
                "clear_overflow": In(1),
                "overflow": Out(1),
                "overflow_semaphore": Out(SEMAPHORE_BITS),
                "column_active": Out(1),
                "load_active": Out(1),
                "stall": In(stall_bits(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        agents = config.dma_engines + 1
        m.submodules.tensor = tensor = TensorEngine(config)
        m.submodules.vector = vector = VectorEngine(config)
        m.submodules.scalar = scalar = ScalarEngine(config)
        m.submodules.sbuf = sbuf = Sbuf(config, reads=5, writes=2, narrows=agents)
        m.submodules.psum = psum = Psum(config, reads=3, writes=2, narrows=1)
        m.submodules.semaphores = semaphores = Semaphores(config, updaters=len(SEQUENCERS) + agents)
        m.submodules.router = router = TriggerRouter(
            sources=len(SEQUENCERS), engines=config.dma_engines
        )

        # memories
        for port, requester in zip(
            sbuf.read,
            (tensor.stationary, tensor.moving, vector.src0_sbuf, vector.src1_sbuf, scalar.src_sbuf),
            strict=True,
        ):
            connect(m, requester, port)
        for port, requester in zip(sbuf.write, (vector.dst_sbuf, scalar.dst_sbuf), strict=True):
            connect(m, requester, port)
        for port, requester in zip(
            psum.read, (vector.src0_psum, vector.src1_psum, scalar.src_psum), strict=True
        ):
            connect(m, requester, port)
        for port, requester in zip(psum.write, (vector.dst_psum, scalar.dst_psum), strict=True):
            connect(m, requester, port)
        connect(m, tensor.accumulate, psum.accumulate)
        for i in range(agents):
            connect(m, flipped(getattr(self, f"sbuf_port{i}")), sbuf.narrow[i])
        connect(m, flipped(self.psum_port), psum.narrow[0])
        sbuf_stalls, psum_stalls = 2 * config.sbuf_banks, 2 * PSUM_BANKS
        m.d.comb += [
            sbuf.deny.eq(self.stall[:sbuf_stalls]),
            psum.deny.eq(self.stall[sbuf_stalls : sbuf_stalls + psum_stalls]),
            self.column_active.eq(tensor.column_active),
            self.load_active.eq(tensor.load_active),
        ]

        # sequencers
        engines = {
            SequencerIndex.TENSOR: tensor,
            SequencerIndex.VECTOR: vector,
            SequencerIndex.SCALAR: scalar,
        }
        for s in SEQUENCERS:
            stall = self.stall[sbuf_stalls + psum_stalls + int(s)]
            self._sequencer(m, s, engines.get(s), semaphores, router, stall)
        for e in range(config.dma_engines):
            connect(m, getattr(router, f"o{e}"), flipped(getattr(self, f"trigger{e}")))

        # semaphores
        for i in range(agents):
            connect(
                m,
                flipped(getattr(self, f"update{i}")),
                getattr(semaphores, f"update{len(SEQUENCERS) + i}"),
            )
        host = getattr(semaphores, f"read{len(SEQUENCERS)}")
        m.d.comb += [
            host.index.eq(self.semaphore_index),
            self.semaphore_value.eq(host.value),
            semaphores.clear.eq(self.clear),
            self.clearing.eq(semaphores.clearing),
            semaphores.clear_overflow.eq(self.clear_overflow),
            self.overflow.eq(semaphores.overflow),
            self.overflow_semaphore.eq(semaphores.overflow_semaphore),
        ]
        return m

    def _sequencer(self, m, index, engine, semaphores, router, stall):
        name, number = index.text, int(index)
        m.submodules[f"{name}_sequencer"] = sequencer = Sequencer(self.config, index)
        connect(m, flipped(getattr(self, f"control{number}")), sequencer.control)
        connect(m, sequencer.fetch, flipped(getattr(self, f"fetch{number}")))
        connect(m, sequencer.bus, flipped(getattr(self, f"bus{number}")))
        read = getattr(semaphores, f"read{number}")
        m.d.comb += [
            read.index.eq(sequencer.semaphore_index),
            sequencer.semaphore_value.eq(read.value),
        ]
        gates = {}
        for stream_name, shape in (
            ("issue", Issue),
            ("update", SemaphoreUpdate),
            ("trigger", DmaTrigger),
        ):
            m.submodules[f"{name}_{stream_name}_gate"] = gate = StallGate(shape)
            m.d.comb += gate.stall.eq(stall)
            gates[stream_name] = gate
        connect(m, sequencer.engine.issue, gates["issue"].i)
        connect(m, sequencer.update, gates["update"].i)
        connect(m, sequencer.trigger, gates["trigger"].i)
        connect(m, gates["update"].o, getattr(semaphores, f"update{number}"))
        connect(m, gates["trigger"].o, getattr(router, f"i{number}"))
        if engine is None:
            return  # control only: decode lets no engine instruction through
        connect(m, gates["issue"].o, engine.engine.issue)
        m.d.comb += [
            sequencer.engine.read_done.eq(engine.engine.read_done),
            sequencer.engine.complete.eq(engine.engine.complete),
        ]
