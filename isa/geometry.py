"""Geometry of a chip: one frozen dataclass, the presets, the derived sizes and the configuration
hash.

Architectural fields decide what a program may do and enter the hash; timing fields (pipeline
depths, queue depths) never change a result and stay out of it, so one program file runs on every
pipeline depth.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields, replace

WORD_BYTES = 16
"""Bytes of an SBUF word, an AXI beat and a DMA step: one datum per partition and bank access."""
SEMAPHORES = 256
REGISTERS = 64
PSUM_BANKS = 8
PSUM_WORD_BYTES = 4
INSTRUCTION_BYTES = 128
DESCRIPTOR_BYTES = 128
ISA_VERSION = 1
LOOP_DEPTH = 4
"""Hardware loops that may be nested."""
MAX_MOVING = 512
"""Largest number of moving columns of one MultiplyMoving (one PSUM bank of FP32)."""


def _architectural(doc):
    return field(metadata={"doc": doc, "architectural": True})


def _timing(default, doc):
    return field(default=default, metadata={"doc": doc, "architectural": False})


class GeometryError(ValueError):
    """A configuration that cannot be built; the message names field, value and rule."""


def _is_power_of_two(value):
    return value > 0 and value & (value - 1) == 0


@dataclass(frozen=True, kw_only=True)
class Config:
    """Geometry of one chip.  Sizes in bytes where the name says so, otherwise in items."""

    name: str = field(metadata={"doc": "preset name", "architectural": False})
    array: int = _architectural("edge of the PE array = number of partitions")
    sbuf_bytes: int = _architectural("SBUF bytes in a partition")
    sbuf_stride_bytes: int = _architectural("distance of two partitions in the address map")
    psum_bank_bytes: int = _architectural("bytes of a PSUM bank in a partition")
    hbm_bytes: int = _architectural("HBM size")
    dma_engines: int = _architectural("DMA engines")
    links: int = field(default=0, metadata={"doc": "NeuronLink ports, 0..4", "architectural": True})
    double_row: int = field(
        default=0,
        metadata={"doc": "1: each PE can hold two FP8 weights", "architectural": True},
    )
    sbuf_banks: int = _timing(4, "interleaved SBUF banks of 16-byte words in a partition")
    hbm_ports: int = _timing(1, "AXI4 ports towards HBM, 16 bytes wide each")
    pe_multiply_stages: int = _timing(1, "registers in a PE's multiplier")
    pe_add_stages: int = _timing(2, "registers in a PE's adder = rows of skew per array row")
    psum_add_stages: int = _timing(2, "registers in the PSUM adder")
    vector_stages: int = _timing(
        2, "registers in each vector / scalar ALU adder and multiplier (1..6)"
    )
    fetch_depth: int = _timing(32, "instructions held by a sequencer's buffer")
    link_beat_bytes: int = _timing(16, "bytes a cycle of a link: 16, 32 or 64")
    link_lanes: int = _timing(4, "lanes of a link: 4, 8 or 16")

    def __post_init__(self):
        def require(good, name, rule):
            if not good:
                raise GeometryError(
                    f"config {self.name!r}: {name} = {getattr(self, name)!r}, must be {rule}"
                )

        require(
            _is_power_of_two(self.array) and 4 <= self.array <= 128,
            "array",
            "a power of two in 4..128",
        )
        require(_is_power_of_two(self.sbuf_banks), "sbuf_banks", "a power of two")
        require(
            self.sbuf_bytes > 0 and self.sbuf_bytes % (WORD_BYTES * self.sbuf_banks) == 0,
            "sbuf_bytes",
            f"a positive multiple of {WORD_BYTES * self.sbuf_banks} (word x banks)",
        )
        require(
            _is_power_of_two(self.sbuf_stride_bytes)
            and self.sbuf_bytes <= self.sbuf_stride_bytes <= 1 << 18,
            "sbuf_stride_bytes",
            f"a power of two in {self.sbuf_bytes}..262144",
        )
        require(
            _is_power_of_two(self.psum_bank_bytes) and 64 <= self.psum_bank_bytes <= 4 * MAX_MOVING,
            "psum_bank_bytes",
            "a power of two in 64..2048",
        )
        require(
            self.hbm_bytes % 4096 == 0 and 65536 <= self.hbm_bytes <= 1 << 40,
            "hbm_bytes",
            "a multiple of 4096 in 65536..2^40",
        )
        require(1 <= self.dma_engines <= 16, "dma_engines", "in 1..16")
        require(1 <= self.hbm_ports <= 8, "hbm_ports", "in 1..8")
        require(0 <= self.pe_multiply_stages <= 2, "pe_multiply_stages", "in 0..2")
        require(1 <= self.pe_add_stages <= 6, "pe_add_stages", "in 1..6")
        require(1 <= self.psum_add_stages <= 6, "psum_add_stages", "in 1..6")
        require(1 <= self.vector_stages <= 6, "vector_stages", "in 1..6")
        require(
            _is_power_of_two(self.fetch_depth) and self.fetch_depth >= 4,
            "fetch_depth",
            "a power of two, at least 4",
        )
        require(0 <= self.links <= 4, "links", "in 0..4")
        require(self.double_row in (0, 1), "double_row", "0 or 1")
        if self.links:
            _ = self.link  # checks the parameters of the link

    @property
    def link(self):
        """Parameters of each link port (`isa.link.LinkConfig`)."""
        from isa.link import LinkConfig  # not at the top: isa.link needs this module

        return LinkConfig(beat_bytes=self.link_beat_bytes, lanes=self.link_lanes)

    @property
    def partitions(self):
        return self.array

    @property
    def quadrant(self):
        """Partitions in a quadrant: operands start at multiples of this."""
        return self.array // 4

    @property
    def sbuf_words(self):
        """16-byte words in a partition."""
        return self.sbuf_bytes // WORD_BYTES

    @property
    def psum_bytes(self):
        """PSUM bytes in a partition, all banks."""
        return PSUM_BANKS * self.psum_bank_bytes

    @property
    def psum_words(self):
        return self.psum_bytes // PSUM_WORD_BYTES

    @property
    def max_moving(self):
        """Largest N of one MultiplyMoving: it writes within one PSUM bank."""
        return min(MAX_MOVING, self.psum_bank_bytes // PSUM_WORD_BYTES)

    @property
    def start_up_cycles(self):
        """Least cycles of a datapath instruction on its engine (the cost model's start-up)."""
        return max(16, self.array // 2)

    @property
    def psum_accumulate_cycles(self):
        """Least distance in cycles of two accumulations onto one PSUM word (read, add, write)."""
        return self.psum_add_stages + 3

    def with_(self, **changes):
        """A copy with some fields changed (and checked again)."""
        return replace(self, **changes)

    @property
    def arch_hash(self):
        """64-bit hash over the architectural fields and the ISA version.  Where there are no links
        or double rows the hash says nothing of them: it is that of a chip from before they were.
        """
        facts = {f.name: getattr(self, f.name) for f in fields(self) if f.metadata["architectural"]}
        for name in ("links", "double_row"):
            if not facts[name]:
                del facts[name]
        text = json.dumps({"isa": ISA_VERSION, **facts}, sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")

    def as_dict(self):
        """{field: value}; without links, double rows, their fields are left out."""
        facts = asdict(self)
        if not self.double_row:
            del facts["double_row"]
        if not self.links:
            for name in ("links", "link_beat_bytes", "link_lanes"):
                del facts[name]
        return facts


_KIB = 1 << 10
_MIB = 1 << 20

PRESETS = {
    config.name: config
    for config in (
        Config(
            name="tiny",
            array=4,
            sbuf_bytes=8 * _KIB,
            sbuf_stride_bytes=8 * _KIB,
            psum_bank_bytes=256,
            hbm_bytes=1 * _MIB,
            dma_engines=2,
            double_row=1,
        ),
        Config(
            name="small",
            array=16,
            sbuf_bytes=32 * _KIB,
            sbuf_stride_bytes=32 * _KIB,
            psum_bank_bytes=2 * _KIB,
            hbm_bytes=16 * _MIB,
            dma_engines=2,
        ),
        Config(
            name="medium",
            array=32,
            sbuf_bytes=64 * _KIB,
            sbuf_stride_bytes=64 * _KIB,
            psum_bank_bytes=2 * _KIB,
            hbm_bytes=64 * _MIB,
            dma_engines=4,
            sbuf_banks=8,
            hbm_ports=2,
        ),
        Config(
            name="trn1",
            array=128,
            sbuf_bytes=192 * _KIB,
            sbuf_stride_bytes=256 * _KIB,
            psum_bank_bytes=2 * _KIB,
            hbm_bytes=1 << 34,
            dma_engines=8,
            sbuf_banks=16,
            hbm_ports=8,
        ),
        Config(
            name="trn2",
            array=128,
            sbuf_bytes=224 * _KIB,
            sbuf_stride_bytes=256 * _KIB,
            psum_bank_bytes=2 * _KIB,
            hbm_bytes=24 << 30,
            dma_engines=8,
            double_row=1,
            sbuf_banks=16,
            hbm_ports=8,
        ),
    )
}


def preset(name):
    """The preset of that name; KeyError text lists what exists."""
    if name not in PRESETS:
        raise GeometryError(f"no configuration {name!r}; choose one of {', '.join(PRESETS)}")
    return PRESETS[name]
