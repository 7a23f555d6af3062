# amaranth: UnusedElaboratable=no
"""The arithmetic units of the chip as `sim.arith_report` measures them, with their bars."""

from dataclasses import dataclass, field

from hdl.arith.decode import FloatDecode
from hdl.arith.divide import DIVIDE_STEPS, Fp32Divide
from hdl.arith.float_to_integer import FloatToInteger
from hdl.arith.fp32_add import Fp32Add
from hdl.arith.fp32_compare import Fp32Compare
from hdl.arith.fp32_mul import Fp32Mul
from hdl.arith.integer import IntegerUnit
from hdl.arith.narrow import FloatNarrow, NarrowFormat
from hdl.arith.power import POWER_STEPS, Power
from hdl.arith.table_function import TableFunction
from hdl.arith.widen import Widen
from hdl.arith.xorwow import Xorwow
from hdl.scalar.lane import TABLE_STAGES, LaneTiming, ScalarLane
from hdl.tensor.pe import Pe
from hdl.vector.lane import PARTIALS, VectorLane
from isa.fields import SLOW_CYCLES
from isa.geometry import preset
from sim.fmax import PE_LOOPS

_CONFIG = preset("small")
_MULTIPLY, _ADD, _VECTOR = (
    _CONFIG.pe_multiply_stages,
    _CONFIG.pe_add_stages,
    _CONFIG.vector_stages,
)
_TABLE_STAGES = TABLE_STAGES * _VECTOR
_NEAREST = "0.5 ulp"


@dataclass(frozen=True, kw_only=True)
class Unit:
    """part: its class.  options: arguments of the class.

    formula: what it computes.  formats: in -> out.  error: of a result against the exact one.
    latency, rate: cycles to a result, results a cycle.  bars: {kind: most of it}, kinds are those
    of `sim.report`.  loops: {input: output} that are joined where the clock frequency is measured.
    """

    part: type
    formula: str
    formats: str
    error: str
    options: dict = field(default_factory=dict)
    stages: int = 0
    latency: int | None = None
    rate: str = "1"
    bars: dict = field(default_factory=dict)
    loops: dict = field(default_factory=dict)

    def build(self):
        return self.part(**self.options)

    @property
    def cycles(self):
        """Latency: that of the stages where nothing else is said."""
        return self.stages if self.latency is None else self.latency


