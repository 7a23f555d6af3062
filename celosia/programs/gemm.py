"""C = A B, blocked and double-buffered: the four engines work at the same time.

A is given transposed ([K, M], the contraction on the partitions), B as [K, N]; C is [M, N].
Blocks of N columns and groups of M tiles; inside a group the contraction is the outer loop, so that
each step needs only one row of tiles from HBM:

* sync     loads the tiles of the next steps into a ring of SBUF slots (DMA engine 0);
* tensor   multiplies; partial sums of a group stay in one half of PSUM;
* vector   casts finished tiles to the dtype of C in SBUF while the other half of PSUM fills;
* gpsimd   stores them (last DMA engine).

FP32 goes through the array in four passes over halves.  FP8 uses double rows where the chip has
them: A and B are then [K / 2, M, 2] and [K / 2, N, 2], rows 2k and 2k + 1 side by side.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from celosia.programs.case import Case, relative_error, tensor_bound, tiles
from isa.builder import ProgramBuilder
from isa.dtypes import FP8 as FP8_TYPES
from isa.dtypes import DType
from isa.fields import Part
from isa.geometry import PSUM_BANKS, WORD_BYTES

SLOTS = 4
"""Steps that are loaded ahead."""
FULL = ((Part.FULL, (Part.FULL,)),)
HALVES = (
    (Part.LOW, (Part.LOW, Part.HIGH_FINITE)),
    (Part.HIGH_FINITE, (Part.LOW,)),
    (Part.HIGH, (Part.HIGH,)),
)
"""(part of the stationary, parts of the moving operand): low low, low high, high low, high high."""


@dataclass(frozen=True)
class _Tile:
    """One tile of C: its place in the matrix, its number, its place in PSUM and in the ring of
    results.
    """

    index: int
    m: tuple
    n: tuple


class Gemm:
    """Emits one matrix product into a ProgramBuilder.  lhs_t, rhs with a last dimension of 2:
    double rows.
    """

    def __init__(self, builder, lhs_t, rhs, out):
        self.b, self.config = builder, builder.config
        self.lhs_t, self.rhs, self.out = lhs_t, rhs, out
        (self.k, self.m), self.n = lhs_t.shape[:2], rhs.shape[1]
        self.pair = lhs_t.shape[2:]
        self.passes = HALVES if lhs_t.dtype == DType.FP32 else FULL
        edge = self.config.array
        self.block = min(self.n, self.config.max_moving)
        self.k_tiles = tiles(self.k, edge)
        self.group = self._group_size()
        self._allocate()

    def _group_size(self):
        """Tiles of M in a group: few enough for half of PSUM, enough to hide a step's loads."""
        edge = self.config.array
        per_bank = self.config.psum_bank_bytes // (4 * self.block)
        most = min(PSUM_BANKS // 2 * per_bank, -(-self.m // edge))
        bandwidth = WORD_BYTES
        for size in range(1, most + 1):
            width = self.rhs.dtype.itemsize * self.block + self.lhs_t.dtype.itemsize * size * edge
            load = edge * width * prod(self.pair) / bandwidth
            if load <= 0.75 * size * self.block * sum(len(parts) for _, parts in self.passes):
                return size
        return most

    def _allocate(self):
        b, edge = self.b, self.config.array
        self.rhs_slots = [
            b.sbuf(f"rhs{i}", (edge, self.block, *self.pair), self.rhs.dtype) for i in range(SLOTS)
        ]
        self.lhs_slots = [
            b.sbuf(f"lhs{i}", (edge, self.group * edge, *self.pair), self.lhs_t.dtype)
            for i in range(SLOTS)
        ]
        room = 2 * self.group
        self.results = [
            b.sbuf(f"result{i}", (edge, self.block), self.out.dtype) for i in range(room)
        ]
        per_bank = self.config.psum_bank_bytes // (4 * self.block)
        self.sums = []
        for i in range(room):
            half, place = divmod(i, self.group)
            bank, part = divmod(place, per_bank)
            offset = (
                half * PSUM_BANKS // 2 + bank
            ) * self.config.psum_bank_bytes + part * 4 * self.block
            self.sums.append(b.psum(f"sum{i}", (edge, self.block), offset=offset))
        for name in ("loaded", "freed", "summed", "evicted", "stored"):
            b.semaphore(name)
        self._release = []
        """For each step the wait after which its slot may be loaded again."""

    def emit(self):
        """Emit all streams; returns the moving sizes of each weight tile, for the bound."""
        step, tile_index, moving = 0, 0, []
        m_tiles = tiles(self.m, self.config.array)
        for n in tiles(self.n, self.block):
            for start in range(0, len(m_tiles), self.group):
                group = [
                    _Tile(tile_index + i, m, n)
                    for i, m in enumerate(m_tiles[start : start + self.group])
                ]
                tile_index += len(group)
                for k_index, k in enumerate(self.k_tiles):
                    self._load(step, k, group)
                    moving += self._multiply(step, k_index, k, group)
                    step += 1
                for tile in group:
                    self._evict(tile)
                    self._store(tile)
        return moving

    def _load(self, step, k, group):
        slot, (row, rows) = step % SLOTS, k
        (first, _), (last, length) = group[0].m, group[-1].m
        columns = last + length - first
        n, width = group[0].n
        self.b.dma_batch(
            [
                (
                    self.lhs_t[row : row + rows, first : first + columns],
                    self.lhs_slots[slot][:rows, :columns],
                    None,
                ),
                (
                    self.rhs[row : row + rows, n : n + width],
                    self.rhs_slots[slot][:rows, :width],
                    ("loaded", "increment"),
                ),
            ],
            engine=0,
            via=self.b.sync,
            wait=self._release[step - SLOTS] if step >= SLOTS else None,
        )

    def _multiply(self, step, k_index, k, group):
        slot, rows = step % SLOTS, k[1]
        first = group[0].m[0]
        width = group[0].n[1]
        last_step = k_index == len(self.k_tiles) - 1
        moving = self._operand(self.rhs_slots[slot], rows, 0, width)
        columns = []
        for tile in group:
            # A tile slot of PSUM is free again when its tile of one ring earlier has been evicted.
            reuse = tile.index - len(self.sums) + 1
            start, length = tile.m[0] - first, tile.m[1]
            stationary = self._operand(self.lhs_slots[slot], rows, start, length)
            for number, (part, parts) in enumerate(self.passes):
                fresh = number == 0
                self.b.tensor.load_stationary(
                    src0=stationary,
                    part=part,
                    double_row=bool(self.pair),
                    wait=("loaded", step + 1) if fresh and tile is group[0] else None,
                )
                columns.append([width] * len(parts))
                for other in parts:
                    begins = fresh and other is parts[0]
                    ends = number == len(self.passes) - 1 and other is parts[-1]
                    frees = ends and not last_step and tile is group[-1]
                    self.b.tensor.multiply_moving(
                        src0=moving,
                        dst=self.sums[self._slot(tile)][:length, :width],
                        part=other,
                        double_row=bool(self.pair),
                        accumulate=k_index > 0 or not begins,
                        wait=("evicted", reuse) if begins and k_index == 0 and reuse > 0 else None,
                        update=("summed", "increment")
                        if ends and last_step
                        else ("freed", "increment")
                        if frees
                        else None,
                        at_read=frees,
                    )
        if last_step:
            # The update of the last multiply says that its tile is complete: its slot is free too.
            self._release.append(("summed", group[-1].index + 1))
        else:
            freed = sum(name == "freed" for name, _ in self._release)
            self._release.append(("freed", freed + 1))
        return columns

    def _operand(self, tile, rows, start, length):
        pattern = tile[:rows, start : start + length]
        return pattern.pairs() if self.pair else pattern

    def _slot(self, tile):
        return tile.index % len(self.sums)

    def _evict(self, tile):
        reuse = tile.index - len(self.results) + 1
        if reuse > 0:
            self.b.vector.sem_wait(wait=("stored", reuse))
        length, width = tile.m[1], tile.n[1]
        self.b.vector.tensor_copy(
            src0=self.sums[self._slot(tile)][:length, :width],
            dst=self.results[self._slot(tile)][:length, :width],
            wait=("summed", tile.index + 1),
            update=("evicted", "increment"),
        )

    def _store(self, tile):
        (m, length), (n, width) = tile.m, tile.n
        self.b.dma_copy(
            engine=self.config.dma_engines - 1,
            via=self.b.gpsimd,
            src=self.results[self._slot(tile)][:length, :width],
            dst=self.out[m : m + length, n : n + width],
            wait=("evicted", tile.index + 1),
            update=("stored", "increment"),
        )


@dataclass(frozen=True)
class Kind:
    """Types of A, B and C, and the bound of the error over the largest element of C."""

    lhs: DType
    rhs: DType
    out: DType
    tolerance: float


BF16 = Kind(DType.BF16, DType.BF16, DType.BF16, 2**-8)
FP8 = Kind(DType.FP8_E4M3, DType.FP8_E4M3, DType.BF16, 2**-8)
FP32 = Kind(DType.FP32, DType.FP32, DType.FP32, 2**-19)
MIXED = Kind(DType.FP8_E4M3, DType.BF16, DType.BF16, 2**-8)


def build_sizes(config, m, k, n, seed, name, kind=BF16):
    """A Case that multiplies random normal matrices of [m, k] and [k, n]."""
    rng = np.random.default_rng(seed)
    lhs_t = rng.standard_normal((k, m), dtype=np.float32).astype(kind.lhs.numpy)
    rhs = rng.standard_normal((k, n), dtype=np.float32).astype(kind.rhs.numpy)
    b = ProgramBuilder(config)
    double = config.double_row and kind.lhs in FP8_TYPES and kind.rhs in FP8_TYPES
    operands = [_paired(x) if double else x for x in (lhs_t, rhs)]
    product = Gemm(
        b,
        b.hbm_tensor("lhs_t", operands[0].shape, kind.lhs, "input", operands[0]),
        b.hbm_tensor("rhs", operands[1].shape, kind.rhs, "input", operands[1]),
        b.hbm_tensor("out", (m, n), kind.out, "output"),
    )
    moving = product.emit()
    exact = lhs_t.astype(np.float64).T @ rhs.astype(np.float64)

    def judge(outputs):
        error = relative_error(outputs["out"], exact)
        assert error < kind.tolerance, f"{name}: error {error:.3g} against float64"
        return [f"error against float64 {error:.2e} of the largest element"]

    return Case(name, b.build(), m * k * n, tensor_bound(config, moving), judge)


def _paired(matrix):
    """[K, N] as [K / 2, N, 2]."""
    return np.ascontiguousarray(matrix.reshape(-1, 2, matrix.shape[1]).transpose(0, 2, 1))


def build(config, seed=1):
    """256 x 256 x 256, or what fits the HBM of a smaller chip."""
    size = 256 if config.array >= 16 else 64
    return build_sizes(config, size, size, size, seed, "gemm")


def build_odd(config, seed=1):
    """No dimension a multiple of the array or of the moving limit."""
    edge = config.array
    return build_sizes(config, 5 * edge + 3, 3 * edge + 1, 7 * edge - 1, seed, "odd_gemm")


def build_fp8(config, seed=1):
    """FP8 e4m3, in double rows where the chip has them."""
    size = 256 if config.array >= 16 else 64
    return build_sizes(config, size, size, size, seed, "gemm_fp8", FP8)


def build_fp32(config, seed=1):
    """FP32 in four passes."""
    size = 128 if config.array >= 16 else 32
    return build_sizes(config, size, size, size, seed, "gemm_fp32", FP32)


def build_mixed(config, seed=1):
    """FP8 e4m3 weights, BF16 activations."""
    size = 256 if config.array >= 16 else 64
    return build_sizes(config, size, size, size, seed, "gemm_mixed", MIXED)
