"""Training frames: words and symbols, the lock of one lane, the alignment of all of them."""

from collections import deque

from isa.link import ATTEMPTS, FRAME, FRAME_WORDS, MARKER_WORD, WORD_BITS, pack_bits, unpack_bits

_WORD = (1 << WORD_BITS) - 1
_INVERTED = MARKER_WORD ^ _WORD
SLIP_AFTER_WORDS = 64
SLIP_WAIT_WORDS = 32
DESKEW_MARGIN = 8
"""Symbols of the deskew buffer that skew cannot use."""


def frame_words(content):
    """The eight words of a frame on one lane from {field: number}."""
    value = pack_bits(FRAME, content)
    half = [MARKER_WORD, *(value >> WORD_BITS * i & _WORD for i in range(3))]
    return half + [word ^ _WORD for word in half]


def frame_content(words):
    """{field: number} of a good frame, None of any other eight words."""
    half = FRAME_WORDS // 2
    if words[0] != MARKER_WORD:
        return None
    if any(a ^ b != _WORD for a, b in zip(words[:half], words[half:], strict=True)):
        return None
    return unpack_bits(FRAME, sum(word << WORD_BITS * i for i, word in enumerate(words[1:half])))


def frame_symbols(link, content):
    """Symbols of a frame on one lane, first one first."""
    words, size = frame_words(content), link.symbol_words
    return [
        sum(word << WORD_BITS * i for i, word in enumerate(words[low : low + size]))
        for low in range(0, FRAME_WORDS, size)
    ]


class LaneLock:
    """One lane.  locked, inverted: as in docs/link.md; errors: bad frames while locked."""

    def __init__(self, link):
        self.link = link
        self._ones = (1 << link.symbol_bits) - 1
        self.inverted, self.errors = False, 0
        self.drop()

    def drop(self):
        """The lock is dropped (unlock); polarity is found anew."""
        self.locked = False
        self._good = self._bad = 0
        self._words, self._inside = [], False
        self._without = self._ignored = 0

    def upright(self, symbol):
        """The symbol with the lane's polarity taken out."""
        return symbol ^ self._ones if self.inverted else symbol

    def symbol(self, symbol):
        """({field: number} of the good frame that ends here or None, whether the lane asks for a
        slip).
        """
        size = self.link.symbol_words
        slip = self._is_lost(size)
        if not self._inside:
            first = symbol & _WORD
            if self._ignored:
                self._ignored -= size
                return None, slip
            if first not in (MARKER_WORD, _INVERTED):
                return None, slip
            self.inverted = first == _INVERTED
            self._inside, self._words = True, []
        upright = self.upright(symbol)
        self._words += [upright >> WORD_BITS * i & _WORD for i in range(size)]
        if len(self._words) < FRAME_WORDS:
            return None, slip
        content, self._words = frame_content(self._words), []
        self._judge(content is not None)
        return content, slip

    def _is_lost(self, words):
        """Counts words without a good frame: the lane may sit on a wrong bit."""
        if self.locked:
            return False
        self._without += words
        if self._without < SLIP_AFTER_WORDS:
            return False
        self._without, self._inside = -SLIP_WAIT_WORDS, False
        return True

    def _judge(self, is_good):
        if is_good:
            self._good, self._bad, self._without = self._good + 1, 0, 0
            self.locked = self.locked or self._good >= ATTEMPTS
            return
        self._good, self._bad = 0, self._bad + 1
        self.errors += self.locked
        if not self.locked or self._bad >= ATTEMPTS:
            # A complemented marker may be the middle of an upright frame: the stamps of two frames
            # differ, so that is a bad frame, and the right place is half a frame further.
            self.locked, self._inside, self._bad = False, False, 0
            self._ignored = FRAME_WORDS // 2


class Deskew:
    """Brings lanes to the same step by the stamps of their frames.

    aligned, overflow: as in docs/link.md.  push() takes a step of upright symbols as they come and
    gives the aligned step that leaves, or None while there is no alignment.
    """

    def __init__(self, link):
        self.link = link
        self.clear()

    def clear(self):
        """Alignment is dropped."""
        self.aligned, self.overflow = False, False
        self._delay = {}
        self._lines = [deque(maxlen=self.link.deskew_depth) for _ in range(self.link.lanes)]
        self._ends = [{} for _ in range(self.link.lanes)]
        self._now = 0

    def push(self, step):
        """One step: list of a symbol for each physical lane."""
        self._now += 1
        for line, symbol in zip(self._lines, step, strict=True):
            line.append(symbol)
        if not self.aligned:
            return None
        return [
            line[-1 - self._delay[lane]] if lane in self._delay else 0
            for lane, line in enumerate(self._lines)
        ]

    def delay(self, lane):
        """Steps by which an aligned lane is held back."""
        return self._delay[lane]

    def frame(self, lane, stamp, group):
        """A good frame has ended on a lane in this step; `group`: physical lanes to be aligned."""
        ends = self._ends[lane]
        ends[stamp] = self._now
        for old in [s for s, when in ends.items() if self._now - when > 2 * self.link.deskew_depth]:
            del ends[old]
        if self.aligned or not all(stamp in self._ends[other] for other in group):
            return
        when = {other: self._ends[other][stamp] for other in group}
        last = max(when.values())
        if last - min(when.values()) > self.link.deskew_depth - DESKEW_MARGIN:
            self.overflow = True
            return
        self._delay = {other: last - at for other, at in when.items()}
        self.aligned = True