_SHORT = "BF16, FP16, e5m2, e4m3, e3m4, e4m3fn"
UNITS = {
    "PE": Unit(
        part=Pe,
        options={"multiply_stages": _MULTIPLY, "add_stages": _ADD},
        formula="sum + weight * moving",
        formats="operands of 12 significant bits, FP32 sum",
        error="product exact, flushed below 2^-126; sum 0.5 ulp",
        stages=_MULTIPLY + _ADD,
        bars={"LUT": 560, "DSP": 1},
        loops=PE_LOOPS,
    ),
    "PE, double row": Unit(
        part=Pe,
        options={"multiply_stages": _MULTIPLY, "add_stages": _ADD, "double_row": True},
        formula="sum + (weight0 * moving0 + weight1 * moving1)",
        formats="operands of 12 significant bits, FP32 sum",
        error="products exact, flushed below 2^-126; both sums 0.5 ulp",
        stages=_MULTIPLY + 2 * _ADD,
        loops=PE_LOOPS,
    ),
    "decoder": Unit(
        part=FloatDecode,
        formula="operand of the PE",
        formats=f"FP32 by halves, TF32, {_SHORT} -> operand",
        error="exact",
        bars={"LUT": 155},
    ),
    "decoder, 16 bits": Unit(
        part=FloatDecode,
        options={"width": 16},
        formula="operand of the PE",
        formats=f"{_SHORT} -> operand",
        error="exact",
    ),
    "FP32 adder": Unit(
        part=Fp32Add,
        options={"stages": _VECTOR},
        formula="a + b",
        formats="FP32",
        error=_NEAREST,
        stages=_VECTOR,
        bars={"LUT": 500},
    ),
    "FP32 multiplier": Unit(
        part=Fp32Mul,
        options={"stages": _VECTOR},
        formula="a * b",
        formats="FP32",
        error="0.5 ulp, flushed below 2^-126",
        stages=_VECTOR,
    ),
    "FP32 comparison": Unit(
        part=Fp32Compare,
        formula="max, min, <, <=, ==, !=, and, or, xor",
        formats="FP32",
        error="exact",
    ),
    "integer unit": Unit(
        part=IntegerUnit,
        options={"stages": _VECTOR},
        formula="and, or, xor, shifts, +, -, *, max, min, comparisons",
        formats="32-bit words",
        error="modulo 2^32",
        stages=_VECTOR,
    ),
    "FP32 divider": Unit(
        part=Fp32Divide,
        formula="a / b",
        formats="FP32",
        error=_NEAREST,
        latency=DIVIDE_STEPS,
        rate=f"1/{DIVIDE_STEPS}",
    ),
    "power": Unit(
        part=Power,
        formula="a ** b = exp(b log a)",
        formats="FP32",
        error="about abs(b log a) 2^-23 of the result, abs(b) 2^-26 for a next to 1",
        latency=POWER_STEPS,
        rate=f"1/{POWER_STEPS}",
    ),
    "table function": Unit(
        part=TableFunction,
        options={"stages": _TABLE_STAGES},
        formula="exp, log, sqrt, rsqrt, reciprocal",
        formats="FP32",
        error="{functions}",
        stages=_TABLE_STAGES,
    ),
    "widening": Unit(
        part=Widen,
        options={"stages": 2, "enable": True},
        formula="FP32 of an element",
        formats=f"FP32, TF32, {_SHORT}, integers -> FP32",
        error="exact; 32-bit integers 0.5 ulp",
        stages=2,
    ),
    "cast": Unit(
        part=FloatNarrow,
        options={"stages": 3, "enable": True, "random_bits": 32},
        formula="nearest, or (bits + r) >> n",
        formats=f"FP32 -> TF32, {_SHORT}",
        error="0.5 ulp; stochastic below 1 ulp, 0 in the mean",
        stages=3,
    ),
    "cast, BF16 alone": Unit(
        part=FloatNarrow,
        options={"formats": (NarrowFormat.BF16,)},
        formula="nearest, or (bits + r) >> 16",
        formats="FP32 -> BF16",
        error="0.5 ulp; stochastic below 1 ulp, 0 in the mean",
        bars={"LUT": 145},
    ),
    "cast to integers": Unit(
        part=FloatToInteger,
        options={"stages": 3, "enable": True},
        formula="nearest integer, saturated",
        formats="FP32 -> integers of 8, 16, 32 bits",
        error="0.5",
        stages=3,
    ),
    "XORWOW lane": Unit(
        part=Xorwow,
        formula="v + d of the next state",
        formats="32-bit words",
        error="",
    ),
    "vector lane": Unit(
        part=VectorLane,
        options={"stages": _VECTOR},
        formula=f"(a op b) op c; sum, max, min over {PARTIALS} partials; scan",
        formats="FP32, 32-bit words",
        error="that of its two operators; a sum in the order of numerics",
        stages=2 * _VECTOR,
        rate=f"1; scan 1/{2 * _VECTOR + 1}; a / b, a ** b 1/{SLOW_CYCLES}",
    ),
    "scalar lane": Unit(
        part=ScalarLane,
        options={"stages": _VECTOR},
        formula="post(table(a * b + c)), steps of the functions",
        formats="FP32",
        error="0.5 ulp, 0.5 ulp and that of the table; composed: [functions](functions.md)",
        stages=2 * _VECTOR + _TABLE_STAGES,
        latency=LaneTiming(_VECTOR).result,
        rate="1; 1/n for n steps",
    ),
}
