"""Descriptor fetch: from triggers to checked descriptors."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.dma.layout import (
    DESCRIPTOR_BEATS,
    FETCH_AHEAD,
    TRIGGER_FIFO,
    Job,
    Trigger,
    source_word_layout,
)
from hdl.lib.axi import DATA_BITS, address_layout
from hdl.lib.fifo import StreamFifo
from isa.address_map import DmaCause
from isa.fields import DESCRIPTOR, DESCRIPTOR_COPY, Update
from isa.geometry import DESCRIPTOR_BYTES, ISA_VERSION


class _Header(data.Struct):
    address: 64
    bad: 1


_USED = sum(field.mask for field in DESCRIPTOR)


def _reserved(beat):
    """Mask of the bits of a descriptor's beat that must be zero."""
    ones = (1 << DATA_BITS) - 1
    return ~(_USED >> (beat * DATA_BITS)) & ones


class DescriptorFetch(wiring.Component):
    """Fetches descriptors in the order of the triggers, FETCH_AHEAD of them before they are needed.

    Members
    -------
    trigger : In stream of Trigger, a queue of TRIGGER_FIFO
    ar : Out stream of read addresses (one burst of 8 beats per descriptor)
    r_valid, r : In, beats of those bursts in order; always accepted
    job : Out stream of Job, with cause BAD_DESCRIPTOR (wrong version, kind, update kind or reserved
        bits; address not a multiple of 128 or outside HBM) or BUS_ERROR.  A bad address ends its
        trigger: the descriptors after it are bad too.
    pending : a trigger is queued or in work
    started : a descriptor that `job` will deliver has been begun (one pulse each)

    A descriptor takes 8 cycles from its last use to the next `job` at the most when its beats have
    come.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "trigger": In(stream.Signature(Trigger)),
                "ar": Out(stream.Signature(address_layout())),
                "r_valid": In(1),
                "r": In(source_word_layout()),
                "job": Out(stream.Signature(Job)),
                "pending": Out(1),
                "started": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.triggers = triggers = StreamFifo(Trigger, depth=TRIGGER_FIFO)
        m.submodules.headers = headers = StreamFifo(_Header, depth=FETCH_AHEAD)
        m.submodules.beats = beats = StreamFifo(
            source_word_layout(), depth=FETCH_AHEAD * DESCRIPTOR_BEATS
        )
        wiring.connect(m, wiring.flipped(self.trigger), triggers.i)
        m.d.comb += [beats.i.valid.eq(self.r_valid), beats.i.p.eq(self.r)]
        freed = Signal()
        self._request(m, triggers.o, headers.i, freed)
        self._load(m, headers.o, beats.o, freed)
        return m

    def _request(self, m, triggers, headers, freed):
        address, left = Signal(64), Signal(32)
        slots = Signal(range(FETCH_AHEAD + 1))
        bad, may, issue = Signal(), Signal(), Signal()
        moving = ceil_log2(self.config.hbm_bytes) + 1
        m.d.comb += [
            bad.eq(
                (address[: ceil_log2(DESCRIPTOR_BYTES)] != 0) | (address >= self.config.hbm_bytes)
            ),
            may.eq((left != 0) & (slots != FETCH_AHEAD) & headers.ready),
            self.ar.valid.eq(may & ~bad),
            self.ar.p.addr.eq(address),
            self.ar.p.len.eq(DESCRIPTOR_BEATS - 1),
            issue.eq(self.ar.valid & self.ar.ready),
            headers.valid.eq(issue | (may & bad)),
            headers.p.address.eq(address),
            headers.p.bad.eq(bad),
            self.started.eq(headers.valid),
            triggers.ready.eq(left == 0),
            self.pending.eq(triggers.valid | (left != 0)),
        ]
        m.d.sync += slots.eq(slots + issue - freed)
        with m.If(left == 0), m.If(triggers.valid):
            m.d.sync += [address.eq(triggers.p.address), left.eq(triggers.p.count)]
        with m.Elif(headers.valid):
            # Only an address inside HBM is ever stepped on, so the upper bits stay zero.
            m.d.sync += [
                address[:moving].eq(address[:moving] + DESCRIPTOR_BYTES),
                left.eq(Mux(bad, 0, left - 1)),
            ]

    def _load(self, m, headers, beats, freed):
        job = Signal(Job)
        beat = Signal(range(DESCRIPTOR_BEATS))
        reserved, error, malformed = Signal(DATA_BITS), Signal(), Signal()
        wrong = Signal()
        m.d.comb += self.job.p.eq(job)
        with m.Switch(beat):
            for index in range(DESCRIPTOR_BEATS):
                with m.Case(index):
                    m.d.comb += reserved.eq(beats.p.data & _reserved(index))
        head = self._field(beats.p.data, 0)
        m.d.comb += wrong.eq(
            (reserved != 0)
            | (
                (beat == 0)
                & (
                    (head["kind"] != DESCRIPTOR_COPY)
                    | (head["version"] != ISA_VERSION)
                    | (head["update_kind"] > Update.SET)
                )
            )
        )
        with m.FSM(name="load_state"):
            with m.State("TAKE"):
                m.d.comb += headers.ready.eq(1)
                m.d.sync += [
                    job.address.eq(headers.p.address),
                    beat.eq(0),
                    error.eq(0),
                    malformed.eq(0),
                ]
                with m.If(headers.valid):
                    with m.If(headers.p.bad):
                        m.d.sync += job.cause.eq(DmaCause.BAD_DESCRIPTOR)
                        m.next = "OFFER"
                    with m.Else():
                        m.next = "LOAD"
            with m.State("LOAD"):
                m.d.comb += beats.ready.eq(1)
                with m.If(beats.valid):
                    m.d.sync += [
                        beat.eq(beat + 1),
                        error.eq(error | beats.p.error),
                        malformed.eq(malformed | wrong),
                    ]
                    self._store(m, job, beat, beats.p.data)
                    with m.If(beat == DESCRIPTOR_BEATS - 1):
                        m.d.comb += freed.eq(1)
                        m.next = "JUDGE"
            with m.State("JUDGE"):
                m.d.sync += job.cause.eq(
                    Mux(
                        error,
                        DmaCause.BUS_ERROR,
                        Mux(malformed, DmaCause.BAD_DESCRIPTOR, DmaCause.NONE),
                    )
                )
                m.next = "OFFER"
            with m.State("OFFER"):
                m.d.comb += self.job.valid.eq(1)
                with m.If(self.job.ready):
                    m.next = "TAKE"

    @staticmethod
    def _field(bits, beat):
        """Fields of one beat, by name.  No field straddles beats."""
        found = {}
        for field in DESCRIPTOR:
            low = field.low - beat * DATA_BITS
            if 0 <= low < DATA_BITS:
                found[field.name] = bits[low : low + field.width]
        return found

    def _store(self, m, job, beat, bits):
        targets = {
            "update_kind": job.update.kind,
            "update_semaphore": job.update.semaphore,
            "update_value": job.update.value,
            "src_address": job.src_address,
            "dst_address": job.dst_address,
            "row_bytes": job.row_bytes,
            **{
                f"{group}{i}": job[group][i]
                for group in ("count", "src_stride", "dst_stride")
                for i in range(3)
            },
        }
        with m.Switch(beat):
            for index in range(DESCRIPTOR_BEATS):
                with m.Case(index):
                    for name, value in self._field(bits, index).items():
                        if name in targets:
                            m.d.sync += targets[name].eq(value)
