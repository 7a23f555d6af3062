"""The list of proofs: which harness, which method, how deep, and which fault each one must see."""

from verif.formal.arithmetic import ONE_STEP
from verif.formal.link_proofs import LINK
from verif.formal.proof import BOUNDED, Claim, Proof
from verif.formal.retry_proofs import RETRY
from verif.formal.stream_proofs import STREAMS

PROOFS = (
    *RETRY,
    *LINK,
    *STREAMS,
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
