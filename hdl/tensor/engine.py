"""The tensor engine: issue, operand readers, array, PSUM port, reports."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.arith.decode import OperandFormat, operand_format
from hdl.lib.fifo import StreamFifo
from hdl.lib.issue import EngineSignature
from hdl.memory.ports import PsumAccumulate, SbufRead
from hdl.memory.reader import Reader, ReadRequest
from hdl.tensor.array import PeArray
from hdl.tensor.moving import MovingControl, issue_layout
from hdl.tensor.result_port import ResultPort
from hdl.tensor.sequence import SEQUENCE_BITS, InOrderReport
from hdl.tensor.weight_loader import LoadIssue, WeightLoader
from isa.instructions import BY_NAME

_QUEUE = 4
"""Instructions of a kind that wait: one being read ahead, and the rest so that issue runs ahead of
it."""
_LOAD, _MULTIPLY = 0, 1


class TensorEngine(wiring.Component):
    """Executes load_stationary and multiply_moving, all formats and modes.

    A multiply takes N cycles, or B + 1 if that is more and it follows a load of B beats, when
    operands come at one beat a cycle; so loads are hidden.  B is M / 4 for contiguous aligned
    elements of 1 or 2 bytes, else M. A column is handed to PSUM `PeArray.latency` + 1
    cycles after it went into the array.

    Loads fill shadow registers.  The first multiply after one or more loads uses the last of them,
    as do all multiplies up to the next load.  `read_done` follows the last word read; `complete` of
    a load its last weight on the way into the array, of a multiply its last column visible in PSUM.

    Members
    -------
    engine : In(EngineSignature())
        Instructions from the sequencer; their sources are in SBUF, destinations in PSUM, FP32.
    stationary, moving : Out(SbufRead(config))
    accumulate : Out(PsumAccumulate(config))
    column_active, load_active : Out(1)
        A moving column, a weight beat goes into the array in this cycle; for counters.
    """

    def __init__(self, config):
        self._config = config
        super().__init__(
            {
                "engine": In(EngineSignature()),
                "stationary": Out(SbufRead(config)),
                "moving": Out(SbufRead(config)),
                "accumulate": Out(PsumAccumulate(config)),
                "column_active": Out(1),
                "load_active": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self._config
        m.submodules.stationary_reader = stationary = Reader(config, psum=False, lanes4=True)
        m.submodules.moving_reader = moving = Reader(config, psum=False)
        m.submodules.load_requests = load_requests = StreamFifo(ReadRequest, depth=_QUEUE)
        m.submodules.loads = loads = StreamFifo(LoadIssue, depth=_QUEUE)
        m.submodules.moving_requests = moving_requests = StreamFifo(ReadRequest, depth=_QUEUE)
        m.submodules.multiplies = multiplies = StreamFifo(issue_layout(config), depth=_QUEUE)
        m.submodules.read_report = read_report = InOrderReport()
        m.submodules.complete_report = complete_report = InOrderReport()
        m.submodules.loader = loader = WeightLoader(config)
        m.submodules.control = control = MovingControl(config)
        m.submodules.array = array = PeArray(config)
        m.submodules.result = result = ResultPort(config, latency=array.latency)
        wiring.connect(m, wiring.flipped(self.stationary), stationary.sbuf)
        wiring.connect(m, wiring.flipped(self.moving), moving.sbuf)
        wiring.connect(m, wiring.flipped(self.accumulate), result.accumulate)
        wiring.connect(m, load_requests.o, stationary.request)
        wiring.connect(m, loads.o, loader.issue)
        wiring.connect(m, moving_requests.o, moving.request)
        wiring.connect(m, multiplies.o, control.issue)

        self._issue(
            m,
            load_requests.i,
            loads.i,
            moving_requests.i,
            multiplies.i,
            (read_report.issue, complete_report.issue),
        )

        # Operands into the array, as they are in memory.
        m.d.comb += [
            loader.beat.valid.eq(stationary.out.valid),
            loader.beat.payload.mask.eq(stationary.out.payload.mask),
            loader.beat.payload.last.eq(stationary.out.payload.last),
            stationary.out.ready.eq(loader.beat.ready),
            control.element.valid.eq(moving.out.valid),
            control.element.payload.last.eq(moving.out.payload.last),
            moving.out.ready.eq(control.element.ready),
            control.loads.eq(loader.loads),
            loader.swaps.eq(control.swaps),
            array.control.swap.eq(control.swap),
            array.control.moving_format.eq(control.format),
            array.control.transpose.eq(control.transpose),
            array.control.weight_format.eq(loader.format),
            array.control.group.eq(loader.group),
            array.control.shift.eq(loader.shift),
            array.control.low.eq(loader.low),
            array.control.high.eq(loader.high),
            array.weights.eq(stationary.out.payload.data),
            array.active.eq(control.active),
            array.moving.eq(moving.out.payload.data),
            result.tag.eq(control.tag),
            result.results.eq(array.results),
            self.column_active.eq(control.tag.valid),
            self.load_active.eq(loader.active),
        ]

        if config.double_row:
            m.d.comb += array.control.double_row.eq(control.double_row)

        m.d.comb += [
            read_report.event[_LOAD].eq(stationary.fetched),
            read_report.event[_MULTIPLY].eq(moving.fetched),
            complete_report.event[_LOAD].eq(loader.done),
            complete_report.event[_MULTIPLY].eq(result.complete),
            self.engine.read_done.eq(read_report.pulse),
            self.engine.complete.eq(complete_report.pulse),
        ]
        return m

    def _issue(self, m, load_request, load, moving_request, multiply, orders):
        """Sends an instruction to the queues of its kind and numbers loads and swaps.

        Load: after how many swaps it may overwrite the shadow registers.  Multiply: whether it
        swaps, after how many loads.
        """
        config = self._config
        issue, instruction = self.engine.issue, self.engine.issue.payload
        is_load, room, take = Signal(), Signal(), Signal()
        loads, swaps, fresh = Signal(SEQUENCE_BITS), Signal(SEQUENCE_BITS), Signal()
        load_room, multiply_room = Signal(), Signal()
        format = Signal(OperandFormat)
        quadrant_bit = ceil_log2(config.quadrant)
        m.d.comb += [
            is_load.eq(instruction.opcode == BY_NAME["load_stationary"].opcode),
            format.eq(operand_format(instruction.src0.dtype, instruction.part)),
            load_room.eq(load_request.ready & load.ready),
            multiply_room.eq(moving_request.ready & multiply.ready),
        ]
        with m.If(is_load):
            m.d.comb += room.eq(load_room)
        with m.Else():
            m.d.comb += room.eq(multiply_room)
        order_room = Signal()
        m.d.comb += [
            order_room.eq(orders[0].ready & orders[1].ready),
            issue.ready.eq(room & order_room),
            take.eq(issue.valid & issue.ready),
            *(order.valid.eq(take) for order in orders),
            *(order.payload.eq(~is_load) for order in orders),
            load_request.valid.eq(take & is_load),
            load.valid.eq(take & is_load),
            moving_request.valid.eq(take & ~is_load),
            multiply.valid.eq(take & ~is_load),
            load_request.payload.pattern.eq(instruction.src0),
            load.payload.swaps.eq(swaps),
            load.payload.operand_format.eq(
                Mux(instruction.transpose, OperandFormat.RAW.value, format)
            ),
            moving_request.payload.pattern.eq(instruction.src0),
            multiply.payload.result.eq(instruction.dst),
        ]
        settings = multiply.payload.multiply
        m.d.comb += [
            settings.rows.eq(instruction.src0.partition_count),
            settings.columns.eq(instruction.dst.partition_count),
            settings.operand_format.eq(format),
            settings.transpose.eq(instruction.transpose),
            settings.double_row.eq(instruction.double_row),
            settings.rotation.eq(instruction.dst.partition[quadrant_bit:]),
            settings.accumulate.eq(instruction.accumulate),
            settings.swap.eq(fresh),
            settings.loads.eq(loads),
        ]
        with m.If(take):
            m.d.sync += fresh.eq(is_load)
            with m.If(is_load):
                m.d.sync += loads.eq(loads + 1)
            with m.Elif(fresh):
                m.d.sync += swaps.eq(swaps + 1)
