"""Two golden chips joined by a link: what travels, who may, and what orders accesses across it."""

import numpy as np
import pytest

from celosia.programs.link_pingpong import build
from golden.chips import GoldenChips
from golden.hazard import RACE, HazardError
from golden.port import BusError
from isa.address_map import (
    PSUM_BASE,
    SBUF_BASE,
    Cause,
    DmaCause,
    Sequencer,
    State,
    link_register,
    peer_address,
    semaphore_address,
)
from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.encoding import Descriptor
from isa.fields import Update
from isa.geometry import preset
from isa.pattern import Reg
from isa.program import ProgramError
from isa.program_file import dumps, loads
from isa.values import Address
from isa.windows import IngressWindow, window_registers
from verif.random_program import mutate_waits

CONFIG = preset("tiny").with_(links=1)
PAGE = 4096


def pair(**options):
    return GoldenChips([CONFIG, CONFIG], **{"on_hazard": "report", **options})


def builders(*, reads=True, writes=True):
    """Two empty programs whose HBM and memories are open to each other."""
    found = ProgramBuilder(CONFIG), ProgramBuilder(CONFIG)
    for b in found:
        for what in ("hbm", "sbuf", "psum", "semaphores"):
            b.open_window(0, what, reads=reads, writes=writes)
        for name in ("done", "go", "back"):
            b.semaphore(name)
    return found


def kinds(results):
    return [hazard.kind for result in results for hazard in result.hazards]


def run(a, b, seed=None, **options):
    chips = pair(**options)
    return chips, chips.run([a.build(), b.build()], seed=seed)


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["tiny", "small"])
def test_pingpong(name):
    config = preset(name).with_(links=1)
    case = build(config, 3)
    expected = None
    for seed in (None, 0, 1, 2):
        chips = GoldenChips([config, config])
        results = chips.run(case.programs, seed=seed)
        assert all(result.ok for result in results), [r.errors() for r in results]
        outputs = [
            {t.name: chips[i].tensor_data(t) for t in program.with_role("output")}
            for i, program in enumerate(case.programs)
        ]
        case.judge(outputs)
        memory = [chip.memories.sbuf.flat.tobytes() for chip in chips.chips]
        assert expected in (None, memory), seed
        expected = memory
        near, far = results
        kept = outputs[1]["kept"].view(np.uint32)[:, -1, -1]
        assert near[Sequencer.SYNC].gpr[32:35].tolist() == kept.tolist()
        assert (near.semaphores[5], far.semaphores[5]) == (3, 1)


def test_no_wait_of_pingpong_can_be_left_out():
    case = build(CONFIG)
    count = 0
    for index, program in enumerate(case.programs):
        for text, mutant in mutate_waits(program):
            programs = list(case.programs)
            programs[index] = mutant
            for seed in (None, 0):
                results = pair().run(programs, seed=seed)
                assert kinds(results), f"chip {index}: {text} is not flagged, seed {seed}"
            count += 1
    assert count == 33


def test_a_write_and_the_semaphore_behind_it_are_ordered():
    """And each link of that chain is needed."""
    for missing in (None, "sent", "arrived"):
        a, b = builders()
        source = a.hbm_tensor("x", (4, 8), DType.FP32, "input", bytes(range(128)))
        target = b.hbm_tensor("y", (4, 8), DType.FP32)
        tile = b.sbuf("t", (4, 8), DType.FP32)
        peer = a.peer(0, b)
        a.dma_copy(
            engine=0, via=a.sync, src=source, dst=peer.view(target), update=("done", "increment")
        )
        peer.signal(a.sync, "go", wait=None if missing == "sent" else ("done", 1))
        wait = None if missing == "arrived" else ("go", 1)
        b.dma_copy(engine=0, via=b.sync, src=target, dst=tile, wait=wait)
        chips, results = run(a, b)
        if missing is None:
            assert kinds(results) == []
            assert chips[1].tensor_data(b.build().tensor("t")).tobytes() == bytes(range(128))
        else:
            assert RACE in kinds(results) and not results[0].hazards
            (race,) = [h for h in results[1].hazards if h.kind == RACE]
            assert {race.first.agent, race.second.agent} == {"chip0.dma0", "chip1.dma0"}
            assert "chip1.dma0 descriptor" in str(race)


