"""The 64-bit byte address map that DMA, sequencers and the host share, and the control registers.

HBM at 0.  Core window at CORE_BASE: SBUF (row stride = config.sbuf_stride_bytes), PSUM (row stride
16 KiB), semaphores (one view per update kind), control registers.  Peer window of link port p at
(p + 1) << PEER_WINDOW_BITS: the address map of the chip at the other end, without its peer windows.
Addresses outside every window are errors.
"""

from dataclasses import dataclass
from enum import IntEnum

from isa.geometry import REGISTERS, SEMAPHORES

HBM_BASE = 0
CORE_BASE = 1 << 44
SBUF_OFFSET = 0x000_0000
PSUM_OFFSET = 0x200_0000
PSUM_STRIDE_BYTES = 16 << 10
SEMAPHORE_OFFSET = 0x270_0000
SEMAPHORE_VIEW_BYTES = 0x1000
REGISTER_OFFSET = 0x280_0000
CORE_WINDOW_BYTES = 64 << 20
PEER_WINDOW_BITS = 45
"""Bits of an address at the peer."""

SBUF_BASE = CORE_BASE + SBUF_OFFSET
PSUM_BASE = CORE_BASE + PSUM_OFFSET
SEMAPHORE_BASE = CORE_BASE + SEMAPHORE_OFFSET
REGISTER_BASE = CORE_BASE + REGISTER_OFFSET


class SemaphoreView(IntEnum):
    """Which 4 KiB view of the semaphore block: reading any view reads; writing does what the view
    says.
    """

    SET = 0
    INCREMENT = 1
    DECREMENT = 2
    ADD = 3


class Sequencer(IntEnum):
    """The five instruction streams; the code selects register block and assembler section."""

    TENSOR = 0
    VECTOR = 1
    SCALAR = 2
    GPSIMD = 3
    SYNC = 4

    @property
    def text(self):
        return self.name.lower()


SEQUENCERS = tuple(Sequencer)


class State(IntEnum):
    """State of a sequencer as in its STATUS register (bits 0..2); bits 8..15 hold the Cause."""

    IDLE = 0
    RUNNING = 1
    WAITING = 2
    HALTED = 3
    ERROR = 4


class Cause(IntEnum):
    """Why a sequencer stopped with State.ERROR."""

    NONE = 0
    ILLEGAL_OPCODE = 1
    BAD_VERSION = 2
    RESERVED_BITS = 3
    BAD_DTYPE = 4
    BAD_PARTITION = 5
    OUT_OF_RANGE = 6
    BAD_SPACE = 7
    SHAPE_MISMATCH = 8
    BAD_OPERATOR = 9
    MISALIGNED = 10
    PC_OUT_OF_RANGE = 11
    WAIT_TIMEOUT = 12
    LOOP_DEPTH = 13
    BAD_ADDRESS = 14
    BUS_ERROR = 15
    SEMAPHORE_OVERFLOW = 16
    BAD_DMA_ENGINE = 17


class DmaCause(IntEnum):
    """Why a DMA engine dropped a descriptor."""

    NONE = 0
    BAD_DESCRIPTOR = 1
    BAD_ADDRESS = 2
    BUS_ERROR = 3


@dataclass(frozen=True)
class Register:
    """One 32-bit control register.  access: "ro", "rw" or "wo" (write strobes)."""

    name: str
    offset: int
    access: str
    doc: str


DEVICE_ID = 0x0CE1_051A
CTRL_START = 1 << 0
CTRL_CLEAR = 1 << 1
STATUS_BUSY = 1 << 0
STATUS_ERROR = 1 << 1

GLOBAL_REGISTERS = (
    Register("ID", 0x00, "ro", "device identification, 0x0CE1051A"),
    Register("ISA_VERSION", 0x04, "ro", "ISA version"),
    Register("CONFIG_HASH_LO", 0x08, "ro", "low word of the configuration hash"),
    Register("CONFIG_HASH_HI", 0x0C, "ro", "high word of the configuration hash"),
    Register("CTRL", 0x10, "wo",
             "bit 0 START: clear semaphores, registers, counters and errors, then start each "
             "sequencer whose LENGTH is not 0; ignored while busy.  "
             "bit 1 CLEAR: clear latched errors"),
    Register("STATUS", 0x14, "ro",
             "bit 0 busy (a sequencer runs or waits, an engine or a DMA engine works); "
             "bit 1 error"),
    Register("WATCHDOG", 0x18, "rw",
             "cycles that a wait may last before WAIT_TIMEOUT; 0 = no limit; reset 1048576"),
    Register("CYCLES", 0x1C, "ro", "cycles from the start of the sequencers to the end of busy"),
    Register("TENSOR_COLUMNS", 0x20, "ro",
             "cycles in which a moving column entered the array since START"),
    Register("TENSOR_LOADS", 0x24, "ro", "cycles in which weights entered the array since START"),
    Register("SEMAPHORE_ERROR", 0x28, "ro",
             "bit 31: a semaphore overflowed; bits 0..7 which (first one)"),
)

