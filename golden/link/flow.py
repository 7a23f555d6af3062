"""Flow model: two directions of long flits under bit errors, flit by flit, without their bits.

The same rules as transmitter and receiver, for 64-byte beats and one VC that is always full, so
that counts agree to the flit; some tens of times as fast.  Credit never runs out.
"""

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from golden.link.endpoint import nak_cycles, replay_cycles
from isa.link import (
    ATTEMPTS,
    LONG_CELLS,
    LONG_GRANULES,
    REPLAY_FLITS,
    SHORT_GRANULES,
    WINDOW,
)

BEAT_BITS = 512
LONG_BITS = LONG_CELLS * BEAT_BITS
_CONTROL, _DATA, _REPLAY = range(3)
_NEVER = math.inf


def closed_form(ber, loss_cycles):
    """Share of flit time that carries new long flits if each bad one costs `loss_cycles` from its
    start to the start of its repetition (go-back-N, nothing else lost).
    """
    good = (1 - ber) ** LONG_BITS
    return LONG_CELLS * good / (LONG_CELLS * good + (1 - good) * loss_cycles)


def loss_cycles(rtt):
    """That cost on an idle reverse direction: the bad flit, round trip, the NAK's flit, the rest of
    the flit in which the NAK arrives (or all of the one announced), REPLAY flits.
    """
    phase = rtt % LONG_CELLS
    rest = LONG_CELLS - 1 - phase or LONG_CELLS
    return LONG_CELLS + rtt + 1 + rest + REPLAY_FLITS


def full_loss_cycles(rtt):
    """The same on average with both directions full: the NAK waits for the slot of the long flit in
    work (1 .. 10 cycles), and the phases of the two directions have nothing to do with each other.
    """
    middle = (LONG_CELLS + 1) / 2
    return LONG_CELLS + rtt + middle + 1 + middle + REPLAY_FLITS


class Errors:
    """Random beats with an error, drawn in bulk; of(first, cycles): whether one of the beats of a
    flit is hit.
    """

    def __init__(self, ber, seed):
        self.rng = np.random.default_rng(seed)
        self.rate = -math.expm1(BEAT_BITS * math.log1p(-ber)) if ber else 0.0
        self._gaps = iter(())
        self._left = self._draw()

    def of(self, first, cycles):
        if self._left >= cycles:
            self._left -= cycles
            return False
        while self._left < cycles:
            self._left += 1 + self._draw()
        self._left -= cycles
        return True

    def _draw(self):
        if not self.rate:
            return _NEVER
        gap = next(self._gaps, None)
        if gap is None:
            self._gaps = iter(self.rng.geometric(self.rate, 4096).tolist())
            gap = next(self._gaps)
        return gap - 1


class Pattern:
    """The same from a collection of cycles."""

    def __init__(self, cycles):
        self._cycles = frozenset(cycles)

    def of(self, first, cycles):
        return not self._cycles.isdisjoint(range(first, first + cycles))


@dataclass
class Side:
    """One end: its transmitter, its receiver, and the line that leads away from it.

    sizes: beats of all payload flits so far; held_beats: in the replay buffer; granules: handed on.
    """

    errors: object
    has_data: bool
    slot_at: int = 0
    long: bool = False
    fresh: bool = False
    next: int = 0
    base: int = 0
    pointer: int | None = None
    owed: int = REPLAY_FLITS
    rewind: bool = True
    failed: int = 0
    known: bool = False
    replay_at: float = _NEVER
    expected: int = 0
    hunting: bool = True
    waiting: bool = True
    nak: bool = False
    repeats: int = 0
    nak_at: float = 0
    line: deque = field(default_factory=deque)
    sizes: list = field(default_factory=list)
    held_beats: int = 0
    granules: int = 0
    replays: int = 0
    timer_replays: int = 0
    nak_repeats: int = 0
    bad_flits: int = 0


