"""AXI4 pins of the chip: the standard signal names, so that FPGA tools recognise the ports, and
their wiring; pins of the links.
"""

from amaranth.lib.wiring import In, Out

from hdl.lib.axi import ADDRESS_BITS, DATA_BITS, LENGTH_BITS
from hdl.link.ports import PhyPort
from isa.geometry import WORD_BYTES

_SIZE = 4
"""AxSIZE: 2^4 bytes a beat."""
_INCR = 1
"""AxBURST: incrementing."""
_ADDRESS = {"addr": ADDRESS_BITS, "len": LENGTH_BITS, "size": 3, "burst": 2, "valid": 1}


def axi_members(prefix, id_bits, *, master):
    """Members of an AXI4 port named `prefix`: {name: In or Out} for a component's signature."""
    out, back = (Out, In) if master else (In, Out)
    members = {}
    for channel in ("ar", "aw"):
        fields = {"id": id_bits, **_ADDRESS}
        members |= {f"{prefix}_{channel}{name}": out(width) for name, width in fields.items()}
        members[f"{prefix}_{channel}ready"] = back(1)
    members |= {
        f"{prefix}_wdata": out(DATA_BITS),
        f"{prefix}_wstrb": out(WORD_BYTES),
        f"{prefix}_wlast": out(1),
        f"{prefix}_wvalid": out(1),
        f"{prefix}_wready": back(1),
        f"{prefix}_bid": back(id_bits),
        f"{prefix}_bresp": back(2),
        f"{prefix}_bvalid": back(1),
        f"{prefix}_bready": out(1),
        f"{prefix}_rid": back(id_bits),
        f"{prefix}_rdata": back(DATA_BITS),
        f"{prefix}_rresp": back(2),
        f"{prefix}_rlast": back(1),
        f"{prefix}_rvalid": back(1),
        f"{prefix}_rready": out(1),
    }
    return members


def link_members(prefix, link):
    """Members of the pins of a link port named `prefix`: see `hdl.link.ports.PhyPort`."""
    members = PhyPort(link).members
    return {f"{prefix}_{name}": member.flow(member.shape) for name, member in members.items()}


def connect_link(m, component, prefix, phy):
    """Drive the pins `prefix`_* of `component` from a PhyPort, as its link's side gives it."""
    for name, member in phy.signature.members.items():
        pin, inner = getattr(component, f"{prefix}_{name}"), getattr(phy, name)
        m.d.comb += pin.eq(inner) if member.flow == Out else inner.eq(pin)


def connect_master(m, component, prefix, read, write):
    """Drive the pins `prefix`_* of `component` from an AxiRead and an AxiWrite (as their master
    side gives them).
    """

    def pin(name):
        return getattr(component, f"{prefix}_{name}")

    for channel, port in (("ar", read.ar), ("aw", write.aw)):
        m.d.comb += [
            pin(f"{channel}id").eq(port.p.id),
            pin(f"{channel}addr").eq(port.p.addr),
            pin(f"{channel}len").eq(port.p.len),
            pin(f"{channel}size").eq(_SIZE),
            pin(f"{channel}burst").eq(_INCR),
            pin(f"{channel}valid").eq(port.valid),
            port.ready.eq(pin(f"{channel}ready")),
        ]
    m.d.comb += [
        pin("wdata").eq(write.w.p.data),
        pin("wstrb").eq(write.w.p.strb),
        pin("wlast").eq(write.w.p.last),
        pin("wvalid").eq(write.w.valid),
        write.w.ready.eq(pin("wready")),
        write.b.p.id.eq(pin("bid")),
        write.b.p.resp.eq(pin("bresp")),
        write.b.valid.eq(pin("bvalid")),
        pin("bready").eq(write.b.ready),
        read.r.p.id.eq(pin("rid")),
        read.r.p.data.eq(pin("rdata")),
        read.r.p.resp.eq(pin("rresp")),
        read.r.p.last.eq(pin("rlast")),
        read.r.valid.eq(pin("rvalid")),
        pin("rready").eq(read.r.ready),
    ]


def connect_slave(m, component, prefix, read, write):
    """Drive an AxiRead and an AxiWrite (slave side: their `ar`, `aw`, `w` are inputs) from the pins
    `prefix`_*.
    """

    def pin(name):
        return getattr(component, f"{prefix}_{name}")

    for channel, port in (("ar", read.ar), ("aw", write.aw)):
        m.d.comb += [
            port.p.id.eq(pin(f"{channel}id")),
            port.p.addr.eq(pin(f"{channel}addr")),
            port.p.len.eq(pin(f"{channel}len")),
            port.valid.eq(pin(f"{channel}valid")),
            pin(f"{channel}ready").eq(port.ready),
        ]
    m.d.comb += [
        write.w.p.data.eq(pin("wdata")),
        write.w.p.strb.eq(pin("wstrb")),
        write.w.p.last.eq(pin("wlast")),
        write.w.valid.eq(pin("wvalid")),
        pin("wready").eq(write.w.ready),
        pin("bid").eq(write.b.p.id),
        pin("bresp").eq(write.b.p.resp),
        pin("bvalid").eq(write.b.valid),
        write.b.ready.eq(pin("bready")),
        pin("rid").eq(read.r.p.id),
        pin("rdata").eq(read.r.p.data),
        pin("rresp").eq(read.r.p.resp),
        pin("rlast").eq(read.r.p.last),
        pin("rvalid").eq(read.r.valid),
        read.r.ready.eq(pin("rready")),
    ]
