"""The reference pages, written from the declarations: `python -m isa.docs` writes docs/isa.md and
docs/link-registers.md.
"""

import argparse
import inspect
import sys
from dataclasses import fields as dataclass_fields
from pathlib import Path

from isa import address_map, instructions, link
from isa.address_map import Cause, DmaCause, SemaphoreView, Sequencer, State
from isa.arguments import parameters
from isa.dtypes import DType
from isa.fields import (
    COLUMN,
    COLUMN_AT,
    DESCRIPTOR,
    HEADER,
    OPERAND,
    OPERAND_AT,
    OPTIONS,
    AluOp,
    Condition,
    Function,
    Part,
    RegOp,
    Space,
    Update,
)
from isa.geometry import INSTRUCTION_BYTES, ISA_VERSION, PRESETS, REGISTERS, SEMAPHORES, Config
from isa.instructions import INSTRUCTIONS
from isa.link import COUNTER_OFFSET, LINK_BLOCK_BYTES, LINK_REGISTERS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "isa.md"
LINK_PAGE = PAGE.with_name("link-registers.md")
_SHAPES = {
    "same": "all operands have equal partition counts and equal elements per partition",
    "matmul": "K and M are those of the last load_stationary; src0 and dst have equal elements (N)",
    "stationary": "K = partitions, M = elements per partition, M <= array",
    "reduce": "equal partition counts; dst has one element for each group of src0",
    "fill": "none",
    "state": "six elements per partition",
}


