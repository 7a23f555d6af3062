"""The tensor engine against the golden arithmetic, in several geometries and pipeline depths."""

import numpy as np
import pytest

from isa.geometry import preset
from verif.tensor_bench import Access, Load, Multiply, TensorBench
from verif.tensor_programs import expected_psum, images, random_program

CONFIGS = {
    "4": preset("tiny").with_(double_row=1),
    "4-shallow": preset("tiny").with_(
        pe_multiply_stages=0, pe_add_stages=1, psum_add_stages=1, double_row=0
    ),
    "8-deep": preset("tiny").with_(
        array=8, pe_multiply_stages=2, pe_add_stages=4, psum_add_stages=6, double_row=1
    ),
    "16": preset("small").with_(double_row=0),
}
NIGHTLY = pytest.mark.nightly
_BENCHES = {}


def bench(name):
    if name not in _BENCHES:
        _BENCHES[name] = TensorBench(CONFIGS[name])
    return _BENCHES[name]


def flat(partition_count, start, count, partition=0):
    return Access(partition, partition_count, start, (count, 1, 1, 1), (1, 0, 0, 0))


def check(run, program, sbuf, psum):
    """PSUM as expected; one report of each kind per instruction, in order and in time."""
    want = expected_psum(program, sbuf, psum)
    wrong = np.argwhere(run.psum != want)
    if len(wrong):
        p, word = wrong[0]
        pytest.fail(
            f"{len(wrong)} words differ; partition {p} word {word}: "
            f"{run.psum[p, word]:08x}, not {want[p, word]:08x}"
        )
    results = np.array([0 if isinstance(i, Load) else len(i.source.elements) for i in program])
    assert len(run.cycles["column"]) == results.sum()
    for kind in ("issue", "read_done", "complete"):
        assert len(run.cycles[kind]) == len(program)
        assert (np.diff(run.cycles[kind]) > 0).all()
    assert (run.cycles["read_done"] > run.cycles["issue"]).all()
    assert (run.cycles["complete"] >= run.cycles["read_done"]).all()
    assert (run.columns["complete"] >= results.cumsum()).all()


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 400), marks=NIGHTLY)])
@pytest.mark.parametrize("name", CONFIGS)
def test_random_programs(name, seeds):
    config = CONFIGS[name]
    for seed in seeds:
        rng = np.random.default_rng([seed, config.partitions])
        sbuf, psum = images(config, rng)
        program = random_program(config, rng, 60)
        deny = int(rng.choice([0, 40, 160, 230]))
        gap = int(rng.choice([0, 4, 30]))
        run = bench(name).run(
            program, sbuf, psum, cycle_limit=100_000, deny=deny, issue_gap=gap, seed=seed
        )
        check(run, program, sbuf, psum)


@pytest.mark.parametrize("name", CONFIGS)
def test_depth_does_not_change_results(name):
    """The same program on every geometry of 4 rows or more gives the same words."""
    rng = np.random.default_rng(5)
    small = CONFIGS["4-shallow"]
    sbuf, psum = images(small, rng)
    program = random_program(small, rng, 40)
    # Results start in quadrant 0 of the larger arrays too.
    program = [p for p in program if p.source.partition == 0]
    program = [p for p in program if isinstance(p, Load) or p.result.partition == 0]
    if not isinstance(program[0], Load):
        program.insert(0, Load(flat(4, 0, 4)))
    config = CONFIGS[name]
    big_sbuf = np.zeros((config.partitions, config.sbuf_bytes), np.uint8)
    big_psum = np.zeros((config.partitions, config.psum_words), np.uint32)
    big_sbuf[:4, : sbuf.shape[1]] = sbuf
    big_psum[:4, : psum.shape[1]] = psum
    run = bench(name).run(program, big_sbuf, big_psum, cycle_limit=20_000)
    want = expected_psum(program, sbuf, psum)
    assert (run.psum[:4, : psum.shape[1]] == want).all()


