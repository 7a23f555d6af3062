"""Programs to text assembly that assembles to the same program.  Syntax: docs/assembly.md.

`python -m isa.disassembler x.celosia [-o x.casm]`.  Words that text does not express exactly, or
that the assembler would refuse, are written as `.word` with the reason as a comment.
"""

import argparse
import sys
from pathlib import Path

from isa.arguments import NotCanonical, arguments_of
from isa.check import check_static
from isa.encoding import DecodeError, DescriptorError, decode, decode_descriptor, encode
from isa.geometry import PRESETS
from isa.program_file import load
from isa.text import Names, TextError
from isa.text_data import format_data
from isa.text_lines import (
    format_descriptor,
    format_instruction,
    parse_descriptor,
    parse_instruction,
)


def disassemble(program):
    """Assembly text of a program."""
    names = Names(
        program.config,
        {tensor.name: tensor for tensor in program.tensors},
        {block.name: block for block in program.descriptors},
        dict(program.semaphores),
    )
    lines = [_config_line(program.config)]
    lines += [f".semaphore {name} {index}" for name, index in program.semaphores.items()]
    for tensor in program.tensors:
        lines.append(_tensor_line(tensor))
        if tensor.data is not None:
            lines += format_data(tensor)
    for block in program.descriptors:
        lines += ["", f".descriptors {block.name} @{block.address:#x}"]
        lines += [f"  {_descriptor_line(word, names)}" for word in block.words]
    for stream in program.streams:
        lines += ["", f".stream {stream.sequencer.text} @{stream.address:#x}"]
        lines += _stream_lines(program, stream, names)
    return "\n".join(lines) + "\n"


def instruction_text(program, sequencer, index):
    """One instruction of a program as assembly text, for messages."""
    stream = program.stream(sequencer)
    names = Names(
        program.config,
        {tensor.name: tensor for tensor in program.tensors},
        {block.name: block for block in program.descriptors},
        dict(program.semaphores),
    )
    labels = {at: name for name, at in program.labels.get(sequencer, {}).items()}
    return _instruction_line(program.config, stream, index, names, labels)


def _config_line(config):
    if PRESETS.get(config.name) == config:
        return f".config {config.name}"
    facts = " ".join(f"{key}={value}" for key, value in config.as_dict().items() if key != "name")
    return f".config {config.name} {facts}"


def _tensor_line(tensor):
    shape = "x".join(map(str, tensor.shape))
    place = f"{tensor.space} @{tensor.address:#x}"
    partition = f" partition={tensor.partition}" if tensor.partition else ""
    return f".tensor {tensor.name} {place} {tensor.dtype.text} {shape} {tensor.role}{partition}"


def _descriptor_line(word, names):
    try:
        text = format_descriptor(decode_descriptor(word), names)
        if parse_descriptor(text, names) == word:
            return text
        reason = "bits without meaning are set"
    except (DescriptorError, TextError) as error:
        reason = str(error)
    return f"{_word(word)}  # {reason}"


def _stream_lines(program, stream, names):
    labels = dict(program.labels.get(stream.sequencer, {}))
    for target in _targets(stream):
        if target not in labels.values() and target <= len(stream.words):
            name = f"L{target}"
            while name in labels:
                name += "_"
            labels[name] = target
    by_index = {}
    for name, index in labels.items():
        by_index.setdefault(index, []).append(name)
    first = {index: found[0] for index, found in by_index.items()}
    for index in range(len(stream.words)):
        yield from (f"{name}:" for name in by_index.get(index, ()))
        text = _instruction_line(program.config, stream, index, names, first)
        source = " ".join(stream.line(index).split())
        yield f"  {text}" + (f"  # {source}" if source and "#" not in text else "")
    yield from (f"{name}:" for name in by_index.get(len(stream.words), ()))


def _targets(stream):
    """Indices that branches and loops of a stream name."""
    found = set()
    for word in stream.words:
        try:
            _, fields = decode(word)
        except DecodeError:
            continue
        if "target" in fields:
            found.add(fields["target"])
    return sorted(found)


def _instruction_line(config, stream, index, names, labels):
    word = stream.words[index]
    try:
        instruction, fields = decode(word, stream.sequencer)
        fault = check_static(config, instruction, fields, place=(index, len(stream.words)))
        text = format_instruction(instruction, arguments_of(instruction, fields), names, labels)
        if fault is not None:
            return f"{_word(word)}  # {text}: {fault}"
        again = parse_instruction(text, names, {name: at for at, name in labels.items()})
        if encode(*again) == word:
            return text
        reason = "bits without meaning are set"
    except (DecodeError, NotCanonical, TextError) as error:
        reason = str(error)
    return f"{_word(word)}  # {reason}"


def _word(word):
    return f".word {int.from_bytes(word, 'little'):#x}"


def main(arguments=None):
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="isa.disassembler", description="Write a program file as assembly text."
    )
    parser.add_argument("program", help="program file (.celosia)")
    parser.add_argument("-o", "--output", help="assembly text; by default standard output")
    options = parser.parse_args(arguments)
    try:
        text = disassemble(load(options.program))
        if options.output:
            Path(options.output).write_text(text)
        else:
            print(text, end="")
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
