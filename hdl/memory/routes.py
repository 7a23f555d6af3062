"""Connections between the ports of a memory, its shared control and its partitions."""

from amaranth.hdl import Cat, Signal

from hdl.lib.check import check_stream
from hdl.lib.select import or_tree, select_value
from hdl.lib.tile import add_tile
from hdl.memory.partition_group import PartitionGroup
from hdl.memory.read_control import ReadControl
from hdl.memory.write_control import WriteControl


def add_read_control(m, platform, geometry, wides, narrows):
    """A ReadControl between these wide and narrow ports, without their data."""
    for i, port in enumerate(wides):
        check_stream(m, platform, port.req, f"read{i}")
    for i, port in enumerate(narrows):
        check_stream(m, platform, port.read, f"narrow{i}_read")
    m.submodules.read_control = control = ReadControl(
        geometry, wides=len(wides), narrows=len(narrows))
    for i, port in enumerate(wides):
        m.d.comb += [
            control.wide_valid[i].eq(port.req.valid), control.wide_word[i].eq(port.req.p),
            port.req.ready.eq(control.wide_ready[i]), port.valid.eq(control.wide_done[i]),
        ]
    for i, port in enumerate(narrows):
        m.d.comb += [
            control.narrow_valid[i].eq(port.read.valid),
            control.narrow_partition[i].eq(port.read.p.partition),
            control.narrow_word[i].eq(port.read.p.word),
            port.read.ready.eq(control.narrow_ready[i]), port.valid.eq(control.narrow_done[i]),
        ]
    return control


def add_write_control(m, platform, geometry, wides, narrows):
    """A WriteControl between these wide and narrow ports, without the wide data."""
    for i, port in enumerate(wides):
        check_stream(m, platform, port, f"write{i}")
    for i, port in enumerate(narrows):
        check_stream(m, platform, port.write, f"narrow{i}_write")
    m.submodules.write_control = control = WriteControl(
        geometry, wides=len(wides), narrows=len(narrows))
    for i, port in enumerate(wides):
        m.d.comb += [
            control.wide_valid[i].eq(port.valid), control.wide_word[i].eq(port.p.word),
            control.wide_partitions[i].eq(port.p.partitions),
            control.wide_bytes[i].eq(port.p.bytes), port.ready.eq(control.wide_ready[i]),
        ]
    for i, port in enumerate(narrows):
        write = port.write
        m.d.comb += [
            control.narrow_valid[i].eq(write.valid),
            control.narrow_partition[i].eq(write.p.partition),
            control.narrow_word[i].eq(write.p.word), control.narrow_bytes[i].eq(write.p.bytes),
            control.narrow_data[i].eq(write.p.data), write.ready.eq(control.narrow_ready[i]),
        ]
    return control


def add_groups(m, platform, geometry, read, read_ports, write_ports, *, masks, shared,
               add_stages=None, sum_data=None):
    """All partitions, in groups, with the wide data of the ports.

    read : ReadControl
    masks : name of a member of PartitionGroup -> value of each bank with a bit per partition
    shared : name -> value, the same for all groups
    """
    groups = []
    for number in range(geometry.partitions // PartitionGroup.size_of(geometry)):
        group = PartitionGroup(geometry, wide_reads=len(read_ports), wide_writes=len(write_ports),
                               add_stages=add_stages)
        add_tile(m, platform, f"group{number}", group)
        bits = group.size * geometry.data_bits
        part = slice(number * group.size, (number + 1) * group.size)
        m.d.comb += [
            group.load.eq(read.wide_load), group.bank.eq(read.wide_bank),
            group.narrow_hit.eq(
                Cat(read.narrow_hit[b][part] for b in range(geometry.banks))),
            *(getattr(group, name).eq(Cat(mask[part] for mask in values))
              for name, values in masks.items()),
            *(getattr(group, name).eq(value) for name, value in shared.items()),
            *(group.w_data[i].eq(port.p.data.word_select(number, bits))
              for i, port in enumerate(write_ports)),
            *(port.data.word_select(number, bits).eq(group.wide[i])
              for i, port in enumerate(read_ports)),
        ]
        if sum_data is not None:
            m.d.comb += group.sum_data.eq(sum_data.word_select(number, bits))
        groups.append(group)
    return groups


def connect_narrow_data(m, geometry, groups, read, narrows):
    """Gather the words that partitions show for narrow ports, and hand them to the ports."""
    g = geometry
    words = Signal(g.banks * g.data_bits)
    gathered = [Signal(g.data_bits, name=f"narrow_bank{b}") for b in range(g.banks)]
    m.d.comb += words.eq(or_tree([group.narrow.as_value() for group in groups]))
    for b in range(g.banks):
        with m.If(read.narrow_load[b]):
            m.d.sync += gathered[b].eq(words.word_select(b, g.data_bits))
    for i, port in enumerate(narrows):
        with m.If(read.narrow_port_load[i]):
            m.d.sync += port.data.eq(select_value(read.narrow_bank[i], gathered))
