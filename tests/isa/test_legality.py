"""What assembler and builder refuse statically, against the laws of `verif.legality`."""

from dataclasses import replace

import pytest

from isa.address_map import Cause
from isa.arguments import NotCanonical, arguments_of
from isa.assembler import AssemblyError, assemble
from isa.builder import ProgramBuilder
from isa.check import check_form, check_static
from isa.encoding import decode, encode
from isa.geometry import preset
from isa.instructions import BY_NAME, INSTRUCTIONS
from isa.text import Names
from isa.text_lines import format_instruction
from verif.legality import LAWS, broken, cause_of
from verif.legality_cases import Tally, combinations, instruction_fields, sample

TINY = preset("tiny")
SMALL = preset("small")
EACH = 5
MIXED = 0.02
"""Of `sample`, where not all combinations are tried."""
RULES = [
    pytest.param(instruction, index, id=f"{instruction.name}-{index}")
    for instruction in INSTRUCTIONS
    for index in range(len(instruction.rules))
]


def words(name, combination):
    """(instruction, fields) of an instruction with this combination."""
    return decode(encode(name, instruction_fields(name, combination)))


def agrees(fault, laws):
    """The Fault is what these broken Laws say."""
    cause = cause_of(laws)
    if fault is None or cause == Cause.NONE:
        return fault is None and cause == Cause.NONE
    named = [law.about for law in laws if law.cause == cause]
    return fault.cause == cause and (len(named) > 1 or named[0] in fault.message)


def test_laws_speak_of_every_compute_instruction():
    assert set(LAWS) == {i.name for i in INSTRUCTIONS if i.datapath}


@pytest.mark.parametrize("name", LAWS)
def test_every_combination(name):
    """On a chip with double rows; one without refuses these too."""
    tally = Tally(name)
    for combination in combinations(name):
        laws = broken(name, combination)
        instruction, fields = words(name, combination)
        fault = check_static(TINY, instruction, fields)
        assert agrees(fault, laws), f"{combination} breaks {laws}: {fault}"
        if "double_row" in combination and not laws:
            fault = check_static(SMALL, instruction, fields)
            expected = Cause.OUT_OF_RANGE if combination["double_row"] else None
            assert (fault and fault.cause) == expected, combination
        tally.add(laws)
    tally.check()


@pytest.mark.parametrize("name", LAWS)
def test_registers_change_nothing(name):
    """An offset from a register: the same Laws."""
    tally = Tally(name)
    slot = BY_NAME[name].operands[-1].slot
    for combination, laws in sample(name, EACH, MIXED):
        instruction, fields = words(name, combination)
        fields |= {f"{slot}.regs": 1, f"{slot}.offset": 5}
        assert agrees(check_static(TINY, instruction, fields), laws), f"{combination} breaks {laws}"
        tally.add(laws)
    tally.check()


def written(name, combination):
    """(instruction, fields, arguments as people write them), None where a code has no name.  Of an
    immediate in place of a column the dtype means nothing and is not written.
    """
    instruction, fields = words(name, combination)
    unused = [c.slot for c in instruction.columns if fields[f"{c.slot}.space"] == 0]
    fields |= {f"{slot}.dtype": 0 for slot in unused}
    if any(fields[f"{operand.slot}.space"] == 0 for operand in instruction.operands):
        return None
    try:
        return instruction, fields, arguments_of(instruction, fields)
    except (NotCanonical, ValueError):
        return None


@pytest.mark.parametrize("name", LAWS)
def test_text_and_builder(name):
    """The same arguments as a line and as a call: refused for the same reason, accepted as the
    same word.
    """
    tally = Tally(name)
    sequencer = min(BY_NAME[name].sequencers)
    for combination, laws in sample(name, EACH, MIXED, lambda one: written(name, one) is not None):
        instruction, fields, given = written(name, combination)
        line = format_instruction(instruction, given, Names(TINY), {})
        text = f".config tiny\n.stream {sequencer.text}\n{line}\nhalt\n"
        stream = ProgramBuilder(TINY).streams[sequencer]
        if laws:
            reason = f"{cause_of(laws).name}: {name}: "
            with pytest.raises(AssemblyError, match=f"^text:3: {reason}") as error:
                assemble(text)
            with pytest.raises(ValueError, match=f"^{reason}") as same:
                stream.emit(name, **given)
            assert str(error.value) == f"text:3: {same.value}"
            assert len(laws) > 1 or laws[0].about in str(same.value), line
        else:
            stream.emit(name, **given)
            assert stream.finish()[0][0] == encode(name, fields)
            assert assemble(text).stream(sequencer).words[0] == encode(name, fields)
        tally.add(laws)
    unsaid = [law.says for law in LAWS[name] if not tally.alone[law.says] and not law.coded]
    assert not unsaid
    assert tally.accepted >= 3 * EACH


@pytest.mark.parametrize("instruction, index", RULES)
def test_without_any_one_rule_something_illegal_passes(instruction, index):
    """Each rule of the declaration is needed and is seen."""
    rules = instruction.rules
    fewer = replace(instruction, rules=rules[:index] + rules[index + 1 :])
    for combination in combinations(instruction.name):
        laws = broken(instruction.name, combination)
        if laws:
            _, fields = words(instruction.name, combination)
            if not agrees(check_form(fewer, fields), laws):
                return
    raise AssertionError(f"{instruction.name}: nobody misses {rules[index]}")
