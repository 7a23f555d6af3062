"""How a memory is split into banks."""

from dataclasses import dataclass

from amaranth.utils import ceil_log2

from isa.geometry import PSUM_BANKS, PSUM_WORD_BYTES, WORD_BYTES


@dataclass(frozen=True, kw_only=True)
class BankGeometry:
    """`words` words of `word_bytes` in each of `partitions`, in `banks` banks.

    interleaved: neighbouring words lie in neighbouring banks (bank = low bits of the word index),
    else a bank holds a block of words (bank = high bits).
    """

    partitions: int
    banks: int
    words: int
    word_bytes: int
    interleaved: bool

    @property
    def rows(self):
        """Words of a bank."""
        return self.words // self.banks

    @property
    def bank_bits(self):
        return ceil_log2(self.banks)

    @property
    def row_bits(self):
        return ceil_log2(self.rows)

    @property
    def word_bits(self):
        return ceil_log2(self.words)

    @property
    def data_bits(self):
        """Bits of a word."""
        return 8 * self.word_bytes

    def bank(self, word):
        """Bank of a word index (an Amaranth value)."""
        return word[:self.bank_bits] if self.interleaved else word[self.row_bits:]

    def row(self, word):
        """Row of a word index in its bank."""
        return word[self.bank_bits:] if self.interleaved else word[:self.row_bits]


def sbuf_geometry(config):
    return BankGeometry(partitions=config.partitions, banks=config.sbuf_banks,
                        words=config.sbuf_words, word_bytes=WORD_BYTES, interleaved=True)


def psum_geometry(config):
    return BankGeometry(partitions=config.partitions, banks=PSUM_BANKS, words=config.psum_words,
                        word_bytes=PSUM_WORD_BYTES, interleaved=False)
