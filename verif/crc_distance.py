"""Proves that the CRC-40 of the link finds every error of up to seven bits in a flit.

Three ways that do not share code: the algebra of the polynomial (holds up to 8191 bits), a search
by meeting in the middle through all patterns of up to seven bits of a 1024-bit codeword, and the
weights of all codewords of short codes.  The same search finds the pattern of four bits that the
CRC-32 of Ethernet misses in 640 bytes, so it can fail.

    python -m verif.crc_distance [BITS]        codeword of the search, default 1024, under a minute
"""

import sys
from itertools import combinations

import numpy as np

from isa.link import CELL_BYTES, CRC_BITS, CRC_POLYNOMIAL, LONG_CELLS

GENERATOR = 1 << CRC_BITS | CRC_POLYNOMIAL
FIELD = 0b10000000011011
"""x^13 + x^4 + x^3 + x + 1."""
ORDER = (1 << 13) - 1
ETHERNET = 1 << 32 | 0x04C11DB7
FLIT_BITS = 8 * LONG_CELLS * CELL_BYTES
_FILTER_BITS = 26


def multiply(a, b):
    """Product of two polynomials over GF(2), as integers."""
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a, b = a << 1, b >> 1
    return product


def remainder(a, b):
    """a mod b."""
    while a.bit_length() >= b.bit_length():
        a ^= b << a.bit_length() - b.bit_length()
    return a


def powers(modulus, count):
    """[x^i mod modulus for i in 0 .. count - 1]: the syndromes of single errors."""
    degree, value, result = modulus.bit_length() - 1, 1, []
    for _ in range(count):
        result.append(value)
        value <<= 1
        if value >> degree:
            value ^= modulus
    return result


# Algebra


def minimal_polynomial(exponent):
    """Of alpha^exponent in GF(2^13): product of x + alpha^(exponent 2^i) over its conjugates."""
    elements = powers(FIELD, ORDER)
    conjugates = sorted({exponent * 2**i % ORDER for i in range(13)})
    poly = [1]
    for conjugate in conjugates:
        root = elements[conjugate]
        shifted = [0, *poly]
        scaled = [remainder(multiply(root, c), FIELD) for c in poly] + [0]
        poly = [a ^ b for a, b in zip(shifted, scaled, strict=True)]
    assert set(poly) <= {0, 1}, "coefficients lie in GF(2)"
    return sum(c << i for i, c in enumerate(poly))


def is_primitive(field):
    """alpha = x has order 8191, which is prime: x^8191 = 1 and x != 1, all powers different."""
    elements = powers(field, ORDER + 1)
    return elements[ORDER] == 1 and len(set(elements[:ORDER])) == ORDER


def consecutive_roots(generator):
    """How many of alpha^0, alpha^1, ... in a row are roots of the generator."""
    elements, count = powers(FIELD, ORDER), 0
    while True:
        value = 0
        for i in range(generator.bit_length()):
            if generator >> i & 1:
                value ^= elements[count * i % ORDER]
        if value:
            return count
        count += 1


def algebraic_distance():
    """The BCH bound: roots in a row + 1, for codewords of up to 8191 bits."""
    assert is_primitive(FIELD)
    factors = [0b11, *(minimal_polynomial(exponent) for exponent in (1, 3, 5))]
    product = 1
    for factor in factors:
        product = multiply(product, factor)
    assert product == GENERATOR, "generator = (x + 1) m1 m3 m5"
    return consecutive_roots(GENERATOR) + 1


# Search


def has_even_weights_only(generator, bits):
    """Whether no pattern of odd weight is a codeword: x + 1 divides the generator, and so (said
    without algebra) a linear form is 1 on the syndrome of every single bit.
    """
    divides = remainder(generator, 0b11) == 0
    ones = all(syndrome.bit_count() % 2 for syndrome in powers(generator, bits))
    assert divides <= ones, "the two ways to say it agree"
    return divides


