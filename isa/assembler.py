"""Text assembly to programs.  Syntax: docs/assembly.md.

`python -m isa.assembler x.casm -o x.celosia`; errors read `file:line: reason; what would be right`.
"""

import argparse
import re
import sys
from pathlib import Path

from isa.assembler_directives import DIRECTIVES, Assembly, AssemblyError
from isa.check import check_static
from isa.encoding import decode, encode
from isa.geometry import DESCRIPTOR_BYTES, INSTRUCTION_BYTES, preset
from isa.placement import ProgramError, check_name
from isa.program import DescriptorBlock, Program, Stream
from isa.program_file import SUFFIX, save
from isa.text import NAME, Names
from isa.text_lines import parse_descriptor, parse_instruction, split

_LABEL = re.compile(rf"({NAME}):(?:\s+|$)")
HBM_ALIGN = 64


def assemble(text, file="text", config=None):
    """The Program of assembly text; AssemblyError at the first line that is wrong.

    config: the Config to assemble for; by default the text names it with `.config`.
    """
    state = Assembly(file, config)
    if config is not None:
        state.names = Names(config)
    for number, line in enumerate(text.splitlines(), 1):
        state.line = number
        _guard(state, _read_line, line.partition("#")[0].strip())
    if state.names is None:
        state.fail("no configuration; start with .config NAME")
    _place(state)
    program = Program(
        state.config, semaphores=state.names.semaphores, tensors=list(state.names.tensors.values())
    )
    for section in state.sections:
        _guard(state, _encode_section, section)
        if isinstance(section.part, Stream):
            program.streams.append(section.part)
            program.labels[section.part.sequencer] = section.labels
        else:
            program.descriptors.append(section.part)
    try:
        program.check(file)
    except ProgramError as error:
        state.fail_at_declaration(error)
    return program


def _guard(state, action, argument):
    """Run a step; what its helpers refuse becomes an AssemblyError at the current line."""
    try:
        action(state, argument)
    except AssemblyError:
        raise
    except ProgramError as error:
        state.fail(f"{error.what}; {error.right}")
    except ValueError as error:
        state.fail(str(error))


def _read_line(state, line):
    label = _LABEL.match(line)
    if label:
        _define_label(state, label[1])
        line = line[label.end() :]
    if not line:
        return
    if line.startswith(".") and not line.startswith(".word"):
        name, *words = split(line)
        if name not in DIRECTIVES:
            state.fail(f"no directive {name!r}; there are {', '.join(DIRECTIVES)}, .word")
        if state.names is None and name != ".config":
            state.fail(f"{name} before .config; start with .config NAME")
        DIRECTIVES[name](state, words)
    elif not state.sections:
        state.fail("an instruction outside a stream; start one with .stream SEQUENCER")
    else:
        state.sections[-1].lines.append((state.line, line))


def _define_label(state, name):
    if not state.sections or not isinstance(state.sections[-1].part, Stream):
        state.fail("a label outside a stream; start one with .stream SEQUENCER")
    check_name(name, "label")
    section = state.sections[-1]
    if name in section.labels:
        state.fail(f"label {name!r} is there twice in this stream; choose another name")
    section.labels[name] = len(section.lines)


def _place(state):
    """Addresses of what has none: behind everything that has one, tensors first."""
    sizes = [
        (s, len(s.lines) * (INSTRUCTION_BYTES if isinstance(s.part, Stream) else DESCRIPTOR_BYTES))
        for s in state.sections
    ]
    ends = [s.part.address + size for s, size in sizes if s.placed]
    waiting = [tensor.name for tensor in state.unplaced]
    ends += [
        t.address + t.size_bytes
        for t in state.names.tensors.values()
        if t.space == "hbm" and t.name not in waiting
    ]
    at = max(ends, default=0)
    for tensor in state.unplaced:
        tensor.address = -(-at // HBM_ALIGN) * HBM_ALIGN
        at = tensor.address + tensor.size_bytes
    for section, size in sizes:
        if not section.placed:
            section.part.address = -(-at // INSTRUCTION_BYTES) * INSTRUCTION_BYTES
            at = section.part.address + size


def _encode_section(state, section):
    for index, (number, line) in enumerate(section.lines):
        state.line = number
        if line.startswith(".word"):
            word = _raw_word(state, line)
        elif isinstance(section.part, DescriptorBlock):
            word = parse_descriptor(line, state.names)
        else:
            word = _instruction(state, section, line, index)
        section.part.words.append(word)
        if isinstance(section.part, Stream):
            section.part.lines.append(f"{Path(state.file).name}:{number}")


def _instruction(state, section, line, index):
    name, fields = parse_instruction(line, state.names, section.labels)
    word = encode(name, fields)
    instruction, fields = decode(word, section.part.sequencer)
    fault = check_static(state.config, instruction, fields, place=(index, len(section.lines)))
    if fault is not None:
        state.fail(str(fault))
    return word


def _raw_word(state, line):
    parts = line.split()
    if (
        len(parts) != 2
        or parts[0] != ".word"
        or not re.fullmatch(r"0x[0-9a-fA-F]{1,256}", parts[1])
    ):
        state.fail(
            f"{line[:40]!r} is not understood; write .word 0x and up to {2 * INSTRUCTION_BYTES} "
            "hexadecimal digits"
        )
    return int(parts[1], 16).to_bytes(INSTRUCTION_BYTES, "little")


def main(arguments=None):
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="isa.assembler", description="Assemble text into a program file."
    )
    parser.add_argument("source", help="assembly text (.casm)")
    parser.add_argument(
        "-o", "--output", help=f"program file; by default the source with the suffix {SUFFIX}"
    )
    parser.add_argument("--config", help="name of the configuration; by default the text says it")
    options = parser.parse_args(arguments)
    output = options.output or str(Path(options.source).with_suffix(SUFFIX))
    try:
        config = preset(options.config) if options.config else None
        program = assemble(Path(options.source).read_text(), options.source, config)
        save(program, output)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    counts = ", ".join(f"{s.sequencer.text} {len(s.words)}" for s in program.streams)
    print(
        f"{output}: {program.config_name}, instructions: {counts or 'none'}, tensors: "
        f"{len(program.tensors)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
