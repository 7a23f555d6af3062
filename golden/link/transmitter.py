"""Transmitter: queues, composer, replay; by events.

`beat` composes exactly the next beat.  Acknowledgements, credit, packets and the timer's event that
arrive in a cycle act behind the beat of that cycle.
"""

from collections import Counter, deque
from dataclasses import dataclass

from golden.link.arbiter import Arbiter
from golden.link.credits import CreditCounter
from golden.link.flit import CAPACITY, build
from isa.link import (
    ATTEMPTS,
    GRANULE_BYTES,
    LONG_GRANULES,
    NO_PACKET,
    REPLAY_FLITS,
    SEQUENCE_BITS,
    SHORT_GRANULES,
    VCS,
    WINDOW,
    Command,
    FlitType,
    Format,
    Reason,
)

MODULUS = 1 << SEQUENCE_BITS


@dataclass(frozen=True)
class Entry:
    """A payload flit as the replay buffer keeps it."""

    flit_format: Format
    sequence: int
    vc: int
    first: int
    valid: int
    poison: int
    data: bytes


@dataclass
class Work:
    """The flit in work: `beat` is the next one to be composed; entry: payload flits only."""

    flit_format: Format
    type: FlitType
    entry: Entry | None = None
    replayed: bool = False
    command: Command = Command.NONE
    beat: int = 0


