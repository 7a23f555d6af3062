# amaranth: UnusedElaboratable=no
"""Parameters of sequence and credit control that cannot be built."""

import pytest

from hdl.link.credit_rx import CreditReturn
from hdl.link.credit_tx import CreditCounter
from hdl.link.sequence_rx import SequenceCheck
from hdl.link.sequence_tx import ReplayControl


@pytest.mark.parametrize(
    ("part", "arguments", "words"),
    [
        (ReplayControl, (2, 4), "window 4 must be in 1..3"),
        (ReplayControl, (2, 0), "window 0 must be in 1..3"),
        (ReplayControl, (10, 511, 1), "1 attempts"),
        (SequenceCheck, (1,), "1 bits"),
        (CreditCounter, (1,), "credit of 1 bits"),
        (CreditReturn, (8, 4), "8 units must be in 1..7"),
        (CreditReturn, (0, 4), "0 units must be in 1..7"),
    ],
)
def test_bad_parameters(part, arguments, words):
    with pytest.raises(ValueError, match=words):
        part(*arguments)