class Flow:
    """run(cycles) goes on; delivered: payload flits handed on by each side; recoveries counts.

    ber: of the direction that leads away from each side, or objects with `of`; has_data: whether a
    side has packets; recovery_cycles: what a RECOVERY takes.
    """

    def __init__(self, rtt, ber=(0.0, 0.0), has_data=(True, True), seed=0, replay_beats=256,
                 recovery_cycles=0):  # fmt: skip
        self.delay, self.rtt = rtt // 2, 2 * (rtt // 2)
        self.replay_beats, self.recovery_cycles = replay_beats, recovery_cycles
        self.now, self.recoveries, self._asked = 0, 0, False
        self.sides = [
            Side(each if hasattr(each, "of") else Errors(each, (seed, i)), has_data[i])
            for i, each in enumerate(ber)
        ]
        self._replay, self._nak = replay_cycles(self.rtt), nak_cycles(self.rtt)
        for side in self.sides:
            side.nak_at = self._nak

    @property
    def delivered(self):
        """Payload flits that each side has handed on."""
        return [side.expected for side in self.sides]

    def goodput(self, side):
        """Payload of a direction that was handed on, as a share of full long flits all the time."""
        return self.sides[1 - side].granules * LONG_CELLS / LONG_GRANULES / self.now

    def run(self, cycles):
        """All events of so many cycles, in the order of time; in a cycle slots come first."""
        end = self.now + cycles
        a, b = self.sides
        while True:
            now = min(a.slot_at, b.slot_at, self._arrival(a), self._arrival(b), self._timer())
            if now >= end:
                break
            for side in self.sides:
                if side.slot_at == now:
                    self._slot(side, now)
            for side, other in ((a, b), (b, a)):
                if side.line and side.line[0][0] == now:
                    self._arrive(other, side.line.popleft()[1], now)
            for side in self.sides:
                if now >= min(side.replay_at, side.nak_at):
                    self._fire(side, now)
            if self._asked:
                self._recover(now)
        self.now = end

    def _arrival(self, side):
        return side.line[0][0] if side.line else _NEVER

    def _timer(self):
        return min(min(side.replay_at, side.nak_at) for side in self.sides)

    # Transmitter

    def _slot(self, side, now):
        """The beat with the slot: the flit goes, the next format is decided."""
        kind, sequence = self._compose(side, now)
        cycles = LONG_CELLS if side.long else 1
        bad = side.errors.of(now - cycles + 1, cycles)
        nak = side.nak and not side.long
        flit = kind, sequence, side.expected, nak, bad, cycles
        side.line.append((now + self.delay, flit))
        side.nak &= not nak
        side.long, side.fresh = self._next_is_long(side)
        side.slot_at = now + (LONG_CELLS if side.long else 1)

    def _compose(self, side, now):
        """(kind, sequence) of the flit that ends now."""
        if side.long:
            began = now - LONG_CELLS + 1
            return _DATA, self._new(side, began, LONG_CELLS) if side.fresh else self._again(side)
        if side.owed:
            side.owed -= 1
            if side.rewind:
                side.pointer, side.rewind = side.base, False
            return _REPLAY, side.pointer - 1
        if self._is_replaying(side):
            if side.sizes[side.pointer] == LONG_CELLS:  # not announced for the sake of a NAK
                return _CONTROL, side.pointer - 1
            return _DATA, self._again(side)
        if self._has_room(side, 1):
            return _DATA, self._new(side, now, 1)
        return _CONTROL, side.next - 1

    def _new(self, side, began, beats):
        if side.next == side.base:
            side.replay_at = began + self._replay
        side.sizes.append(beats)
        side.held_beats += beats
        side.next += 1
        return side.next - 1

    def _again(self, side):
        side.pointer += 1
        return side.pointer - 1

    def _is_replaying(self, side):
        if side.pointer == side.next:
            side.pointer = None
        return side.pointer is not None

    def _has_room(self, side, beats):
        fits = side.held_beats + beats <= self.replay_beats
        return side.has_data and side.known and side.next - side.base < WINDOW and fits

    def _next_is_long(self, side):
        """(whether the next flit is long, whether it is a new one)."""
        if side.owed or side.nak:
            return False, False
        if self._is_replaying(side):
            return side.sizes[side.pointer] == LONG_CELLS, False
        new = self._has_room(side, LONG_CELLS)
        return new, new

    def _rewind(self, side, now):
        side.owed, side.rewind = REPLAY_FLITS, True
        if side.next > side.base:
            side.replay_at = now + self._replay

    def _ask(self, side, now):
        self._rewind(side, now)
        begun = side.long and side.fresh and now > side.slot_at - LONG_CELLS
        side.failed += side.next > side.base or begun
        side.replays += 1
        self._asked |= side.failed >= ATTEMPTS

    # Receiver

    def _arrive(self, side, flit, now):
        kind, sequence, acknowledge, nak, bad, beats = flit
        if side.hunting and (bad or beats == LONG_CELLS):
            return
        side.hunting = bad
        if bad:
            side.bad_flits += 1
            if not side.waiting:
                side.waiting, side.nak, side.nak_at = True, True, now + self._nak
            return
        if kind == _REPLAY:
            if side.waiting:
                side.repeats = 0
            side.waiting = False
            side.nak_at = _NEVER
        ahead = sequence - side.expected + (kind != _DATA)
        if ahead > 0:
            if not side.waiting:
                side.waiting, side.nak, side.nak_at = True, True, now + self._nak
        elif kind == _DATA and ahead == 0 and not side.waiting:
            side.expected += 1
            side.granules += LONG_GRANULES if beats == LONG_CELLS else SHORT_GRANULES
            side.repeats = 0
        self._acknowledged(side, acknowledge, nak, now)

    def _acknowledged(self, side, acknowledge, nak, now):
        side.known = True
        if acknowledge > side.base:
            side.held_beats -= sum(side.sizes[side.base : acknowledge])
            side.base, side.failed = acknowledge, 0
            side.replay_at = now + self._replay if side.next > side.base else _NEVER
        if nak and not side.owed:
            self._ask(side, now)

    # Timers and recovery

    def _fire(self, side, now):
        if now >= side.replay_at:
            side.replay_at = now + 1 + self._replay
            if not side.owed:
                side.timer_replays += 1
                self._ask(side, now)
                side.replay_at = now + 1 + self._replay
        if now >= side.nak_at:
            side.nak, side.nak_at = True, now + 1 + self._nak
            side.repeats += 1
            side.nak_repeats += 1
            self._asked |= side.repeats >= ATTEMPTS

    def _recover(self, now):
        """Both ends retrain: what is under way is lost, state is kept."""
        self.recoveries += 1
        self._asked = False
        begin = now + 1 + self.recovery_cycles
        for side in self.sides:
            if side.long:
                self._compose(side, now)
            side.line.clear()
            side.slot_at, side.long, side.fresh = begin, False, False
            side.failed = side.repeats = 0
            self._rewind(side, begin)
            side.hunting, side.waiting, side.nak = True, True, False
            side.nak_at = begin + self._nak
