"""Ingress windows: which of a chip's memories the peer of a link port may reach.

Nothing is open without one.  The host writes them to the registers of the port before START.
"""

from dataclasses import dataclass

from isa.address_map import CORE_BASE, PEER_WINDOW_BITS, link_register
from isa.link import LINK_WINDOWS

PAGE_BYTES = 4096
WINDOW_DISTANCE_BYTES = 16
_WRITES, _READS, _CORE = 1 << 0, 1 << 1, 1 << 4


@dataclass(frozen=True)
class IngressWindow:
    """Whole pages [first, end) of this chip's address map, in HBM or in the core window.

    ValueError when they are none.
    """

    port: int
    first: int
    end: int
    writes: bool = True
    reads: bool = True

    def __post_init__(self):
        for name in ("first", "end"):
            if getattr(self, name) % PAGE_BYTES:
                raise ValueError(
                    f"ingress window: {name} = {getattr(self, name):#x}, must be a multiple of "
                    f"{PAGE_BYTES}"
                )
        if not 0 <= self.first < self.end <= 1 << PEER_WINDOW_BITS or (
            self.first < CORE_BASE < self.end
        ):
            raise ValueError(
                f"ingress window {self.first:#x}..{self.end:#x}: must hold at least a page, all in "
                "HBM or all in the core window"
            )

    def holds(self, address, size, *, write):
        """Whether the peer may do this access, all of it."""
        allowed = self.writes if write else self.reads
        return allowed and self.first <= address and address + size <= self.end

    def registers(self, index):
        """[(address, value)] that make it window `index` of its port."""
        at = WINDOW_DISTANCE_BYTES * index
        mode = _WRITES * self.writes | _READS * self.reads | _CORE * (self.first >= CORE_BASE)
        base = self.first % CORE_BASE // PAGE_BYTES
        limit = (self.end - PAGE_BYTES) % CORE_BASE // PAGE_BYTES
        return [
            (link_register(self.port, "WINDOW_BASE") + at, base),
            (link_register(self.port, "WINDOW_LIMIT") + at, limit),
            (link_register(self.port, "WINDOW_MODE") + at, mode),
        ]


def window_registers(config, windows):
    """[(address, value)] of all ingress windows of a chip; those not given are closed."""
    found = []
    for port in range(config.links):
        own = [window for window in windows if window.port == port]
        for index in range(LINK_WINDOWS):
            if index < len(own):
                found += own[index].registers(index)
            else:
                mode = link_register(port, "WINDOW_MODE") + WINDOW_DISTANCE_BYTES * index
                found.append((mode, 0))
    return found


def check_windows(config, windows):
    """ValueError for a port that is not there or more windows than it has."""
    for port in sorted({window.port for window in windows}):
        if not 0 <= port < config.links:
            raise ValueError(
                f"ingress window of link port {port}: the chip has {config.links} ports"
            )
        count = sum(window.port == port for window in windows)
        if count > LINK_WINDOWS:
            raise ValueError(f"{count} ingress windows of link port {port}, it has {LINK_WINDOWS}")
