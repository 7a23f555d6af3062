"""NeuronLink as data: parameters, flit formats, control slot, training frame, codes, registers.

Wire order: bit i of a beat, read as a little-endian integer, is bit i of the flit; bit 0 travels
first.  docs/link.md says how the parts behave.
"""

from dataclasses import dataclass, field, replace
from enum import IntEnum

from isa.address_map import Register
from isa.geometry import GeometryError

GRANULE_BYTES = 16
"""Bytes of a granule: the unit of payload, headers, and the control slot."""
CELL_BYTES = 64
"""Bytes of a short flit; a long flit is LONG_CELLS of them."""
LONG_CELLS = 10
SHORT_GRANULES = 3
LONG_GRANULES = 39
"""Payload granules of the two formats; the control slot is the granule behind them."""
UNIT_GRANULES = 4
"""Granules in a credit unit."""
VCS = 8
WORD_BITS = 32
"""Lane striping: word i of a beat goes to active lane i mod (active lanes)."""
MAX_PACKET_GRANULES = 65
"""Header and 1 KiB of data."""

SEQUENCE_BITS = 10
WINDOW = 511
"""Most payload flits that are sent and not acknowledged."""
CREDIT_BITS = 12
NO_PACKET = 63
"""Value of `first` in a flit in which no packet begins."""
REPLAY_FLITS = 1
"""Short REPLAY flits in front of a replay; one that is hit is asked for again."""
ATTEMPTS = 4
"""Replays without progress before RECOVERY, recoveries without progress before a narrower width."""

CRC_BITS = 40
CRC_POLYNOMIAL = 0xCF1ED7C637
CRC_INIT = (1 << CRC_BITS) - 1
"""CRC-40: reflected in and out, init all ones, final XOR = the session salt (`crc_salt`)."""

SKIP_WORD = 0x6A3C96C5
"""Every word of a skip step on the wire; not scrambled, the scramblers stand still."""
MARKER_WORD = 0xC3A5_1E78
"""First word of a training frame."""
SCRAMBLER_TAPS = (23, 18)
"""x^23 + x^18 + 1, primitive: next bit = s[22] ^ s[17], shifted into bit 0."""
FRAME_WORDS = 8
"""Words of a training frame on each lane: marker, three of content, the complements of all four."""


class LinkError(GeometryError):
    """Link parameters that cannot be built."""


class Format(IntEnum):
    """`next_format` of the control slot: what the following flit is."""

    SHORT = 0
    LONG = 1


class FlitType(IntEnum):
    """Type code of a flit; any two differ in four bits."""

    CONTROL = 0x0B  # no payload: idle, acknowledgement, credits
    DATA = 0x15  # payload
    REPLAY = 0x26  # no payload: the next payload flit is the oldest not acknowledged


class Command(IntEnum):
    """Link command of a CONTROL flit."""

    NONE = 0
    RETRAIN = 1  # the sender enters RECOVERY behind this flit
    DISABLE = 2  # the sender goes silent behind this flit: the receiver does the same


@dataclass(frozen=True)
class SlotField:
    """Bits [low, low + width) of the 128-bit control slot or of a frame's 96 bits of content."""

    name: str
    low: int
    width: int
    doc: str


def _layout(*rows):
    fields, low = [], 0
    for name, width, doc in rows:
        fields.append(SlotField(name, low, width, doc))
        low += width
    return tuple(fields)


SLOT = _layout(
    ("sequence", 10, "number of this payload flit; of the last one before, in other flits"),
    ("acknowledge", 10, "next payload flit that the sender expects: all before it have arrived"),
    ("nak", 1, "replay from `acknowledge`"),
    ("replayed", 1, "this payload flit has been sent before"),
    ("payload", 1, "1 in DATA flits"),
    ("poison", 1, "the payload is known to be bad"),
    ("vc", 3, "virtual channel of the payload"),
    ("first", 6, "granule at which the first packet of this flit begins, 63 = none"),
    ("valid", 6, "payload granules; the rest is zero"),
    ("credit_a_vc", 3, "VC of the first credit update"),
    ("credit_a", 12, "its absolute limit, in units of 64 B"),
    ("credit_b_vc", 3, "VC of the second credit update"),
    ("credit_b", 12, "its absolute limit"),
    ("next_format", 2, "Format of the following flit"),
    ("epoch", 2, "counts full initialisations"),
    ("command", 3, "Command"),
    ("congestion", 2, "receive buffer of the sender: 0 empty .. 3 nearly full (highest VC)"),
    ("type", 6, "FlitType"),
    ("reserved", 4, "0"),
    ("crc", CRC_BITS, "CRC-40 of the flit"),
)

