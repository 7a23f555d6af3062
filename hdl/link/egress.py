"""Egress: AXI requests of this chip to the address map of the peer."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.lib.axi import AxiRead, AxiWrite
from hdl.link.egress_read import EgressRead
from hdl.link.egress_write import EgressWrite
from hdl.link.packet import READS, SESSION_BITS, Packer, granule_in_layout
from hdl.link.ports import REASON_BITS, packet_beat


class Egress(wiring.Component):
    """`EgressWrite` and `EgressRead` with their packets in beats.

    Members: `write`, `read` In AXI with `id_bits`; `posted`, `request` Out streams of
    `packet_beat`; `response` In stream of granules; `flush` In pulse, with `lost` or as `failed`
    rises; `lost`, `failed`, `session` In, `outstanding`, `error` Out as of the two.
    """

    def __init__(self, config, *, id_bits):
        self.config, self.id_bits = config, id_bits
        beats = stream.Signature(packet_beat(config.link))
        super().__init__(
            {
                "write": In(AxiWrite(config, id_bits)),
                "read": In(AxiRead(config, id_bits)),
                "posted": Out(beats),
                "request": Out(beats),
                "response": In(stream.Signature(granule_in_layout())),
                "flush": In(1),
                "lost": In(1),
                "failed": In(1),
                "session": In(SESSION_BITS),
                "outstanding": Out(range(READS + 1)),
                "error": Out(REASON_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.writes = writes = EgressWrite(self.config, id_bits=self.id_bits)
        m.submodules.reads = reads = EgressRead(self.config, id_bits=self.id_bits)
        m.submodules.posted_pack = posted = Packer(self.config.link)
        m.submodules.request_pack = request = Packer(self.config.link)
        connect(m, flipped(self.write), writes.write)
        connect(m, flipped(self.read), reads.read)
        connect(m, writes.o, posted.i)
        connect(m, posted.o, flipped(self.posted))
        connect(m, reads.o, request.i)
        connect(m, request.o, flipped(self.request))
        connect(m, flipped(self.response), reads.i)
        for part in (writes, reads):
            m.d.comb += [
                part.lost.eq(self.lost),
                part.failed.eq(self.failed),
                part.session.eq(self.session),
            ]
        m.d.comb += [
            posted.flush.eq(self.flush),
            request.flush.eq(self.flush),
            self.outstanding.eq(reads.outstanding),
            self.error.eq(reads.error),
        ]
        return m
