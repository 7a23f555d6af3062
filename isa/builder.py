"""ProgramBuilder: programs written in Python, with the names of the assembly.

b = ProgramBuilder(preset("small"))
x = b.hbm_tensor("x", (16, 64), DType.FP32, "input")
t = b.sbuf("t", (16, 64), DType.FP32)
b.semaphore("loaded")
b.dma_copy(engine=0, via=b.sync, src=x, dst=t, update=("loaded", "increment"))
b.vector.tensor_copy(src0=t[:, :32], dst=t[:, 32:], wait=("loaded", 1))
program = b.build()
"""

from contextlib import contextmanager

from isa.address_map import Sequencer
from isa.builder_peer import Peer, window_range
from isa.builder_stream import StreamBuilder, make_update
from isa.check_operands import STATE_WORDS
from isa.dma_rows import copy_descriptors
from isa.dtypes import DType
from isa.encoding import encode_descriptor
from isa.fields import Space
from isa.geometry import DESCRIPTOR_BYTES, INSTRUCTION_BYTES, PSUM_BANKS, SEMAPHORES, WORD_BYTES
from isa.placement import check_name
from isa.program import DescriptorBlock, Program, Stream, Tensor, tensor_bytes
from isa.seeding import FIRST_LANE, seeded
from isa.values import Address
from isa.views import HbmTensor, Tile
from isa.windows import IngressWindow

HBM_ALIGN = 64