FRAME = _layout(
    ("type", 4, "FrameType"),
    ("lane", 5, "logical number of this lane at the transmitter"),
    ("version", 4, "LINK_VERSION"),
    ("capability", 8, "must be equal at both ends: bits 0..1 log2(beat bytes / 16), bits 2..3 "
     "log2(lanes / 4), bit 4 bubble flow control, bit 5 dateline VCs, bits 6..7 zero"),
    ("want", 3, "Width that the sender wants to receive"),
    ("epoch", 2, "of the sender"),
    ("fresh", 1, "the sender has lost its state: both ends start anew"),
    ("seen", 1, "the sender has taken the receiver's session from its frames"),
    ("spare", 4, "0"),
    ("session", 32, "random number of the sender, new at each full initialisation"),
    ("stamp", 16, "cycle counter of the sender"),
    ("echo", 16, "last stamp received, plus the cycles since"),
)
LINK_VERSION = 1


class FrameType(IntEnum):
    """Type of a training frame."""

    DETECT = 1
    LOCK = 2
    ALIGN = 3
    TS1 = 4
    TS2 = 5
    START = 6  # sent once: the next step is the first beat of a flit
    LOOPBACK = 7


class Width(IntEnum):
    """Lane groups a direction can use, by logical lane number."""

    FULL = 0
    LOW_HALF = 1
    HIGH_HALF = 2
    QUARTER0 = 3
    QUARTER1 = 4
    QUARTER2 = 5
    QUARTER3 = 6

    @property
    def divisor(self):
        """Steps that a beat takes: 1, 2 or 4."""
        return 1 if self == Width.FULL else 2 if self <= Width.HIGH_HALF else 4

    def lanes(self, lanes):
        """range of logical lanes of this group on a link of that many."""
        count = lanes // self.divisor
        index = {Width.FULL: 0, Width.LOW_HALF: 0, Width.HIGH_HALF: 1}.get(self, self - 3)
        return range(index * count, (index + 1) * count)


class LinkState(IntEnum):
    """State of the training state machine."""

    RESET = 0
    DETECT = 1
    LOCK = 2
    ALIGN = 3
    TS1 = 4
    TS2 = 5
    CREDIT_INIT = 6
    ACTIVE = 7
    RECOVERY = 8
    DEGRADE = 9
    LOOPBACK = 10
    PRBS = 11
    DISABLED = 12
    FAILED = 13


class Reason(IntEnum):
    """Why the link left ACTIVE, lost width or failed; the first since CLEAR is latched."""

    NONE = 0
    SOFTWARE = 1
    NO_PEER = 2  # DETECT ran out: no lane locked
    NO_LOCK = 3  # LOCK ran out: no group of lanes locked
    DESKEW = 4  # ALIGN ran out, or skew beyond the limit
    TRAINING_TIMEOUT = 5  # TS1, TS2, CREDIT_INIT or RECOVERY ran out
    CAPABILITY = 6  # the peer's version or capabilities differ
    LANE_ORDER = 7  # lanes neither in order nor reversed
    REPLAY_LIMIT = 8  # ATTEMPTS replays without progress
    NAK_LIMIT = 9  # ATTEMPTS NAKs without an answer
    PEER_TRAINING = 10  # training frames while ACTIVE
    PEER_RESET = 11  # the peer has lost its state
    PEER_DISABLED = 12
    LANE_LOST = 13  # a lane did not lock: narrower width
    BAD_TYPE = 14
    BAD_COMMAND = 15
    BAD_SLOT = 16  # fields of a checked slot contradict each other
    BAD_ACKNOWLEDGE = 17  # of a flit never sent
    BAD_CREDIT = 18  # beyond the buffer that was advertised
    BAD_SEQUENCE = 19  # half the number space away
    PACKET_LENGTH = 20  # packet longer or shorter than its header says
    OVERFLOW = 21  # the peer sent more than its credit
    RECOVERY_LIMIT = 22  # ATTEMPTS recoveries without progress at the least width