@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("load", [False, True])
def test_a_read_may_overtake_the_senders_own_posted_write(answered, load):
    a, b = builders()
    source = a.hbm_tensor("x", (1, 1), DType.FP32, "input", bytes(4))
    back = a.hbm_tensor("z", (1, 1), DType.FP32)
    target = b.hbm_tensor("y", (1, 1), DType.FP32, "input", bytes(4))
    peer = a.peer(0, b)
    a.dma_copy(
        engine=0, via=a.sync, src=source, dst=peer.view(target), update=("done", "increment")
    )
    wait = ("done", 1)
    if answered:
        peer.signal(a.sync, "go", wait=wait)
        b.peer(0, a).signal(b.sync, "back", wait=("go", 1))
        wait = ("back", 1)
    if load:
        a.sync.reg_load(rd=Reg(0), address=peer.word(target, (0, 0)), wait=wait)
    else:
        a.dma_copy(engine=1, via=a.sync, src=peer.view(target), dst=back, wait=wait)
    for seed in (None, 1):
        assert kinds(run(a, b, seed)[1]) == ([] if answered else [RACE])


def test_posted_writes_of_one_sender_are_in_order():
    """Store behind store, and DMA behind a DMA that is complete; of two senders nothing is sure."""
    for second, raced in (("store", False), ("dma", False), ("other", True)):
        a, b = builders()
        source = a.hbm_tensor("x", (1, 1), DType.FP32, "input", bytes(4))
        target = b.hbm_tensor("y", (1, 1), DType.FP32, "input", bytes(4))
        peer = a.peer(0, b)
        a.sync.reg_store(rb=Reg(0), address=peer.word(target, (0, 0)))
        if second == "store":
            a.sync.reg_store(rb=Reg(1), address=peer.word(target, (0, 0)))
        elif second == "dma":
            a.dma_copy(engine=0, via=a.sync, src=source, dst=peer.view(target))
        else:
            a.gpsimd.reg_store(rb=Reg(1), address=peer.word(target, (0, 0)))
        assert kinds(run(a, b)[1]) == ([RACE] if raced else [])


def test_a_semaphore_row_of_a_descriptor_travels_behind_what_the_engine_wrote():
    """One descriptor for the data, one for the semaphore, of one engine; but not of another one."""
    for engine in (0, 1):
        a, b = builders()
        source = a.hbm_tensor("x", (1, 8), DType.FP32, "input", bytes(32))
        one = a.hbm_tensor("one", (1,), DType.FP32, "input", (5).to_bytes(4, "little"))
        target = b.hbm_tensor("y", (1, 8), DType.FP32)
        peer = a.peer(0, b)
        a.dma_copy(engine=0, via=a.sync, src=source, dst=peer.view(target))
        block = a.descriptors(
            [
                Descriptor(
                    src_address=one.address,
                    dst_address=peer.semaphore("go", "add").base,
                    row_bytes=4,
                    count=(1, 1, 1),
                    src_stride=(0, 0, 0),
                    dst_stride=(0, 0, 0),
                )
            ]
        )
        a.sync.dma_trigger(dma_engine=engine, imm=1, address=Address(block.address))
        b.dma_copy(
            engine=0, via=b.sync, src=target, dst=b.sbuf("t", (1, 8), DType.FP32), wait=("go", 5)
        )
        _, results = run(a, b)
        assert results[1].semaphores[1] == 5
        assert (RACE in kinds(results)) == (engine == 1)


