"""Rules that the control slot of a checked flit must keep."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.link.ports import REASON_BITS, SLOT_LAYOUT
from isa.link import (
    LONG_GRANULES,
    NO_PACKET,
    SHORT_GRANULES,
    Command,
    FlitType,
    Format,
    Reason,
)


class SlotCheck(wiring.Component):
    """Reason why a slot with a good CRC is a protocol error, for either format; combinational.

    The type comes first, then the command, then the fields that contradict each other.

    Members
    -------
    slot : In(SLOT_LAYOUT)
    short, long : Out: Reason if the slot ends a short or a long flit, Reason.NONE (0) if it keeps
        the rules.
    """

    def __init__(self):
        super().__init__(
            {"slot": In(SLOT_LAYOUT), "short": Out(REASON_BITS), "long": Out(REASON_BITS)}
        )

    def elaborate(self, platform):
        m = Module()
        slot = self.slot
        is_data, bad_type, bad_command, bad_slot = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            is_data.eq(slot.type == FlitType.DATA),
            bad_type.eq(~slot.type.matches(*(int(code) for code in FlitType))),
            bad_command.eq(slot.command > max(Command)),
            bad_slot.eq(
                (slot.payload != is_data)
                | ((slot.valid != 0) != is_data)
                | ((slot.first >= slot.valid) & (slot.first != NO_PACKET))
                | (slot.next_format > max(Format))
                | (slot.reserved != 0)
            ),
        ]
        for out, misfit in (
            (self.short, slot.valid > SHORT_GRANULES),
            (self.long, ~is_data | (slot.valid > LONG_GRANULES)),
        ):
            with m.If(bad_type):
                m.d.comb += out.eq(Reason.BAD_TYPE)
            with m.Elif(bad_command):
                m.d.comb += out.eq(Reason.BAD_COMMAND)
            with m.Else():
                m.d.comb += out.eq(Mux(bad_slot | misfit, Reason.BAD_SLOT, Reason.NONE))
        return m
