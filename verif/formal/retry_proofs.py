"""Proofs of sequence numbers, acknowledgement and replay."""

from dataclasses import replace

from verif.formal.proof import BOUNDED, INDUCTION, Claim, Proof
from verif.formal.replay import Buffer, Limit, Receiver
from verif.formal.retry import Retry

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


def _retry(bits, window, replay_flits):
    return lambda **options: Retry(bits, window, replay_flits, **options)


RETRY = (
    Proof(
        name="retry",
        build=_retry(2, 3, 2),
        size="2-bit numbers, window 3, 2 REPLAY flits",
        method=INDUCTION,
        depth=1,
        claims=_RETRY,
    ),
    Proof(
        name="retry_single",
        build=_retry(2, 3, 1),
        size="2-bit numbers, window 3, 1 REPLAY flit",
        method=INDUCTION,
        depth=1,
        claims=_RETRY,
    ),
    Proof(
        name="retry_half",
        build=_retry(3, 3, 2),
        size="3-bit numbers, window 3, 2 REPLAY flits",
        method=INDUCTION,
        depth=1,
        claims=_RETRY | {"order": replace(_RETRY["order"], depth=20)} | _CLASSES,
        slow=True,
    ),
    Proof(
        name="retry_half_single",
        build=_retry(3, 3, 1),
        size="3-bit numbers, window 3, 1 REPLAY flit",
        method=INDUCTION,
        depth=1,
        claims={},
        repeats="retry_half",
        slow=True,
    ),
    *(
        Proof(
            name=f"retry_full_{flits}",
            build=_retry(10, 511, flits),
            size=f"as built: 10-bit numbers, window 511; REPLAY flits: {flits}",
            method=INDUCTION,
            depth=1,
            claims={},
            repeats="retry_half",
            slow=True,
        )
        for flits in (1, 2)
    ),
    Proof(
        name="replay_buffer",
        build=lambda **options: Buffer(2, 3, 2, **options),
        size="2-bit numbers, window 3, any acknowledges, 2 REPLAY flits",
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
        name="replay_buffer_single",
        build=lambda **options: Buffer(2, 3, 1, **options),
        size="the same, 1 REPLAY flit",
        method=INDUCTION,
        depth=1,
        claims={},
        repeats="replay_buffer",
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
)
