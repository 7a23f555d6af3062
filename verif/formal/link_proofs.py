"""Proofs of the other parts of the link: credit, CRC and delivery, training."""

from isa.link import CREDIT_BITS
from verif.formal.credit import Credit
from verif.formal.delivery import Delivery
from verif.formal.proof import BOUNDED, INDUCTION, Claim, Proof
from verif.formal.seal import Seal
from verif.formal.training import Bounds

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
_SEAL = {
    "short": Claim(
        text="Framer: a short flit is good only if the CRC of its cell and its epoch are right, in "
        "HUNT and out of it, whatever the CRC",
        mutation="unsealed",
    ),
    "long": Claim(
        text="Framer: a long flit is good only if the CRC of its ten cells together and its epoch "
        "are right",
        mutation="last_cell",
        depth=16,
    ),
    "apart": Claim(
        text="Framer: a good verdict falls on the end of a cell, that of a long flit ten cells or "
        "more behind the good one before; the slot keeps the rules",
        mutation="nine_cells",
        depth=20,
    ),
}
_DELIVERY = {
    "verdict": Claim(
        text="Assembly, on what `seal` proves: only flits committed come out, none before its "
        "verdict",
        mutation="early",
    ),
    "stored": Claim(
        text="Assembly: each beat that comes out is the one stored for its flit, with VC, "
        "granules, first, poison",
        mutation="slips",
    ),
    "once": Claim(
        text="Assembly: a flit committed comes out once, whole, within a long flit's time",
        mutation="restarts",
        depth=20,
    ),
}


def _credit(units):
    return lambda **options: Credit(units, CREDIT_BITS, **options)


def _seal(beat_bytes):
    return lambda **options: Seal(beat_bytes, **options)


def _delivery(beat_bytes):
    return lambda **options: Delivery(beat_bytes, **options)


LINK = (
    Proof(
        name="credit",
        build=lambda **options: Credit(3, 4, **options),
        size="4-bit limits, 3 units",
        method=INDUCTION,
        depth=1,
        claims=_CREDIT,
    ),
    *(
        Proof(
            name=f"credit_{units}",
            build=_credit(units),
            size=f"as built: {CREDIT_BITS}-bit limits, {units} units",
            method=INDUCTION,
            depth=1,
            claims={},
            repeats="credit",
            slow=True,
        )
        for units in (32, 64, 128, 256, 512, 1024)
    ),
    Proof(
        name="seal",
        build=_seal(64),
        size="64 B a beat",
        method=INDUCTION,
        depth=4,
        cover_depth=16,
        claims=_SEAL,
    ),
    *(
        Proof(
            name=f"seal_{beat}",
            build=_seal(beat),
            size=f"{beat} B a beat",
            method=INDUCTION,
            depth=4,
            claims={},
            repeats="seal",
        )
        for beat in (32, 16)
    ),
    Proof(
        name="delivery",
        build=_delivery(64),
        size="64 B a beat, ring of 16",
        method=BOUNDED,
        depth=12,
        cover_depth=24,
        checks=True,
        claims=_DELIVERY,
    ),
    Proof(
        name="delivery_long",
        build=_delivery(64),
        size="64 B a beat, ring of 16",
        method=BOUNDED,
        depth=24,
        checks=True,
        claims={},
        repeats="delivery",
        slow=True,
    ),
    *(
        Proof(
            name=f"delivery_{beat}",
            build=_delivery(beat),
            size=f"{beat} B a beat, short flits in so few steps",
            method=BOUNDED,
            depth=20,
            checks=True,
            claims={},
            repeats="delivery",
            slow=True,
        )
        for beat in (32, 16)
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
)
