"""Random access patterns in an area: odd shapes, negative, zero, wide steps, every alignment."""

from dataclasses import dataclass

from isa.dtypes import DType
from isa.fields import DIMS
from isa.pattern import AccessPattern, ColumnPattern, bounding_box


@dataclass(frozen=True)
class Area:
    """Bytes [low, high) of every partition of a space, all of which have been written."""

    space: int
    low: int
    high: int

    @property
    def size(self):
        """Bytes in each partition."""
        return self.high - self.low


class Patterns:
    """Chooses shapes and places. rng: `random.Random`."""

    def __init__(self, config, rng):
        self._config = config
        self._rng = rng

    def dtype(self):
        """One of the element types, half the time one of those that most programs use."""
        usual = (DType.FP32, DType.FP32, DType.BF16)
        return self._rng.choice(self._rng.choice((usual, tuple(DType))))

    def partition_count(self):
        """1 to P, often all."""
        total = self._config.partitions
        return self._rng.choice((total, self._rng.randint(1, total), self._rng.randint(1, total)))

    def start(self, count):
        """A first partition that the quadrant rule allows."""
        total = self._config.partitions
        if count > total // 2:
            return 0
        step = total // 2 if count > total // 4 else total // 4
        return self._rng.randrange(0, total - count + 1, step)

    def counts(self, elements, dims=None):
        """`dims` (or any number of) counts with that product."""
        rng = self._rng
        found = [1] * (dims or rng.randint(1, DIMS))
        for prime in _factors(elements):
            found[rng.randrange(len(found))] *= prime
        return found

    def pattern(self, area, dtype, partitions, counts, *, repeats=0.0):
        """An AccessPattern of these counts in the area, or None when it does not fit densely.

        partitions: (first, count). repeats: probability that elements may share addresses.
        """
        rng, size = self._rng, dtype.itemsize
        room = area.size
        dense = self._steps(counts, gaps=False)
        choices = [self._steps(counts, gaps=True) for _ in range(3)] + [dense]
        if rng.random() < repeats:
            choices.insert(0, [rng.choice((0, 0, 1, -1, 2)) for _ in counts])
        for steps in choices:
            dims = tuple(zip(steps, counts, strict=True))
            low, high = bounding_box(0, size, dims)
            first = area.low - low
            first += -first % size
            last = area.high - high
            if high - low > room or first > last or not all(-32768 <= s < 32768 for s in steps):
                continue
            offset = first + rng.randint(0, (last - first) // size) * size
            offset = rng.choice((offset, offset, first, last - last % size))
            return AccessPattern(area.space, dtype, *partitions, offset, dims)
        return None

    def column(self, area, partitions):
        """A [P, 1] operand for that many partitions."""
        dtype = self.dtype()
        size = dtype.itemsize
        place = self._rng.randrange(-(-area.low // size), area.high // size) * size
        return ColumnPattern(area.space, dtype, self.start(partitions), place)

    def _steps(self, counts, *, gaps):
        """Steps of nested dimensions in random order: no address twice."""
        rng = self._rng
        order = list(range(len(counts)))
        if gaps:
            rng.shuffle(order)
        else:
            order.reverse()
        steps, unit = [0] * len(counts), 1
        for axis in order:
            unit *= rng.choice((1, 1, 1, 2, 3, 4, 5)) if gaps else 1
            steps[axis] = unit * (rng.choice((1, 1, 1, -1)) if gaps else 1)
            unit *= counts[axis]
        return steps


def _factors(number):
    found, prime = [], 2
    while number > 1:
        while number % prime == 0:
            found.append(prime)
            number //= prime
        prime += 1
    return found
