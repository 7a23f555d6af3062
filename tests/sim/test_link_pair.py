"""Two chips joined by a link on the RTL: whole images equal to the golden model, over good and bad
wires.
"""

import json

import pytest

from celosia.programs.link_pingpong import build
from isa.address_map import PSUM_BASE, SBUF_BASE, Cause, DmaCause, Sequencer, peer_address
from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.encoding import Descriptor
from isa.fields import Update
from isa.geometry import preset
from isa.link import LinkState
from isa.pattern import Reg
from isa.values import Address
from sim import __main__ as command
from sim import pair
from sim.channel import RANDOM, Channel, Wires, both
from sim.device import run_pair, tensor_of
from sim.golden import run_golden_chips
from sim.image import compare
from sim.rtl import run_chips
from sim.script import Job, Timing

CONFIG = preset("tiny").with_(links=1)
SLOW = Timing(latency=150, jitter=63, rate=100, hbm_stall=60, stall=60, reorder=1)
LIMIT = 60_000
PAGE = 4096


def assert_equal(rounds, **options):
    """Images of RTL and golden model behind each round; returns [[RtlResult] of each round]."""
    batch = run_chips(CONFIG, rounds, **options)
    expected = run_golden_chips(CONFIG, rounds)
    for turn, jobs in enumerate(rounds):
        for chip, job in enumerate(jobs):
            got, (image, _) = batch.results[turn][chip], expected[turn][chip]
            comparison = compare(got.image, image, job.program)
            assert comparison.match, f"round {turn} chip {chip} with {options}:\n{comparison}"
    return batch.results


def pingpong(*seeds):
    cases = [build(CONFIG, seed) for seed in seeds]
    return cases, [[Job(program, cycle_limit=LIMIT) for program in case.programs] for case in cases]


def judge(cases, results):
    for case, row in zip(cases, results, strict=True):
        outputs = [
            {t.name: tensor_of(result.image, t) for t in program.with_role("output")}
            for result, program in zip(row, case.programs, strict=True)
        ]
        case.judge(outputs)


def total(results, name):
    """Of both chips behind the last round."""
    return sum(result.links[0][name] for result in results[-1])


@pytest.mark.smoke
def test_pingpong_three_times_without_reset():
    cases, rounds = pingpong(1, 2, 3)
    results = assert_equal(rounds, channels=[both(delay=3)], seed=5)
    judge(cases, results)
    for result in results[-1]:
        assert result.links[0]["STATUS"] & 15 == LinkState.ACTIVE
        assert result.links[0]["INITIALISATIONS"] == 1
    for name in ("CRC_ERRORS", "SEQUENCE_GAPS", "NAK_SENT", "RECOVERIES", "WINDOW_DENIED"):
        assert total(results, name) == 0, name
    assert total(results, "TX_DATA") == total(results, "RX_DATA") > 50


@pytest.mark.smoke
def test_pingpong_over_noise():
    """Errors on both directions are seen, asked for again, sent again, and leave no trace."""
    cases, rounds = pingpong(4, 5)
    channel = pair.conditions(CONFIG)[pair.NOISY]
    results = assert_equal(rounds, channels=[channel], seed=6, timing=SLOW)
    judge(cases, results)
    for result in results[-1]:
        for name in ("CRC_ERRORS", "NAK_SENT", "NAK_RECEIVED", "REPLAYS"):
            assert result.links[0][name] > 0, name
    assert total(results, "REPLAYED_FLITS") > 0
    assert total(results, "RX_DATA") <= total(results, "TX_DATA")
    assert total(results, "PROTOCOL_ERRORS") == 0


