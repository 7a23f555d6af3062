"""Random datapath instructions, every optional field at random."""

from isa.address_map import Sequencer
from isa.dtypes import DType
from isa.fields import AluOp, Function, Space
from isa.pattern import AccessPattern
from isa.values import Bits
from verif.programs.spec import Spec, box_of
from verif.vectors import FP32, corner_codes

_BINARY = (AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY, AluOp.MAX, AluOp.MIN)
_CORNERS = corner_codes(FP32).tolist()
_REPEATS = 0.15


class Datapath:
    """Makes Specs for the three engines. areas: list of `Area`; all of it has been written."""

    def __init__(self, config, rng, patterns, areas, largest):
        self._config = config
        self._rng = rng
        self._patterns = patterns
        self._areas = areas
        self._largest = largest
        self._stationary = None

    def specs(self, sequencer):
        """One or several instructions of that engine, in order."""
        if sequencer == Sequencer.TENSOR:
            return self._matmul()
        if sequencer == Sequencer.SCALAR:
            return [self._retry(self._activation)]
        makers = (
            self._tensor_tensor,
            self._tensor_scalar,
            self._tensor_scalar,
            self._tensor_copy,
            self._tensor_reduce,
            self._memset,
        )
        return [self._retry(self._rng.choice(makers))]

    def no_work(self, sequencer):
        """An instruction with a count of 0 and otherwise any values."""
        rng, kept = self._rng, self._stationary
        spec = self.specs(sequencer)[-1]
        self._stationary = kept  # what does no work is not loaded
        slots = [name for name, v in spec.arguments.items() if isinstance(v, AccessPattern)]
        slot = rng.choice(slots)
        pattern = spec.arguments[slot]
        wild = {"offset": rng.getrandbits(24), "partition": rng.getrandbits(8)}
        if rng.random() < 0.5:
            wild["partition_count"] = 0
        else:
            dims = list(pattern.dims)
            dims[rng.randrange(len(dims))] = (rng.randint(-32768, 32767), 0)
            wild["dims"] = tuple(dims)
        return Spec(spec.name, {**spec.arguments, slot: pattern.with_(**wild)})

    def single(self, sequencer):
        """One instruction that leaves the stationary tile alone, or None."""
        if sequencer != Sequencer.TENSOR:
            return self.specs(sequencer)[0]
        return self._retry(self._multiply_moving) if self._stationary else None

    def bits(self):
        """FP32 bits over the full range, specials and ordinary numbers."""
        rng = self._rng
        ordinary = rng.choice((0x3F800000, 0xBF000000, 0x40490FDB, 0x00000000))
        return Bits(rng.choice((rng.getrandbits(32), rng.choice(_CORNERS), ordinary)))

    def _retry(self, maker):
        while True:
            spec = maker()
            if spec is not None:
                return spec

    def _elements(self):
        rng = self._rng
        return rng.choice((1, rng.randint(1, 9), rng.randint(1, self._largest)))

    def _operand(self, partitions, elements, *, repeats=0.0, dims=None, dtype=None, spaces=None):
        patterns, rng = self._patterns, self._rng
        area = rng.choice([a for a in self._areas if spaces is None or a.space in spaces])
        counts = patterns.counts(elements, dims)
        place = (patterns.start(partitions), partitions)
        return patterns.pattern(
            area, patterns.dtype() if dtype is None else dtype, place, counts, repeats=repeats
        )

    def _column(self, partitions):
        rng = self._rng
        if rng.random() < 0.5:
            return self.bits(), []
        column = self._patterns.column(rng.choice(self._areas), partitions)
        return column, [box_of(column.pattern(partitions))]

    def _same(self, name, sources, arguments, columns=()):
        """An element-wise instruction: sources apart from dst or the same elements."""
        patterns, rng = self._patterns, self._rng
        partitions, elements = patterns.partition_count(), self._elements()
        in_place = rng.random() < 0.25
        dst = self._operand(partitions, elements, repeats=0 if in_place else _REPEATS)
        if dst is None:
            return None
        operands, reads = {"dst": dst}, []
        for slot in sources:
            same = in_place and rng.random() < 0.7
            found = dst if same else self._operand(partitions, elements, repeats=0.4)
            if found is None or (not same and box_of(found).meets(box_of(dst))):
                return None
            operands[slot] = found
            reads.append(box_of(found))
        for name_of_column in columns:
            value, boxes = self._column(partitions)
            if any(box.meets(box_of(dst)) for box in boxes):
                return None
            arguments[name_of_column] = value
            reads += boxes
        return Spec(name, {**operands, **arguments}, reads, [box_of(dst)])

    def _tensor_tensor(self):
        op = self._rng.choice(_BINARY)
        return self._same("tensor_tensor", ("src0", "src1"), {"op0": op})

    def _tensor_scalar(self):
        rng = self._rng
        options = {
            "op0": rng.choice(_BINARY),
            "op1": rng.choice((AluOp.BYPASS, *_BINARY)),
            "reverse0": rng.random() < 0.5,
            "reverse1": rng.random() < 0.5,
        }
        return self._same("tensor_scalar", ("src0",), options, ("operand0", "operand1"))

    def _tensor_copy(self):
        return self._same("tensor_copy", ("src0",), {})

    def _activation(self):
        func = self._rng.choice(tuple(Function))
        return self._same("activation", ("src0",), {"func": func}, ("scale", "bias"))

    def _tensor_reduce(self):
        rng = self._rng
        partitions = self._patterns.partition_count()
        src = self._operand(partitions, self._elements(), repeats=0.3, dims=4)
        if src is None:
            return None
        kept = rng.randint(0, 3)
        groups = 1
        for count in src.shape[:kept]:
            groups *= count
        dst = self._operand(partitions, groups, repeats=_REPEATS)
        if dst is None or box_of(dst).meets(box_of(src)):
            return None
        options = {"op0": rng.choice((AluOp.ADD, AluOp.MAX)), "reduce_dims": 4 - kept}
        return Spec(
            "tensor_reduce", {"src0": src, "dst": dst, **options}, [box_of(src)], [box_of(dst)]
        )

    def _memset(self):
        dst = self._operand(self._patterns.partition_count(), self._elements(), repeats=_REPEATS)
        if dst is None:
            return None
        return Spec("memset", {"dst": dst, "imm0": self.bits()}, [], [box_of(dst)])

    # tensor engine

    def _matmul(self):
        found = []
        if self._stationary is None or self._rng.random() < 0.7:
            for _ in range(self._rng.choice((1, 1, 1, 2))):
                found.append(self._retry(self._load_stationary))
        if self._rng.random() < 0.95:
            for _ in range(self._rng.choice((1, 1, 2, 3))):
                found.append(self._retry(self._multiply_moving))
        return found or self._matmul()

    def _load_stationary(self):
        k, m = self._patterns.partition_count(), self._patterns.partition_count()
        src = self._operand(k, m, repeats=0.2, dtype=DType.BF16, spaces=(Space.SBUF,))
        if src is None:
            return None
        self._stationary = (k, m)
        return Spec("load_stationary", {"src0": src}, [box_of(src)], [])

    def _multiply_moving(self):
        rng, (k, m) = self._rng, self._stationary
        n = min(self._elements(), self._config.max_moving)
        src = self._operand(k, n, repeats=0.3, dtype=DType.BF16, spaces=(Space.SBUF,))
        dst = self._operand(m, n, repeats=_REPEATS, dtype=DType.FP32, spaces=(Space.PSUM,))
        if src is None or dst is None:
            return None
        low, high = dst.bounding_box()
        bank = self._config.psum_bank_bytes
        if low // bank != (high - 1) // bank:
            return None
        options = {"accumulate": rng.random() < 0.6}
        reads = [box_of(src)]
        return Spec("multiply_moving", {"src0": src, "dst": dst, **options}, reads, [box_of(dst)])
