"""Whole programs: orders of execution, several runs, dropped waits, random programs."""

from collections import Counter

import numpy as np
import pytest

from golden.arith import float32, matmul
from golden.arith.formats import BF16
from golden.chip import GoldenChip
from golden.hazard import HazardError
from isa.address_map import State
from isa.dtypes import DType
from isa.encoding import decode, decode_descriptor
from isa.fields import Part, Update
from isa.geometry import preset
from isa.instructions import INSTRUCTIONS
from verif import sample_programs
from verif.random_program import GUARD, generate, mutate_waits

TINY = preset("tiny")


def state(chip, result, program):
    """Everything that a program can observe, apart from its own instructions."""
    registers = [
        (s.state, s.cause, s.pc, s.retired, s.notify_value, s.notify_count, s.gpr.tobytes())
        for s in result.sequencers.values()
    ]
    tensors = [chip.tensor_data(t).tobytes() for t in program.tensors]
    memories = [chip.memories.sbuf.flat.tobytes(), chip.memories.psum.flat.tobytes()]
    return [tensors, memories, registers, result.dma, result.semaphores.tobytes()]


def run(program, seed=None):
    chip = GoldenChip(program.config, on_hazard="report")
    result = chip.run(program, seed=seed)
    return result, state(chip, result, program)


