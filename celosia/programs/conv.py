"""A 3 x 3 convolution without im2col: nine matrix products with shifted views of one padded image,
summed in PSUM.

Image: a crop of a photograph that comes with scikit-learn, 2 x 2 pixels of 3 colours folded into 12
channels, 32 x 32 (16 x 16 on the smallest chip).  Filters: 16 random ones with bias, relu on the
scalar engine.  The moving operand of tap (dy, dx) is [channels, rows, columns] with the row step of
the padded image: overlapping access patterns of the same bytes.
"""

from functools import cache
from itertools import product

import ml_dtypes
import numpy as np
from sklearn.datasets import load_sample_image

from celosia.programs.case import Case, relative_error, tensor_bound, tiles
from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.geometry import PSUM_BANKS

FOLD = 2
FILTERS = 16
TAP = 3
LINES = 2
"""Result buffers per tile of filters."""


@cache
def photograph(size):
    """float32 [12, size, size] in 0..1: a crop with pixels folded into channels."""
    edge = size * FOLD
    crop = (
        load_sample_image("china.jpg")[100 : 100 + edge, 200 : 200 + edge].astype(np.float32) / 255
    )
    folded = crop.reshape(size, FOLD, size, FOLD, 3).transpose(1, 3, 4, 0, 2)
    return np.ascontiguousarray(folded.reshape(-1, size, size))


def convolve(image, weights, bias):
    """relu of the padded 3 x 3 convolution in float64: [channels, h, w], [taps, channels, filters],
    [filters].
    """
    padded = np.pad(image.astype(np.float64), ((0, 0), (1, 1), (1, 1)))
    total = np.zeros((weights.shape[2], *image.shape[1:]))
    for tap, (dy, dx) in enumerate(product(range(TAP), repeat=2)):
        view = padded[:, dy : dy + image.shape[1], dx : dx + image.shape[2]]
        total += np.einsum("cf,chw->fhw", weights[tap].astype(np.float64), view)
    return np.maximum(total + bias[:, None, None], 0)


def build(config, seed=1):
    """16 filters over the photograph; `seed` draws the filters."""
    rng = np.random.default_rng(seed)
    size = 32 if config.array >= 16 else 16
    image = photograph(size).astype(ml_dtypes.bfloat16)
    channels = len(image)
    weights = (
        (rng.standard_normal((TAP * TAP, channels, FILTERS)) / 10)
        .astype(np.float32)
        .astype(ml_dtypes.bfloat16)
    )
    bias = rng.standard_normal(FILTERS).astype(np.float32)
    exact = convolve(image, weights, bias)

    b = ProgramBuilder(config)
    moving = _emit(
        b,
        b.hbm_tensor("image", image.shape, DType.BF16, "input", image),
        b.hbm_tensor("weights", weights.shape, DType.BF16, "constant", weights),
        b.hbm_tensor("bias", (FILTERS, 1), DType.FP32, "constant", bias[:, None]),
        b.hbm_tensor("out", (FILTERS, size, size), DType.BF16, "output"),
    )

    def judge(outputs):
        error = relative_error(outputs["out"], exact)
        assert error < 2**-7, f"conv: error {error:.3g} against float64"
        return [f"error against float64 {error:.2e} of the largest element"]

    macs = size * size * weights.size
    return Case("conv", b.build(), macs, tensor_bound(config, moving), judge)


def _emit(b, image, weights, bias, out):
    edge, size = b.config.array, image.shape[1]
    width = size + TAP - 1
    rows = min(size, b.config.max_moving // size)
    k_tiles, m_tiles = tiles(image.shape[0], edge), tiles(FILTERS, edge)
    x = [b.sbuf(f"x{i}", (n, width, width), DType.BF16) for i, (_, n) in enumerate(k_tiles)]
    w = [b.sbuf(f"w{i}", (n, TAP * TAP, FILTERS), DType.BF16) for i, (_, n) in enumerate(k_tiles)]
    c = [b.sbuf(f"bias{i}", (n, 1), DType.FP32) for i, (_, n) in enumerate(m_tiles)]
    y = [
        [b.sbuf(f"y{i}_{line}", (n, rows, size), DType.BF16) for line in range(LINES)]
        for i, (_, n) in enumerate(m_tiles)
    ]
    sums = [b.psum(f"sum{bank}", (edge, rows, size), bank=bank) for bank in range(PSUM_BANKS)]
    for name in ("loaded", "padded", "summed", "activated", "stored"):
        b.semaphore(name)

    for tile in x:  # the border of zeros; the image comes into its middle afterwards
        b.vector.memset(dst=tile, imm0=0.0)
    b.vector.sem_update(update=("padded", "increment"))
    copies = []
    for i, (k, n) in enumerate(k_tiles):
        copies.append((weights[:, k : k + n].permute(1, 0, 2), w[i], None))
    for i, (m, n) in enumerate(m_tiles):
        copies.append((bias[m : m + n], c[i], None))
    for i, (k, n) in enumerate(k_tiles):
        copies.append((image[k : k + n], x[i][:, 1 : 1 + size, 1 : 1 + size], None))
    copies[-1] = (*copies[-1][:2], ("loaded", "increment"))
    b.dma_batch(copies, engine=0, via=b.sync, wait=("padded", 1))

    b.tensor.sem_wait(wait=("loaded", 1))
    b.scalar.sem_wait(wait=("loaded", 1))
    moving, done = [], 0
    for row, count in tiles(size, rows):
        for j, (m, n) in enumerate(m_tiles):
            total = sums[done % PSUM_BANKS][:n, :count]
            reuse = done - PSUM_BANKS + 1
            steps = list(product(range(TAP), range(TAP), range(len(k_tiles))))
            for step, (dy, dx, i) in enumerate(steps):
                b.tensor.load_stationary(
                    src0=w[i][:, TAP * dy + dx, m : m + n],
                    wait=("activated", reuse) if step == 0 and reuse > 0 else None,
                )
                b.tensor.multiply_moving(
                    src0=x[i][:, row + dy : row + dy + count, dx : dx + size],
                    dst=total,
                    accumulate=step > 0,
                    update=("summed", "increment") if step == len(steps) - 1 else None,
                )
                moving.append([count * size])
            reuse = done - LINES * len(m_tiles) + 1
            if reuse > 0:
                b.scalar.sem_wait(wait=("stored", reuse))
            result = y[j][done // len(m_tiles) % LINES][:, :count]
            b.scalar.activation(
                src0=total,
                dst=result,
                func="relu",
                bias=c[j].column(0),
                wait=("summed", done + 1),
                update=("activated", "increment"),
            )
            done += 1
            b.dma_copy(
                engine=b.config.dma_engines - 1,
                via=b.gpsimd,
                src=result,
                dst=out[m : m + n, row : row + count],
                wait=("activated", done),
                update=("stored", "increment"),
            )
    return moving
