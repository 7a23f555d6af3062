"""What stochastic rounding is for: sums of small terms in a narrow format.

    python -m verif.rounding_walk

Writes docs/stochastic-rounding.png.  Two walks: 1024 + 0.5 + 0.5 ... in FP16 (half of the last
place) and 1 + 0.001 + 0.001 ... in BF16 (an eighth of it), each sum in FP32 and then narrowed.  To
nearest they never move; stochastically their mean follows the exact sum.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from golden.arith import formats
from golden.arith.convert import narrow, widen
from golden.arith.xorwow import Xorwow

DOCS = Path(__file__).parents[1] / "docs"
LANES = 128


@dataclass(frozen=True)
class Walk:
    """start + term + term ... in `form`, `steps` times."""

    form: formats.Format
    start: float
    term: float
    steps: int

    @property
    def exact(self):
        """The sum in real numbers, and the standard deviation of one stochastic walk as long as
        it stays within one binade: each step rounds up by one place with the same probability.
        """
        term = float(np.float32(self.term))
        place = 2.0 ** (np.floor(np.log2(self.start)) - self.form.fraction_bits)
        share = term / place
        return self.start + self.steps * term, place * np.sqrt(self.steps * share * (1 - share))

    def run(self, seed=None):
        """Values after each step, float32 [steps, LANES]; seed None: to nearest."""
        x = np.full(LANES, self.start, np.float32)
        random = None if seed is None else Xorwow(LANES, seed).step(self.steps)
        path = np.empty((self.steps, LANES), np.float32)
        for i in range(self.steps):
            words = None if random is None else np.ascontiguousarray(random[:, i])
            total = x + np.float32(self.term)
            x = widen(narrow(total, self.form, random=words), self.form)
            path[i] = x
        return path


WALKS = (
    Walk(formats.FP16, 1024.0, 0.5, 2048),
    Walk(formats.BF16, 1.0, 0.001, 1000),
)


def plot(path):
    """Both walks: exact, to nearest, mean and spread of the stochastic ones."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.2))
    for axis, walk in zip(axes, WALKS, strict=True):
        steps = np.arange(1, walk.steps + 1)
        lanes = walk.run(seed=1)
        mean, spread = lanes.mean(axis=1), lanes.std(axis=1)
        axis.fill_between(
            steps, mean - 2 * spread, mean + 2 * spread, alpha=0.25, label="2 sigma of 128 lanes"
        )
        axis.plot(steps, mean, label="stochastic, mean of 128 lanes")
        axis.plot(steps, walk.start + steps * walk.term, "k:", label="exact")
        axis.plot(steps, walk.run()[:, 0], label="to nearest even")
        axis.set_title(f"{walk.form.name}: {walk.start:g} + {walk.term:g}, {walk.steps} times")
        axis.set_xlabel("terms")
        axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main():
    plot(DOCS / "stochastic-rounding.png")
    for walk in WALKS:
        lanes, (exact, sigma) = walk.run(seed=1)[-1], walk.exact
        print(
            f"{walk.form.name}: exact {exact:g}, to nearest {walk.run()[-1, 0]:g}, stochastic mean "
            f"{lanes.mean():.4f}, standard deviation {lanes.std():.4f} (theory {sigma:.4f})"
        )


if __name__ == "__main__":
    main()