SAMPLES = {
    "chain": sample_programs.chain,
    "double buffer": sample_programs.double_buffer,
    "gemm": lambda config: sample_programs.gemm(config, 12, 4),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_wait_of_a_tight_program_matters(name):
    """Silent as written; with any one wait gone, flagged (or hung), whatever the order."""
    program = SAMPLES[name](TINY)
    result, expected = run(program)
    assert result.ok, result.errors()
    for seed in range(6):
        result, found = run(program, seed)
        assert result.ok and found == expected
    mutants = list(mutate_waits(program))
    assert len(mutants) >= 4
    for text, mutant in mutants:
        for seed in (None, 0, 1):
            assert run(mutant, seed)[0].hazards, f"{name}: {text} is not flagged, seed {seed}"


def test_gemm_is_the_chain_of_its_tiles():
    config = preset("small")
    program = sample_programs.gemm(config, 32)
    chip = GoldenChip(config)
    assert chip.run(program).ok
    codes = [chip.tensor_data(program.tensor(name)).view(np.uint16) for name in "ab"]
    a, b = (matmul.operand(x, BF16) for x in codes)
    for m in (0, 16):
        tile = matmul.chain(a[:16, m : m + 16], b[:16])
        tile = float32.add(tile, matmul.chain(a[16:, m : m + 16], b[16:]))
        assert (chip.tensor_data(program.tensor("c"))[m : m + 16] == tile).all()


def test_three_runs_in_a_row():
    """Only the memories remember: what a run reads of an earlier one is the same for all chips."""
    for seed in range(6):
        program = generate(TINY, seed, 25)
        first, second = GoldenChip(TINY), GoldenChip(TINY)
        for i in range(3):
            result = first.run(program)
            other = second.run(program, seed=i)
            assert result.ok and other.ok
            assert state(first, result, program) == state(second, other, program)
        fresh = GoldenChip(TINY)
        result = fresh.run(program)
        assert [s.retired for s in result.sequencers.values()] == [
            s.retired for s in other.sequencers.values()
        ]


@pytest.mark.parametrize("config", ["tiny", "small"])
def test_random_programs(config):
    """Sound and independent of the order; guards stay. What the generator covers is counted."""
    config = preset(config)
    seen = Counter()
    for seed in range(50 if config.name == "tiny" else 12):
        program = generate(config, seed, 30)
        result, expected = run(program)
        assert result.ok, (seed, result.errors())
        assert run(program, seed)[1] == expected, seed
        for tensor in program.tensors:
            if tensor.name.startswith("guard"):
                index = program.tensors.index(tensor)
                assert set(expected[0][index]) == {GUARD}, seed
        _count(program, seen)
    if config.name == "tiny":
        for seed in range(50, 250):
            _count(generate(config, seed, 30), seen)
        missing = [key for key in _wanted() if seen[key] < (1 if key in _MANY else 3)]
        assert not missing, (missing, seen)


_MANY = {
    (option, member)
    for instruction in INSTRUCTIONS
    for option, members in instruction.enums
    if len(members) > 8
    for member in members
}
"""Members of large enumerations: it is enough that each is drawn."""


def _count(program, seen):
    for stream in program.streams:
        for word in stream.words:
            instruction, f = decode(word)
            name = instruction.name
            seen[name] += 1
            seen[stream.sequencer.text, "wait"] += f["wait"]
            seen["wait_reg"] += f["wait_reg"]
            seen["update", f["update_kind"]] += 1
            seen["at_read"] += f["update_at_read"]
            seen["update_reg"] += f["update_reg"]
            for item in (*instruction.operands, *instruction.columns):
                slot = item.slot
                seen[name, slot, f[f"{slot}.space"]] += 1
                seen[slot, DType(f[f"{slot}.dtype"])] += 1
                seen["operand registers"] += f[f"{slot}.regs"] != 0
                if f"{slot}.step0" in f:
                    steps = [f[f"{slot}.step{i}"] for i in range(4) if f[f"{slot}.count{i}"] > 1]
                    seen["negative step"] += any(s < 0 for s in steps)
                    seen["zero step", slot] += 0 in steps
            for option in instruction.options:
                seen[name, option, f[option]] += 1
                seen[option, f[option]] += 1
            seen["imm_regs"] += f.get("imm_regs", 0) != 0
            seen["address_reg"] += f.get("address_reg", 0)
    for block in program.descriptors:
        for word in block.words:
            d = decode_descriptor(word)
            sides = tuple(
                "hbm" if a < program.config.hbm_bytes else "sbuf"
                for a in (d.src_address, d.dst_address)
            )
            seen["dma", *sides] += d.bytes > 0
            seen["dma without work"] += d.bytes == 0
            seen["dma update", d.update_kind] += 1


def _wanted():
    for instruction in INSTRUCTIONS:
        yield instruction.name
        for operand in instruction.operands:
            for space in operand.spaces:
                yield instruction.name, operand.slot, space
        for option, members in instruction.enums:
            for member in members:
                many = (option, member) in _MANY
                yield (option, member) if many else (instruction.name, option, member)
        for flag in ("sat", "stochastic", "transpose"):
            if flag in instruction.options and instruction.name != "memset":
                yield instruction.name, flag, 1
    yield from ((slot, dtype) for slot in ("src0", "dst") for dtype in DType)
    yield from (("part", part) for part in Part)
    yield from ((name, "double_row", 1) for name in ("load_stationary", "multiply_moving"))
    yield from (("update", kind) for kind in Update)
    yield from ("wait_reg", "at_read", "update_reg", "operand registers", "negative step")
    yield from (("zero step", "src0"), ("zero step", "dst"), "imm_regs", "address_reg")
    yield from (("dma", a, b) for a in ("hbm", "sbuf") for b in ("hbm", "sbuf"))
    yield from (
        "dma without work",
        ("dma update", Update.SET),
        ("multiply_moving", "accumulate", 0),
    )


def test_mutants_of_random_programs_are_flagged_or_harmless():
    """A mutant that the checker lets pass gives the right result in every order."""
    flagged = passed = 0
    for seed in range(5):
        program = generate(TINY, 200 + seed, 14)
        _, expected = run(program)
        for text, mutant in mutate_waits(program):
            if run(mutant)[0].hazards:
                flagged += 1
                continue
            passed += 1
            for order in range(5):
                result, found = run(mutant, order)
                assert not result.ok or found[:2] + found[3:] == expected[:2] + expected[3:], (
                    seed,
                    text,
                    order,
                )
    assert flagged > 2 * passed > 0


def test_generation_is_repeatable_and_depends_on_seed_and_size():
    words = [
        [s.words for s in generate(TINY, seed, size).streams]
        for seed, size in ((1, 10), (1, 10), (2, 10), (1, 11))
    ]
    assert words[0] == words[1]
    assert words[0] != words[2] != words[3] != words[0]


def test_a_program_with_a_hazard_raises_with_a_complete_result():
    program = next(
        m for t, m in mutate_waits(sample_programs.chain(TINY)) if t.startswith("vector")
    )
    with pytest.raises(HazardError, match="nothing orders") as caught:
        GoldenChip(TINY).run(program)
    assert "sample_programs.py:" in str(caught.value)
    assert all(s.state != State.RUNNING for s in caught.value.result.sequencers.values())