@pytest.mark.parametrize(
    "channel",
    [
        both(delay=700, skew=(0, 30, 12, 3)),
        both(reverse=1, offset=(31, 1, 0, 16), invert=(1, 1, 0, 1)),
        Channel(
            Wires(elastic=1, delay=40, tx_gap=RANDOM // 3000, skew=(2, 0, 0, 1)),
            Wires(elastic=1, delay=90, rx_gap=RANDOM // 3000, error_rate=RANDOM // 4000),
        ),
        both(tx_gap=RANDOM // 20),
        both(drop_rate=RANDOM // 20_000, delay=300),
    ],
    ids=["far", "crossed", "clocks", "gaps", "drops"],
)
def test_pingpong_over_other_wires(channel):
    cases, rounds = pingpong(7)
    judge(cases, assert_equal(rounds, channels=[channel], seed=8))


def _descriptor(source, target, size):
    return Descriptor(
        src_address=source,
        dst_address=target,
        row_bytes=size,
        count=(1, 1, 1),
        src_stride=(0, 0, 0),
        dst_stride=(0, 0, 0),
        update_kind=Update.INCREMENT,
        update_semaphore=0,
        update_value=0,
    )


def test_denied_and_absent():
    """What the windows do not allow vanishes or ends in a bus error, and is counted."""
    a, b = ProgramBuilder(CONFIG), ProgramBuilder(CONFIG)
    for builder in (a, b):
        for name in ("done", "go"):
            builder.semaphore(name)
        builder.open_window(0, "semaphores", reads=False)
    b.open_window(0, (PAGE, 2 * PAGE), reads=False)
    b.open_window(0, (2 * PAGE, 3 * PAGE), writes=False)
    a.hbm_tensor("x", (6 * PAGE // 2,), DType.BF16, "input", b"\x5a" * 6 * PAGE, address=0x10000)
    there = [peer_address(CONFIG, 0, place) for place in (PAGE - 100, 3 * PAGE, SBUF_BASE)]
    blocks = [
        a.descriptors([_descriptor(0x10003, there[0], PAGE + 200)]),
        a.descriptors([_descriptor(there[1], 0x10000, 16)]),
        a.descriptors([_descriptor(0x10000, there[2], 64)]),
    ]
    peer = a.peer(0, b)
    for i, block in enumerate(blocks):
        wait = ("done", 1) if i == 2 else None
        a.sync.dma_trigger(dma_engine=0, imm=1, address=Address(block.address), wait=wait)
    peer.signal(a.sync, "go", "set", 3, wait=("done", 2))
    b.peer(0, a).signal(b.sync, "go", wait=("go", 3))
    a.sync.reg_store(rb=Reg(0), address=Address(peer.address(PSUM_BASE)), wait=("go", 1))
    a.gpsimd.reg_load(rd=Reg(1), address=Address(peer.address(2 * PAGE + 4)))
    a.gpsimd.reg_load(rd=Reg(1), address=Address(peer.address(PAGE)))
    a.vector.reg_load(rd=Reg(1), address=Address(peer.address(PSUM_BASE + 4)))
    rounds = [[Job(a.build(), cycle_limit=LIMIT), Job(b.build(), cycle_limit=LIMIT)]]
    options = {"uninitialised": False}
    batch = run_chips(CONFIG, rounds, channels=[both(delay=9)])
    expected = run_golden_chips(CONFIG, rounds, **options)
    for got, (image, _), job in zip(batch.results[0], expected[0], rounds[0], strict=True):
        comparison = compare(got.image, image, job.program)
        assert comparison.match, str(comparison)
    near, far = batch.results[0]
    assert near.image.dma[0].cause == DmaCause.BUS_ERROR
    for sequencer, pc in ((Sequencer.GPSIMD, 1), (Sequencer.VECTOR, 0)):
        status = near.image.sequencers[sequencer]
        assert (status.cause, status.pc) == (Cause.BUS_ERROR, pc)
    assert (far.image.hbm[PAGE : 2 * PAGE] == 0x5A).all()
    assert not far.image.hbm[PAGE - 100 : PAGE].any() and not far.image.sbuf.any()
    assert far.links[0]["WINDOW_DENIED"] >= 6 and near.links[0]["WINDOW_DENIED"] == 0
    assert far.links[0]["BRIDGE_STATUS"] >> 16 & 3 == 3


def test_command_reports_each_condition(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "OUT", tmp_path)
    checked = lambda *args, **options: run_pair(*args, **{**options, "checks": True})  # noqa: E731
    monkeypatch.setattr(
        pair,
        "run_pair",
        lambda kind, *rest, **options: (run_pair if kind == "golden" else checked)(
            kind, *rest, **options
        ),
    )
    assert command.main(["link_pingpong"]) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["config"] == "tiny"
    assert [row["channel"] for row in report["programs"]] == ["clean", "noisy"]
    assert all(row["match"] and row["cycles"] > 0 for row in report["programs"])
    clean, noisy = report["programs"]
    assert clean["crc_errors"] == 0 < noisy["crc_errors"]
    assert noisy["nak_received"] > 0 and noisy["replayed_flits"] > 0 == clean["replayed_flits"]
    assert "link_pingpong, noisy" in capsys.readouterr().out


@pytest.mark.nightly
@pytest.mark.icarus
def test_icarus_gives_the_same_and_no_unknown_bits():
    cases, rounds = pingpong(9)
    channel = pair.conditions(CONFIG)[pair.NOISY]
    results = assert_equal(rounds, channels=[channel], simulator="icarus", seed=3)
    judge(cases, results)
    reference = assert_equal(rounds, channels=[channel], seed=3)
    assert [r.cycles for r in results[0]] == [r.cycles for r in reference[0]]
