"""What decoder and stage 1 of the sequencers refuse, against the laws of `verif.legality`."""

import numpy as np
import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.sequencer.decode import Decoder
from hdl.sequencer.layout import WORD_BITS
from hdl.sequencer.ports import CAUSE_BITS
from isa.address_map import Cause, Sequencer
from isa.encoding import encode, encode_int
from isa.geometry import preset
from isa.instructions import BY_NAME
from verif.cxxrtl import compile_unit
from verif.legality import LAWS, broken, cause_of
from verif.legality_cases import Tally, combinations, instruction_fields, sample
from verif.prepare_bench import PrepareBench

ENGINES = (Sequencer.TENSOR, Sequencer.VECTOR, Sequencer.SCALAR)
PORTS = WORD_BITS // 32


class DecoderByWords(wiring.Component):
    """The Decoder of a sequencer behind ports of 32 bits."""

    latency = 0

    def __init__(self, sequencer):
        self.sequencer = sequencer
        words = {f"word{i}": In(32) for i in range(PORTS)}
        super().__init__({**words, "cause": Out(CAUSE_BITS)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.decoder = decoder = Decoder(self.sequencer)
        m.d.comb += [
            decoder.word.eq(Cat(getattr(self, f"word{i}") for i in range(PORTS))),
            self.cause.eq(decoder.cause),
        ]
        return m


@pytest.fixture(scope="module", params=ENGINES, ids=lambda sequencer: sequencer.text)
def decoder(request):
    return request.param, compile_unit(DecoderByWords(request.param))


def instructions_for(sequencer):
    return [name for name in LAWS if sequencer in BY_NAME[name].sequencers]


def test_every_combination_in_the_decoder(decoder):
    sequencer, unit = decoder
    for name in instructions_for(sequencer):
        tally, expected, words = Tally(name), [], []
        for combination in combinations(name):
            laws = broken(name, combination)
            tally.add(laws)
            expected.append(cause_of(laws))
            words.append(encode(name, instruction_fields(name, combination)))
        ports = np.frombuffer(b"".join(words), np.uint32).reshape(-1, PORTS)
        got = unit.stream(**{f"word{i}": ports[:, i] for i in range(PORTS)}).cause
        wrong = np.flatnonzero(got != np.array(expected))
        if wrong.size:
            combination = next(c for i, c in enumerate(combinations(name)) if i == wrong[0])
            got, expected = Cause(int(got[wrong[0]])).name, expected[wrong[0]].name
            pytest.fail(
                f"{name}: {wrong.size} of {len(words)} differ, the first {combination}: "
                f"{got}, not {expected}"
            )
        tally.check()


@pytest.mark.parametrize("chip", ["tiny", "small"])
@pytest.mark.parametrize("sequencer", ENGINES, ids=lambda sequencer: sequencer.text)
def test_every_law_in_stage_1(sequencer, chip):
    """Each multiply_moving behind a load_stationary of its modes."""
    config = preset(chip)
    tallies = {name: Tally(name) for name in instructions_for(sequencer)}
    alone = {"src0.space": 1, "src0.dtype": 5, "part": 0}

    def word(name, combination):
        return encode_int(name, instruction_fields(name, combination)), [0] * 64

    def cases():
        for name, tally in tallies.items():
            for combination, laws in sample(name, 1):
                if name == "multiply_moving":
                    modes = {key: combination[key] for key in ("double_row", "transpose")}
                    yield word("load_stationary", alone | modes)
                output, _ = yield word(name, combination)
                expected = cause_of(laws)
                if not laws and combination.get("double_row") and not config.double_row:
                    expected = Cause.OUT_OF_RANGE
                assert Cause(output.cause) == expected, f"{name} {combination}"
                tally.add(laws)

    PrepareBench(config, sequencer).run(cases())
    for tally in tallies.values():
        tally.check()
