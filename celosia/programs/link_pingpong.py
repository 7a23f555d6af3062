"""Two chips pass a matrix to and fro over a link, and each multiplies it by its own weights.

Each round chip 0 computes Y = A^T X and writes Y to chip 1: its first columns into HBM, the others
directly into SBUF.  Chip 1 waits for the semaphore that travels behind the data, computes
Z = relu(B^T Y), keeps it in float32 in its HBM and writes it back, in the same two parts, as the X
of the next round.  Chip 0 reads what was kept over the link, and a word of it into a register.
Meanwhile a block of bytes at odd addresses goes to chip 1 and is read back.

No wait can be left out: the checker of the golden model flags the programs without any one of them.
"""

import ml_dtypes
import numpy as np

from celosia.programs.case import PairCase, relative_error, tensor_bound
from isa.builder import ProgramBuilder
from isa.dtypes import DType
from isa.encoding import Descriptor
from isa.pattern import Reg
from isa.values import Address

ROUNDS = 3
PORT = 0
BLOB_BYTES = 2531
"""More than two packets of 1 KiB, over a page boundary."""
_BLOB_FROM, _BLOB_TO = 3, 4096 - 1021
_BLOB_ADDRESS = 0x8000
_BLOB_ROOM = 2 * 4096


class _Side:
    """One chip: its memory, and what both chips do alike."""

    def __init__(self, config, weights):
        self.b = b = ProgramBuilder(config)
        n, columns = config.array - 1, 2 * config.array + 3
        self.n, self.shape, self.split = n, (n, columns), config.array + 1
        self.source = b.hbm_tensor("w", (n, n), DType.BF16, "input", weights)
        self.weights = b.sbuf("weights", (n, n), DType.BF16)
        self.got = b.sbuf("got", self.shape, DType.BF16, align=2)
        self.sent = b.sbuf("sent", self.shape, DType.BF16, align=2)
        self.sums = b.psum("sums", self.shape)
        # One more column than what comes, to have the rows where no word begins.
        self.inbox = b.hbm_tensor("inbox", (n, self.split + 1), DType.BF16)
        for name in ("fetched", "summed", "ready", "sent", "arrived", "blob"):
            b.semaphore(name)
        b.open_window(PORT, "sbuf", reads=False)
        b.open_window(PORT, "semaphores", reads=False)

    def multiply(self, turn):
        """sums = weights^T got, when the columns through HBM have been fetched."""
        self.b.tensor.load_stationary(src0=self.weights, wait=("fetched", turn + 1))
        self.b.tensor.multiply_moving(src0=self.got, dst=self.sums, update=("summed", "increment"))

    def send(self, other, turn, *before):
        """`before` (local copies) and `sent` into inbox and SBUF of the other chip, then its
        semaphore.
        """
        peer, split = self.b.peer(PORT, other.b), self.split
        self.b.dma_batch(
            [
                *before,
                (self.sent[:, :split], peer.view(other.inbox[:, 1:]), None),
                (
                    self.sent[:, split:],
                    peer.view(other.got[:, split:]),
                    ("sent", "increment"),
                ),
            ],
            engine=0,
            via=self.b.sync,
            wait=("ready", turn + 1),
        )
        peer.signal(self.b.sync, "arrived", "add", 1, wait=("sent", turn + 1))

    def fetch(self, wait=None):
        """The columns that came through HBM."""
        self.b.dma_copy(
            engine=0,
            via=self.b.sync,
            src=self.inbox[:, 1:],
            dst=self.got[:, : self.split],
            wait=wait,
            update=("fetched", "increment"),
        )


