"""Handwritten digits: the trained 64-32-10 perceptron classifies the whole test split in bf16.

Layer 1: hidden = relu(w1.T x + b1), layer 2: logits = w2.T hidden + b2; matrix products on the
tensor engine, bias and relu on the scalar engine while PSUM is read.  Images are columns ([64,
count]); a chunk of images fills one PSUM bank.
"""

from functools import cache

import ml_dtypes
import numpy as np

from celosia.programs.case import Case, tensor_bound, tiles
from celosia.programs.digits_training import accuracy, load, train
from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.geometry import PSUM_BANKS, WORD_BYTES

BUFFERS = 2
"""Chunks of images in SBUF at the same time."""


@cache
def trained():
    """(data, perceptron), trained once per process."""
    digits = load()
    return digits, train(digits)


class _Layer:
    """Weights [inputs, outputs] cut into tiles and biases as columns, in SBUF."""

    def __init__(self, b, name, weights, bias, result, func):
        edge = b.config.array
        self.name, self.result, self.func = name, result, func
        self.k_tiles, self.m_tiles = tiles(weights.shape[0], edge), tiles(weights.shape[1], edge)
        w = b.hbm_tensor(
            f"{name}_weights",
            weights.shape,
            DType.BF16,
            "constant",
            weights.astype(ml_dtypes.bfloat16),
        )
        c = b.hbm_tensor(f"{name}_bias", (len(bias), 1), DType.FP32, "constant", bias[:, None])
        self.weights, self.bias, self.copies = [], [], []
        for i, (k, rows) in enumerate(self.k_tiles):
            tile = b.sbuf(f"{name}_w{i}", (rows, weights.shape[1]), DType.BF16)
            self.weights.append(tile)
            self.copies.append((w[k : k + rows], tile, None))
        for i, (m, rows) in enumerate(self.m_tiles):
            tile = b.sbuf(f"{name}_b{i}", (rows, 1), DType.FP32)
            self.bias.append(tile)
            self.copies.append((c[m : m + rows], tile, None))