def first_miss(generator, bits, most):
    """Lightest undetected pattern of up to `most` <= 7 bits in a codeword of `bits`, as a tuple of
    positions, or None.  Only patterns with position 0 are tried: any other is one of them shifted.
    """
    syndromes = np.array(powers(generator, bits), dtype=np.uint64)
    even_only = has_even_weights_only(generator, bits)
    for weight in range(2, most + 1):
        if weight % 2 and even_only:
            continue
        left = (weight - 1) // 2
        found = _meet(syndromes, left, weight - 1 - left)
        if found:
            return found
    return None


def _meet(syndromes, left, right):
    """Positions {0} + left ones whose syndromes sum to that of `right` other ones >= 1."""
    pairs = list(combinations(range(1, len(syndromes)), left))
    choice = np.array(pairs, dtype=np.int32).reshape(len(pairs), left)
    sums = np.full(len(choice), syndromes[0])
    for column in range(left):
        sums ^= syndromes[choice[:, column]]
    order = np.argsort(sums)
    table = sums[order]
    mask = np.uint64((1 << _FILTER_BITS) - 1)
    passes = np.zeros(1 << _FILTER_BITS, dtype=bool)
    passes[table & mask] = True
    for positions, values in _sums(syndromes, right):
        near = np.nonzero(passes[values & mask])[0]
        at = np.searchsorted(table, values[near])
        hit = near[(at < len(table)) & (table[np.minimum(at, len(table) - 1)] == values[near])]
        if len(hit):
            index = int(hit[0])
            other = choice[order[int(np.searchsorted(table, values[index]))]]
            both = set(positions(index)) ^ {0, *(int(each) for each in other)}
            return tuple(sorted(both))
    return None


def _sums(syndromes, count):
    """Blocks (function from index to positions, sums) of all choices of `count` positions >= 1."""
    size = len(syndromes)
    if count == 1:
        yield (lambda index: (index + 1,)), syndromes[1:]
        return
    if count == 2:
        for a in range(1, size - 1):
            yield (lambda index, a=a: (a, a + 1 + index)), syndromes[a] ^ syndromes[a + 1 :]
        return
    assert count == 3, "up to seven bits"
    upper, lower = np.triu_indices(size, 1)
    rows = np.searchsorted(upper, np.arange(size))
    sums = syndromes[upper] ^ syndromes[lower]
    for a in range(1, size - 2):
        begin = int(rows[a + 1])

        def positions(index, a=a, begin=begin):
            return a, int(upper[begin + index]), int(lower[begin + index])

        yield positions, syndromes[a] ^ sums[begin:]


# All codewords of short codes


def least_weight(generator, bits):
    """Least number of ones in any multiple of the generator of up to `bits` bits, all counted."""
    words = np.zeros(1, dtype=np.uint64)
    for shift in range(bits - generator.bit_length() + 1):
        words = np.concatenate([words, words ^ np.uint64(generator << shift)])
    return int(np.bitwise_count(words[1:]).min())


def main():
    bits = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    distance = algebraic_distance()
    print(f"roots alpha^0 .. alpha^{distance - 2}: distance >= {distance} up to {ORDER} bits")
    short = [least_weight(GENERATOR, length) for length in range(41, 65)]
    print(f"all codewords of 41 .. 64 bits: least weights {short}")
    ethernet = first_miss(ETHERNET, FLIT_BITS, 4)
    print(f"0x04C11DB7, {FLIT_BITS} bits: misses {ethernet}", flush=True)
    flit = first_miss(GENERATOR, FLIT_BITS, 5)
    print(f"CRC-40, {FLIT_BITS} bits, up to 5 errors: misses {flit}", flush=True)
    miss = first_miss(GENERATOR, bits, 7)
    print(f"CRC-40, {bits} bits, up to 7 errors: misses {miss}")
    good = distance == 8 and min(short) >= 8 and flit is None and miss is None
    return int(not (good and ethernet is not None and len(ethernet) == 4))


if __name__ == "__main__":
    sys.exit(main())
