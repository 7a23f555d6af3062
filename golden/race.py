"""The checker: unordered accesses, reads of what nobody wrote, instructions that overlap
themselves.

It watches one execution and concludes about all: an order counts only when the program enforces it
(`golden.happens_before`), not because the model happened to run things that way.
"""

import numpy as np

from golden.footprint import Footprints
from golden.happens_before import HappensBefore
from golden.hazard import OVERLAP, RACE, UNINITIALISED, Hazard, Origin
from golden.initialised import Initialised
from golden.ledger import Ledger
from golden.memory import Memory
from isa.fields import Space
from isa.pattern import element_offsets


class RaceChecker:
    """Keeps what has been written for ever and the accesses of the current run.

    races, uninitialised, overlap: which kinds of hazard are looked for. `hazards` lists those of
    the current run, each pair of origins once. `order` takes waits, updates and triggers.
    """

    def __init__(self, config, memories, *, races=True, uninitialised=True, overlap=True):
        self._config = config
        self._memories = memories
        self._races = races
        self._uninitialised = uninitialised
        self._overlap = overlap
        self._footprints = Footprints()
        self._initialised = Initialised(memories)
        self._describe = str
        self.start({}, str)

    def start(self, streams, describe, order=None, label=""):
        """A new run: all earlier accesses are ordered. streams: {sequencer: (address, bytes)}.

        describe: text of an Origin, asked for when a hazard is found. order: the ChipOrder of this
        chip among joined chips, whose origins begin with `label`.
        """
        self.order = order or HappensBefore([(self._config.dma_engines, 0)]).chips[0]
        self.hazards = []
        self._seen = set()
        self._reads = [Ledger() for _ in Memory]
        self._writes = [Ledger() for _ in Memory]
        self._describe = describe
        for sequencer, (address, size) in streams.items():
            self.order.start(sequencer)
            part = np.array([[address, address + size]], np.int64)
            footprint = self._footprints.make(Memory.HBM, 0, 1, part)
            origin = Origin(f"{label}{sequencer.text} instruction fetch", 0)
            self._reads[Memory.HBM].add(footprint, self.order.fetch, 1, origin)

    def host_write(self, memory, place, size):
        """The host has written bytes from the base of the memory, between runs."""
        self._initialised.mark_place(memory, place, size)

    def operation(self, sequencer, op, origin):
        """A datapath instruction with its operands."""
        clock = self.order.clock(sequencer)
        epoch = self.order.epoch[sequencer]
        for access in op.sources:
            footprint = self._footprints.of_access(access)
            self._read(footprint, clock, self.order.reads_of(sequencer), epoch, origin)
        if op.dst is None:
            return
        target = self._footprints.of_access(op.dst)
        if self._overlap:
            self._overlaps(op, target, origin)
        if op.options.get("accumulate"):
            self._require_written(target, origin)
        self._write(target, clock, self.order.writes_of(sequencer), epoch, origin)

    def bus(self, sequencer, memory, address, size, origin, *, write):
        """A register load or store of a sequencer."""
        clock = self.order.clock(sequencer)
        epoch = self.order.epoch[sequencer]
        partition, offset = memory.locate(address)
        part = np.array([[offset, offset + size]], np.int64)
        footprint = self._footprints.make(memory.space, partition, partition + 1, part)
        if write:
            self._write(footprint, clock, self.order.writes_of(sequencer), epoch, origin)
        else:
            self._read(footprint, clock, self.order.reads_of(sequencer), epoch, origin)

    def copy(self, stamp, sources, targets, origin, *, identical):
        """Reads and writes of a descriptor. stamp: from `order.descriptor`; lists of footprints."""
        component, epoch, clock = stamp
        for footprint in sources:
            self._check_read(footprint, clock, origin)
        for footprint in targets:
            self._check_write(footprint, clock, origin)
        for footprint in sources:
            self._add_read(footprint, component, epoch, origin)
        for footprint in targets:
            self._add_write(footprint, component, epoch, origin)
        if self._overlap and not identical:
            for source in sources:
                for target in targets:
                    self._report_overlap(source, target, origin)

    def through_link(self, footprints, stamp, origin, *, write):
        """Accesses of the peer of a port, here. stamp: (component, epoch, clock)."""
        component, epoch, clock = stamp
        for footprint in footprints:
            if write:
                self._write(footprint, clock, component, epoch, origin)
            else:
                self._read(footprint, clock, component, epoch, origin)

    @property
    def footprints(self):
        """Maker of footprints for `copy`."""
        return self._footprints

    def _read(self, footprint, clock, component, epoch, origin):
        self._check_read(footprint, clock, origin)
        self._add_read(footprint, component, epoch, origin)

    def _write(self, footprint, clock, component, epoch, origin):
        self._check_write(footprint, clock, origin)
        self._add_write(footprint, component, epoch, origin)

    def _check_read(self, footprint, clock, origin):
        self._require_written(footprint, origin)
        if self._races:
            self._conflicts(self._writes[footprint.space], footprint, clock, origin)

    def _check_write(self, footprint, clock, origin):
        if self._races:
            for ledger in (self._reads[footprint.space], self._writes[footprint.space]):
                ordered = self._conflicts(ledger, footprint, clock, origin)
                self._supersede(ledger, ordered, footprint)
                ledger.compact(self.order.least)

    def _add_read(self, footprint, component, epoch, origin):
        if not self._races:
            return
        ledger = self._reads[footprint.space]
        near = ledger.near(footprint)
        same = near[ledger.components(near) == component]
        self._supersede(ledger, same, footprint)
        ledger.compact(self.order.least)
        ledger.add(footprint, component, epoch, origin)

    def _add_write(self, footprint, component, epoch, origin):
        self._initialised.mark(footprint)
        if self._races:
            self._writes[footprint.space].add(footprint, component, epoch, origin)

    def _supersede(self, ledger, ordered, footprint):
        """Whoever is ordered after this access is ordered after those that it covers."""
        covers = self._footprints.covers
        covered = [i for i in ordered.tolist() if covers(footprint, ledger.footprint(i))]
        if covered:
            ledger.drop(covered)

    def _conflicts(self, ledger, footprint, clock, origin):
        """Reports the unordered entries that share bytes; returns the ordered ones near by."""
        near = ledger.near(footprint)
        before = ledger.before(near, clock)
        for i in near[~before].tolist():
            common = self._footprints.overlap(ledger.footprint(i), footprint)
            if common is not None:
                self._report(RACE, ledger.origin(i), origin, footprint.space, common)
        return near[before]

    def _require_written(self, footprint, origin):
        if self._uninitialised:
            missing = self._initialised.missing(footprint)
            if missing is not None:
                self._report(UNINITIALISED, origin, None, footprint.space, missing)

    def _overlaps(self, op, target, origin):
        for access in op.sources:
            if access.space != op.dst.space or (op.element_wise and same_elements(access, op.dst)):
                continue
            self._report_overlap(self._footprints.of_access(access), target, origin)

    def _report_overlap(self, source, target, origin):
        common = self._footprints.overlap(source, target)
        if common is not None:
            self._report(OVERLAP, origin, None, target.space, common)

    def _report(self, kind, first, second, space, common):
        key = (kind, space, first) if second is None else (kind, *sorted((first, second)))
        if key in self._seen:
            return
        self._seen.add(key)
        text = self._describe(second) if second is not None else ""
        p0, p1, low, high = common
        self.hazards.append(
            Hazard(
                kind,
                first,
                second,
                Memory(space),
                (p0, p1),
                (low, high),
                self._describe(first),
                text,
            )
        )


def same_elements(a, b):
    """Whether element i of a is element i of b, none of them twice."""
    if a.space == Space.NONE or a.space != b.space or a.itemsize != b.itemsize or a.repeats:
        return False
    if (a.partition, a.partitions, a.offset, a.elements) != (
        b.partition,
        b.partitions,
        b.offset,
        b.elements,
    ):
        return False
    if a.dims == b.dims:
        return True
    return bool((element_offsets(0, 1, a.dims) == element_offsets(0, 1, b.dims)).all())
