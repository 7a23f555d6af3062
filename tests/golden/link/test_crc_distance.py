"""The proof of the CRC's distance, in small; all of it at night.  It can fail: CRCs of known lesser
distance are found out, at the lengths that Koopman published.
"""

from itertools import combinations

import pytest
from crccheck.crc import Crc, Crc32

from isa.link import CRC_POLYNOMIAL
from verif.crc_distance import (
    ETHERNET,
    FLIT_BITS,
    GENERATOR,
    algebraic_distance,
    consecutive_roots,
    first_miss,
    has_even_weights_only,
    least_weight,
    main,
    powers,
)

CASTAGNOLI = 1 << 32 | 0x1EDC6F41


def flipped(positions, size):
    """Zero codeword of `size` bytes with bits turned: position p is the coefficient of x^p, the
    highest one is first on the line, which is bit 0 of byte 0.
    """
    image = sum(1 << 8 * size - 1 - p for p in positions)
    return image.to_bytes(size, "little")


def test_algebra_gives_eight():
    assert algebraic_distance() == 8
    assert consecutive_roots(GENERATOR) == 7
    assert consecutive_roots(ETHERNET) == 0


def test_no_pattern_of_up_to_seven_bits_is_missed_in_a_short_codeword():
    assert has_even_weights_only(GENERATOR, 256)
    assert first_miss(GENERATOR, 256, 7) is None


def test_no_pattern_of_up_to_five_bits_is_missed_in_a_long_flit():
    assert first_miss(GENERATOR, FLIT_BITS, 5) is None


def test_all_codewords_of_short_codes_weigh_eight_or_more():
    assert all(least_weight(GENERATOR, bits) >= 8 for bits in range(41, 58))


def test_search_agrees_with_trying_all_patterns():
    """A CRC-8 of distance 4 and one without x + 1, against every pattern one by one."""
    for generator in (0x107, 0x11D, 0x19B):
        for bits in (12, 20, 30):
            syndromes = powers(generator, bits)
            weights = [2, 3, 4, 5]
            found = first_miss(generator, bits, 5)
            expected = None
            for weight in weights:
                for chosen in combinations(range(bits), weight):
                    total = 0
                    for position in chosen:
                        total ^= syndromes[position]
                    if total == 0 and expected is None:
                        expected = weight
            assert (found and len(found)) == expected


def test_ethernet_misses_four_bits_in_640_bytes():
    """The found pattern, given to an independent implementation: both messages have one CRC."""
    found = first_miss(ETHERNET, FLIT_BITS, 5)
    assert found is not None and len(found) == 4
    turned = flipped(found, FLIT_BITS // 8)
    zero = bytes(FLIT_BITS // 8)
    state = Crc(32, ETHERNET & 0xFFFFFFFF, reflect_input=True, reflect_output=True)
    assert state.process(turned).final() == 0
    assert Crc32().process(turned).final() == Crc32().process(zero).final()


def test_same_pattern_is_seen_by_the_forty_bits():
    found = first_miss(ETHERNET, FLIT_BITS, 5)
    state = Crc(40, CRC_POLYNOMIAL, reflect_input=True, reflect_output=True)
    assert state.process(flipped(found, FLIT_BITS // 8)).final() != 0


@pytest.mark.parametrize(("bits", "distance"), [(5275, None), (5276, 4)])
def test_published_length_of_castagnoli(bits, distance):
    """CRC-32C: distance 6 up to 5243 bits of data, 4 beyond (Koopman)."""
    found = first_miss(CASTAGNOLI, bits, 4)
    assert (found and len(found)) == distance


@pytest.mark.nightly
def test_whole_proof(monkeypatch):
    monkeypatch.setattr("sys.argv", ["crc_distance"])
    assert main() == 0
