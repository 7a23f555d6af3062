"""C = A B in bf16, blocked and double-buffered: the four engines work at the same time.

A is given transposed ([K, M], the contraction on the partitions), B as [K, N]; C is [M, N] in bf16.
Blocks of N columns and groups of M tiles; inside a group the contraction is the outer loop, so that
each step needs only one row of tiles from HBM:

* sync     loads the tiles of the next steps into a ring of SBUF slots (DMA engine 0);
* tensor   multiplies; partial sums of a group stay in one half of PSUM;
* vector   narrows finished tiles to bf16 in SBUF while the other half of PSUM fills;
* gpsimd   stores them (last DMA engine).
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from celosia.programs.case import Case, relative_error, tensor_bound, tiles
from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.geometry import PSUM_BANKS, WORD_BYTES

SLOTS = 4
"""Steps that are loaded ahead."""


@dataclass(frozen=True)
class _Tile:
    """One tile of C: its place in the matrix, its number, its place in PSUM and in the ring of
    results.
    """

    index: int
    m: tuple
    n: tuple


class Gemm:
    """Emits one matrix product into a ProgramBuilder."""

    def __init__(self, builder, lhs_t, rhs, out):
        self.b, self.config = builder, builder.config
        self.lhs_t, self.rhs, self.out = lhs_t, rhs, out
        (self.k, self.m), self.n = lhs_t.shape, rhs.shape[1]
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
            load = edge * (self.block + size * edge) * 2 / bandwidth
            if load <= 0.75 * size * self.block:
                return size
        return most

    def _allocate(self):
        b, edge = self.b, self.config.array
        self.rhs_slots = [b.sbuf(f"rhs{i}", (edge, self.block), DType.BF16) for i in range(SLOTS)]
        self.lhs_slots = [
            b.sbuf(f"lhs{i}", (edge, self.group * edge), DType.BF16) for i in range(SLOTS)
        ]
        room = 2 * self.group
        self.results = [b.sbuf(f"result{i}", (edge, self.block), DType.BF16) for i in range(room)]
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
        for tile in group:
            start, length = tile.m[0] - first, tile.m[1]
            # A tile slot of PSUM is free again when its tile of one ring earlier has been evicted.
            reuse = tile.index - len(self.sums) + 1
            self.b.tensor.load_stationary(
                src0=self.lhs_slots[slot][:rows, start : start + length],
                wait=("loaded", step + 1) if tile is group[0] else None,
            )
            self.b.tensor.multiply_moving(
                src0=self.rhs_slots[slot][:rows, :width],
                dst=self.sums[self._slot(tile)][:length, :width],
                accumulate=k_index > 0,
                wait=("evicted", reuse) if k_index == 0 and reuse > 0 else None,
                update=("summed", "increment")
                if last_step
                else ("freed", "increment")
                if tile is group[-1]
                else None,
                at_read=not last_step and tile is group[-1],
            )
        if last_step:
            # The update of the last multiply says that its tile is complete: its slot is free too.
            self._release.append(("summed", group[-1].index + 1))
        else:
            freed = sum(name == "freed" for name, _ in self._release)
            self._release.append(("freed", freed + 1))
        return [[width]] * len(group)

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


def build_sizes(config, m, k, n, seed, name):
    """A Case that multiplies random normal matrices of [m, k] and [k, n]."""
    rng = np.random.default_rng(seed)
    lhs_t = rng.standard_normal((k, m), dtype=np.float32).astype(ml_dtypes.bfloat16)
    rhs = rng.standard_normal((k, n), dtype=np.float32).astype(ml_dtypes.bfloat16)
    b = ProgramBuilder(config)
    product = Gemm(
        b,
        b.hbm_tensor("lhs_t", (k, m), DType.BF16, "input", lhs_t),
        b.hbm_tensor("rhs", (k, n), DType.BF16, "input", rhs),
        b.hbm_tensor("out", (m, n), DType.BF16, "output"),
    )
    moving = product.emit()
    exact = lhs_t.astype(np.float64).T @ rhs.astype(np.float64)

    def judge(outputs):
        error = relative_error(outputs["out"], exact)
        assert error < 2**-8, f"{name}: error {error:.3g} against float64"
        return [f"error against float64 {error:.2e} of the largest element"]

    return Case(name, b.build(), m * k * n, tensor_bound(config, moving), judge)


def build(config, seed=1):
    """256 x 256 x 256, or what fits the HBM of a smaller chip."""
    size = 256 if config.array >= 16 else 64
    return build_sizes(config, size, size, size, seed, "gemm")


def build_odd(config, seed=1):
    """No dimension a multiple of the array or of the moving limit."""
    edge = config.array
    return build_sizes(config, 5 * edge + 3, 3 * edge + 1, 7 * edge - 1, seed, "odd_gemm")
