"""Handwritten digits through a 64-32-10 perceptron with gelu and a softmax output.

hidden = gelu(w1.T x + b1), [32, count], as in `digits`.  The second product has the hidden columns
of an edge of images as its stationary operand, so that images come to lie on the partitions and
classes beside each other: p = e^(z - max z) / sum of it, with the maxima, the sums and the products
on the vector engine, exp and reciprocal on the scalar engine.
"""

from functools import cache

import ml_dtypes
import numpy as np

from celosia.programs.case import Case, tensor_bound, tiles
from celosia.programs.digits_training import accuracy, load, train
from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.geometry import WORD_BYTES


@cache
def trained():
    """(data, perceptron), trained once per process."""
    digits = load()
    return digits, train(digits, func="gelu", epochs=20)


class Softmax:
    """Emits the inference of chunks of images, one chunk after the other."""

    def __init__(self, b, net, images, probabilities):
        self.b, self.images, self.out = b, images, probabilities
        self.edge = edge = b.config.array
        for name in ("weights", "loaded", "summed", "activated", "vector", "stored"):
            b.semaphore(name)
        self.hidden, self.classes = net.w2.shape
        self.k_tiles, self.h_tiles = tiles(net.w1.shape[0], edge), tiles(self.hidden, edge)
        self._constants(net)
        rows = min(b.config.max_moving, b.config.psum_bank_bytes // (4 * self.classes) * edge)
        per_image = 2 * (len(self.k_tiles) + len(self.h_tiles)) + 8 * self.classes // edge + 8
        free = b.config.sbuf_bytes - self.used - WORD_BYTES * 16
        self.chunk = max(edge, min(rows, free // per_image) // edge * edge)
        self.groups = self.chunk // edge
        shape = (edge, self.groups, self.classes)
        self.x = [
            b.sbuf(f"x{i}", (n, self.chunk), DType.BF16) for i, (_, n) in enumerate(self.k_tiles)
        ]
        self.h = [
            b.sbuf(f"h{i}", (n, self.chunk), DType.BF16) for i, (_, n) in enumerate(self.h_tiles)
        ]
        self.z, self.e = (b.sbuf(name, shape, DType.FP32) for name in ("z", "e"))
        self.largest, self.sums, self.scales = (
            b.sbuf(name, shape[:2], DType.FP32) for name in ("largest", "sums", "scales")
        )
        self.first = b.psum("first", (edge, self.chunk), bank=0)
        self.second = b.psum("second", shape, bank=1)
        self.counts = dict.fromkeys(("summed", "activated", "vector"), 0)

    def _constants(self, net):
        b, edge = self.b, self.edge
        copies = []
        self.used = 0

        def constant(name, values, dtype, parts, shape=None):
            source = b.hbm_tensor(name, values.shape, dtype, "constant", values)
            found = []
            for i, (start, rows) in enumerate(parts):
                tile = b.sbuf(f"{name}{i}", shape or (rows, *values.shape[1:]), dtype)
                self.used += -(-tile.tensor.row_bytes // WORD_BYTES) * WORD_BYTES
                copies.append((source, start, rows, tile))
                found.append(tile)
            return found

        self.w1 = constant("w1", net.w1.astype(ml_dtypes.bfloat16), DType.BF16, self.k_tiles)
        self.b1 = constant("b1", net.b1[:, None], DType.FP32, self.h_tiles)
        self.w2 = constant("w2", net.w2.astype(ml_dtypes.bfloat16), DType.BF16, self.h_tiles)
        # The same row of biases in every partition
        rows = np.repeat(net.b2[None, :], edge, axis=0)
        (self.b2,) = constant("b2", rows, DType.FP32, [(0, edge)])
        b.dma_batch(
            [
                (
                    source[start : start + rows],
                    tile,
                    ("weights", "increment") if i == len(copies) - 1 else None,
                )
                for i, (source, start, rows, tile) in enumerate(copies)
            ],
            engine=b.config.dma_engines - 1,
            via=b.gpsimd,
        )

    def emit(self):
        """Emit all streams; returns the moving sizes of each weight tile, for the bound."""
        moving = []
        self.b.tensor.sem_wait(wait=("weights", 1))
        self.b.vector.sem_wait(wait=("weights", 1))
        self.b.scalar.sem_wait(wait=("weights", 1))
        for index, (start, width) in enumerate(tiles(self.images.shape[1], self.chunk)):
            self._load(index, start, width)
            moving += self._hidden(index, width)
            moving += self._logits(width)
            self._softmax(index, start, width)
        return moving

    def _done(self, name):
        """Update of the next step of an engine; `_after` waits for the last one."""
        self.counts[name] += 1
        return name, "increment"

    def _after(self, name):
        return name, self.counts[name]

    def _load(self, index, start, width):
        copies: list[tuple] = [
            (self.images[k : k + rows, start : start + width], tile[:, :width], None)
            for tile, (k, rows) in zip(self.x, self.k_tiles, strict=True)
        ]
        copies[-1] = (*copies[-1][:2], ("loaded", "increment"))
        # The tile of images is dead when the last product of the chunk before is done
        wait = self._after("summed") if index else None
        self.b.dma_batch(copies, engine=0, via=self.b.sync, wait=wait)

    def _hidden(self, index, width):
        b, columns = self.b, []
        b.tensor.sem_wait(wait=("loaded", index + 1))
        for j, (m, rows) in enumerate(self.h_tiles):
            total = self.first[:rows, :width]
            for i, w in enumerate(self.w1):
                b.tensor.load_stationary(src0=w[:, m : m + rows])
                ends = i == len(self.w1) - 1
                b.tensor.multiply_moving(
                    src0=self.x[i][:, :width],
                    dst=total,
                    accumulate=i > 0,
                    wait=self._after("activated") if i == 0 and self.counts["activated"] else None,
                    update=self._done("summed") if ends else None,
                )
                columns.append([width])
            b.scalar.activation(
                src0=total,
                dst=self.h[j][:, :width],
                func="gelu",
                bias=self.b1[j].column(0),
                wait=self._after("summed"),
                update=self._done("activated"),
            )
        return columns

    def _logits(self, width):
        b, columns = self.b, []
        b.tensor.sem_wait(wait=self._after("activated"))
        if self.counts["vector"]:
            b.tensor.sem_wait(wait=self._after("vector"))
        groups = tiles(width, self.edge)
        for g, (start, count) in enumerate(groups):
            for i, h in enumerate(self.h):
                ends = g == len(groups) - 1 and i == len(self.h) - 1
                b.tensor.load_stationary(src0=h[:, start : start + count])
                b.tensor.multiply_moving(
                    src0=self.w2[i],
                    dst=self.second[:count, g],
                    accumulate=i > 0,
                    update=self._done("summed") if ends else None,
                )
                columns.append([self.classes])
        return columns

    def _softmax(self, index, start, width):
        b = self.b
        full, rest = divmod(width, self.edge)
        # Full groups of images together, then the rest
        parts = [(slice(0, full), self.edge)] * (full > 0)
        parts += [(slice(full, full + 1), rest)] * (rest > 0)
        b.vector.sem_wait(wait=self._after("summed"))
        if index:
            b.vector.sem_wait(wait=("stored", index))
        for groups, rows in parts:
            self._part(groups, rows)
        copies: list[tuple] = []
        for groups, rows in parts:
            first = start + groups.start * self.edge
            for g in range(groups.start, groups.stop):
                place = first + (g - groups.start) * self.edge
                copies.append((self.e[:rows, g], self.out[place : place + rows], None))
        copies[-1] = (*copies[-1][:2], ("stored", "increment"))
        b.dma_batch(
            copies,
            engine=b.config.dma_engines - 1,
            via=b.gpsimd,
            wait=self._after("vector"),
        )

    def _part(self, groups, rows):
        b = self.b
        z, e = self.z[:rows, groups], self.e[:rows, groups]
        count = groups.stop - groups.start

        def over_groups(tile):
            return _broadcast(tile[:rows, groups], (1, count), (0, self.classes))

        bias = _broadcast(self.b2[:rows], (0, count), (1, self.classes))
        b.vector.tensor_tensor(src0=self.second[:rows, groups], src1=bias, dst=z, op0="add")
        b.vector.tensor_reduce(src0=z, dst=self.largest[:rows, groups], op0="max", reduce_dims=1)
        b.vector.tensor_tensor(
            src0=z,
            src1=over_groups(self.largest),
            dst=z,
            op0="subtract",
            update=self._done("vector"),
        )
        b.scalar.activation(
            src0=z, dst=e, func="exp", wait=self._after("vector"), update=self._done("activated")
        )
        b.vector.tensor_reduce(
            src0=e,
            dst=self.sums[:rows, groups],
            op0="add",
            reduce_dims=1,
            wait=self._after("activated"),
            update=self._done("vector"),
        )
        b.scalar.activation(
            src0=self.sums[:rows, groups],
            dst=self.scales[:rows, groups],
            func="reciprocal",
            wait=self._after("vector"),
            update=self._done("activated"),
        )
        b.vector.tensor_tensor(
            src0=e,
            src1=over_groups(self.scales),
            dst=e,
            op0="multiply",
            wait=self._after("activated"),
            update=self._done("vector"),
        )


def _broadcast(pattern, *dims):
    """`pattern` walked by other (step, count)."""
    return pattern.with_(dims=dims)


def build(config, seed=1):
    """The whole test split of scikit-learn's digits.  `seed` changes nothing: the data are real."""
    digits, net = trained()
    images = np.ascontiguousarray(digits.test_images.T).astype(ml_dtypes.bfloat16)
    count = images.shape[1]
    b = ProgramBuilder(config)
    program = Softmax(
        b,
        net,
        b.hbm_tensor("images", images.shape, DType.BF16, "input", images),
        b.hbm_tensor("probabilities", (count, net.b2.size), DType.FP32, "output"),
    )
    moving = program.emit()
    logits = net.logits(digits.test_images.astype(np.float64))
    exact = np.exp(logits - logits.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)

    def judge(outputs):
        got = outputs["probabilities"].astype(np.float64)
        error = np.abs(got - exact).max()
        reference = accuracy(exact, digits.test_labels)
        reached = accuracy(got, digits.test_labels)
        assert reference > 0.95, f"the float64 perceptron reaches only {reference:.4f}"
        assert reached > reference - 0.01, (
            f"the chip reaches {reached:.4f}, float64 {reference:.4f}"
        )
        assert np.abs(got.sum(axis=1) - 1).max() < 2**-20, "probabilities do not add up to 1"
        assert error < 0.05, f"error of a probability {error:.3g} against float64"
        return [
            f"test accuracy {reached:.4f}, float64 {reference:.4f}, {count} images",
            f"largest error of a probability against float64 {error:.2e}",
        ]

    macs = count * (net.w1.size + net.w2.size)
    return Case("mlp_gelu", b.build(), macs, tensor_bound(config, moving), judge)
