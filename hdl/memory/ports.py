"""Ports between SBUF or PSUM and whoever reads and writes them.

Signatures are written from the requester's side (Out = the requester drives).  `config` is an
`isa.geometry.Config`, P its partitions.  A wide port moves one word of every partition, partition 0
in the low bits; a narrow port moves one word of one partition.
"""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from isa.geometry import PSUM_WORD_BYTES, WORD_BYTES

SBUF_WORD_BITS = 8 * WORD_BYTES
PSUM_WORD_BITS = 8 * PSUM_WORD_BYTES
WIDE_READ_CYCLES = 2
"""From the cycle in which a wide read is taken to its data."""
NARROW_READ_CYCLES = 3
"""From the cycle in which a narrow read is taken to its data."""
ACCUMULATE_TAG_BITS = 2


def wide_write_layout(*, words, partitions, word_bytes):
    """Payload of a wide write to the bytes `bytes` (mask) of the partitions `partitions` (mask)."""
    return data.StructLayout({
        "word": range(words),
        "partitions": partitions,
        "bytes": word_bytes,
        "data": 8 * word_bytes * partitions,
    })


def narrow_read_layout(*, words, partitions):
    """Payload of a narrow read."""
    return data.StructLayout({"partition": range(partitions), "word": range(words)})


def narrow_write_layout(*, words, partitions, word_bytes):
    """Payload of a narrow write; `bytes` is a mask."""
    return data.StructLayout({
        "partition": range(partitions),
        "word": range(words),
        "bytes": word_bytes,
        "data": 8 * word_bytes,
    })


class _Read(wiring.Signature):
    def __init__(self, words, partitions, word_bytes):
        super().__init__({
            "req": Out(stream.Signature(range(words))),
            "valid": In(1),
            "data": In(8 * word_bytes * partitions),
        })


class _Narrow(wiring.Signature):
    def __init__(self, words, partitions, word_bytes):
        read = narrow_read_layout(words=words, partitions=partitions)
        write = narrow_write_layout(words=words, partitions=partitions, word_bytes=word_bytes)
        super().__init__({
            "read": Out(stream.Signature(read)),
            "valid": In(1),
            "data": In(8 * word_bytes),
            "write": Out(stream.Signature(write)),
        })


class SbufRead(_Read):
    """Wide SBUF read.

    `req`: stream of the word index; `valid` and `data` (P * 128) exactly WIDE_READ_CYCLES cycles
    after it was taken.  There is no back-pressure on the data: ask only when there is room for it.
    """

    def __init__(self, config):
        super().__init__(config.sbuf_words, config.partitions, WORD_BYTES)


class PsumRead(_Read):
    """Wide PSUM read: as SbufRead, words of 4 bytes; the bank is the upper bits of the index."""

    def __init__(self, config):
        super().__init__(config.psum_words, config.partitions, PSUM_WORD_BYTES)


class SbufNarrow(_Narrow):
    """Word-wide access to one partition of SBUF, for DMA, host and sequencers.

    `read`: stream of {partition, word}; `valid` and `data` (128) exactly NARROW_READ_CYCLES cycles
    after it was taken.  `write`: stream of {partition, word, bytes, data}, done in the cycle it is
    taken; a read taken in a later cycle sees it.
    """

    def __init__(self, config):
        super().__init__(config.sbuf_words, config.partitions, WORD_BYTES)


class PsumNarrow(_Narrow):
    """As SbufNarrow, words of 4 bytes."""

    def __init__(self, config):
        super().__init__(config.psum_words, config.partitions, PSUM_WORD_BYTES)


def SbufWrite(config):
    """Wide SBUF write: a stream of {word, partitions, bytes, data}.

    The write is done in the cycle it is taken; a read request taken in a later cycle sees it.
    """
    return stream.Signature(wide_write_layout(
        words=config.sbuf_words, partitions=config.partitions, word_bytes=WORD_BYTES))


def PsumWrite(config):
    """Wide PSUM write: as SbufWrite, words of 4 bytes."""
    return stream.Signature(wide_write_layout(
        words=config.psum_words, partitions=config.partitions, word_bytes=PSUM_WORD_BYTES))


class PsumAccumulate(wiring.Signature):
    """The tensor engine's port.  Never stalls.

    In each cycle with `valid`, word = `accumulate` ? old + `data` : `data` in the partitions of the
    mask (FP32, RNE, canonical NaN).  `done` pulses in order, with its tag, in the first cycle whose
    reads see an element whose `tag` is not 0: psum_add_stages + 3 cycles after `valid`.  The
    producer keeps accumulations onto one word at least `config.psum_accumulate_cycles` apart.
    """

    def __init__(self, config):
        super().__init__({
            "valid": Out(1),
            "word": Out(range(config.psum_words)),
            "partitions": Out(config.partitions),
            "accumulate": Out(1),
            "data": Out(PSUM_WORD_BITS * config.partitions),
            "tag": Out(ACCUMULATE_TAG_BITS),
            "done": In(1),
            "done_tag": In(ACCUMULATE_TAG_BITS),
        })