def test_every_view_and_memory_of_the_peer():
    a, b = builders()
    b.psum("p", (4, 4))
    b.sync.sem_update(update=("go", "set", 40))
    b.peer(0, a).signal(b.sync, "go", "set", 7)
    peer, sync = a.peer(0, b), a.sync
    sync.sem_wait(wait=("go", 7))
    for kind, value in (("increment", 9), ("add", 100), ("decrement", 9), ("add", -30)):
        peer.signal(sync, "go", kind, value)
    for place, number in ((0x4000, 1), (SBUF_BASE + 8, 2), (PSUM_BASE + (16 << 10) + 4, 3)):
        sync.reg_alu(rd=Reg(1), alu_op="move", imm=number)
        sync.reg_store(rb=Reg(1), address=Address(peer.address(place)))
        sync.reg_load(rd=Reg(1 + number), address=Address(peer.address(place)))
    sync.reg_load(rd=Reg(9), address=Address(peer.address(semaphore_address(1))))
    chips, results = run(a, b, races=False)
    assert not results[0].errors() and not results[1].errors()
    assert results[1].semaphores[1] == 40 + 1 + 100 - 1 - 30
    assert results[0][Sequencer.SYNC].gpr[2:5].tolist() == [1, 2, 3]
    assert results[0][Sequencer.SYNC].gpr[9] == results[1].semaphores[1]
    assert results[0].semaphores[1] == 7
    assert chips[1].memories.psum.bytes[1, 4] == 3


