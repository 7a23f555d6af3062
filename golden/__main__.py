"""Runs a program file on the golden model: `python -m golden program.celosia`.

Prints how each sequencer ended, every hazard, and a summary of the outputs. Exit status: 0 when
all is well, 1 when something stopped with an error or a hazard was found, 2 when the program cannot
be used.
"""

import argparse
import hashlib
import sys
from pathlib import Path

import numpy as np

from golden.chip import GoldenChip
from golden.schedule import Runaway
from isa.address_map import State
from isa.geometry import GeometryError, preset
from isa.program import ProgramError
from isa.program_file import load


def main(arguments=None):
    """Command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        config = preset(options.config) if options.config else None
        program = load(options.program, config)
        data = {name: _array(program.tensor(name), path) for name, path in options.input}
        checks = options.check == "all"
        chip = GoldenChip(
            config or program.config,
            races=checks,
            uninitialised=checks,
            overlap=checks,
            on_hazard="report",
        )
        chip.load(program, data)
    except (ProgramError, GeometryError, ValueError, KeyError, OSError) as error:
        print(f"error: {error.args[0] if error.args else error}", file=sys.stderr)
        return 2
    try:
        result = chip.launch(program.launch(), program=program, seed=options.seed)
    except Runaway as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    _print_status(result)
    for tensor in program.with_role("output"):
        values = chip.tensor_data(tensor)
        print(_summary(tensor, values))
        if options.dump:
            _dump(Path(options.dump), tensor, values)
    return 0 if result.ok else 1


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m golden", description="Runs a program file on the golden model."
    )
    parser.add_argument("program", help="program file")
    parser.add_argument("--config", help="preset to run on; the program's own when absent")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        type=_pair,
        metavar="NAME=FILE.npy",
        help="data of an input tensor (bf16: uint16 codes)",
    )
    parser.add_argument(
        "--dump", metavar="DIR", help="write outputs as NAME.npy (bf16: uint16 codes)"
    )
    parser.add_argument("--seed", type=int, help="schedule the agents in a random order")
    parser.add_argument(
        "--check",
        choices=("all", "none"),
        default="all",
        help="look for races, reads of unwritten bytes and overlaps (default: all)",
    )
    return parser


def _pair(text):
    name, equals, path = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r}, must be NAME=FILE.npy")
    return name, path


def _array(tensor, path):
    array = np.load(path)
    return array if tensor.dtype.numpy.isbuiltin == 1 else array.view(tensor.dtype.numpy)


def _print_status(result):
    for sequencer, status in result.sequencers.items():
        if status.state == State.IDLE:
            continue
        line = f"{sequencer.text:7} {status.state.name.lower()} at {status.pc}"
        line += f", {status.retired} retired"
        if status.notify_count:
            line += f", notified {status.notify_value:#x} ({status.notify_count})"
        print(line)
    for i, status in enumerate(result.dma):
        if status.descriptors:
            print(f"dma{i}    {status.descriptors} descriptors, {status.bytes} bytes")
    for line in result.errors():
        print(f"error: {line}")


def _summary(tensor, values):
    numbers = values.astype(np.float32)
    finite = numbers[np.isfinite(numbers)]
    digest = hashlib.sha256(values.tobytes()).hexdigest()[:16]
    text = f"{tensor.name}: {tensor.dtype.text} {tuple(tensor.shape)} sha256 {digest}"
    if finite.size:
        text += f", from {finite.min():.6g} to {finite.max():.6g}"
    if finite.size < numbers.size:
        text += f", {numbers.size - finite.size} not finite"
    return text


def _dump(directory, tensor, values):
    directory.mkdir(parents=True, exist_ok=True)
    numpy_type = tensor.dtype.numpy
    codes = values if numpy_type.isbuiltin == 1 else values.view(f"u{numpy_type.itemsize}")
    np.save(directory / f"{tensor.name}.npy", codes)


if __name__ == "__main__":
    sys.exit(main())
