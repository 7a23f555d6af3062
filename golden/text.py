"""Words for the origins of accesses: what the instruction is and where it was written."""

from isa.address_map import SEQUENCERS
from isa.disassembler import instruction_text
from isa.encoding import DecodeError, decode
from isa.fields import Space

_BY_TEXT = {sequencer.text: sequencer for sequencer in SEQUENCERS}


class Texts:
    """Texts for one run. program: the `isa.program.Program`, for source lines; may be None."""

    def __init__(self, chip, program):
        self._chip = chip
        self._program = program

    def of(self, origin):
        """Text of a `golden.hazard.Origin`."""
        label = self._chip.label
        agent = origin.agent.removeprefix(label)
        sequencer = _BY_TEXT.get(agent)
        if sequencer is not None:
            return label + self._instruction(sequencer, origin.index)
        if agent.startswith("dma"):
            return f"{origin.agent} descriptor at {origin.index:#x}{self._block(origin.index)}"
        return origin.agent

    def _instruction(self, sequencer, index):
        text = f"{sequencer.text}[{index}]"
        stream = self._program.stream(sequencer) if self._program else None
        if stream is not None and index < len(stream.words):
            words = instruction_text(self._program, sequencer, index)
            line = stream.line(index)
            return f"{text} {words} ({line})" if line else f"{text} {words}"
        try:
            instruction, fields = decode(self._chip.sequencers[sequencer].word(index), sequencer)
        except DecodeError:
            return text
        operands = [
            f"{o.slot}={Space(fields[f'{o.slot}.space']).name.lower()}"
            f"[{fields[f'{o.slot}.partition']}+{fields[f'{o.slot}.partition_count']}"
            f" @{fields[f'{o.slot}.offset']:#x}]"
            for o in instruction.operands
        ]
        return text + " " + " ".join([instruction.name, *operands])

    def _block(self, address):
        for block in self._program.descriptors if self._program else ():
            if block.address <= address < block.address + block.size_bytes:
                return f" ({block.name}[{(address - block.address) // 128}])"
        return ""
