"""Stage 1 against the rules in `isa.check`: operands, registers, boxes, what goes to the engine."""

import random
from math import prod

import pytest

from hdl.sequencer.layout import column_slots, instructions_of, operand_slots
from isa.address_map import Cause, Sequencer
from isa.check import check, check_form, has_work, register_fields, substitute
from isa.check_operands import STATE_WORDS, element_bytes
from isa.dtypes import SUPPORTED, DType
from isa.encoding import encode_int, field_map
from isa.fields import COLUMN_REGS, DIMS, OPERAND_REGS
from isa.geometry import preset
from isa.instructions import BY_NAME
from verif.prepare_bench import PrepareBench

ENGINES = (Sequencer.TENSOR, Sequencer.VECTOR, Sequencer.SCALAR)


def extent(fields, slot):
    """Elements, first byte and byte past the last, of a substituted operand."""
    size = element_bytes(fields, slot)
    steps = [fields[f"{slot}.step{i}"] for i in range(DIMS)]
    counts = [fields[f"{slot}.count{i}"] for i in range(DIMS)]
    spans = [step * (count - 1) for step, count in zip(steps, counts, strict=True)]
    low = fields[f"{slot}.offset"] + size * sum(min(s, 0) for s in spans)
    high = fields[f"{slot}.offset"] + size * (1 + sum(max(s, 0) for s in spans))
    return prod(counts), low, high