def reference():
    """The page as text."""
    parts = [
        "# ISA reference",
        "",
        "Written by `python -m isa.docs` from the declarations in `isa/`; edit those.",
        f"ISA version {ISA_VERSION}; instruction words and descriptors have {INSTRUCTION_BYTES} "
        "bytes, little-endian: bit n is "
        f"bit n % 8 of byte n // 8. Five sequencers with {REGISTERS} 32-bit registers each, "
        f"{SEMAPHORES} semaphores.",
        "Text form: [assembly.md](assembly.md).",
        "",
        *_summary(),
        *_rules(),
        *_instructions(),
        *_words(),
        *_enumerations(),
        *_addresses(),
        *_registers(),
        *_causes(),
        *_presets(),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |"
    yield ""


def _field_rows(fields):
    for f in fields:
        last = f.low + f.width - 1
        yield (
            f"`{f.name}`",
            f"{f.low}" if f.width == 1 else f"{f.low}..{last}",
            "signed" if f.signed else "",
            f.doc,
        )


def _sequencers(instruction):
    everywhere = instruction.sequencers == instructions.ALL_SEQUENCERS
    return "all" if everywhere else ", ".join(s.text for s in sorted(instruction.sequencers))


def _summary():
    yield "## Instructions"
    yield ""
    yield from _table(
        ("instruction", "opcode", "sequencers", "what it does", "cycles"),
        (
            (f"[`{i.name}`](#{i.name})", f"{i.opcode:#04x}", _sequencers(i), i.doc, i.cost)
            for i in INSTRUCTIONS
        ),
    )
    yield (
        "Cycles: of its engine or sequencer; N = elements per partition; start-up = max(16, "
        "array / 2)."
    )
    yield ""


def _rules():
    yield "## Rules"
    yield ""
    text = inspect.cleandoc(instructions.__doc__ or "")
    _, _, rules = text.partition("Order of checks")
    for line in ("Order of checks" + rules).splitlines():
        if line in ("The checks in detail", "Execution in detail"):
            yield f"### {line}"
            yield ""
        else:
            yield line
    yield ""


def _instructions():
    yield "## Each instruction"
    yield ""
    for instruction in INSTRUCTIONS:
        yield f"### {instruction.name}"
        yield ""
        yield instruction.doc
        yield f"Opcode {instruction.opcode:#04x}; sequencers: {_sequencers(instruction)}."
        if instruction.datapath:
            yield f"Shape rule: {_SHAPES[instruction.shape]}."
        elif instruction.fenced:
            yield "Fenced: executes when everything before it in its stream is complete."
        yield ""
        rows = list(_argument_rows(instruction))
        if rows:
            yield from _table(("argument", "needed", "block", "meaning"), rows)
        for rule in dict.fromkeys((r.cause, r.doc) for r in instruction.rules):
            yield f"* {rule[0].name}: {rule[1]}."
        if instruction.rules:
            yield ""


def _argument_rows(instruction):
    operands = {operand.slot: operand for operand in instruction.operands}
    columns = {column.doc: column for column in instruction.columns}
    enums = dict(instruction.enums)
    for name, needed in parameters(instruction).items():
        need = "yes" if needed else ""
        if name in operands:
            operand = operands[name]
            places = " or ".join(space.name for space in operand.spaces)
            dtypes = ", ".join(dtype.text for dtype in operand.dtypes)
            yield f"`{name}`", need, f"bit {OPERAND_AT[name]}", f"{operand.doc}; {places}; {dtypes}"
        elif name in columns:
            column = columns[name]
            bits = f"bit {COLUMN_AT[column.slot]}, `{column.imm}`"
            yield (
                f"`{name}`",
                need,
                bits,
                f"one value per partition, or an immediate; default {column.default}",
            )
        elif name not in ("wait", "update"):
            doc = OPTIONS[name].doc
            if name in enums:
                doc += ": " + ", ".join(getattr(m, "name", str(m)).lower() for m in enums[name])
            yield f"`{name}`", need, f"bit {OPTIONS[name].low}", doc
        elif needed:
            yield f"`{name}`", need, "header", "required here"


def _words():
    head = ("field", "bits", "", "meaning")
    yield "## Instruction words"
    yield ""
    yield "### Header"
    yield ""
    yield from _table(head, _field_rows(HEADER))
    yield "### Operand block"
    yield ""
    yield (
        "Bits count from the start of the block: "
        + ", ".join(f"`{k}` at {v}" for k, v in OPERAND_AT.items())
        + "."
    )
    yield ""
    yield from _table(head, _field_rows(OPERAND))
    yield "### Column block"
    yield ""
    yield (
        "Bits count from the start of the block: "
        + ", ".join(f"`{k}` at {v}" for k, v in COLUMN_AT.items())
        + "."
    )
    yield ""
    yield from _table(head, _field_rows(COLUMN))
    yield "### Options"
    yield ""
    yield "Only those that the instruction names are there; all other bits are reserved and 0."
    yield ""
    yield from _table(head, _field_rows(OPTIONS.values()))
    yield "## DMA descriptors"
    yield ""
    yield "Rows are copied in order, dimension 2 outermost."
    yield ""
    yield from _table(head, _field_rows(DESCRIPTOR))


def _enumerations():
    yield "## Codes"
    yield ""
    for enum in (Space, Update, AluOp, Function, Part, RegOp, Condition):
        yield f"**{enum.__name__}**: " + ", ".join(f"{m.value} {m.name}" for m in enum) + "."
        yield ""
    yield ("**DType**: " + ", ".join(f"{d.value} {d.name}" for d in DType) + ".")
    yield ""


def _addresses():
    yield "## Address map"
    yield ""
    rows = [
        ("HBM", address_map.HBM_BASE, "`hbm_bytes` bytes"),
        (
            "SBUF",
            address_map.SBUF_BASE,
            "partition p at p * `sbuf_stride_bytes`, `sbuf_bytes` bytes each",
        ),
        (
            "PSUM",
            address_map.PSUM_BASE,
            f"partition p at p * {address_map.PSUM_STRIDE_BYTES}; host and sequencers only",
        ),
        (
            "semaphores",
            address_map.SEMAPHORE_BASE,
            "4 bytes each, one view of "
            f"{address_map.SEMAPHORE_VIEW_BYTES:#x} bytes per kind of write: "
            + ", ".join(f"{v.value} {v.name}" for v in SemaphoreView),
        ),
        ("control registers", address_map.REGISTER_BASE, "below"),
        (
            "peer of link port p",
            1 << address_map.PEER_WINDOW_BITS,
            f"(p + 1) * 2^{address_map.PEER_WINDOW_BITS}: the map of the chip at the other end of "
            "the link (HBM, SBUF, PSUM, semaphores), as far as its ingress windows let it be seen",
        ),
    ]
    yield from _table(("window", "base", "what"), ((n, f"{a:#x}", w) for n, a, w in rows))


def _registers():
    yield "## Control registers"
    yield ""
    blocks = (
        ("Global", "from the base of the control registers", address_map.GLOBAL_REGISTERS),
        (
            "Sequencer",
            f"block of sequencer s at {address_map.SEQUENCER_BLOCK_OFFSET:#x} + s * "
            f"{address_map.SEQUENCER_BLOCK_BYTES:#x}; "
            + ", ".join(f"{s.value} {s.text}" for s in Sequencer),
            address_map.SEQUENCER_REGISTERS,
        ),
        (
            "DMA engine",
            f"block of engine e at {address_map.DMA_BLOCK_OFFSET:#x} + e * "
            f"{address_map.DMA_BLOCK_BYTES:#x}",
            address_map.DMA_REGISTERS,
        ),
        (
            "Link port",
            f"block of port p at {address_map.LINK_BLOCK_OFFSET:#x} + p * {LINK_BLOCK_BYTES:#x}; "
            f"counters from {COUNTER_OFFSET:#x} on, see [link.md](link.md)",
            LINK_REGISTERS,
        ),
    )
    for name, where, registers in blocks:
        yield f"### {name}"
        yield ""
        yield f"Offsets {where}."
        yield ""
        yield from _table(
            ("register", "offset", "access", "meaning"),
            ((f"`{r.name}`", f"{r.offset:#x}", r.access, r.doc) for r in registers),
        )


def _causes():
    yield "## States and causes"
    yield ""
    for enum in (State, Cause, DmaCause):
        yield f"**{enum.__name__}**: " + ", ".join(f"{m.value} {m.name}" for m in enum) + "."
        yield ""


def _presets():
    yield "## Configurations"
    yield ""
    names = [f for f in dataclass_fields(Config) if f.name != "name"]
    rows = []
    for f in names:
        kind = "yes" if f.metadata["architectural"] else ""
        rows.append(
            (
                f"`{f.name}`",
                f.metadata["doc"],
                kind,
                *(getattr(c, f.name) for c in PRESETS.values()),
            )
        )
    rows.append(
        (
            "`max_moving`",
            "largest N of a multiply_moving",
            "",
            *(c.max_moving for c in PRESETS.values()),
        )
    )
    rows.append(("hash", "CONFIG_HASH", "", *(f"{c.arch_hash:#018x}" for c in PRESETS.values())))
    yield from _table(("field", "meaning", "in the hash", *(f"`{name}`" for name in PRESETS)), rows)


def link_reference():
    """Page of the link's layouts, codes and registers as text."""
    return "\n".join(_link_parts()).rstrip() + "\n"


def _link_parts():
    field = ("field", "bits", "meaning")
    yield from (
        "# Link reference",
        "",
        "Written by `python -m isa.docs` from `isa/link.py`; edit that.  Behaviour: "
        "[link.md](link.md).",
        "",
        "## Control slot",
        "",
        "Last 16 bytes of a flit.",
        "",
    )
    yield from _table(field, _slot_rows(link.SLOT))
    yield from ("## Training frame", "", "The 96 bits of content.", "")
    yield from _table(field, _slot_rows(link.FRAME))
    yield from ("## Packet header", "", "First granule of a packet.", "")
    yield from _table(field, _slot_rows(link.HEADER))
    yield "## Codes"
    yield ""
    for enum in (link.Format, link.FlitType, link.Command, link.FrameType, link.Width,
                 link.LinkState, link.Reason, link.PacketKind, link.PacketStatus):  # fmt: skip
        yield f"**{enum.__name__}**: " + ", ".join(f"{m.value} {m.name}" for m in enum) + "."
        yield ""
    yield (
        "**Control**: "
        + ", ".join(f"bit {bit.bit_length() - 1} {bit.name}" for bit in link.Control)
        + "."
    )
    yield ""
    yield from (
        "## Registers",
        "",
        f"Offsets from the base of the port's block of {link.LINK_BLOCK_BYTES:#x} bytes.",
        "",
    )
    yield from _table(
        ("register", "offset", "access", "meaning"),
        ((f"`{r.name}`", f"{r.offset:#05x}", r.access, r.doc) for r in link.LINK_REGISTERS),
    )
    yield from (
        "## Counters",
        "",
        "Saturating, 32 bits; what is read is the copy that CONTROL.SNAPSHOT has taken.",
        "",
    )
    rows = [(f"`{name}`", f"{link.counter_offset(name):#05x}") for name in link.COUNTERS]
    rows += [
        ("frame and PRBS errors of lane i", f"{link.LANE_ERRORS_OFFSET:#05x} + 4 i"),
        ("payload granules sent on VC i", f"{link.VC_GRANULES_OFFSET:#05x} + 4 i"),
        ("payload granules accepted on VC i", f"{link.VC_GRANULES_OFFSET + 0x20:#05x} + 4 i"),
    ]
    yield from _table(("counter", "offset"), rows)
    yield "## Parameters"
    yield ""
    yield from _table(
        ("field", "meaning", "default"),
        ((f"`{f.name}`", f.metadata["doc"], f.default) for f in dataclass_fields(link.LinkConfig)),
    )


def _slot_rows(fields):
    for f in fields:
        last = f.low + f.width - 1
        yield f"`{f.name}`", f"{f.low}" if f.width == 1 else f"{f.low}..{last}", f.doc


def main(arguments=None):
    """Command line; returns the exit status: 1 with --check when the page is not current."""
    parser = argparse.ArgumentParser(
        prog="isa.docs", description="Write the reference pages from the declarations."
    )
    parser.add_argument("--check", action="store_true", help="only say whether the page is current")
    options = parser.parse_args(arguments)
    current = True
    for page, text in ((PAGE, reference()), (LINK_PAGE, link_reference())):
        if options.check:
            same = page.exists() and page.read_text() == text
            print(f"{page} is {'current' if same else 'not current: run python -m isa.docs'}")
            current = current and same
        else:
            page.write_text(text)
            print(page)
    return 0 if current else 1


if __name__ == "__main__":
    sys.exit(main())