class Perceptron:
    """Emits the inference of chunks of images into a ProgramBuilder."""

    def __init__(self, b, net, images, logits):
        self.b, self.images, self.logits = b, images, logits
        edge, self.count = b.config.array, images.shape[1]
        self.layers = [
            _Layer(b, "layer1", net.w1, net.b1, DType.BF16, "relu"),
            _Layer(b, "layer2", net.w2, net.b2, DType.FP32, "copy"),
        ]
        inputs = tiles(images.shape[0], edge)
        self.chunk = min(self.count, b.config.max_moving, self._fitting(inputs))
        self.x = [
            [
                b.sbuf(f"x{i}_{j}", (rows, self.chunk), DType.BF16)
                for j, (_, rows) in enumerate(inputs)
            ]
            for i in range(BUFFERS)
        ]
        self.y = [
            [
                [
                    b.sbuf(f"{layer.name}_y{i}_{j}", (rows, self.chunk), layer.result)
                    for j, (_, rows) in enumerate(layer.m_tiles)
                ]
                for layer in self.layers
            ]
            for i in range(BUFFERS)
        ]
        self.sums = [
            b.psum(f"sum{bank}", (edge, self.chunk), bank=bank) for bank in range(PSUM_BANKS)
        ]
        for name in ("weights", "loaded", "summed", "activated", "stored"):
            b.semaphore(name)
        self.tile = 0

    def _fitting(self, inputs):
        """Images per chunk that fit SBUF next to the weights."""
        weights = sum(2 * w.shape[1] for layer in self.layers for w in layer.weights)
        columns = sum(len(layer.bias) for layer in self.layers)
        per_image = 2 * len(inputs) + sum(
            layer.result.itemsize * len(layer.m_tiles) for layer in self.layers
        )
        rows = len(inputs) + sum(len(layer.m_tiles) for layer in self.layers)
        free = self.b.config.sbuf_bytes - weights - WORD_BYTES * (columns + BUFFERS * rows)
        return free // (BUFFERS * per_image)

    def emit(self):
        """Emit all streams; returns the moving sizes of each weight tile, for the bound."""
        b, moving = self.b, []
        b.dma_batch(
            [
                copy if i < n - 1 else (*copy[:2], ("weights", "increment"))
                for copies in [self.layers[0].copies + self.layers[1].copies]
                for n in [len(copies)]
                for i, copy in enumerate(copies)
            ],
            engine=b.config.dma_engines - 1,
            via=b.gpsimd,
        )
        per_chunk = sum(len(layer.m_tiles) for layer in self.layers)
        for index, (start, width) in enumerate(tiles(self.count, self.chunk)):
            buffer = index % BUFFERS
            copies: list[tuple] = []
            for tile, (k, rows) in zip(
                self.x[buffer], tiles(self.images.shape[0], b.config.array), strict=True
            ):
                copies.append(
                    (self.images[k : k + rows, start : start + width], tile[:, :width], None)
                )
            copies[-1] = (*copies[-1][:2], ("loaded", "increment"))
            # The images of two chunks ago are dead once that chunk's first layer is summed.
            dead = (index - BUFFERS) * per_chunk + len(self.layers[0].m_tiles)
            b.dma_batch(
                copies, engine=0, via=b.sync, wait=("summed", dead) if index >= BUFFERS else None
            )
            moving += self._layers(index, buffer, width)
            tops = tiles(self.logits.shape[0], b.config.array)
            outputs: list[tuple] = [
                (tile[:, :width], self.logits[m : m + rows, start : start + width], None)
                for tile, (m, rows) in zip(self.y[buffer][1], tops, strict=True)
            ]
            outputs[-1] = (*outputs[-1][:2], ("stored", "increment"))
            b.dma_batch(
                outputs,
                engine=b.config.dma_engines - 1,
                via=b.gpsimd,
                wait=("activated", self.tile),
            )
        return moving

    def _layers(self, index, buffer, width):
        b, moving = self.b, []
        data = self.x[buffer]
        for depth, layer in enumerate(self.layers):
            first = self.tile
            for j, (m, rows) in enumerate(layer.m_tiles):
                if depth == 0 and j == 0:
                    b.tensor.sem_wait(wait=("loaded", index + 1))
                    wait = ("weights", 1)
                elif j == 0:
                    wait = ("activated", first)
                else:
                    wait = None
                reuse = self.tile - PSUM_BANKS + 1
                total = self.sums[self.tile % PSUM_BANKS][:rows, :width]
                for i in range(len(layer.k_tiles)):
                    b.tensor.load_stationary(
                        src0=layer.weights[i][:, m : m + rows], wait=wait if i == 0 else None
                    )
                    b.tensor.multiply_moving(
                        src0=data[i][:, :width],
                        dst=total,
                        accumulate=i > 0,
                        wait=("activated", reuse) if i == 0 and reuse > 0 else None,
                        update=("summed", "increment") if i == len(layer.k_tiles) - 1 else None,
                    )
                    moving.append([width])
                if depth == len(self.layers) - 1 and j == 0 and index >= BUFFERS:
                    b.scalar.sem_wait(wait=("stored", index - BUFFERS + 1))
                if depth == 0 and j == 0:
                    b.scalar.sem_wait(wait=("weights", 1))
                b.scalar.activation(
                    src0=total,
                    dst=self.y[buffer][depth][j][:, :width],
                    func=layer.func,
                    bias=layer.bias[j].column(0),
                    wait=("summed", self.tile + 1),
                    update=("activated", "increment"),
                )
                self.tile += 1
            data = self.y[buffer][depth]
        return moving


def build(config, seed=1):
    """The whole test split of scikit-learn's digits.  `seed` changes nothing: the data are real."""
    digits, net = trained()
    images = np.ascontiguousarray(digits.test_images.T).astype(ml_dtypes.bfloat16)
    count = images.shape[1]
    b = ProgramBuilder(config)
    program = Perceptron(
        b,
        net,
        b.hbm_tensor("images", images.shape, DType.BF16, "input", images),
        b.hbm_tensor("logits", (net.b2.size, count), DType.FP32, "output"),
    )
    moving = program.emit()

    def judge(outputs):
        reference = accuracy(net.logits(digits.test_images), digits.test_labels)
        got = accuracy(outputs["logits"].T, digits.test_labels)
        assert reference > 0.95, f"the float32 perceptron reaches only {reference:.4f}"
        assert got > 0.95, f"the chip reaches only {got:.4f}, float32 {reference:.4f}"
        return [f"test accuracy {got:.4f}, float32 numpy {reference:.4f}, {count} images"]

    macs = count * (net.w1.size + net.w2.size)
    return Case("digits", b.build(), macs, tensor_bound(config, moving), judge)