class Maker:
    """Random instructions near the edges of the rules."""

    def __init__(self, config, rng):
        self.config, self.rng = config, rng

    def partitions(self):
        rng, p = self.rng, self.config.partitions
        count = rng.choice([1, p // 4, p // 4 + 1, p // 2, p // 2 + 1, p, p + 1, rng.randint(0, p)])
        start = rng.choice([0, 0, p // 4, p // 2, 3 * p // 4, p, rng.randint(0, 255)])
        return start, count

    def counts(self, elements):
        """Four counts with about that product."""
        rng = self.rng
        if rng.random() < 0.1:
            return rng.choice(
                [
                    [65535, 1, 1, 1],
                    [256, 256, 1, 1],
                    [1, 256, 1, 257],
                    [2, 32768, 1, 1],
                    [16, 16, 16, 16],
                    [65535, 65535, 65535, 65535],
                    [1, 1, 65535, 2],
                    [4, 1, 4, 4097],
                ]
            )
        counts = [1, 1, 1, 1]
        for i in rng.sample(range(DIMS), DIMS):
            divisors = [d for d in range(1, 9) if elements % d == 0]
            counts[i] = rng.choice(divisors)
            elements //= counts[i]
        counts[rng.randrange(DIMS)] *= elements
        if rng.random() < 0.03:
            counts[rng.randrange(DIMS)] = 0
        return counts

    def operand(self, declared, elements, place, modes):
        rng, slot = self.rng, declared.slot
        dtype = rng.choice(declared.dtypes)
        size = dtype.itemsize * (2 if slot == "src0" and modes.get("double_row") else 1)
        space = rng.choice(declared.spaces)
        capacity = self.config.sbuf_bytes if space == 1 else self.config.psum_bytes
        counts = self.counts(elements)
        limit = capacity // size
        steps = [
            rng.choice([0, 1, -1, rng.randint(-8, 8), rng.randint(-32768, 32767)])
            for _ in range(DIMS)
        ]
        if rng.random() < 0.8:
            steps = [
                s if abs(s) * c < limit // 3 else rng.choice([0, 1, -1])
                for s, c in zip(steps, counts, strict=True)
            ]
        start, partitions = place if rng.random() < 0.9 else self.partitions()
        fields = {
            "space": space,
            "dtype": dtype,
            "partition": start & 255,
            "partition_count": partitions,
            "offset": 0,
            "regs": 0,
        }
        for i in range(DIMS):
            fields |= {f"step{i}": steps[i], f"count{i}": counts[i]}
        fields = {f"{slot}.{name}": int(value) for name, value in fields.items()}
        _, low, high = extent(fields | modes, slot)
        at_edge = [-low, capacity - high]
        at_edge += [e + d * size for e in at_edge for d in (-1, 1)]
        if capacity - high + low > 0:
            inside = -low + size * rng.randrange((capacity - high + low) // size + 1)
            at_edge += [inside] * 6
        offset = rng.choice(at_edge) + (rng.randint(0, 3) if rng.random() < 0.05 else 0)
        fields[f"{slot}.offset"] = offset % (1 << 24)
        return fields

    def instruction(self, instruction, registers, stationary):
        """Fields, seldom refused by the rules that need no register."""
        for _ in range(40):
            fields = self._fields(instruction, stationary)
            if check_form(instruction, fields) is None or self.rng.random() < 0.03:
                break
        return self._through_registers(instruction, fields, registers)

    def _fields(self, instruction, stationary):
        rng = self.rng
        fields = dict.fromkeys(field_map(instruction.name), 0)
        fields |= {"opcode": instruction.opcode, "version": 1}
        elements = rng.choice(
            [
                1,
                2,
                3,
                12,
                16,
                24,
                self.config.max_moving,
                self.config.partitions,
                self.config.max_moving + 1,
                720,
            ]
        )
        place = self.partitions()
        if instruction.shape == "state" and rng.random() < 0.8:
            elements = STATE_WORDS
        flags = [n for n in ("sat", "stochastic", "double_row", "transpose") if n in fields]
        modes = {name: int(rng.random() < 0.25) for name in flags}
        if "part" in fields:
            modes["part"] = rng.randrange(4)
        if instruction.shape == "matmul" and stationary and rng.random() < 0.8:
            modes |= zip(("double_row", "transpose"), stationary[2:], strict=True)
        fields |= modes
        for declared in instruction.operands:
            fields |= self.operand(declared, elements, place, modes)
        for column in instruction.columns:
            dtype = rng.choice(SUPPORTED)
            space = rng.choice([0, 1, 2])
            capacity = [1 << 24, self.config.sbuf_bytes, self.config.psum_bytes][space]
            offset = rng.choice(
                [0, *(capacity - n for n in range(5)), rng.randrange(capacity // 4) * 4]
            )
            start = place[0] if rng.random() < 0.8 else self.partitions()[0]
            fields |= {
                f"{column.slot}.space": space,
                f"{column.slot}.dtype": int(dtype),
                f"{column.slot}.partition": start & 255,
                f"{column.slot}.offset": offset % (1 << 24),
            }
        for path, values in instruction.enums:
            fields[path] = int(rng.choice(values))
        for path in ("imm0", "imm1", "reverse0", "reverse1", "accumulate", "imm2"):
            if path in fields:
                fields[path] = rng.getrandbits(field_map(instruction.name)[path].width)
        if instruction.shape == "reduce" and rng.random() < 0.8:
            outer = [fields[f"src0.count{i}"] for i in range(fields["reduce_dims"], DIMS)]
            for i, count in enumerate([*outer, 1, 1, 1, 1][:DIMS]):
                fields[f"dst.count{i}"] = count
        if instruction.shape == "matmul" and stationary and rng.random() < 0.8:
            fields["src0.partition_count"], fields["dst.partition_count"] = stationary[:2]
        fields["wait_value"], fields["update_value"] = rng.choice([-1, 0, 1]), rng.getrandbits(31)
        return fields

    def _through_registers(self, instruction, fields, registers):
        """Some values go into registers (in the file `registers`, which has room for them)."""
        rng = self.rng
        if rng.random() < 0.5:
            return fields
        flags = [("wait_value", "wait_reg", 0), ("update_value", "update_reg", 0)]
        for items, names in (
            (instruction.operands, OPERAND_REGS),
            (instruction.columns, COLUMN_REGS),
        ):
            flags += [
                (f"{o.slot}.{n}", f"{o.slot}.regs", b) for o in items for b, n in enumerate(names)
            ]
        flags += [(f"imm{i}", "imm_regs", i) for i in range(2) if f"imm{i}" in fields]
        free = rng.sample(range(64), 64)
        for path, flag, bit in rng.sample(flags, rng.randint(1, len(flags))):
            value = fields[path] % (1 << 32)
            if rng.random() < 0.1:
                # The same low bits, beyond the field.
                value |= 1 << rng.choice([8, 16, 24, 31])
            number = free.pop()
            registers[number] = value
            fields[path] = number
            fields[flag] |= 1 << bit
        return fields


def compare(config, instruction, fields, registers, stationary, output):
    """Checks one output; returns the expected Cause and whether there is work."""
    values = substitute(instruction, fields, registers)
    fault = check(config, instruction, values, stationary=stationary)
    cause = Cause.NONE if fault is None else fault.cause
    assert Cause(output.cause) == cause, f"{fault} {values}"
    if cause != Cause.NONE:
        return cause, False
    assert output.wait_value == values["wait_value"]
    assert output.update_value == values["update_value"]
    works = has_work(instruction, values)
    assert output.no_work == (not works)
    if not works:
        return cause, False
    issue = output.issue
    first = instruction.operands[0].slot
    assert issue.elements == extent(values, first)[0]
    used = {o.slot for o in instruction.operands}
    for slot in operand_slots(min(instruction.sequencers)):
        pattern = issue[slot]
        if slot not in used:
            assert pattern.as_bits() == 0
            continue
        _, low, high = extent(values, slot)
        assert (pattern.low, pattern.high) == (low, high)
        assert 1 << pattern.size == element_bytes(values, slot)
        for name in ("space", "dtype", "partition", "partition_count", "offset"):
            assert pattern[name] == values[f"{slot}.{name}"], name
        for i in range(DIMS):
            assert pattern.step[i] == values[f"{slot}.step{i}"]
            assert pattern.count[i] == values[f"{slot}.count{i}"]
    for column in instruction.columns:
        operand = issue[column.slot]
        for name in ("space", "dtype", "partition", "offset"):
            if values[f"{column.slot}.space"]:
                assert operand[name] == values[f"{column.slot}.{name}"]
        assert issue[column.imm] == values[column.imm] % (1 << 32)
    for name in (
        "opcode",
        "op0",
        "op1",
        "func",
        "reverse0",
        "reverse1",
        "accumulate",
        "reduce_dims",
        "imm0",
        "imm2",
        "sat",
        "stochastic",
        "part",
        "double_row",
        "transpose",
    ):
        if name in values:
            assert issue[name] == values[name] % (1 << 32), name
    return cause, True


def campaign(config, sequencer, count, seed):
    rng = random.Random(seed)
    maker = Maker(config, rng)
    instructions = [i for i in instructions_of(sequencer) if i.datapath]
    seen = {}

    def cases():
        stationary = None
        for number in range(count):
            instruction = instructions[number % len(instructions)]
            registers = [rng.getrandbits(32) for _ in range(64)]
            fields = maker.instruction(instruction, registers, stationary)
            output, cycles = yield encode_int(instruction.name, fields), registers
            cause, works = compare(config, instruction, fields, registers, stationary, output)
            substituted = len(register_fields(instruction, fields))
            if check_form(instruction, fields) is not None:
                assert cycles == 2
            elif cause == Cause.NONE and not works:
                assert cycles == 3 + substituted
            else:
                assert cycles == 5 + substituted
            if instruction.name == "load_stationary" and works:
                values = substitute(instruction, fields, registers)
                stationary = (
                    values["src0.partition_count"],
                    extent(values, "src0")[0],
                    values["double_row"],
                    values["transpose"],
                )
            key = (instruction.name, cause, works)
            seen[key] = seen.get(key, 0) + 1

    PrepareBench(config, sequencer).run(cases())
    assert sum(seen.values()) == count
    return seen


@pytest.mark.parametrize("name", ["tiny", "trn2"])
@pytest.mark.parametrize("sequencer", ENGINES)
def test_random_operands_match_the_rules(sequencer, name):
    seen = campaign(preset(name), sequencer, 900 if sequencer == Sequencer.VECTOR else 400, 1)
    causes = {cause for _, cause, _ in seen}
    assert {
        Cause.NONE,
        Cause.BAD_PARTITION,
        Cause.MISALIGNED,
        Cause.OUT_OF_RANGE,
        Cause.SHAPE_MISMATCH,
    } <= causes
    for instruction in instructions_of(sequencer):
        if instruction.datapath:
            assert seen.get((instruction.name, Cause.NONE, True), 0) >= 3
    assert any(not works and cause == Cause.NONE for _, cause, works in seen)


def test_modes_are_those_of_the_stationary():
    config = preset("tiny")
    modes = [(0, 0), (1, 0), (0, 1)]

    def fields_of(name, double_row, transpose):
        instruction = BY_NAME[name]
        fields = dict.fromkeys(field_map(name), 0) | {"opcode": instruction.opcode, "version": 1}
        for operand in instruction.operands:
            dtype = DType.FP32 if operand.slot == "dst" else DType.FP8_E4M3
            fields |= {f"{operand.slot}.count{i}": 1 for i in range(DIMS)}
            fields |= {
                f"{operand.slot}.dtype": dtype,
                f"{operand.slot}.space": operand.spaces[0],
                f"{operand.slot}.partition_count": 2,
                f"{operand.slot}.count0": 2,
                f"{operand.slot}.step0": 1,
            }
        return instruction, fields | {"double_row": double_row, "transpose": transpose}

    def cases():
        for loaded in modes:
            for used in modes:
                for name, mode in (("load_stationary", loaded), ("multiply_moving", used)):
                    instruction, fields = fields_of(name, *mode)
                    output, _ = yield encode_int(name, fields), [0] * 64
                    compare(config, instruction, fields, [0] * 64, (2, 2, *loaded), output)
                expected = Cause.NONE if loaded == used else Cause.SHAPE_MISMATCH
                assert Cause(output.cause) == expected

    PrepareBench(config, Sequencer.TENSOR).run(cases())


def test_double_rows_need_a_chip_with_them():
    config = preset("small")
    assert not config.double_row
    seen = campaign(config, Sequencer.TENSOR, 150, 3)
    assert seen["load_stationary", Cause.NONE, True] > 3
    assert seen["load_stationary", Cause.OUT_OF_RANGE, False] > 3


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["tiny", "small", "medium", "trn1", "trn2"])
@pytest.mark.parametrize("sequencer", ENGINES)
def test_many_random_operands_match_the_rules(sequencer, name):
    campaign(preset(name), sequencer, 20000, 2)


def test_columns_exist_where_declared():
    assert column_slots(Sequencer.TENSOR) == ()
    assert column_slots(Sequencer.VECTOR) == ("column0", "column1")
