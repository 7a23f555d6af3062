"""What the golden model refuses to execute, against the laws of `verif.legality`."""

import pytest

from golden.operation import Prepared, Preparer, Refused
from isa.address_map import Cause
from isa.encoding import encode
from isa.geometry import preset
from isa.instructions import BY_NAME
from verif.legality import LAWS, broken, cause_of
from verif.legality_cases import Tally, combinations, instruction_fields

REGISTERS = [0] * 64


@pytest.mark.parametrize("name", LAWS)
def test_every_combination(name):
    """Prepared with exactly these options, or refused; double rows on no chip without them."""
    tally = Tally(name)
    double, single = Preparer(preset("tiny")), Preparer(preset("small"))
    for combination in combinations(name):
        laws = broken(name, combination)
        word = encode(name, instruction_fields(name, combination))
        loaded = (4, 1, combination.get("double_row"), combination.get("transpose"))
        for sequencer in BY_NAME[name].sequencers:
            found = double.prepare(word, sequencer, REGISTERS, loaded)
            if laws:
                assert isinstance(found, Refused), f"{combination} breaks {laws}"
                assert found.cause == cause_of(laws), f"{combination}: {found}"
                assert len(laws) > 1 or laws[0].about in found.message, found
            else:
                assert isinstance(found, Prepared), f"{combination}: {found}"
                assert found.operation is not None
                options = found.operation.options
                assert all(options[key] == combination[key] for key in options if "imm" not in key)
        if not laws and "double_row" in combination:
            found = single.prepare(word, min(BY_NAME[name].sequencers), REGISTERS, loaded)
            expected = Cause.OUT_OF_RANGE if combination["double_row"] else None
            assert getattr(found, "cause", None) == expected, f"{combination}: {found}"
        tally.add(laws)
    tally.check()
