"""Proofs of the streams of hdl/lib."""

from verif.formal.proof import BOUNDED, INDUCTION, Claim, Proof
from verif.formal.streams import Fairness, Fifo, Gate, Merge

STREAMS = (
    Proof(
        name="fifo",
        build=lambda **options: Fifo(4, **options),
        size="depth 4",
        method=BOUNDED,
        depth=16,
        checks=True,
        claims={
            "fifo_order": Claim(
                text="StreamFifo: none lost, twice or out of order", mutation="overflow"
            ),
            "fifo_stands": Claim(
                text="StreamFifo: an offer stands until it is taken", mutation="overflow"
            ),
        },
    ),
    Proof(
        name="merge",
        build=lambda **options: Merge(**options),
        size="3 inputs",
        method=INDUCTION,
        depth=2,
        checks=True,
        claims={
            "merge_once": Claim(
                text="StreamMerge: each payload passes once, from the source that it names",
                mutation="drops",
            ),
            "merge_stands": Claim(
                text="StreamMerge: an offer stands until it is taken", mutation="restless"
            ),
        },
    ),
    Proof(
        name="gate",
        build=lambda **options: Gate(**options),
        size="",
        method=INDUCTION,
        depth=1,
        checks=True,
        claims={
            "gate_stands": Claim(
                text="StallGate: an offer stands until it is taken", mutation="forgetful"
            )
        },
    ),
    Proof(
        name="arbiter",
        build=lambda **options: Fairness(**options),
        size="3 requesters",
        method=BOUNDED,
        depth=16,
        claims={
            "fairness": Claim(
                text="RoundRobin: who keeps asking is granted behind at most two others",
                mutation="lowest_first",
            )
        },
    ),
)
