"""Completion: descriptors end in order, each when its last write is acknowledged."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.dma.layout import Ending, Ticket
from hdl.lib.axi import write_response_layout
from hdl.sequencer.ports import SemaphoreUpdate
from isa.address_map import DmaCause
from isa.fields import Update


class Completion(wiring.Component):
    """Joins write answers, tickets and endings into semaphore updates and status.

    Members
    -------
    ending, ticket : In streams, one of each per descriptor, in order
    b : In stream of write answers, in order
    acknowledged : write bursts answered (modulo)
    update : Out stream of SemaphoreUpdate of descriptors that ended well and have one
    retired : one pulse per descriptor, well or not
    completed : one pulse per descriptor that ended well, when its update has been taken
    failed, cause, address : pulse and facts of a descriptor that did not

    A bus error goes before a bad address: it happened in an earlier row.
    """

    def __init__(self):
        super().__init__(
            {
                "ending": In(stream.Signature(Ending)),
                "ticket": In(stream.Signature(Ticket)),
                "b": In(stream.Signature(write_response_layout())),
                "acknowledged": Out(Ticket.as_shape()["burst"].shape),
                "update": Out(stream.Signature(SemaphoreUpdate)),
                "retired": Out(1),
                "completed": Out(1),
                "failed": Out(1),
                "cause": Out(2),
                "address": Out(64),
            }
        )

    def elaborate(self, platform):
        m = Module()
        write_error = Signal()
        acknowledged_all, ended, bus_error, bad, silent, taken = (
            Signal(),
            Signal(),
            Signal(),
            Signal(),
            Signal(),
            Signal(),
        )
        ending = self.ending.p
        m.d.comb += [
            acknowledged_all.eq(self.ticket.valid & (self.acknowledged == self.ticket.p.burst)),
            # From here on answers belong to the next descriptor: they wait until this one has gone.
            self.b.ready.eq(~acknowledged_all),
            taken.eq(self.b.valid & self.b.ready),
            ended.eq(acknowledged_all & self.ending.valid),
            bus_error.eq(write_error | self.ticket.p.poisoned),
            bad.eq(bus_error | (ending.cause != DmaCause.NONE)),
            silent.eq(bad | (ending.update.kind == Update.NONE)),
            self.update.valid.eq(ended & ~silent),
            self.update.p.eq(ending.update),
            self.retired.eq(ended & (silent | self.update.ready)),
            self.ending.ready.eq(self.retired),
            self.ticket.ready.eq(self.retired),
            self.completed.eq(self.retired & ~bad),
            self.failed.eq(self.retired & bad),
            self.cause.eq(Mux(bus_error, DmaCause.BUS_ERROR, ending.cause)),
            self.address.eq(ending.address),
        ]
        m.d.sync += self.acknowledged.eq(self.acknowledged + taken)
        with m.If(self.retired):
            m.d.sync += write_error.eq(0)
        with m.Elif(taken & self.b.p.resp[1]):
            m.d.sync += write_error.eq(1)
        return m
