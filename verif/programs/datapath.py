"""Random datapath instructions, every optional field at random."""

from isa.address_map import Sequencer
from isa.check_operands import STATE_WORDS
from isa.dtypes import NARROW, DType
from isa.fields import AluOp, Function
from isa.pattern import AccessPattern
from isa.values import Bits
from verif.programs.matmul import Matmul
from verif.programs.spec import Spec, box_of
from verif.vectors import FP32, corner_codes

_SCANNED = (AluOp.ADD, AluOp.SUBTRACT, AluOp.MULTIPLY, AluOp.MAX, AluOp.MIN)
_RAW = tuple(op for op in AluOp if op.raw)
_SLOW = (AluOp.DIVIDE, AluOp.POWER)
_FAST = tuple(op for op in AluOp if not op.raw and op not in (AluOp.BYPASS, *_SLOW))
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
        self._matmul = Matmul(config, rng, patterns, areas, self._elements)

    def specs(self, sequencer):
        """One or several instructions of that engine, in order."""
        if sequencer == Sequencer.TENSOR:
            return self._matmul.specs()
        states = (self._set_state, self._get_state)
        if sequencer == Sequencer.SCALAR:
            return [self._retry(self._rng.choice((*(self._activation,) * 12, *states)))]
        makers = (
            self._tensor_tensor,
            self._tensor_scalar,
            self._tensor_scalar,
            self._tensor_copy,
            self._tensor_reduce,
            self._memset,
            self._scan,
            self._rng.choice(states),
        )
        return [self._retry(self._rng.choice(makers))]

    def no_work(self, sequencer):
        """An instruction with a count of 0 and otherwise any values."""
        rng, kept = self._rng, self._matmul.stationary
        spec = self.specs(sequencer)[-1]
        self._matmul.stationary = kept  # what does no work is not loaded
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
        return self._matmul.multiply() if self._matmul.stationary else None

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

    def _operand(self, partitions, elements, *, repeats=0.0, dims=None, dtype=None):
        patterns, rng = self._patterns, self._rng
        area = rng.choice(self._areas)
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
        exact = name == "tensor_copy" and operands["src0"].dtype == dst.dtype
        if not exact and not AluOp(arguments.get("op0", AluOp.BYPASS)).raw:
            arguments |= self._rounding(dst)
        return Spec(name, {**operands, **arguments}, reads, [box_of(dst)])

    def _rounding(self, dst):
        """Options for a result in this pattern."""
        if dst.dtype not in NARROW:
            return {}
        return {name: self._rng.random() < 0.4 for name in ("sat", "stochastic")}

    def _operators(self):
        """A first and a second operator for the same kind of data."""
        rng = self._rng
        if rng.random() < 0.3:
            return rng.choice(_RAW), rng.choice((AluOp.BYPASS, *_RAW))
        first = rng.choice(_SLOW) if rng.random() < 0.1 else rng.choice(_FAST)
        return first, rng.choice((AluOp.BYPASS, *_FAST))

    def _tensor_tensor(self):
        op, _ = self._operators()
        return self._same("tensor_tensor", ("src0", "src1"), {"op0": op})

    def _tensor_scalar(self):
        rng = self._rng
        first, second = self._operators()
        options = {
            "op0": first,
            "op1": second,
            "reverse0": rng.random() < 0.5,
            "reverse1": rng.random() < 0.5,
        }
        return self._same("tensor_scalar", ("src0",), options, ("operand0", "operand1"))

    def _tensor_copy(self):
        return self._same("tensor_copy", ("src0",), {})

    def _activation(self):
        func = self._rng.choice(tuple(Function))
        options = {"func": func, "imm2": self.bits()}
        return self._same("activation", ("src0",), options, ("scale", "bias"))

    def _scan(self):
        options = {name: self._rng.choice(_SCANNED) for name in ("op0", "op1")}
        return self._same("tensor_tensor_scan", ("src0", "src1"), options, ("initial",))

    def _set_state(self):
        return self._state("rand_set_state", "src0")

    def _get_state(self):
        return self._state("rand_get_state", "dst")

    def _state(self, name, slot):
        partitions = self._patterns.partition_count()
        repeats = _REPEATS if slot == "dst" else 0.4
        words = self._operand(partitions, STATE_WORDS, repeats=repeats, dtype=DType.UINT32)
        if words is None:
            return None
        boxes = [box_of(words)]
        return Spec(name, {slot: words}, *((boxes, []) if slot == "src0" else ([], boxes)))

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
        options = {
            "op0": rng.choice((AluOp.ADD, AluOp.MAX, AluOp.MIN)),
            "reduce_dims": 4 - kept,
            **self._rounding(dst),
        }
        return Spec(
            "tensor_reduce", {"src0": src, "dst": dst, **options}, [box_of(src)], [box_of(dst)]
        )

    def _memset(self):
        dst = self._operand(self._patterns.partition_count(), self._elements(), repeats=_REPEATS)
        if dst is None:
            return None
        options = {"imm0": self.bits(), **self._rounding(dst)}
        return Spec("memset", {"dst": dst, **options}, [], [box_of(dst)])
