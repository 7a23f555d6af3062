"""Back-to-back matmuls from SBUF with new weights each time, in a hardware loop: the peak rate of
the tensor engine.
"""

import ml_dtypes
import numpy as np

from celosia.programs.case import Case, tensor_bound
from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.geometry import PSUM_BANKS

TILES = 8


def build(config, *, columns, repeats, seed=1):
    """`repeats` rounds of TILES weight tiles, each multiplied with `columns` moving columns."""
    rng = np.random.default_rng(seed)
    edge = config.array
    b = ProgramBuilder(config)
    shape = (edge, TILES * edge)
    data = rng.standard_normal(shape, dtype=np.float32).astype(ml_dtypes.bfloat16)
    weights = b.sbuf("weights", shape, DType.BF16)
    moving = b.sbuf("moving", (edge, columns), DType.BF16)
    b.semaphore("loaded")
    b.dma_batch(
        [
            (b.hbm_tensor("w", shape, DType.BF16, "input", data), weights, None),
            (
                b.hbm_tensor(
                    "x", (edge, columns), DType.BF16, "input", np.resize(data, (edge, columns))
                ),
                moving,
                ("loaded", "increment"),
            ),
        ],
        engine=0,
        via=b.sync,
    )
    sums = [b.psum(f"sum{bank}", (edge, columns), bank=bank) for bank in range(PSUM_BANKS)]
    b.tensor.sem_wait(wait=("loaded", 1))
    with b.tensor.loop(repeats):
        for tile in range(TILES):
            b.tensor.load_stationary(src0=weights[:, tile * edge : (tile + 1) * edge])
            b.tensor.multiply_moving(src0=moving, dst=sums[tile % PSUM_BANKS])
    count = TILES * repeats
    return Case(
        f"back_to_back_{columns}",
        b.build(),
        count * columns * edge**2,
        tensor_bound(config, [[columns]] * count),
    )