class Transmitter:
    """queues: per VC granules (bytes, begins a packet, poison).  next, base: see docs/link.md.

    owed: REPLAY flits; pointer: next flit of a replay, None outside one.  timer_restarts counts
    up whenever the replay timer starts anew; progress: acknowledgements that moved `base`.
    copy_soon, copy_ready: the next flit of a replay can be announced, can be sent; a replay buffer
    needs two cycles to find it, and whoever compares cycle by cycle says so here.
    counts: events by the names of COUNTERS.
    """

    def __init__(self, link, weights=(1,) * VCS):
        self.link = link
        self.arbiter = Arbiter(weights)
        self.credits = [CreditCounter() for _ in range(VCS)]
        self.queues = [deque() for _ in range(VCS)]
        self._inside = [False] * VCS
        self.next = self.base = 0
        self._entries = {}
        self.free_beats = link.replay_bytes // link.beat_bytes
        self.owed, self.pointer, self._rewind = 0, None, False
        self.copy_soon = self.copy_ready = True
        self.failed = self.timer_restarts = self.progress = 0
        self.sending, self._stopping, self._command = False, False, Command.NONE
        self._work, self._announced = None, Format.SHORT
        self._long_vc = None
        self._slots, self._told = 0, [0] * VCS
        self.counts = Counter()

    # Events

    def push(self, vc, data, last, poison=False):
        """A beat of a packet is queued: bytes of 1.. granules, `last` at the packet's end."""
        assert data and len(data) % GRANULE_BYTES == 0, "whole granules"
        for low in range(0, len(data), GRANULE_BYTES):
            begins = not self._inside[vc] and low == 0
            self.queues[vc].append((data[low : low + GRANULE_BYTES], begins, bool(poison)))
        self._inside[vc] = not last

    def room(self, vc):
        """Granules that the queue of a VC still takes."""
        return self.link.queue_granules - len(self.queues[vc])

    def acknowledge(self, acknowledge, nak):
        """From a good flit.  BAD_ACKNOWLEDGE, REPLAY_LIMIT or NONE."""
        distance = (acknowledge - self.base) % MODULUS
        if self.outstanding < distance <= MODULUS // 2:
            return Reason.BAD_ACKNOWLEDGE
        if 0 < distance <= self.outstanding:
            for _ in range(distance):
                self.free_beats += self._beats(self._entries[self.base].flit_format)
                self.base = (self.base + 1) % MODULUS
            self.failed = 0
            self.progress += 1
            self.timer_restarts += 1
        if not nak:
            return Reason.NONE
        self.counts["NAK_RECEIVED"] += 1
        return self._ask_replay()

    def credit(self, a_vc, a, b_vc, b):
        """Limits from a good flit.  BAD_CREDIT or NONE."""
        reasons = [self.credits[a_vc].update(a), self.credits[b_vc].update(b)]
        return Reason.BAD_CREDIT if Reason.BAD_CREDIT in reasons else Reason.NONE

    def timer(self):
        """The replay timer fires.  REPLAY_LIMIT or NONE."""
        if not self.outstanding or self.owed:
            return Reason.NONE
        self.counts["TIMER_REPLAYS"] += 1
        return self._ask_replay()

    def start(self):
        """Sending starts: REPLAY flits first.  Replays that failed before do not count."""
        self.sending, self._stopping, self._command = True, False, Command.NONE
        self._announced, self._slots = Format.SHORT, 0
        self.failed = 0
        self._rewind_from_base()

    def stop(self, command=Command.NONE):
        """Sending stops behind the flit in work, an announced LONG one, and a CONTROL flit with
        `command` if that is not NONE.
        """
        self._stopping, self._command = True, command

    def flush(self):
        """What the stop would still send is lost, and the next beat begins a flit."""
        self.stop()
        while self.beat(0, False, list(self._told), 0, 0, 0)[0] is not None:
            pass

    # State

    @property
    def outstanding(self):
        """Payload flits sent and not acknowledged."""
        return (self.next - self.base) % MODULUS

    @property
    def idle(self):
        """Nothing will be sent before the next start."""
        return not self.sending

    @property
    def credits_known(self):
        """The limits of all VCs have come."""
        return all(credit.known for credit in self.credits)

    # Composer

    def beat(self, expected, nak_owed, limits, congestion, session, epoch, *, asked=False):
        """(bytes of the next beat or None, whether the owed NAK stands in it).  Only short flits
        carry a NAK.

        The arguments are the receiver's `expected` and `nak`, the VC buffers' limits and
        congestion, the own session and epoch, and whether a replay is asked for, all of this cycle.
        """
        if self._work is None:
            self._work = self._begin()
            if self._work is None:
                self.sending = False
                return None, False
        work, size = self._work, self.link.beat_bytes
        low, work.beat = work.beat * size, work.beat + 1
        if work.beat < self._beats(work.flit_format):
            data = work.entry.data if work.entry else b""
            return data[low : low + size].ljust(size, b"\0"), False
        nak = bool(nak_owed) and work.flit_format == Format.SHORT
        short = asked or (nak_owed and not nak)
        slot = self._slot(expected, nak, limits, congestion, epoch, short=short)
        flit = build(work.flit_format, work.entry.data if work.entry else b"", slot, session)
        self._work = None
        self._count(work, slot)
        return flit[low:], nak

    def _beats(self, flit_format):
        return self.link.long_beats if flit_format == Format.LONG else self.link.cell_beats

    def _begin(self):
        """The flit that comes now, None if sending is over."""
        if not self.sending:
            return None
        replaying = self._is_replaying
        if self._announced == Format.LONG:
            return self._replayed() if self._long_vc is None else self._fresh(self._long_vc)
        if self._stopping:
            return self._last_word()
        if self.owed:
            self.owed -= 1
            if self._rewind:
                self.pointer, self._rewind = self.base, False
            return Work(Format.SHORT, FlitType.REPLAY)
        if replaying:
            not_announced = self._entries[self.pointer].flit_format == Format.LONG
            if not_announced or not self.copy_ready:
                return Work(Format.SHORT, FlitType.CONTROL)
            return self._replayed()
        vc = self.arbiter.pick(self._eligible(Format.SHORT))
        if vc is None:
            return Work(Format.SHORT, FlitType.CONTROL)
        self.arbiter.grant(vc)
        return self._fresh(vc)

    def _last_word(self):
        if self._command == Command.NONE:
            return None
        command, self._command = self._command, Command.NONE
        return Work(Format.SHORT, FlitType.CONTROL, command=command)

    def _replayed(self):
        entry = self._entries[self.pointer]
        self._move_pointer()
        return Work(entry.flit_format, FlitType.DATA, entry, replayed=True)

    def _fresh(self, vc):
        """A payload flit goes out for the first time and into the replay buffer."""
        flit_format, queue, credit = self._announced, self.queues[vc], self.credits[vc]
        granules = LONG_GRANULES
        if flit_format == Format.SHORT:
            granules = min(SHORT_GRANULES, len(queue), credit.available)
        taken = [queue.popleft() for _ in range(granules)]
        credit.spend(granules)
        first = next((i for i, (_, begins, _) in enumerate(taken) if begins), NO_PACKET)
        poison = int(any(bad for _, _, bad in taken))
        data = b"".join(granule for granule, _, _ in taken)
        entry = Entry(flit_format, self.next, vc, first, granules, poison, data)
        self._entries[self.next] = entry
        self.free_beats -= self._beats(flit_format)
        if not self.outstanding:
            self.timer_restarts += 1
        self.next = (self.next + 1) % MODULUS
        self.counts["TX_DATA"] += 1
        self.counts["POISON_SENT"] += poison
        return Work(flit_format, FlitType.DATA, entry)

    def _slot(self, expected, nak, limits, congestion, epoch, *, short):
        work = self._work
        assert work is not None
        a_vc, b_vc = self._credit_vcs(limits)
        self._told[a_vc], self._told[b_vc] = limits[a_vc], limits[b_vc]
        self._slots += 1
        self._announced = self._next_format(short)
        position = self.next if self.pointer is None else self.pointer
        slot = {
            "sequence": (position - 1) % MODULUS,
            "acknowledge": expected,
            "nak": int(nak),
            "first": NO_PACKET,
            "credit_a_vc": a_vc,
            "credit_a": limits[a_vc],
            "credit_b_vc": b_vc,
            "credit_b": limits[b_vc],
            "next_format": self._announced,
            "epoch": epoch,
            "command": work.command,
            "congestion": congestion,
            "type": work.type,
        }
        if work.entry:
            slot |= {name: getattr(work.entry, name) for name in ("sequence", "poison", "vc")}
            slot |= {"first": work.entry.first, "valid": work.entry.valid, "payload": 1}
            slot["replayed"] = int(work.replayed)
        return slot

    def _credit_vcs(self, limits):
        a_vc = self._slots % VCS
        others = [(a_vc + step) % VCS for step in range(1, VCS)]
        changed = (vc for vc in others if limits[vc] != self._told[vc])
        return a_vc, next(changed, others[0])

    def _next_format(self, short):
        """Format of the flit behind the one in work, SHORT if `short`; chooses the VC of a long
        one.
        """
        self._long_vc = None
        if self.owed or self._stopping or short:
            return Format.SHORT
        if self._is_replaying:
            work = self._work
            is_at_hand = self.copy_soon or (work is not None and work.replayed)
            return self._entries[self.pointer].flit_format if is_at_hand else Format.SHORT
        self._long_vc = self.arbiter.pick(self._eligible(Format.LONG))
        if self._long_vc is None:
            return Format.SHORT
        self.arbiter.grant(self._long_vc)
        return Format.LONG

    def _eligible(self, flit_format):
        """VCs from which a new payload flit of that format can go."""
        if self.outstanding >= WINDOW or self.free_beats < self._beats(flit_format):
            return []
        least = CAPACITY[flit_format] if flit_format == Format.LONG else 1
        return [
            vc
            for vc in range(VCS)
            if len(self.queues[vc]) >= least and self.credits[vc].available >= least
        ]

    # Replay

    @property
    def _is_replaying(self):
        """Flits of the replay buffer are still to be sent; ends the replay that has caught up."""
        if self.pointer == self.next and not self.owed:
            self.pointer = None
        return self.pointer is not None

    def _move_pointer(self):
        assert self.pointer is not None
        self.pointer = (self.pointer + 1) % MODULUS

    def _rewind_from_base(self):
        self.owed, self._rewind = REPLAY_FLITS, True
        self.timer_restarts += 1

    def _ask_replay(self):
        if self.owed:
            return Reason.NONE
        self._rewind_from_base()
        self.failed += bool(self.outstanding)
        self.counts["REPLAYS"] += 1
        return Reason.REPLAY_LIMIT if self.failed >= ATTEMPTS else Reason.NONE

    def _count(self, work, slot):
        self.counts["TX_LONG" if work.flit_format == Format.LONG else "TX_SHORT"] += 1
        self.counts["NAK_SENT"] += slot["nak"]
        self.counts["REPLAYED_FLITS"] += work.replayed