class _Near(_Side):
    """Chip 0."""

    def __init__(self, config, weights, x, blob):
        super().__init__(config, weights)
        b = self.b
        self.x = b.hbm_tensor("x", self.shape, DType.BF16, "input", x)
        self.blob = b.hbm_tensor("blob", (len(blob) // 2,), DType.BF16, "input", bytes(blob))
        self.back = b.hbm_tensor(
            "blob_back", (len(blob) // 2,), DType.BF16, "output", bytes(len(blob))
        )
        self.seen = b.hbm_tensor("seen", (ROUNDS, *self.shape), DType.FP32, "output")
        b.open_window(PORT, self.inbox, reads=False)

    def first(self):
        self.b.dma_batch(
            [
                (self.source, self.weights, None),
                (self.x, self.got, ("fetched", "increment")),
            ],
            engine=0,
            via=self.b.sync,
        )

    def narrow(self, turn):
        self.b.vector.tensor_copy(
            src0=self.sums,
            dst=self.sent,
            wait=("summed", turn + 1),
            update=("ready", "increment"),
        )

    def look(self, far, turn):
        """What the other chip kept, by DMA and by a load."""
        peer, last = self.b.peer(PORT, far.b), tuple(size - 1 for size in self.shape)
        self.b.dma_copy(
            engine=self.b.config.dma_engines - 1,
            via=self.b.sync,
            src=peer.view(far.kept[turn]),
            dst=self.seen[turn],
            wait=("arrived", turn + 1),
        )
        self.b.sync.reg_load(rd=Reg(32 + turn), address=peer.word(far.kept, (turn, *last)))

    def bounce_blob(self, far):
        """A block of bytes to the other chip and back."""
        peer, there = self.b.peer(PORT, far.b), far.blob.address + _BLOB_TO
        engine, via = self.b.config.dma_engines - 1, self.b.gpsimd
        update = self.b.update_of(("blob", "increment"))
        for source, target, wait in (
            (self.blob.address + _BLOB_FROM, peer.address(there), None),
            (peer.address(there), self.back.address + _BLOB_FROM, ("blob", 2)),
        ):
            block = self.b.descriptors([_bytes(source, target, update)])
            via.dma_trigger(dma_engine=engine, imm=1, address=Address(block.address), wait=wait)
            if wait is None:
                peer.signal(via, "blob", "set", 1, wait=("blob", 1))


class _Far(_Side):
    """Chip 1."""

    def __init__(self, config, weights):
        super().__init__(config, weights)
        b = self.b
        self.exact = b.sbuf("exact", self.shape, DType.FP32)
        self.kept = b.hbm_tensor("kept", (ROUNDS, *self.shape), DType.FP32, "output")
        self.blob = b.hbm_tensor(
            "blob",
            (_BLOB_ROOM // 2,),
            DType.BF16,
            "output",
            bytes(_BLOB_ROOM),
            address=_BLOB_ADDRESS,
        )
        b.open_window(PORT, (self.inbox.address, self.blob.address + _BLOB_ROOM))

    def first(self):
        self.b.dma_copy(engine=0, via=self.b.sync, src=self.source, dst=self.weights)

    def activate(self, turn):
        self.b.scalar.activation(
            src0=self.sums, dst=self.exact, func="relu", wait=("summed", turn + 1)
        )
        self.b.scalar.activation(
            src0=self.sums, dst=self.sent, func="relu", update=("ready", "increment")
        )

    def keep(self, turn):
        """The local copy that goes in front of what is sent."""
        return self.exact, self.kept[turn], None

    def answer_blob(self, near):
        self.b.peer(PORT, near.b).signal(self.b.gpsimd, "blob", wait=("blob", 1))


def _bytes(source, target, update):
    """Descriptor of BLOB_BYTES in one row."""
    return Descriptor(
        src_address=source,
        dst_address=target,
        row_bytes=BLOB_BYTES,
        count=(1, 1, 1),
        src_stride=(0, 0, 0),
        dst_stride=(0, 0, 0),
        update_kind=update.kind,
        update_semaphore=update.semaphore,
        update_value=update.value,
    )


def build(config, seed=1):
    """PairCase for two chips of `config`, which has links."""
    rng = np.random.default_rng(seed)
    n, columns = config.array - 1, 2 * config.array + 3
    weights = [
        (rng.standard_normal((n, n)) / np.sqrt(n)).astype(ml_dtypes.bfloat16) for _ in range(2)
    ]
    x = rng.standard_normal((n, columns)).astype(ml_dtypes.bfloat16)
    blob = rng.integers(0, 256, BLOB_BYTES + BLOB_BYTES % 2 + 4, dtype=np.uint8)
    near, far = _Near(config, weights[0], x, blob.tobytes()), _Far(config, weights[1])
    near.first()
    far.first()
    near.bounce_blob(far)
    far.answer_blob(near)
    for turn in range(ROUNDS):
        near.multiply(turn)
        near.narrow(turn)
        near.send(far, turn)
        far.fetch(("arrived", turn + 1))
        far.multiply(turn)
        far.activate(turn)
        far.send(near, turn, far.keep(turn))
        near.look(far, turn)
        if turn < ROUNDS - 1:
            near.fetch()
    exact, state = [], x.astype(np.float64)
    for _ in range(ROUNDS):
        state = weights[0].astype(np.float64).T @ state
        state = np.maximum(weights[1].astype(np.float64).T @ state, 0)
        exact.append(state)

    def judge(outputs):
        one, other = outputs
        error = relative_error(other["kept"], exact)
        assert error < 2 * ROUNDS * 2**-8, f"error {error:.3g} against float64"
        assert np.array_equal(one["seen"], other["kept"]), "the link read something else"
        moved = blob[_BLOB_FROM : _BLOB_FROM + BLOB_BYTES]
        for data, at in ((other["blob"], _BLOB_TO), (one["blob_back"], _BLOB_FROM)):
            found = np.ascontiguousarray(data).view(np.uint8)
            assert np.array_equal(found[at : at + BLOB_BYTES], moved), "bytes were changed"
            rest = np.delete(found, np.s_[at : at + BLOB_BYTES])
            assert not rest.any(), "bytes beside the block were written"
        return [f"error against float64 {error:.2e} of the largest element"]

    return PairCase(
        "link_pingpong",
        [near.b.build(), far.b.build()],
        2 * ROUNDS * n * n * columns,
        tensor_bound(config, [[columns]] * (2 * ROUNDS)),
        judge,
    )