SEQUENCER_BLOCK_OFFSET = 0x400
SEQUENCER_BLOCK_BYTES = 0x200
SEQUENCER_REGISTERS = (
    Register("STREAM_LO", 0x00, "rw",
             "HBM byte address of the instruction stream, low word, 128-byte aligned"),
    Register("STREAM_HI", 0x04, "rw", "high word"),
    Register("LENGTH", 0x08, "rw", "instructions in the stream; 0 = the sequencer stays idle"),
    Register("STATUS", 0x0C, "ro", "bits 0..2 State, bits 8..15 Cause"),
    Register("PC", 0x10, "ro",
             "index of the instruction being executed, of the faulting one after an error"),
    Register("WAIT_SEMAPHORE", 0x14, "ro", "semaphore that the current or timed-out wait names"),
    Register("WAIT_VALUE", 0x18, "ro", "value that it waits for"),
    Register("RETIRED", 0x1C, "ro", "instructions completed since START"),
    Register("NOTIFY_VALUE", 0x20, "ro", "last value notified"),
    Register("NOTIFY_COUNT", 0x24, "ro", "notifications since START"),
    Register("GPR", 0x100, "ro", f"{REGISTERS} registers of the sequencer, 4 bytes apart"),
)

DMA_BLOCK_OFFSET = 0x1000
DMA_BLOCK_BYTES = 0x40
DMA_REGISTERS = (
    Register("STATUS", 0x00, "ro", "bit 0 busy, bits 8..15 DmaCause of the first error"),
    Register("ERROR_LO", 0x04, "ro", "address of the descriptor in error, low word"),
    Register("ERROR_HI", 0x08, "ro", "high word"),
    Register("DESCRIPTORS", 0x0C, "ro", "descriptors completed since START"),
    Register("BYTES_LO", 0x10, "ro", "bytes written since START, modulo 2^32"),
)


LINK_BLOCK_OFFSET = 0x2000
"""Blocks of the link ports, `isa.link.LINK_BLOCK_BYTES` each, of `isa.link.LINK_REGISTERS`."""


def global_register(name):
    """Byte address of a global control register."""
    return REGISTER_BASE + _offset(GLOBAL_REGISTERS, name)


def sequencer_register(sequencer, name):
    """Byte address of a register of a sequencer's block."""
    block = SEQUENCER_BLOCK_OFFSET + SEQUENCER_BLOCK_BYTES * int(sequencer)
    return REGISTER_BASE + block + _offset(SEQUENCER_REGISTERS, name)


def dma_register(engine, name):
    """Byte address of a register of a DMA engine's block."""
    return (
        REGISTER_BASE + DMA_BLOCK_OFFSET + DMA_BLOCK_BYTES * engine + _offset(DMA_REGISTERS, name)
    )


def link_register(port, name):
    """Byte address of a register or counter (a name of `isa.link.LINK_REGISTERS` or `COUNTERS`) of
    a link port.
    """
    # isa.link needs this module, so it cannot be imported at the top.
    from isa.link import COUNTERS, LINK_BLOCK_BYTES, LINK_REGISTERS, counter_offset

    offset = counter_offset(name) if name in COUNTERS else _offset(LINK_REGISTERS, name)
    return REGISTER_BASE + LINK_BLOCK_OFFSET + LINK_BLOCK_BYTES * port + offset


def peer_address(config, port, address):
    """Address by which this chip reaches `address` of the chip at the other end of a link port."""
    if not 0 <= port < config.links:
        raise ValueError(f"link port {port} does not exist: the chip has {config.links}")
    if not 0 <= address < 1 << PEER_WINDOW_BITS:
        raise ValueError(f"address {address:#x} at the peer is outside 0..2^{PEER_WINDOW_BITS} - 1")
    return ((port + 1) << PEER_WINDOW_BITS) + address


def sbuf_address(config, partition, offset_bytes):
    """Address of a byte of SBUF; ValueError outside it."""
    if not (0 <= partition < config.partitions and 0 <= offset_bytes < config.sbuf_bytes):
        raise ValueError(
            f"SBUF partition {partition} byte {offset_bytes} is outside "
            f"{config.partitions} partitions of {config.sbuf_bytes} bytes"
        )
    return SBUF_BASE + partition * config.sbuf_stride_bytes + offset_bytes


def psum_address(config, partition, offset_bytes):
    """Address of a byte of PSUM (host and sequencer access only); ValueError outside it."""
    if not (0 <= partition < config.partitions and 0 <= offset_bytes < config.psum_bytes):
        raise ValueError(
            f"PSUM partition {partition} byte {offset_bytes} is outside "
            f"{config.partitions} partitions of {config.psum_bytes} bytes"
        )
    return PSUM_BASE + partition * PSUM_STRIDE_BYTES + offset_bytes


def semaphore_address(index, view=SemaphoreView.SET):
    """Address of a semaphore in one of its views."""
    if not 0 <= index < SEMAPHORES:
        raise ValueError(f"semaphore {index} is outside 0..{SEMAPHORES - 1}")
    return SEMAPHORE_BASE + view * SEMAPHORE_VIEW_BYTES + 4 * index


def _offset(registers, name):
    for register in registers:
        if register.name == name:
            return register.offset
    raise KeyError(f"no register {name!r}; there are {', '.join(r.name for r in registers)}")