def dma(a, source, target, size, engine=0):
    block = a.descriptors(
        [
            Descriptor(
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
        ]
    )
    a.sync.dma_trigger(dma_engine=engine, imm=1, address=Address(block.address))


def test_denied_writes_vanish_page_by_page():
    a, b = ProgramBuilder(CONFIG), ProgramBuilder(CONFIG)
    b.open_window(0, (PAGE, 2 * PAGE), reads=False)
    a.hbm_tensor("x", (2 * PAGE,), DType.BF16, "input", b"\x55" * 4 * PAGE, address=0)
    dma(a, 0, peer_address(CONFIG, 0, PAGE // 2), 2 * PAGE)
    chips, (near, _) = run(a, b)
    assert near.ok and near.semaphores[0] == 1 and near.dma[0].bytes == 2 * PAGE
    expected = np.zeros(4 * PAGE, np.uint8)
    expected[PAGE : 2 * PAGE] = 0x55
    assert (chips[1].memories.hbm.flat[: 4 * PAGE] == expected).all()
    assert (chips[1].ports[0].denied_writes, chips[0].ports[0].denied_writes) == (2, 0)


def test_denied_and_absent_reads_are_bus_errors():
    for place, first, end in ((PAGE - 4, PAGE, 2 * PAGE), (CONFIG.hbm_bytes, PAGE, 1 << 40)):
        for by_dma in (True, False):
            a, b = ProgramBuilder(CONFIG), ProgramBuilder(CONFIG)
            b.open_window(0, (first, end), writes=False)
            if by_dma:
                dma(a, peer_address(CONFIG, 0, place), 0x8000, 8)
            else:
                a.sync.reg_load(rd=Reg(0), address=Address(peer_address(CONFIG, 0, place)))
            _, (near, far) = run(a, b, uninitialised=False)
            if by_dma:
                assert near.dma[0].cause == DmaCause.BUS_ERROR
                assert (near.dma[0].descriptors, near.dma[0].bytes, near.semaphores[0]) == (0, 0, 0)
            else:
                status = near[Sequencer.SYNC]
                assert (status.state, status.cause, status.pc) == (State.ERROR, Cause.BUS_ERROR, 0)
            assert far.ok


def test_rights_are_separate_and_writes_to_nothing_are_lost():
    a, b = builders(reads=False)
    sync, peer = a.sync, a.peer(0, b)
    sync.reg_store(rb=Reg(0), address=Address(peer.address(SBUF_BASE + CONFIG.sbuf_bytes * 4)))
    sync.reg_store(rb=Reg(0), address=Address(peer.address(PSUM_BASE + CONFIG.psum_bytes)))
    sync.reg_load(rd=Reg(0), address=Address(peer.address(0)))
    chips, (near, _) = run(a, b)
    assert near[Sequencer.SYNC].cause == Cause.BUS_ERROR and near[Sequencer.SYNC].pc == 2
    port = chips[1].ports[0]
    assert (port.denied_writes, port.lost_writes, port.denied_reads) == (1, 1, 1)


def test_a_port_without_a_peer_and_a_window_without_a_port():
    a, b = builders()
    a.sync.reg_store(rb=Reg(0), address=Address(peer_address(CONFIG, 0, 0)))
    chips = GoldenChips([CONFIG, CONFIG], links=(), on_hazard="report")
    results = chips.run([a.build(), b.build()])
    assert results[0][Sequencer.SYNC].cause == Cause.BUS_ERROR
    with pytest.raises(BusError, match="link port 0 has no peer"):
        chips[0].read(peer_address(CONFIG, 0, 0), 4)

    b = ProgramBuilder(CONFIG)
    for address in (2 << 45, (1 << 44) - 4):
        with pytest.raises(ValueError, match="peer windows end at 0x400000000000"):
            b.sync.reg_load(rd=Reg(0), address=Address(address))
    plain = ProgramBuilder(preset("tiny"))
    with pytest.raises(ValueError, match="BAD_ADDRESS"):
        plain.sync.reg_load(rd=Reg(0), address=Address(1 << 45))
    with pytest.raises(ValueError, match="link port 1 does not exist"):
        b.peer(1, plain)
    plain.open_window(0, "hbm")
    with pytest.raises(ProgramError, match="ingress window of link port 0: the chip has 0 ports"):
        plain.build()
    for ends, text in (((0, 1), "there is none"), ((0, 0), "connected already")):
        with pytest.raises(ValueError, match=text):
            GoldenChips([CONFIG, CONFIG], [((0, 0), (1, 0)), (ends, (1, 0))])


def test_host_reaches_the_peer():
    a, b = builders()
    chips = pair()
    chips.run([a.build(), b.build()])
    place = peer_address(CONFIG, 0, SBUF_BASE + 3)
    chips[0].write(place, b"hello")
    assert (
        chips[1].read(SBUF_BASE + 3, 5).tobytes() == chips[0].read(place, 5).tobytes() == b"hello"
    )


def test_deadlock_and_hazard_across_chips():
    a, b = builders()
    a.sync.sem_wait(wait=("go", 1))
    b.peer(0, a).signal(b.sync, "back", wait=("go", 1))
    results = pair().run([a.build(), b.build()])
    assert [r[Sequencer.SYNC].cause for r in results] == [Cause.WAIT_TIMEOUT] * 2
    a, b = builders()
    tensor = b.hbm_tensor("y", (1, 1), DType.FP32, "input", bytes(4))
    a.sync.reg_store(rb=Reg(0), address=a.peer(0, b).word(tensor, (0, 0)))
    b.sync.reg_load(rd=Reg(0), address=tensor.address)
    with pytest.raises(HazardError, match=r"chip0\.sync\[0\] reg_store") as caught:
        GoldenChips([CONFIG, CONFIG]).run([a.build(), b.build()])
    assert "chip1.sync[0] reg_load" in str(caught.value) and len(caught.value.result) == 2


def test_windows_in_registers_and_files():
    a, _ = builders()
    program = build(CONFIG).programs[1]
    assert loads(dumps(program)).windows == program.windows
    window = IngressWindow(0, SBUF_BASE + PAGE, SBUF_BASE + 3 * PAGE, True, False)
    base, limit, mode = (link_register(0, f"WINDOW_{n}") + 32 for n in ("BASE", "LIMIT", "MODE"))
    assert window.registers(2) == [(base, 1), (limit, 2), (mode, 0x11)]
    low = IngressWindow(0, PAGE, 2 * PAGE, False, True)
    values = dict(window_registers(CONFIG, [low]))
    assert values[link_register(0, "WINDOW_MODE")] == 2
    assert [values[link_register(0, "WINDOW_MODE") + 16 * i] for i in (1, 2, 3)] == [0, 0, 0]
    for first, end, text in ((1, PAGE, "multiple of 4096"), (PAGE, PAGE, "at least a page")):
        with pytest.raises(ValueError, match=text):
            IngressWindow(0, first, end)
    a.open_window(0, (0, PAGE))
    with pytest.raises(ProgramError, match="5 ingress windows of link port 0, it has 4"):
        a.build()
