# amaranth: UnusedElaboratable=no
"""What the proofs of arithmetic compare with: value and order of codes, against ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from golden.arith import formats
from verif.cxxrtl import compile_unit
from verif.formal.arithmetic import ONE_STEP
from verif.formal.numbers import fields, order, same_value
from verif.formal.properties import PROOFS

FORMS = (
    (formats.FP8_E4M3FN, ml_dtypes.float8_e4m3fn),
    (formats.FP8_E5M2, ml_dtypes.float8_e5m2),
    (formats.BF16, ml_dtypes.bfloat16),
)


class Reference(wiring.Component):
    """same: magnitudes of code and word are the same number; key: place of the word in order."""

    tile_parameters = ()
    latency = 0

    def __init__(self, form):
        self.form = form
        members = {"code": In(form.bits), "word": In(32), "same": Out(1), "key": Out(32)}
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        short = fields(m, "code", self.code, self.form)
        wide = fields(m, "word", self.word, formats.FP32)
        m.d.comb += [
            self.same.eq(same_value(m, short, wide)),
            self.key.eq(order(self.word, 31)),
        ]
        return m


@pytest.fixture(scope="module", params=FORMS, ids=lambda pair: pair[0].name)
def reference(request):
    form, dtype = request.param
    return form, dtype, compile_unit(Reference(form))


def test_same_value_is_that_of_the_format(reference):
    """Every finite code against its own value, its neighbours, and the values of other codes."""
    form, dtype, unit = reference
    magnitude = np.arange(form.max_code + 1, dtype=form.dtype)
    code = np.concatenate([magnitude, magnitude | form.dtype.type(form.sign)])
    value = code.view(dtype).astype(np.float32)
    word = value.view(np.uint32)
    other = np.random.default_rng(5).permutation(word)
    for candidate in (word, word ^ np.uint32(1 << 31), word + np.uint32(1), other):
        expected = np.abs(candidate.view(np.float32)) == np.abs(value)
        got = unit.stream(code=code.astype(np.uint32), word=candidate).same
        assert np.array_equal(np.asarray(got, bool), expected)


def test_order_is_that_of_numbers(reference):
    _, _, unit = reference
    rng = np.random.default_rng(6)
    word = rng.integers(0, 1 << 32, 20_000, dtype=np.uint32)
    word[:3] = 0, 1 << 31, 0x7F800000
    word = word[~np.isnan(word.view(np.float32))]
    key = np.asarray(unit.stream(code=np.zeros(word.size, np.uint32), word=word).key)
    key = key.astype(np.uint32).view(np.int32)
    by_value = np.argsort(word.view(np.float32), kind="stable")
    assert np.array_equal(key[by_value], np.sort(key))
    assert key[0] == key[1] == 0


def test_every_claim_is_registered_with_its_mutant():
    by_name = {proof.name: proof for proof in PROOFS}
    for proof in ONE_STEP:
        claims = by_name[proof.name].claims
        assert {name: (c.text, c.mutation) for name, c in claims.items()} == proof.claims
        assert by_name[proof.name].depth == 1