class PacketKind(IntEnum):
    """Kind of a packet of the transaction layer."""

    WRITE = 1
    SEMAPHORE = 2
    READ = 3
    COMPLETION = 4


class PacketStatus(IntEnum):
    """Status of a COMPLETION."""

    OKAY = 0
    DENIED = 1  # outside every ingress window
    BUS_ERROR = 2
    LINK_FAILED = 3  # made locally when the link has lost the request or its answer


HEADER = _layout(
    ("kind", 4, "PacketKind"),
    ("granules", 7, "of the whole packet, this one included: 1..65"),
    ("tag", 8, "of a READ, repeated in its COMPLETION"),
    ("status", 3, "PacketStatus of a COMPLETION, else 0"),
    ("bytes", 11, "WRITE: bytes of data; READ: bytes wanted; COMPLETION: bytes returned; else 0"),
    ("address", 48, "byte address at the receiver; COMPLETION: of the READ"),
    ("value", 32, "SEMAPHORE: the 32 bits written, else 0"),
    ("spare", 15, "0"),
)
"""First granule of a packet.  Data granules hold the 16-byte words of memory that cover
[address, address + bytes); bytes outside the range are zero and are not written."""

VC_POSTED = 0
VC_RESPONSE = 2
VC_REQUEST = 4
"""VC of a class before its dateline; +1 behind it.  6 is management, 7 spare."""


def unpack_bits(fields, value):
    """{name: number} of an integer by SLOT, FRAME or HEADER."""
    return {f.name: value >> f.low & ((1 << f.width) - 1) for f in fields}


def pack_bits(fields, values):
    """Integer of {name: number}; what is not named is 0.  ValueError for what does not fit."""
    result, known = 0, {f.name: f for f in fields}
    for name, number in values.items():
        if name not in known:
            raise ValueError(f"no field {name!r}; there are {', '.join(known)}")
        f = known[name]
        if not 0 <= number < 1 << f.width:
            raise ValueError(f"{name} = {number}, must be in 0..{(1 << f.width) - 1}")
        result |= int(number) << f.low
    return result


def crc_salt(session):
    """40 bits XORed onto the CRC of every flit that the owner of `session` sends."""
    return session | (session & 0xFF) << 32


def lane_seed(lane):
    """Scrambler state of a logical lane at the first beat behind a START frame; never 0."""
    return (0x2A5F1B ^ (lane * 0x0C6E35)) & 0x7FFFFF | 1


