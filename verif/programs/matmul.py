"""Random instructions of the tensor engine: every dtype, part and mode."""

from isa.dtypes import FP8, MATMUL, TRANSPOSED, DType
from isa.fields import Part, Space
from verif.programs.spec import Spec, box_of

_HALVES = (Part.HIGH, Part.LOW, Part.HIGH_FINITE)


class Matmul:
    """Makes Specs; `stationary` is (K, M, double_row, transpose) of the last load, or None.

    elements: function that draws a number of columns
    """

    def __init__(self, config, rng, patterns, areas, elements):
        self._config = config
        self._rng = rng
        self._patterns = patterns
        self._sbuf = [area for area in areas if area.space == Space.SBUF]
        self._psum = [area for area in areas if area.space == Space.PSUM]
        self._elements = elements
        self.stationary = None

    def specs(self):
        """Loads, multiplications, or both, in order."""
        found = []
        if self.stationary is None or self._rng.random() < 0.7:
            for _ in range(self._rng.choice((1, 1, 1, 2))):
                found.append(_retry(self._load))
        if self._rng.random() < 0.95:
            for _ in range(self._rng.choice((1, 1, 2, 3))):
                found.append(self.multiply())
        return found or self.specs()

    def multiply(self):
        """A multiplication by the stationary tile, of which there is one."""
        return _retry(self._multiply)

    def _source(self, partitions, elements, dtypes, pairs, repeats):
        """(pattern, box) in SBUF; a pair of bytes lies like an element of two."""
        patterns, dtype = self._patterns, self._rng.choice(dtypes)
        place = (patterns.start(partitions), partitions)
        found = patterns.pattern(
            self._rng.choice(self._sbuf),
            DType.UINT16 if pairs else dtype,
            place,
            patterns.counts(elements),
            repeats=repeats,
        )
        return found and (found.with_(dtype=dtype), box_of(found))

    def _part(self, dtype):
        return {"part": self._rng.choice(_HALVES)} if dtype == DType.FP32 else {}

    def _load(self):
        rng = self._rng
        k, m = self._patterns.partition_count(), self._patterns.partition_count()
        mode = rng.choice(("", "", "transpose", "double_row" if self._config.double_row else ""))
        modes = {name: int(mode == name) for name in ("double_row", "transpose")}
        dtypes = {"transpose": TRANSPOSED, "double_row": FP8}.get(mode, (DType.BF16, *MATMUL))
        source = self._source(k, m, dtypes, mode == "double_row", 0.2)
        if source is None:
            return None
        pattern, box = source
        self.stationary = (k, m, *modes.values())
        return Spec(
            "load_stationary", {"src0": pattern, **modes, **self._part(pattern.dtype)}, [box], []
        )

    def _multiply(self):
        rng, (k, m, double_row, transpose) = self._rng, self.stationary
        n = min(self._elements(), self._config.max_moving)
        dtypes = FP8 if double_row else (DType.BF16, *MATMUL)
        source = self._source(k, n, dtypes, double_row, 0.3)
        patterns = self._patterns
        dst = patterns.pattern(
            rng.choice(self._psum),
            DType.FP32,
            (patterns.start(m), m),
            patterns.counts(n),
            repeats=0.15,
        )
        if source is None or dst is None:
            return None
        low, high = dst.bounding_box()
        bank = self._config.psum_bank_bytes
        if low // bank != (high - 1) // bank:
            return None
        pattern, box = source
        options = {
            "accumulate": rng.random() < 0.6,
            "double_row": double_row,
            "transpose": transpose,
            **self._part(pattern.dtype),
        }
        return Spec(
            "multiply_moving", {"src0": pattern, "dst": dst, **options}, [box], [box_of(dst)]
        )


def _retry(maker):
    while True:
        spec = maker()
        if spec is not None:
            return spec