@pytest.mark.parametrize("name", CONFIGS)
def test_unused_rows_do_not_leak(name):
    """NaN and infinity in rows and columns that an instruction does not use, and columns of -0."""
    config = CONFIGS[name]
    size = config.partitions
    sbuf = np.full((size, config.sbuf_bytes // 2), 0x7FC0, np.uint16)
    sbuf[1::2] = 0xFF80
    psum = np.full((size, config.psum_words), 0x7FC00000, np.uint32)
    used = size // 2 - 1
    sbuf[:used, :used] = 0x3F80
    sbuf[:used, 64:72] = 0xBF80
    sbuf[:used, 72:76] = 0x8000
    program = [
        Load(flat(size, 128, size)),  # weights of NaN that the next load replaces in part
        Load(flat(used, 0, used)),
        Multiply(flat(used, 64, 12), flat(used, 3, 12, partition=config.quadrant), False),
        Multiply(flat(used, 72, 4), flat(used, 20, 4), True),
    ]
    psum[:used, 20:24] = 0x80000000
    sbuf = sbuf.view(np.uint8)
    run = bench(name).run(program, sbuf, psum, cycle_limit=2_000)
    check(run, program, sbuf, psum)
    rows = slice(config.quadrant, config.quadrant + used)
    assert (run.psum[rows, 3:11].view(np.float32) == -used).all()
    # The chain starts at +0, so a column of -0 products is +0, and -0 + +0 is +0.
    assert (run.psum[rows, 11:15] == 0).all()
    assert (run.psum[:used, 20:24] == 0).all()
    untouched = np.ones(config.psum_words, bool)
    untouched[3:15] = untouched[20:24] = False
    assert (run.psum[:, untouched] == 0x7FC00000).all()


def test_subnormal_products_are_flushed():
    """2^-63 * 2^-64 is below 2^-126 and becomes zero; 2^-63 * 2^-63 is kept."""
    config = CONFIGS["4"]
    sbuf = np.zeros((4, config.sbuf_bytes // 2), np.uint16)
    psum = np.zeros((4, config.psum_words), np.uint32)
    tiny = (127 - 63) << 7
    sbuf[:, :4] = tiny
    sbuf[0, 64], sbuf[0, 65], sbuf[:, 66] = tiny, tiny - (1 << 7), tiny - (1 << 7)
    program = [Load(flat(4, 0, 4)), Multiply(flat(4, 64, 3), flat(4, 0, 3), False)]
    sbuf = sbuf.view(np.uint8)
    run = bench("4").run(program, sbuf, psum, cycle_limit=1_000)
    check(run, program, sbuf, psum)
    assert (run.psum[:, :3] == [0x00800000, 0, 0]).all()


def test_multiply_before_any_load_uses_zero_weights():
    config = CONFIGS["4"]
    sbuf = np.full((4, config.sbuf_bytes // 2), 0x3F80, np.uint16)
    psum = np.full((4, config.psum_words), 0x3F800000, np.uint32)
    run = bench("4").run(
        [Multiply(flat(4, 0, 5), flat(4, 0, 5), False)],
        sbuf.view(np.uint8),
        psum,
        cycle_limit=1_000,
    )
    assert (run.psum[:, :5] == 0).all()


@pytest.mark.parametrize("name", CONFIGS)
def test_repeated_destination_is_spaced(name):
    """Step 0 in the result: accumulations onto one word are psum_accumulate_cycles apart,
    overwrites are not held up."""
    config = CONFIGS[name]
    rng = np.random.default_rng(2)
    sbuf, psum = images(config, rng)
    size = config.partitions
    same = Access(0, size, 7, (20, 1, 1, 1), (0, 0, 0, 0))
    for accumulate in (True, False):
        program = [Load(flat(size, 0, size)), Multiply(flat(size, 64, 20), same, accumulate)]
        run = bench(name).run(program, sbuf, psum, cycle_limit=2_000)
        check(run, program, sbuf, psum)
        apart = np.diff(run.cycles["column"])
        assert (apart == (config.psum_accumulate_cycles if accumulate else 1)).all()


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("loads", [True, False])
@pytest.mark.parametrize("name", CONFIGS)
def test_throughput(name, loads, accumulate):
    """N cycles for each multiply, weights new or not, when instructions come every 5 cycles: the
    bound, within 1 %."""
    config = CONFIGS[name]
    size = config.partitions
    rng = np.random.default_rng(3)
    sbuf, psum = images(config, rng)
    for n in (config.start_up_cycles, config.start_up_cycles + 7, min(64, config.max_moving)):
        program = [Load(flat(size, 0, size))]
        for tile in range(120):
            if loads:
                program.append(Load(flat(size, 8 * (tile % 8), size)))
            start = 512 + 8 * (tile % 16)
            program.append(
                Multiply(
                    flat(size, start, n),
                    flat(size, config.psum_words // 8 * (tile % 2), n),
                    accumulate,
                )
            )
        run = bench(name).run(program, sbuf, psum, cycle_limit=100_000, issue_gap=4)
        check(run, program, sbuf, psum)
        columns = run.cycles["column"]
        bound = 120 * n
        assert bound == len(columns)
        assert columns[-1] - columns[0] + 1 <= 1.01 * bound, f"N = {n}"
