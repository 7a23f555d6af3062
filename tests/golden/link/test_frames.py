"""Training frames, the lock of a lane, alignment of lanes by their stamps."""

import numpy as np
import pytest

from golden.link.frames import Deskew, LaneLock, frame_content, frame_symbols, frame_words
from isa.link import FRAME, MARKER_WORD, FrameType, LinkConfig

pytestmark = pytest.mark.smoke
SHAPES = [(16, 4), (64, 8), (64, 4)]


def content(stamp=0, **fields):
    return {"type": FrameType.TS1, "lane": 3, "session": 0x89ABCDEF, "stamp": stamp} | fields


def test_frame_is_marker_content_and_complements():
    words = frame_words(content(0x1234))
    assert words[0] == MARKER_WORD and len(words) == 8
    assert [a ^ b for a, b in zip(words[:4], words[4:], strict=True)] == [0xFFFFFFFF] * 4
    assert words[1] & 0xF == FrameType.TS1
    assert words[3] & 0xFFFF == 0x1234, "stamp at bit 64"
    assert words[2] == 0x89ABCDEF, "session at bit 32"
    got = frame_content(words)
    assert {f.name for f in FRAME} == set(got)
    assert got | content(0x1234) == got


@pytest.mark.parametrize("bit", range(0, 256, 5))
def test_any_bit_error_makes_a_bad_frame(bit):
    words = frame_words(content())
    words[bit // 32] ^= 1 << bit % 32
    assert frame_content(words) is None


def stream(link, frames, start=0):
    """Symbols of frames with rising stamps."""
    for index in range(frames):
        yield from frame_symbols(link, content(start + index * 8))


@pytest.mark.parametrize(("size", "lanes"), SHAPES)
@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("offset", range(8))
def test_lock_from_any_place_and_polarity(size, lanes, inverted, offset):
    """Also from the middle of a frame, which looks like the start of an inverted one."""
    link = LinkConfig(beat_bytes=size, lanes=lanes)
    ones = (1 << link.symbol_bits) - 1
    lock, good, slips = LaneLock(link), 0, 0
    symbols = list(stream(link, 9))[offset // link.symbol_words :]
    for symbol in symbols:
        got, slip = lock.symbol(symbol ^ (ones if inverted else 0))
        good, slips = good + (got is not None), slips + slip
    assert lock.locked and lock.inverted == inverted and slips == 0
    assert good >= 6


def test_lock_after_four_good_frames_lost_after_four_bad():
    link = LinkConfig(beat_bytes=16, lanes=4)
    lock = LaneLock(link)
    for symbol in stream(link, 4):
        assert not lock.locked
        lock.symbol(symbol)
    assert lock.locked
    for frame in range(4):
        assert lock.locked, f"lost after {frame}"
        for symbol in frame_symbols(link, content(frame)):
            lock.symbol(symbol ^ 2)
    assert not lock.locked and lock.errors == 4


def test_single_bad_frames_do_not_unlock():
    link = LinkConfig(beat_bytes=16, lanes=4)
    lock = LaneLock(link)
    for index in range(40):
        for symbol in frame_symbols(link, content(index)):
            lock.symbol(symbol ^ (16 if index > 4 and index % 4 else 0))
    assert lock.locked


def test_slip_after_64_words_then_a_pause():
    link = LinkConfig(beat_bytes=16, lanes=4)
    lock = LaneLock(link)
    rng = np.random.default_rng(1)
    at = [i for i in range(300) if lock.symbol(int(rng.integers(1 << 32)))[1]]
    assert at == [63, 159, 255]


@pytest.mark.parametrize("size_lanes", SHAPES)
def test_deskew_up_to_the_limit_and_beyond(size_lanes):
    """aib-protocols #39, #21: alignment buffers full without a way out, skew beyond the strobe."""
    size, lanes = size_lanes
    link = LinkConfig(beat_bytes=size, lanes=lanes)
    for skew, aligned in ((0, True), (56, True), (57, False)):
        lines = [[None] * (skew if lane == 1 else 0) for lane in range(lanes)]
        deskew, locks = Deskew(link), [LaneLock(link) for _ in range(lanes)]
        symbols = list(stream(link, 60))
        for now in range(len(symbols)):
            step = []
            for lane in range(lanes):
                delay = len(lines[lane])
                step.append(symbols[now - delay] if now >= delay else 0)
            out = deskew.push(step)
            if out is not None:
                assert len(set(out)) == 1, "lanes are not at the same step"
            for lane in range(lanes):
                frame = locks[lane].symbol(step[lane])[0]
                if frame:
                    deskew.frame(lane, frame["stamp"], range(lanes))
        assert (deskew.aligned, deskew.overflow) == (aligned, not aligned)
