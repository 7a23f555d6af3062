"""Trains the 64-32-10 perceptrons that `digits` (relu) and `mlp_gelu` run, in plain numpy.

Data: the handwritten digits that come with scikit-learn (1797 images of 8 x 8, values 0..16), a
quarter kept for the test.  Minibatch gradient descent with momentum on the cross entropy, one fixed
seed.

    python -m celosia.programs.digits_training
"""

from dataclasses import dataclass
from math import erf

import numpy as np
from sklearn.datasets import load_digits

HIDDEN = 32
CLASSES = 10
TEST_SHARE = 4
"""One image in TEST_SHARE is a test image."""


@dataclass(frozen=True)
class Digits:
    """Images [count, 64] scaled to 0..1 in float32 and labels [count], for training and test."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def _relu(x):
    return np.maximum(x, 0), x > 0


def _gelu(x):
    """x Phi(x), and its derivative."""
    cumulative = 0.5 * (1 + np.vectorize(erf, otypes=[x.dtype])(x / np.sqrt(2)))
    return x * cumulative, cumulative + x * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


ACTIVATIONS = {"relu": _relu, "gelu": _gelu}
"""{name: x -> (value, derivative)}."""


@dataclass(frozen=True)
class Perceptron:
    """func(x @ w1 + b1) @ w2 + b2; w1 [64, 32], b1 [32], w2 [32, 10], b2 [10], float32."""

    w1: np.ndarray
    b1: np.ndarray
    w2: np.ndarray
    b2: np.ndarray
    func: str = "relu"

    def logits(self, images):
        """[count, 64] -> [count, 10] in the precision of the images."""
        hidden, _ = ACTIVATIONS[self.func](images @ self.w1 + self.b1)
        return hidden @ self.w2 + self.b2


def load(seed=0):
    """The data set, shuffled by `seed` and split."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    images = (images[order] / 16).astype(np.float32)
    labels = labels[order].astype(np.int64)
    test = len(labels) // TEST_SHARE
    return Digits(images[test:], labels[test:], images[:test], labels[:test])


def train(digits, *, func="relu", epochs=60, batch=32, rate=0.1, momentum=0.9, seed=0):
    """A Perceptron fitted to the training images."""
    rng = np.random.default_rng(seed)
    sizes = (digits.train_images.shape[1], HIDDEN, CLASSES)
    shapes = [(sizes[0], sizes[1]), (sizes[1],), (sizes[1], sizes[2]), (sizes[2],)]
    weights = [
        rng.standard_normal(shape) * np.sqrt(2 / shape[0]) if len(shape) == 2 else np.zeros(shape)
        for shape in shapes
    ]
    speed = [np.zeros(shape) for shape in shapes]
    targets = np.eye(CLASSES)[digits.train_labels]
    for _ in range(epochs):
        order = rng.permutation(len(targets))
        for start in range(0, len(order), batch):
            pick = order[start : start + batch]
            gradients = _gradients(weights, func, digits.train_images[pick], targets[pick])
            for weight, velocity, gradient in zip(weights, speed, gradients, strict=True):
                velocity *= momentum
                velocity -= rate * gradient
                weight += velocity
        rate *= 0.97
    w1, b1, w2, b2 = (weight.astype(np.float32) for weight in weights)
    return Perceptron(w1, b1, w2, b2, func)


def _gradients(weights, func, images, targets):
    """Mean gradients of the cross entropy for w1, b1, w2, b2."""
    w1, b1, w2, b2 = weights
    hidden, slope = ACTIVATIONS[func](images @ w1 + b1)
    logits = hidden @ w2 + b2
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    error = (exponentials / exponentials.sum(axis=1, keepdims=True) - targets) / len(targets)
    back = (error @ w2.T) * slope
    return images.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)


def accuracy(logits, labels):
    """Share of rows of `logits` whose largest entry is the label."""
    return float(np.mean(np.argmax(logits, axis=1) == labels))


if __name__ == "__main__":
    data = load()
    net = train(data)
    print(f"training accuracy {accuracy(net.logits(data.train_images), data.train_labels):.4f}")
    test = accuracy(net.logits(data.test_images), data.test_labels)
    print(f"test accuracy     {test:.4f} on {len(data.test_labels)} images")