class ProgramBuilder:
    """Collects tensors, descriptors and streams of one program for chips of `config`.

    tensor, vector, scalar, gpsimd, sync: StreamBuilder of each sequencer.  An instruction is what
    its arguments say, as in assembly: no flag is set that is not given, `sat` of FP8 results
    included.  Misuse raises ValueError with the rule.
    """

    def __init__(self, config):
        self.config = config
        self.streams = {sequencer: StreamBuilder(self, sequencer) for sequencer in Sequencer}
        self.tensor = self.streams[Sequencer.TENSOR]
        self.vector = self.streams[Sequencer.VECTOR]
        self.scalar = self.streams[Sequencer.SCALAR]
        self.gpsimd = self.streams[Sequencer.GPSIMD]
        self.sync = self.streams[Sequencer.SYNC]
        self._hbm_end = 0
        self._free = {"sbuf": [0] * config.partitions, "psum": [0] * config.partitions}
        self._tensors = []
        self._blocks = []
        self._semaphores = {}
        self._windows = []

    def hbm_tensor(self, name, shape, dtype, role="scratch", data=None, address=None):
        """A dense tensor in HBM (HbmTensor), at the next free address unless one is given; data:
        array or bytes.
        """
        tensor = Tensor(name, "hbm", 0, tuple(shape), DType(dtype), role)
        tensor.address = self._hbm(tensor.size_bytes, HBM_ALIGN, address)
        if data is not None:
            tensor.data = tensor_bytes(tensor, data)
        return HbmTensor(self._add(tensor))

    def sbuf(self, name, shape, dtype, partition=0, align=WORD_BYTES, offset=None, role="scratch"):
        """A Tile of shape (partitions, ...) in SBUF, at the next offset free in all its
        partitions unless one is given.
        """
        tensor = Tensor(name, "sbuf", 0, tuple(shape), DType(dtype), role, partition)
        tensor.address = self._on_chip(tensor, align, self.config.sbuf_bytes, offset)
        return Tile(self._add(tensor), Space.SBUF)

    def psum(
        self, name, shape, dtype=DType.FP32, partition=0, bank=None, offset=None, role="scratch"
    ):
        """A Tile in PSUM; one that fits a bank never crosses banks.  bank: place it at the start
        of that bank.
        """
        tensor = Tensor(name, "psum", 0, tuple(shape), DType(dtype), role, partition)
        size = self.config.psum_bank_bytes
        if bank is not None:
            if offset is not None or not 0 <= bank < PSUM_BANKS:
                raise ValueError(
                    f"psum {name!r}: bank = {bank}, must be in 0..{PSUM_BANKS - 1} and without "
                    "offset"
                )
            offset = bank * size
        align = tensor.dtype.itemsize
        if offset is None:
            start = self._next_free(tensor)
            if start % size + tensor.row_bytes > size:
                align = size
        tensor.address = self._on_chip(tensor, align, self.config.psum_bytes, offset)
        return Tile(self._add(tensor), Space.PSUM)

    @contextmanager
    def scope(self):
        """SBUF and PSUM allocated inside are free again afterwards (the program has to order the
        reuse).
        """
        kept = {space: list(free) for space, free in self._free.items()}
        yield
        self._free = kept

    def semaphore(self, name):
        """Index of the semaphore of that name, allocated on first use."""
        if name not in self._semaphores:
            check_name(name, "semaphore")
            if len(self._semaphores) == SEMAPHORES:
                raise ValueError(f"all {SEMAPHORES} semaphores are in use")
            self._semaphores[name] = len(self._semaphores)
        return self._semaphores[name]

    def semaphore_index(self, semaphore):
        """Index of a semaphore given by name or index; ValueError when the name was never
        allocated.
        """
        if not isinstance(semaphore, str):
            return semaphore
        if semaphore not in self._semaphores:
            known = ", ".join(self._semaphores) or "none"
            raise ValueError(
                f"no semaphore {semaphore!r}; there are {known}; allocate it with "
                f"semaphore({semaphore!r})"
            )
        return self._semaphores[semaphore]

    def update_of(self, update, at_read=False):
        """SemaphoreUpdate of the forms that arguments take; None stays None."""
        return make_update(self, update, at_read)

    def descriptors(self, descriptors, name=None, address=None):
        """Place descriptors (of `isa.encoding.Descriptor`) one after the other in HBM; returns
        the DescriptorBlock.
        """
        words = [encode_descriptor(descriptor) for descriptor in descriptors]
        if not words:
            raise ValueError("a descriptor block has at least one descriptor")
        address = self._hbm(len(words) * DESCRIPTOR_BYTES, DESCRIPTOR_BYTES, address)
        block = DescriptorBlock(name or f"dma{len(self._blocks)}", address, words)
        check_name(block.name, "descriptor block")
        self._blocks.append(block)
        return block

    def dma_copy(self, *, engine, via, src, dst, update=None, **trigger):
        """Copy `src` to `dst` (see `isa.dma_rows.copy_descriptors`) with DMA engine `engine`,
        triggered in stream `via`.

        update: (semaphore, kind[, value]) when all bytes are visible.  Further arguments (wait,
        ...) go to the dma_trigger.  Returns the DescriptorBlock, which may be triggered again.
        """
        return self.dma_batch([(src, dst, update)], engine=engine, via=via, **trigger)

    def dma_batch(self, copies, *, engine, via, name=None, trigger_update=None, **trigger):
        """Several copies, [(src, dst, update)], in one dma_trigger."""
        found = []
        for src, dst, update in copies:
            found += copy_descriptors(self.config, src, dst, self.update_of(update))
        stream = self._stream(via)
        block = self.descriptors(found, name)
        stream.emit(
            "dma_trigger",
            dma_engine=engine,
            imm=len(found),
            address=Address(block.address),
            update=trigger_update,
            **trigger,
        )
        return block

    def seed_generators(
        self, stream, seed, *, engine, via, partition=0, partitions=None, name=None
    ):
        """Let the generators of the engine of `stream` (vector or scalar) start from an integer
        seed (`isa.seeding`: other words in every partition and in the other engine), for what the
        stream does from here on.  Once per name, outside loops.

        partition, partitions: those that are seeded, by default all.  The states are the constant
        `name` (by default "vector_seed", "scalar_seed"), which DMA engine `engine`, triggered in
        stream `via`, copies to a tile; semaphore `name` counts that.  Returns the tile.
        """
        stream = self._stream(stream)
        if stream.sequencer not in FIRST_LANE:
            having = ", ".join(sequencer.text for sequencer in FIRST_LANE)
            raise ValueError(f"{stream.sequencer.text} has no generators, only {having}")
        name = name or f"{stream.sequencer.text}_seed"
        lanes = self.config.partitions - partition if partitions is None else partitions
        tile = self.sbuf(f"{name}.tile", (lanes, STATE_WORDS), DType.UINT32, partition)
        states = seeded(lanes, seed, FIRST_LANE[stream.sequencer] + partition)
        source = self.hbm_tensor(name, states.shape, DType.UINT32, "constant", states)
        self.semaphore(name)
        self.dma_copy(engine=engine, via=via, src=source, dst=tile, update=(name, "increment"))
        stream.rand_set_state(src0=tile, wait=(name, 1))
        return tile

    def peer(self, port, far):
        """The Peer at the other end of link port `port`, whose program the ProgramBuilder `far`
        makes.
        """
        return Peer(self, port, far)

    def open_window(self, port, what, *, writes=True, reads=True):
        """Let the peer at `port` write and read `what`, in whole pages of 4 KiB: an HBM tensor,
        "hbm", "sbuf", "psum", "semaphores" or (first, end) in the address map.
        """
        window = IngressWindow(port, *window_range(self, what), writes, reads)
        self._windows.append(window)
        return window

    def build(self):
        """The Program: streams placed in HBM behind everything else, checked as a whole."""
        streams, labels = [], {}
        for sequencer, builder in self.streams.items():
            words, lines, names = builder.finish()
            if words:
                address = self._hbm(len(words) * INSTRUCTION_BYTES, INSTRUCTION_BYTES, None)
                streams.append(Stream(sequencer, address, words, lines))
                labels[sequencer] = names
        program = Program(
            self.config,
            streams,
            list(self._blocks),
            list(self._tensors),
            labels,
            dict(self._semaphores),
            list(self._windows),
        )
        program.check()
        return program

    def _stream(self, which):
        """StreamBuilder of a sequencer, given as such or by name."""
        return which if isinstance(which, StreamBuilder) else self.streams[_sequencer(which)]

    def _add(self, tensor):
        check_name(tensor.name, "tensor")
        if any(other.name == tensor.name for other in self._tensors):
            raise ValueError(f"tensor {tensor.name!r} is there already")
        self._tensors.append(tensor)
        return tensor

    def _hbm(self, size, align, address):
        if address is None:
            address = -(-self._hbm_end // align) * align
        if address % min(align, DESCRIPTOR_BYTES) and align >= DESCRIPTOR_BYTES:
            raise ValueError(f"address {address:#x}, must be a multiple of {align}")
        if not 0 <= address <= self.config.hbm_bytes - size:
            raise ValueError(
                f"HBM is full: {size} bytes at {address:#x}, it has {self.config.hbm_bytes} bytes"
            )
        self._hbm_end = max(self._hbm_end, address + size)
        return address

    def _span(self, tensor):
        low, high = tensor.partition, tensor.partition + tensor.shape[0]
        if not 0 <= low < high <= self.config.partitions or len(tensor.shape) < 2:
            raise ValueError(
                f"{tensor.space} {tensor.name!r}: shape {tensor.shape} from partition {low} on, "
                "must be "
                f"(partitions, ...) within 0..{self.config.partitions - 1}"
            )
        return low, high

    def _next_free(self, tensor):
        low, high = self._span(tensor)
        return max(self._free[tensor.space][low:high])

    def _on_chip(self, tensor, align, size, offset):
        low, high = self._span(tensor)
        if offset is None:
            offset = -(-self._next_free(tensor) // align) * align
        end = offset + tensor.row_bytes
        if not 0 <= offset <= end <= size:
            raise ValueError(
                f"{tensor.space} {tensor.name!r}: bytes {offset}..{end - 1} of partitions "
                f"{low}..{high - 1}, "
                f"there are 0..{size - 1}; free something (scope) or make it smaller"
            )
        free = self._free[tensor.space]
        free[low:high] = [max(item, end) for item in free[low:high]]
        return offset


def _sequencer(via):
    try:
        return Sequencer[via.upper()] if isinstance(via, str) else Sequencer(via)
    except (KeyError, ValueError):
        known = ", ".join(s.text for s in Sequencer)
        raise ValueError(f"via = {via!r}, must be one of {known}") from None
