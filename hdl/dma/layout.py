"""Payloads between the parts of a DMA engine, and its sizes."""

from amaranth.hdl import signed
from amaranth.lib import data
from amaranth.utils import ceil_log2

from hdl.sequencer.ports import SemaphoreUpdate
from isa.address_map import CORE_BASE, CORE_WINDOW_BYTES, PEER_WINDOW_BITS
from isa.geometry import WORD_BYTES

DIMS = 3
BURST_BEATS = 32
"""Beats of the longest burst; bursts end at multiples of it, so they never cross 4 KiB and lose
little credit."""
BEAT_FIFO = 128
"""Beats read but not yet written: covers a memory latency of about BEAT_FIFO - BURST_BEATS cycles
at full rate."""
ROW_FIFO = 32
"""Rows read but not yet written."""
TRIGGER_FIFO = 8
JOB_FIFO = 8
"""Descriptors walked but not yet complete."""
OUTSTANDING_READS = 32
OUTSTANDING_WRITES = 64
W_FIFO = 4
"""Words between the announcement of their burst and the port."""
DESCRIPTOR_BEATS = 8
FETCH_AHEAD = 2
"""Descriptors fetched before the walker needs them."""


def walk_bits(config):
    """Bits of an address while it is walked.  Rows are valid below 2^44 + 2^26, or below the end of
    the last peer window, and a stride is below 2^31, so a row that has left the map is seen as such
    before these bits could wrap round.
    """
    end = CORE_BASE + CORE_WINDOW_BYTES
    if config.links:
        end = (config.links + 1) << PEER_WINDOW_BITS
    return ceil_log2(end) + 1


def place_bits(config):
    """Bits of a byte position in HBM, in SBUF counted as partition * stride + byte, or of an
    address in a peer window.
    """
    if config.links:
        return ceil_log2((config.links + 1) << PEER_WINDOW_BITS)
    return max(
        ceil_log2(config.hbm_bytes),
        ceil_log2(config.sbuf_stride_bytes) + ceil_log2(config.partitions),
    )


def word_bits(config):
    """Bits of a 16-byte word position, as place_bits."""
    return place_bits(config) - ceil_log2(WORD_BYTES)


def length_bits(config):
    """Bits of the length of a row that lies inside a memory, in bytes."""
    return min(32, place_bits(config) + 1)


def beat_bits(config):
    """Bits of the number of words that such a row touches."""
    return length_bits(config) - ceil_log2(WORD_BYTES) + 1


class Job(data.Struct):
    """A fetched descriptor.  cause: DmaCause found while fetching; when it is not NONE only
    `address` counts."""

    address: 64
    cause: 2
    update: SemaphoreUpdate
    src_address: 64
    dst_address: 64
    row_bytes: 32
    count: data.ArrayLayout(16, DIMS)
    src_stride: data.ArrayLayout(signed(32), DIMS)
    dst_stride: data.ArrayLayout(signed(32), DIMS)


class Ending(data.Struct):
    """What completion needs of a descriptor: cause found before the bytes moved, and what to do
    when they have."""

    address: 64
    cause: 2
    update: SemaphoreUpdate


class Ticket(data.Struct):
    """End of a descriptor on the write side: complete when write burst number `burst` is
    acknowledged."""

    burst: ceil_log2(OUTSTANDING_WRITES) + 1
    poisoned: 1


def place_layout(config):
    """Where a row begins: `sbuf` selects the memory, `byte` counts from its start (partition *
    stride + byte in SBUF); peer windows are like HBM, with their address."""
    return data.StructLayout({"sbuf": 1, "byte": place_bits(config)})


def source_row_layout(config):
    """What the read side needs of a row: `beats` words from `word` on."""
    return data.StructLayout({"sbuf": 1, "word": word_bits(config), "beats": beat_bits(config)})


def sink_row_layout(config):
    """What the write side needs of a row; `end` marks the end of a descriptor and carries no
    row."""
    return data.StructLayout(
        {
            "end": 1,
            "sbuf": 1,
            "byte": place_bits(config),
            "src_offset": ceil_log2(WORD_BYTES),
            "bytes": length_bits(config),
        }
    )


def source_word_layout():
    """A word as read; `error` when the memory reported one."""
    return data.StructLayout({"data": 8 * WORD_BYTES, "error": 1})


def sink_word_layout(config):
    """A word as it is to be written, or the `end` of a descriptor.

    mask: bytes to write; error: a source word of it had an error; first, last, len (beats - 1):
    place in its burst; row_last: last word of a row of `bytes` bytes.
    """
    return data.StructLayout(
        {
            "end": 1,
            "sbuf": 1,
            "word": word_bits(config),
            "mask": WORD_BYTES,
            "data": 8 * WORD_BYTES,
            "error": 1,
            "first": 1,
            "last": 1,
            "len": ceil_log2(BURST_BEATS),
            "row_last": 1,
            "bytes": length_bits(config),
        }
    )


class Trigger(data.Struct):
    """Execute `count` descriptors, 128 bytes apart from `address` on."""

    address: 64
    count: 32
