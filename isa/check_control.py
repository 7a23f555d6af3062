"""Rules of control instructions: addresses, DMA engines and targets.  Called by `isa.check` and at
run time.

Functions return (Cause, sentence) or None.
"""

from isa.address_map import (
    CORE_BASE,
    PEER_WINDOW_BITS,
    PSUM_BASE,
    PSUM_STRIDE_BYTES,
    SBUF_BASE,
    Cause,
)
from isa.geometry import DESCRIPTOR_BYTES

_REGISTER_BYTES = 4
_ADDRESS_MASK = (1 << 64) - 1


def control_problem(config, instruction, fields, place, registers):
    """First broken rule of a control instruction that has executed up to it; LOOP_DEPTH is the
    sequencer's own.
    """
    name = instruction.name
    if name in ("reg_load", "reg_store"):
        if fields["address_reg"] and registers is None:
            return None
        return address_problem(config, effective_address(fields, registers))
    if name == "dma_trigger":
        known = registers is not None or not fields["address_reg"]
        problem = (
            descriptor_problem(config, effective_address(fields, registers)) if known else None
        )
        return problem or dma_engine_problem(config, fields["dma_engine"])
    if name in ("branch", "loop") and place is not None:
        return target_problem(name, fields["target"], *place)
    return None


def effective_address(fields, registers):
    """address, plus register ra when address_reg is set, modulo 2^64."""
    added = int(registers[fields["ra"]]) if fields["address_reg"] else 0
    return (fields["address"] + added) & _ADDRESS_MASK


def address_problem(config, address):
    """A word that reg_load and reg_store reach: 4-byte aligned, in HBM, SBUF, PSUM or a peer
    window.
    """
    if address % _REGISTER_BYTES:
        return Cause.BAD_ADDRESS, f"address {address:#x}, must be a multiple of {_REGISTER_BYTES}"
    if locate(config, address) is None and peer_place(config, address) is None:
        peers = f", peer windows end at {config.links + 1 << PEER_WINDOW_BITS:#x}"
        return Cause.BAD_ADDRESS, (
            f"address {address:#x} lies in no memory: HBM has 0..{config.hbm_bytes - 1:#x}, "
            f"SBUF and PSUM partitions start at {SBUF_BASE:#x} and {PSUM_BASE:#x}"
            f"{peers if config.links else ''}"
        )
    return None


def peer_place(config, address):
    """(port, address at the peer) when the address lies in a peer window, else None."""
    port = (address >> PEER_WINDOW_BITS) - 1
    if not 0 <= port < config.links:
        return None
    return port, address & ((1 << PEER_WINDOW_BITS) - 1)


def locate(config, address):
    """("hbm", 0, address), ("sbuf" or "psum", partition, byte in the partition), or None when no
    memory is there.
    """
    if 0 <= address < config.hbm_bytes:
        return "hbm", 0, address
    if address < CORE_BASE:
        return None
    for space, base, stride, size in (
        ("sbuf", SBUF_BASE, config.sbuf_stride_bytes, config.sbuf_bytes),
        ("psum", PSUM_BASE, PSUM_STRIDE_BYTES, config.psum_bytes),
    ):
        partition, byte = divmod(address - base, stride)
        if 0 <= partition < config.partitions and byte < size:
            return space, partition, byte
    return None


def descriptor_problem(config, address):
    """An address where a DMA descriptor may lie: 128-byte aligned, in HBM."""
    if address % DESCRIPTOR_BYTES:
        return (
            Cause.BAD_ADDRESS,
            f"address {address:#x}, must be a multiple of {DESCRIPTOR_BYTES} (a descriptor)",
        )
    if not 0 <= address < config.hbm_bytes:
        return (
            Cause.BAD_ADDRESS,
            f"address {address:#x} lies outside HBM, which has 0..{config.hbm_bytes - 1:#x}",
        )
    return None


def dma_engine_problem(config, engine):
    """A DMA engine that exists."""
    if engine >= config.dma_engines:
        return (
            Cause.BAD_DMA_ENGINE,
            f"dma_engine = {engine}, this chip has engines 0..{config.dma_engines - 1}",
        )
    return None


def target_problem(name, target, index, length, enclosing=None):
    """Target of a taken branch inside the stream; end of a loop after it, in the stream and in the
    enclosing loop.

    index: of the instruction; length: of the stream; enclosing: target of the innermost active
    loop, if any.
    """
    if name == "loop":
        limit = length - 1 if enclosing is None else min(length - 1, enclosing)
        if not index < target <= limit:
            why = "the stream" if limit == length - 1 else "the enclosing loop"
            return Cause.PC_OUT_OF_RANGE, (
                f"target = {target}, must be after the loop instruction ({index}) "
                f"and at most {limit} ({why})"
            )
    elif target >= length:
        return (
            Cause.PC_OUT_OF_RANGE,
            f"target = {target}, the stream has instructions 0..{length - 1}",
        )
    return None
