"""The list of proofs: which harness, which method, how deep, and which fault each one must see."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from verif.formal.arithmetic import ONE_STEP
from verif.formal.credit import Credit
from verif.formal.harness import Harness
from verif.formal.replay import Buffer, Limit, Receiver
from verif.formal.retry import Retry
from verif.formal.streams import Fairness, Fifo, Gate, Merge
from verif.formal.training import Bounds

INDUCTION, BOUNDED = "induction", "bounded"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """text: what holds.  mutation: the fault that must break it, within `depth` steps."""

    text: str
    mutation: str
    depth: int = 12


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A harness and its claims.

    depth: of the method: k of k-induction, or steps from power-up.  cover_depth: within which every
    cover is reached.  checks: elaborate those of `hdl.lib.check` too.  slow: not in `make test`.
    """

    name: str
    build: Callable[..., Harness]
    method: str
    depth: int
    claims: dict
    cover_depth: int = 14
    checks: bool = False
    slow: bool = False
    size: str = field(default="")


_RETRY = {
    "order": Claim(
        text="delivered flits are number 0, 1, 2, ...: none lost, twice or out of order",
        mutation="window",
        depth=14,
    ),
    "released": Claim(
        text="a flit is released from the replay buffer only once it is delivered",
        mutation="acknowledge_next",
    ),
    "window": Claim(text="never more outstanding than the window", mutation="no_window"),
    "acknowledge": Claim(
        text="no acknowledge of an honest peer is called bad", mutation="acknowledge_next"
    ),
    "pointer": Claim(
        text="the replay pointer stays between the oldest outstanding and the next flit",
        mutation="pulse_overtaken",
    ),
}
_CLASSES = {
    "classes": Claim(
        text="duplicates and gaps are told apart exactly, and no flit is half the space away, "
        "while the window is below half the number space",
        mutation="half",
    )
}
_CREDIT = {
    "conserved": Claim(
        text="available + in flight + used + not announced = depth, with limits lost, old or twice",
        mutation="increments",
    ),
    "overflow": Claim(text="the receive buffer never overflows", mutation="early"),
    "negative": Claim(text="credit is never negative", mutation="eager"),
    "accepted": Claim(text="no limit of an honest peer is called bad", mutation="ancient"),
    "monotone": Claim(text="no update takes credit away", mutation="believes"),
}


def _retry(bits, window):
    return lambda **options: Retry(bits, window, **options)


PROOFS = (
    Proof(
        name="retry",
        build=_retry(2, 3),
        size="2-bit numbers, window 3",
        method=INDUCTION,
        depth=1,
        claims=_RETRY,
    ),
    Proof(
        name="retry_half",
        build=_retry(3, 3),
        size="3-bit numbers, window 3",
        method=INDUCTION,
        depth=1,
        claims=_RETRY | {"order": replace(_RETRY["order"], depth=20)} | _CLASSES,
        slow=True,
    ),
    Proof(
        name="retry_full",
        build=_retry(10, 511),
        size="as built: 10-bit numbers, window 511",
        method=INDUCTION,
        depth=1,
        claims={},
        slow=True,
    ),
    Proof(
        name="replay_buffer",
        build=lambda **options: Buffer(2, 3, **options),
        size="2-bit numbers, window 3, any acknowledges",
        method=INDUCTION,
        depth=1,
        claims={
            "overwritten": Claim(
                text="an entry of the replay buffer is written again only once acknowledged",
                mutation="no_window",
            ),
            "resent": Claim(
                text="only entries that hold a flit are sent again", mutation="no_window"
            ),
            "bad": Claim(text="a bad acknowledge changes nothing", mutation="moves"),
        },
    ),
    Proof(
        name="replay_limit",
        build=lambda **options: Limit(3, **options),
        size="3 attempts",
        method=BOUNDED,
        depth=14,
        claims={
            "limit": Claim(
                text="the third replay that brings nothing asks for recovery, no other does",
                mutation="limit_late",
            )
        },
    ),
    Proof(
        name="receiver",
        build=lambda **options: Receiver(3, **options),
        size="3-bit numbers, any flits",
        method=INDUCTION,
        depth=1,
        claims={
            "resumed": Claim(
                text="payload is accepted only behind a REPLAY flit since the last loss, enabled",
                mutation="accept_waiting",
            ),
            "number": Claim(
                text="only the expected number is accepted; a flit has one verdict at most",
                mutation="accept_two",
            ),
        },
    ),
    Proof(
        name="nak_repeat",
        build=lambda **options: Receiver(2, times=True, **options),
        size="2-bit numbers, repeat after 5 cycles",
        method=BOUNDED,
        depth=24,
        cover_depth=24,
        claims={
            "repeat": Claim(
                text="a receiver that waits asks again in time, one that does not never repeats",
                mutation="no_repeat",
            )
        },
    ),
    Proof(
        name="credit",
        build=lambda **options: Credit(3, 4, **options),
        size="4-bit limits, 3 units",
        method=INDUCTION,
        depth=1,
        claims=_CREDIT,
    ),
    Proof(
        name="training",
        build=lambda **options: Bounds(**options),
        size="any timeout up to 1000 cycles, any peer",
        method=INDUCTION,
        depth=1,
        claims={
            "leaves": Claim(
                text="time runs in every bounded state, and no such state outlasts its timeout",
                mutation="restarts",
            ),
            "start": Claim(
                text="the receiver is enabled only once START has come in this training",
                mutation="early",
                depth=12,
            ),
            "session": Claim(
                text="received data of two sessions of the peer never meet the same state: all is "
                "cleared between them, whenever the peer or software resets",
                mutation="keeps",
                depth=24,
            ),
            "own": Claim(
                text="the own session changes only together with the state", mutation="same_session"
            ),
        },
    ),
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
    *(
        Proof(
            name=proof.name,
            build=proof.build,
            size=f"{proof.size}; combinational",
            method=BOUNDED,
            depth=1,
            cover_depth=1,
            slow=proof.slow,
            claims={
                name: Claim(text=text, mutation=mutation, depth=1)
                for name, (text, mutation) in proof.claims.items()
            },
        )
        for proof in ONE_STEP
    ),
)
