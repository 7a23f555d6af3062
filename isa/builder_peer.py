"""The chip at the other end of a link port, as the program of this chip names it."""

from isa.address_map import (
    PSUM_BASE,
    PSUM_STRIDE_BYTES,
    SBUF_BASE,
    SEMAPHORE_BASE,
    SEMAPHORE_VIEW_BYTES,
    SemaphoreView,
    peer_address,
    semaphore_address,
)
from isa.values import Address, enum_member
from isa.views import HbmTensor, HbmView, PeerView
from isa.windows import PAGE_BYTES


class Peer:
    """`b.peer(port, far)`: far is the ProgramBuilder of the chip at the other end of `port` of b.

    peer = a.peer(0, b)
    a.dma_copy(engine=0, via=a.sync, src=t, dst=peer.view(tile), update=("sent", "increment"))
    peer.signal(a.sync, "arrived", wait=("sent", 1))

    What the views and semaphores are is up to the program of `far`, and so are its ingress windows.
    """

    def __init__(self, owner, port, far):
        self.port = port
        self.config = far.config
        self._owner = owner
        self._far = far
        self.address(0)  # refuses a port that is not there

    def address(self, address):
        """Address by which this chip reaches `address` of the peer."""
        return peer_address(self._owner.config, self.port, address)

    def view(self, view):
        """An HBM tensor or view, tile or access pattern of the peer, for a DMA copy."""
        return PeerView(self, view)

    def word(self, view, index=()):
        """Address of a 4-byte element of an HBM tensor of the peer, for reg_load and reg_store."""
        place = view[index] if index != () else view.view
        if not isinstance(view, HbmTensor) or not isinstance(place, HbmView) or place.dims:
            raise ValueError(
                f"word of {view!r} at {index!r}: give an HBM tensor and one index per dimension"
            )
        return Address(self.address(place.address))

    def semaphore(self, semaphore, kind="increment"):
        """Address whose write changes a semaphore of the peer; kind: set, increment, decrement,
        add.
        """
        view = enum_member(SemaphoreView, kind, "semaphore view")
        return Address(self.address(semaphore_address(self._far.semaphore_index(semaphore), view)))

    def signal(self, via, semaphore, kind="increment", value=1, **arguments):
        """Change a semaphore of the peer, behind all writes to the peer that stream `via` knows to
        be complete.  arguments: wait, update.
        """
        register = via.register("peer signal")
        via.reg_alu(rd=register, alu_op="move", imm=value)
        via.reg_store(rb=register, address=self.semaphore(semaphore, kind), **arguments)


def window_range(builder, what):
    """(first, end) of whole pages round `what`: see ProgramBuilder.open_window."""
    config = builder.config
    blocks = {
        "hbm": (0, config.hbm_bytes),
        "sbuf": (SBUF_BASE, config.partitions * config.sbuf_stride_bytes),
        "psum": (PSUM_BASE, config.partitions * PSUM_STRIDE_BYTES),
        "semaphores": (SEMAPHORE_BASE, len(SemaphoreView) * SEMAPHORE_VIEW_BYTES),
    }
    if isinstance(what, str) and what in blocks:
        first, size = blocks[what]
    elif isinstance(what, HbmTensor):
        first, size = what.address, what.tensor.size_bytes
    elif isinstance(what, tuple) and len(what) == 2:
        first, size = what[0], what[1] - what[0]
    else:
        raise ValueError(
            f"open_window: {what!r}, must be {', '.join(blocks)}, an HBM tensor or (first, end)"
        )
    return first // PAGE_BYTES * PAGE_BYTES, -(-(first + size) // PAGE_BYTES) * PAGE_BYTES
