"""Encodings never change unnoticed: golden_encodings.txt holds text and bytes of typical
instructions and descriptors.

A changed line is a change of the ISA: raise ISA_VERSION, then run this file to write it again.
New instructions and options add lines (with any digits: running this file puts the right ones).
"""

from pathlib import Path

import pytest

from isa.assembler import assemble
from isa.disassembler import disassemble
from isa.encoding import decode
from isa.geometry import ISA_VERSION
from isa.instructions import BY_NAME, INSTRUCTIONS

FILE = Path(__file__).with_name("golden_encodings.txt")
COPY = "copy"


def entries():
    """[(text, bytes as hexadecimal digits)] of the file."""
    lines = [line for line in FILE.read_text().splitlines() if line and not line.startswith("#")]
    return list(zip(lines[::2], lines[1::2], strict=True))


def assembled(text):
    """128 bytes of one line, and the program round it."""
    name = text.split()[0]
    head = f".config {'tiny' if 'double_row' in text else 'small'}\n"
    if name == COPY:
        program = assemble(f"{head}.descriptors d @0\n{text}\n")
        return program.descriptors[0].words[0], program
    sequencer = min(BY_NAME[name].sequencers).text
    program = assemble(f"{head}.stream {sequencer} @0\n{text}\n" + "nop\n" * 9)
    return program.streams[0].words[0], program


@pytest.mark.parametrize("text, digits", entries(), ids=lambda v: v[:40])
def test_encodings_are_stable(text, digits):
    word, program = assembled(text)
    assert word.hex() == digits
    listing = [line.partition("#")[0].strip() for line in disassemble(program).splitlines()]
    assert text.replace("target=9", "target=L9") in listing


def test_every_instruction_and_every_field_is_there():
    used = {instruction.name: set() for instruction in INSTRUCTIONS}
    for text, digits in entries():
        if text.split()[0] != COPY:
            instruction, fields = decode(bytes.fromhex(digits))
            used[instruction.name] |= {path for path, value in fields.items() if value}
    for instruction in INSTRUCTIONS:
        missing = {field.name for field in instruction.fields} - used[instruction.name]
        missing -= {"opcode"}  # nop is 0
        if instruction.name == "multiply_moving":
            missing -= {"dst.dtype"}  # FP32 is 0
        assert not missing, f"{instruction.name}: {sorted(missing)}"


def test_the_file_is_of_this_version():
    assert FILE.read_text().startswith(f"# ISA version {ISA_VERSION}\n")


if __name__ == "__main__":
    parts = [
        f"# ISA version {ISA_VERSION}",
        "# Text and bytes, in memory order, of each word; see test_golden_encodings.py.",
    ]
    for line, _ in entries():
        parts += ["", line, assembled(line)[0].hex()]
    FILE.write_text("\n".join(parts) + "\n")
