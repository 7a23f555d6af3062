"""The whole chip: load a program or a memory image, start it, look at what it left."""

import numpy as np

from golden.arith.selftest import require_subnormals
from golden.engines.dma import DmaEngine
from golden.engines.scalar import ScalarEngine
from golden.engines.tensor import TensorEngine
from golden.engines.vector import VectorEngine
from golden.hazard import HazardError
from golden.memory import Memories
from golden.operation import Preparer
from golden.port import Port
from golden.race import RaceChecker
from golden.result import collect
from golden.schedule import Budget, run
from golden.semaphores import Semaphores
from golden.sequencer import Sequencer
from golden.text import Texts
from isa.address_map import SEQUENCERS
from isa.address_map import Sequencer as SequencerIndex
from isa.check_control import peer_place
from isa.fields import Update
from isa.geometry import INSTRUCTION_BYTES
from isa.instructions import INSTRUCTIONS
from isa.program import Program, tensor_bytes

_INSTRUCTIONS = 50_000_000


class GoldenChip:
    """A chip of `config`. Memories start as zeros and stay from run to run, like the hardware's.

    races, uninitialised, overlap: which hazards are looked for. on_hazard: "raise" ends a run that
    found some with HazardError (its `result` is complete), "report" only lists them in the Result.
    label, index: among joined chips (`golden.chips`), the beginning of the names of its agents and
    its number. `ports`: a `golden.port.Port` for each link port.
    """

    def __init__(
        self,
        config,
        *,
        races=True,
        uninitialised=True,
        overlap=True,
        on_hazard="raise",
        label="",
        index=0,
    ):
        if on_hazard not in ("raise", "report"):
            raise ValueError(f'on_hazard = {on_hazard!r}, must be "raise" or "report"')
        self.config = config
        self.label = label
        self.index = index
        self.ports = [Port(self, port) for port in range(config.links)]
        self.memories = Memories(config)
        self.semaphores = Semaphores()
        self.checker = None
        if races or uninitialised or overlap:
            self.checker = RaceChecker(
                config, self.memories, races=races, uninitialised=uninitialised, overlap=overlap
            )
        self.preparer = Preparer(config)
        self.tensor = TensorEngine(self.memories)
        self.dma = [
            DmaEngine(i, self, self._descriptor_update(i)) for i in range(config.dma_engines)
        ]
        self.sequencers = [Sequencer(index, self) for index in SEQUENCERS]
        engines = {
            SequencerIndex.TENSOR: self.tensor,
            SequencerIndex.VECTOR: VectorEngine(self.memories),
            SequencerIndex.SCALAR: ScalarEngine(self.memories),
        }
        self.execute = {
            (sequencer, instruction.name): getattr(engines[sequencer], instruction.name)
            for instruction in INSTRUCTIONS
            if instruction.datapath
            for sequencer in instruction.sequencers
        }
        self._on_hazard = on_hazard

    def write(self, address, data):
        """The host writes bytes (bytes-like or array) at an address of HBM, SBUF, PSUM or a peer.

        ValueError when they are not within HBM or one partition, BusError without a peer.
        """
        data = np.ascontiguousarray(data) if isinstance(data, np.ndarray) else data
        content = np.frombuffer(data, np.uint8)
        if not content.size:
            return
        far = peer_place(self.config, address)
        if far is not None:
            self.ports[far[0]].write(far[1], content)
            return
        memory = self.memories.write(address, content)
        if self.checker:
            self.checker.host_write(memory, address - memory.base, content.size)

    def read(self, address, size):
        """A copy of `size` bytes, uint8. BusError for what a peer denies."""
        far = peer_place(self.config, address)
        if far is not None:
            return self.ports[far[0]].read(far[1], size)
        return self.memories.read(address, size)

    def load(self, program, data=None):
        """Writes streams, descriptors, initial data and ingress windows; data: {tensor name: array
        or bytes}.
        """
        if program.arch_hash != self.config.arch_hash:
            raise ValueError(
                f"program for configuration {program.config_name!r}, "
                f"hash {program.arch_hash:#x}; "
                f"this chip is {self.config.name!r}, {self.config.arch_hash:#x}"
            )
        for address, content in program.hbm_image(data):
            self.write(address, content)
        for port in self.ports:
            port.windows = [w for w in program.windows if w.port == port.index]

    def tensor_data(self, tensor):
        """The elements of a `isa.program.Tensor`, a numpy array of its shape and dtype."""
        size = tensor.size_bytes
        if tensor.space == "hbm":
            content = self.read(tensor.address, size)
        else:
            memory = {"sbuf": self.memories.sbuf, "psum": self.memories.psum}[tensor.space]
            rows = slice(tensor.partition, tensor.partition + tensor.shape[0])
            columns = slice(tensor.address, tensor.address + tensor.row_bytes)
            content = np.ascontiguousarray(memory.bytes[rows, columns]).reshape(-1)
        return content.view(tensor.dtype.numpy).reshape(tensor.shape)

    def set_tensor(self, tensor, data):
        """Writes the elements of an HBM tensor."""
        self.write(tensor.address, tensor_bytes(tensor, data))

    def run(self, program, data=None, *, seed=None, max_instructions=_INSTRUCTIONS):
        """Loads a program and launches it; see `launch`."""
        self.load(program, data)
        return self.launch(
            program.launch(), program=program, seed=seed, max_instructions=max_instructions
        )

    def launch(
        self, table, *, program: Program | None = None, seed=None, max_instructions=_INSTRUCTIONS
    ):
        """START with {Sequencer: (stream address, instructions)}; runs to the end, gives a Result.

        seed: None for the standard order, else the agents are scheduled at random. program: for the
        texts of hazards. A deadlock ends the waiting sequencers with WAIT_TIMEOUT. RuntimeError
        where the process flushes subnormals.
        """
        self.start(table)
        self.watch(program)
        budget = Budget(max_instructions, self.sequencers)
        run([self], budget, seed)
        result = self.result(budget.instructions)
        if result.hazards and self._on_hazard == "raise":
            raise HazardError(result.hazards, result)
        return result

    def start(self, table):
        """What START does with {Sequencer: (stream address, instructions)}."""
        require_subnormals()
        self._table = {SequencerIndex(index): entry for index, entry in table.items()}
        self.semaphores.start()
        self.tensor.start()
        for engine in self.dma:
            engine.start()
        for sequencer in self.sequencers:
            sequencer.start(*self._table.get(sequencer.index, (0, 0)))

    def watch(self, program=None, *, order=None, describe=None):
        """Begin to look for hazards. order, describe: see `RaceChecker.start`."""
        if self.checker:
            active = [s.index for s in self.sequencers if s.active]
            streams = {index: self._stream(self._table[index]) for index in active}
            describe = describe or Texts(self, program).of
            self.checker.start(streams, describe, order, self.label)

    def result(self, instructions):
        """The Result of the run that has ended."""
        hazards = self.checker.hazards if self.checker else []
        return collect(self.sequencers, self.dma, self.semaphores, instructions, hazards)

    @staticmethod
    def _stream(entry):
        address, length = entry
        return address, length * INSTRUCTION_BYTES

    def _descriptor_update(self, index):
        def update(descriptor):
            kind = descriptor.update_kind
            if kind == Update.NONE:
                return
            semaphore, value = descriptor.update_semaphore, descriptor.update_value
            if self.checker:
                self.checker.order.release_descriptor(index, semaphore, kind, value)
            self.semaphores.update(semaphore, kind, value)

        return update