@dataclass(frozen=True, kw_only=True)
class LinkConfig:
    """Parameters of one link port; both ends need the same beat and lanes."""

    beat_bytes: int = field(default=64, metadata={"doc": "bytes a cycle: 16, 32 or 64"})
    lanes: int = field(default=8, metadata={"doc": "4, 8 or 16, at most one per word of a beat"})
    replay_bytes: int = field(default=16384, metadata={"doc": "replay buffer, a power of two"})
    queue_granules: int = field(default=128, metadata={"doc": "transmit queue of a VC"})
    vc_units: tuple = field(
        default=(256, 128, 256, 128, 128, 64, 32, 32),
        metadata={"doc": "receive buffer of each VC in units of 64 B, powers of two"},
    )
    skip_cycles: int = field(default=1536, metadata={"doc": "steps between two skip steps"})
    deskew_depth: int = field(default=64, metadata={"doc": "symbols of a lane's deskew buffer"})
    training_timeout_cycles: int = field(
        default=16384, metadata={"doc": "reset value of the register TRAINING_TIMEOUT"}
    )
    capability_flags: int = field(
        default=0b10, metadata={"doc": "bit 0 bubble flow control, bit 1 dateline VCs"}
    )

    def __post_init__(self):
        def require(good, name, rule):
            if not good:
                raise LinkError(f"link: {name} = {getattr(self, name)!r}, must be {rule}")

        def power(value):
            return value > 0 and value & (value - 1) == 0

        require(self.beat_bytes in (16, 32, 64), "beat_bytes", "16, 32 or 64")
        require(
            self.lanes in (4, 8, 16) and self.lanes * 4 <= self.beat_bytes,
            "lanes",
            f"4, 8 or 16 and at most {self.beat_bytes // 4}, one per 32-bit word of a beat",
        )
        require(
            power(self.replay_bytes) and 2048 <= self.replay_bytes <= 1 << 18,
            "replay_bytes",
            "a power of two in 2048..262144",
        )
        require(
            power(self.queue_granules) and 128 <= self.queue_granules <= 4096,
            "queue_granules",
            "a power of two in 128..4096",
        )
        require(
            len(self.vc_units) == VCS and all(power(u) and 32 <= u <= 1024 for u in self.vc_units),
            "vc_units",
            f"{VCS} powers of two in 32..1024",
        )
        require(64 <= self.skip_cycles <= 1 << 16, "skip_cycles", "in 64..65536")
        require(
            power(self.deskew_depth) and 16 <= self.deskew_depth <= 128,
            "deskew_depth",
            "a power of two in 16..128",
        )
        require(
            256 <= self.training_timeout_cycles < 1 << 24,
            "training_timeout_cycles",
            "in 256..16777215",
        )
        require(0 <= self.capability_flags < 4, "capability_flags", "in 0..3")

    @property
    def beat_granules(self):
        return self.beat_bytes // GRANULE_BYTES

    @property
    def cell_beats(self):
        """Beats of a short flit."""
        return CELL_BYTES // self.beat_bytes

    @property
    def long_beats(self):
        return LONG_CELLS * self.cell_beats

    @property
    def symbol_bits(self):
        """Bits of a lane in a step: a multiple of 32."""
        return 8 * self.beat_bytes // self.lanes

    @property
    def symbol_words(self):
        return self.symbol_bits // WORD_BITS

    @property
    def capability(self):
        """`capability` of the training frames."""
        return (
            self.beat_granules.bit_length() - 1
            | ((self.lanes // 4).bit_length() - 1) << 2
            | self.capability_flags << 4
        )

    def with_(self, **changes):
        return replace(self, **changes)


class Control(IntEnum):
    """Bits of the register CONTROL."""

    ENABLE = 1 << 0  # 0 = DISABLED, lanes silent; reset 1
    RETRAIN = 1 << 1  # strobe: ACTIVE -> RECOVERY
    RESTART = 1 << 2  # strobe: any state -> RESET, state lost
    LOOPBACK = 1 << 3  # in LOCK and later: send back what each lane receives
    PRBS = 1 << 4  # send PRBS-31 on each lane and check it
    AUTO_RESTART = 1 << 5  # FAILED -> RESET after RESTART_CYCLES; reset 1
    CLEAR = 1 << 6  # strobe: counters, reason and sticky bits
    SNAPSHOT = 1 << 7  # strobe: copy the counters to their registers


RESTART_CYCLES = 4096
"""Most cycles of silence in FAILED: half of TRAINING_TIMEOUT if that is less, so that DETECT of one
end always meets DETECT of the other for a quarter of it or more."""

LINK_REGISTERS = (
    Register("CONTROL", 0x000, "rw", "Control bits; strobes read 0"),
    Register("STATUS", 0x004, "ro",
             "bits 0..3 LinkState, 4..6 transmit Width, 8..10 receive Width, 12 lane reversal, "
             "13 deskew overflow (sticky), 14 fresh, 16..20 first Reason since CLEAR, 24..28 "
             "last Reason"),
    Register("LANES", 0x008, "ro", "bit i lane i locked, bit 16 + i its polarity is inverted"),
    Register("SESSION", 0x00C, "ro", "own session; bits 0..1 of EPOCH give the epoch"),
    Register("EPOCH", 0x010, "ro", "own epoch"),
    Register("PEER", 0x014, "ro", "bits 0..3 version, 4..11 capability of the peer's last frame"),
    Register("RTT", 0x018, "ro",
             "round trip in cycles: bits 0..15 last, 0 until measured in this session, 16..31 "
             "largest since CLEAR"),
    Register("RTT_MIN", 0x01C, "ro", "bits 0..15 smallest"),
    Register("TRAINING_TIMEOUT", 0x020, "rw",
             "cycles a training state may last, 256..2^24-1; a port that failed is silent for "
             "half of it, at most 4096"),
    Register("MIN_WIDTH", 0x024, "rw",
             "largest divisor of the width: 0 full, 1 half, 2 quarter"),
    Register("WEIGHTS", 0x028, "rw",
             "4 bits a VC: flits in a round, 0 counts as 1; reset 0x11111111"),
    Register("INJECT_RATE", 0x030, "rw",
             "a step gets a bit error when a random 32-bit number is below"),
    Register("INJECT_BURST", 0x034, "rw",
             "bits 0..5: length of an injected error in bits, 0 counts as 1"),
    Register("INJECT_STUCK", 0x038, "rw",
             "bit i: transmit lane i sends zeros, bit 16 + i: ones"),
    Register("INJECT_DROP", 0x03C, "wo",
             "the next so many steps are sent as zeros on all lanes"),
    Register("WINDOW_BASE", 0x100, "rw",
             "ingress windows 0..3, 16 bytes apart: bits 12..43 of the first address"),
    Register("WINDOW_LIMIT", 0x104, "rw",
             "bits 12..43 of the last address (its 4 KiB page included)"),
    Register("WINDOW_MODE", 0x108, "rw",
             "bit 0 writes, bit 1 reads allowed, bit 4 the core window (addresses + 2^44) instead "
             "of HBM; reset 0"),
    Register("BRIDGE_STATUS", 0x140, "ro",
             "bits 0..7 reads outstanding, bits 8..12 Reason of the first bad packet, 16 a write "
             "was denied, 17 a read was denied, 18 a bus error behind a posted write"),
    Register("DENIED_LO", 0x144, "ro", "address of the first denied packet"),
    Register("DENIED_HI", 0x148, "ro", "its upper half"),
)
LINK_WINDOWS = 4

COUNTERS = (
    "TX_SHORT", "TX_LONG", "RX_SHORT", "RX_LONG", "CRC_ERRORS", "SEQUENCE_GAPS", "DUPLICATES",
    "NAK_SENT", "NAK_RECEIVED", "NAK_REPEATS", "REPLAYS", "REPLAYED_FLITS", "TIMER_REPLAYS",
    "RECOVERIES", "WIDTH_CHANGES", "EPOCH_DROPS", "POISON_SENT", "POISON_RECEIVED",
    "PROTOCOL_ERRORS", "CREDIT_STALL", "REPLAY_FULL", "REPLAY_PEAK", "WINDOW_DENIED",
    "INITIALISATIONS", "ACTIVE_CYCLES", "TRAINING_CYCLES", "SKIPS", "SKIPS_RECEIVED", "TX_DATA",
    "RX_DATA",
)  # fmt: skip
"""Saturating 32-bit counters; CREDIT_STALL, REPLAY_FULL: cycles with data but without credit or
replay room; REPLAY_PEAK: beats; TX_DATA, RX_DATA: payload flits sent first time and accepted."""
COUNTER_OFFSET = 0x200
LANE_ERRORS_OFFSET = 0x300
"""Frame and PRBS errors of lane i at + 4 i."""
VC_GRANULES_OFFSET = 0x340
"""Payload granules sent first time on VC i at + 4 i, accepted at + 0x20 + 4 i."""
LINK_BLOCK_BYTES = 0x400


def counter_offset(name):
    """Byte offset of a counter in the register block of a link."""
    return COUNTER_OFFSET + 4 * COUNTERS.index(name)
