"""Small hand-written programs in which every wait matters, and a tiled matrix product."""

import ml_dtypes
import numpy as np

from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.pattern import Reg


def chain(config):
    """HBM -> DMA -> vector -> scalar -> tensor -> vector -> DMA -> HBM, one tile."""
    p = config.partitions
    b = ProgramBuilder(config)
    values = np.arange(p * 8, dtype=np.float32).reshape(p, 8)
    x = b.hbm_tensor("x", (p, 8), DType.FP32, "input", values)
    y = b.hbm_tensor("y", (8, 8), DType.FP32, "output")
    a, c = b.sbuf("a", (p, 8), DType.FP32), b.sbuf("c", (p, 8), DType.BF16)
    d = b.sbuf("d", (p, 8), DType.BF16)
    m = min(8, p)
    product, out = b.psum("product", (m, 8)), b.sbuf("out", (m, 8), DType.FP32)
    for name in ("loaded", "cast", "scaled", "multiplied", "copied"):
        b.semaphore(name)
    b.dma_copy(engine=0, via=b.sync, src=x, dst=a, update=("loaded", "increment"))
    b.vector.tensor_copy(src0=a, dst=c, wait=("loaded", 1), update=("cast", "increment"))
    b.scalar.activation(
        src0=c, dst=d, func="relu", scale=0.5, wait=("cast", 1), update=("scaled", "increment")
    )
    b.tensor.load_stationary(src0=d[:, :m], wait=("scaled", 1))
    b.tensor.multiply_moving(src0=c, dst=product, update=("multiplied", "increment"))
    b.vector.tensor_copy(
        src0=product, dst=out, wait=("multiplied", 1), update=("copied", "increment")
    )
    b.dma_copy(engine=1, via=b.gpsimd, src=out, dst=y[:m], wait=("copied", 1))
    return b.build()


def double_buffer(config, passes=6):
    """DMA fills two buffers in turn while the vector engine empties them, in loops."""
    p = config.partitions
    b = ProgramBuilder(config)
    x = b.hbm_tensor("x", (2, p, 16), DType.FP32, "input", np.ones((2, p, 16), np.float32))
    y = b.hbm_tensor("y", (p, 16), DType.FP32, "output")
    tiles = [b.sbuf(f"tile{i}", (p, 16), DType.FP32) for i in range(2)]
    total = b.sbuf("total", (p, 16), DType.FP32)
    for name in ("full0", "full1", "empty", "done"):
        b.semaphore(name)
    level, one = Reg(1), {"alu_op": "add", "imm": 1}
    b.sync.reg_alu(rd=level, alu_op="move", imm=-1)
    with b.sync.loop(passes):
        for i, tile in enumerate(tiles):  # fill k: all but the last of the k before are emptied
            b.dma_copy(
                engine=i,
                via=b.sync,
                src=x[i],
                dst=tile,
                wait=("empty", level),
                update=(f"full{i}", "increment"),
            )
            b.sync.reg_alu(rd=level, ra=level, **one)
    b.vector.memset(dst=total, imm0=0.0)
    b.vector.reg_alu(rd=level, alu_op="move", imm=1)
    with b.vector.loop(passes):
        for i, tile in enumerate(tiles):
            b.vector.tensor_tensor(
                src0=total,
                src1=tile,
                dst=total,
                op0="add",
                wait=(f"full{i}", level),
                update=("empty", "increment"),
            )
        b.vector.reg_alu(rd=level, ra=level, **one)
    b.vector.sem_update(update=("done", "increment"))
    b.dma_copy(engine=0, via=b.scalar, src=total, dst=y, wait=("done", 1))
    return b.build()


def gemm(config, size, columns=512, seed=1):
    """c = a^T b, [size, size] BF16, in tiles; weights load while the tile before streams.

    A multiple of the array's edge. Operands stay in SBUF; results go out row by row of tiles.
    """
    p, tiles = config.partitions, size // config.partitions
    n = min(columns, size, config.max_moving)
    generator = np.random.default_rng(seed)
    a, c = (generator.normal(size=(size, size)).astype(ml_dtypes.bfloat16) for _ in range(2))
    b = ProgramBuilder(config)
    at = b.hbm_tensor("a", (size, size), DType.BF16, "input", a)
    bt = b.hbm_tensor("b", (size, size), DType.BF16, "input", c)
    ct = b.hbm_tensor("c", (size, size), DType.FP32, "output")
    left = [b.sbuf(f"left{k}", (p, size), DType.BF16) for k in range(tiles)]
    right = [b.sbuf(f"right{k}", (p, size), DType.BF16) for k in range(tiles)]
    out = [b.sbuf(f"out{i}", (p, size), DType.FP32) for i in range(2)]
    banks = [b.psum(f"bank{i}", (p, n), bank=i) for i in range(2)]
    for name in ("loaded", "multiplied", "copied", "stored"):
        b.semaphore(name)
    for k in range(tiles):
        rows = slice(k * p, (k + 1) * p)
        for tensor, tile in ((at, left[k]), (bt, right[k])):
            b.dma_copy(
                engine=0, via=b.sync, src=tensor[rows], dst=tile, update=("loaded", "increment")
            )
    done = 0
    for m in range(tiles):
        for start in range(0, size, n):
            for k in range(tiles):
                wait = ("loaded", 2 * (k + 1)) if done == 0 else None
                b.tensor.load_stationary(src0=left[k][:, m * p : (m + 1) * p], wait=wait)
                b.tensor.multiply_moving(
                    src0=right[k][:, start : start + n],
                    dst=banks[done % 2],
                    accumulate=k > 0,
                    wait=("copied", done - 1) if k == 0 and done >= 2 else None,
                    update=("multiplied", "increment") if k == tiles - 1 else None,
                )
            if start == 0 and m >= 2:
                b.vector.sem_wait(wait=("stored", m - 1))
            b.vector.tensor_copy(
                src0=banks[done % 2],
                dst=out[m % 2][:, start : start + n],
                wait=("multiplied", done + 1),
                update=("copied", "increment"),
            )
            done += 1
        b.dma_copy(
            engine=1,
            via=b.sync,
            src=out[m % 2],
            dst=ct[m * p : (m + 1) * p],
            wait=("copied", done),
            update=("stored", "increment"),
        )
    return b.build()
