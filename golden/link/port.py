"""A whole port, and two of them joined by channels: one step of all lanes in each cycle."""

from collections import deque

from golden.link.endpoint import Endpoint
from golden.link.frames import Deskew, LaneLock, frame_symbols
from golden.link.lanes import LaneReceive, LaneTransmit
from golden.link.training import Events, Training
from isa.link import MARKER_WORD, VCS, WORD_BITS, Command, FrameType, LinkState

_WORD = (1 << WORD_BITS) - 1
_ALIGNING = (LinkState.ALIGN, LinkState.TS1, LinkState.TS2, LinkState.CREDIT_INIT)


class Port:
    """training, endpoint (a new one for each session), received[vc] (packets of all sessions).

    slips: lanes that ask for a slip in this cycle.  losses: sessions that were lost.
    """

    def __init__(self, link, seed=0, **arguments):
        self.link = link
        self.training = Training(link, seed, **arguments)
        self.received = [[] for _ in range(VCS)]
        self.losses, self.slips = 0, []
        self._locks = [LaneLock(link) for _ in range(link.lanes)]
        self._deskew = Deskew(link)
        self._numbers = {}
        self._out = deque()
        self._lanes_out = self._lanes_in = None
        self._data_in = None
        self._now, self._request = 0, None
        self._renew()

    @property
    def is_up(self):
        """ACTIVE."""
        return self.training.state == LinkState.ACTIVE

    def send(self, vc, packet):
        """A packet waits for its VC's queue; what waits is dropped when the state is lost."""
        self.endpoint.send(vc, packet)

    def restart(self):
        """Software: all state is lost."""
        self._request = LinkState.RESET

    def retrain(self):
        """Software: to RECOVERY, announced by a command in the last flit."""
        self._leave(LinkState.RECOVERY, Command.RETRAIN)

    def disable(self):
        """Software: silence until `restart`, announced likewise."""
        self._leave(LinkState.DISABLED, Command.DISABLE)

    def _leave(self, state, command):
        self._request = state
        if self.is_up:
            self.endpoint.tx.stop(command)

    def cycle(self, arriving):
        """One step: symbols (None = idle) of the physical lanes in, those that go out."""
        self._now += 1
        events = Events()
        leaving, events.sent = self._transmit()
        beat = self._receive(arriving, events)
        self._run(beat, events)
        before = self.training.state
        self.training.cycle(events)
        self._follow(before)
        return leaving

    # Transmit side

    def _transmit(self):
        """(step, whether it ends a frame)."""
        if not self._out:
            self._fill()
        return self._out.popleft() if self._out else ([None] * self.link.lanes, False)

    def _fill(self):
        """The next steps: a frame, a beat, or a skip step where there is no beat."""
        training = self.training
        if training.sends is not None or (training.is_data and self._lanes_out is None):
            self._fill_frame()
        elif training.is_data:
            assert self._lanes_out is not None
            beat = self.endpoint.compose()
            steps = (
                [self._lanes_out.skip()] if beat is None else self._lanes_out.beat_and_skips(beat)
            )
            self._out.extend((step, False) for step in steps)

    def _fill_frame(self):
        training, link = self.training, self.link
        lanes = [frame_symbols(link, training.content(lane)) for lane in range(link.lanes)]
        steps = [list(step) for step in zip(*lanes, strict=True)]
        self._out.extend((step, i == len(steps) - 1) for i, step in enumerate(steps))
        if training.is_data:
            self._lanes_out = LaneTransmit(link, training.transmit_width)
            self.endpoint.tx.start()

    # Receive side

    def _receive(self, arriving, events):
        """The beat that this step completes, or None; fills in what the lanes tell."""
        self.slips = []
        upright = [
            0 if symbol is None else lock.upright(symbol)
            for symbol, lock in zip(arriving, self._locks, strict=True)
        ]
        aligned = self._deskew.push(upright)
        if self._data_in is None:
            self._hunt(arriving, events)
            return None
        if aligned is None or self._now <= self._data_in:
            return None
        active = [aligned[lane] for lane in self._group()]
        markers = sum(symbol & _WORD == MARKER_WORD for symbol in active)
        events.training_seen = 2 * markers > len(active)
        step = [0] * self.link.lanes
        for logical, symbol in zip(self._logical_group(), active, strict=True):
            step[logical] = symbol
        assert self._lanes_in is not None
        return self._lanes_in.step(step)

    def _hunt(self, arriving, events):
        """Training frames on all lanes."""
        frames = {}
        for lane, symbol in enumerate(arriving):
            if symbol is None:
                continue
            content, slip = self._locks[lane].symbol(symbol)
            if slip and not self._deskew.aligned:
                self.slips.append(lane)
            if content:
                frames[lane] = content
                self._numbers[lane] = content["lane"]
        locked = [lane for lane, lock in enumerate(self._locks) if lock.locked]
        events.locked = {self._numbers[lane] for lane in locked if lane in self._numbers}
        if self.training.state in _ALIGNING:
            group = self._group()
            for lane, content in frames.items():
                self._deskew.frame(lane, content["stamp"], group)
            frames = {lane: content for lane, content in frames.items() if lane in group}
            self._look_for_start(frames, events)
        events.aligned, events.overflow = self._deskew.aligned, self._deskew.overflow
        events.order_bad = self._is_order_bad()
        lowest = min(self._group() if self.training.state in _ALIGNING else locked or [0])
        events.frame = frames.get(lowest)

    def _look_for_start(self, frames, events):
        if not self._deskew.aligned:
            return
        for lane, content in frames.items():
            if content["type"] == FrameType.START and self.training.peer:
                self._data_in = self._now + self._deskew.delay(lane)
                self._lanes_in = LaneReceive(self.link, self.training.receive_width)
                self.endpoint.meet(self.training.peer["session"], self.training.peer["epoch"])
                self.endpoint.rx.start()
                self.endpoint.receiving = True
                events.start = True
                return

    def _logical_group(self):
        return self.training.receive_width.lanes(self.link.lanes)

    def _group(self):
        """Physical lanes of the receive width, in the order of their logical numbers."""
        physical = {number: lane for lane, number in self._numbers.items()}
        return [physical.get(logical, logical) for logical in self._logical_group()]

    def _is_order_bad(self):
        last = self.link.lanes - 1
        pairs = self._numbers.items()
        straight = all(number == lane for lane, number in pairs)
        return not straight and not all(number == last - lane for lane, number in pairs)

    # Both

    def _run(self, beat, events):
        endpoint, training = self.endpoint, self.training
        known, progress = len(endpoint.reasons), endpoint.tx.progress + endpoint.rx.progress
        commands = len(endpoint.commands)
        endpoint.rtt = training.rtt
        endpoint.arrive(beat)
        events.reasons = endpoint.reasons[known:]
        events.progress = endpoint.tx.progress + endpoint.rx.progress > progress
        events.credits_known = endpoint.tx.credits_known
        if self._request == LinkState.RESET or not self.is_up or endpoint.tx.idle:
            events.request, self._request = self._request, None
        if len(endpoint.commands) > commands:
            events.command = endpoint.commands[-1]

    def _follow(self, before):
        """Acts on what the state machine has decided."""
        training = self.training
        if training.clear:
            self._renew()
        was_data = before in (LinkState.CREDIT_INIT, LinkState.ACTIVE)
        if (was_data and not training.is_data) or training.unlock or training.clear:
            self._leave_data()
        if training.unlock or training.state in (LinkState.DETECT, LinkState.FAILED):
            self._unlock(before)
        self.losses += training.lost

    def _leave_data(self):
        self.endpoint.tx.flush()
        self.endpoint.rx.stop()
        self.endpoint.receiving = False
        self._data_in = self._lanes_in = None
        if self._lanes_out is not None:
            self._out.clear()
            self._lanes_out = None

    def _unlock(self, before):
        if before == self.training.state and not self.training.unlock:
            return
        for lock in self._locks:
            lock.drop()
        self._deskew.clear()
        self._numbers = {}

    def _renew(self):
        """A new session: queues, buffers and numbers start anew."""
        self.endpoint = Endpoint(self.link, self.training.session, self.training.epoch)
        self.endpoint.received = self.received
        self.endpoint.receiving = False


class PortPair:
    """ports[0], ports[1]; channels[i] leads away from ports[i].  links: one LinkConfig or two."""

    def __init__(self, links, channels, **arguments):
        links = links if isinstance(links, tuple) else (links, links)
        self.ports = [Port(link, seed + 1, **arguments) for seed, link in enumerate(links)]
        self.channels = channels
        self._arriving = [[None] * link.lanes for link in links]
        self.cycles = 0

    def step(self):
        """One cycle of both ports and both channels."""
        leaving = [
            port.cycle(arriving) for port, arriving in zip(self.ports, self._arriving, strict=True)
        ]
        for side in range(2):
            for lane in self.ports[1 - side].slips:
                self.channels[side].slip(lane)
            self._arriving[1 - side] = self.channels[side].step(leaving[side])
        self.cycles += 1

    def run_until(self, condition, most):
        """Steps until condition() holds.  TimeoutError after `most`."""
        for _ in range(most):
            if condition():
                return
            self.step()
        states = [port.training.state.name for port in self.ports]
        raise TimeoutError(f"not within {most} cycles; states {states}")

    @property
    def is_up(self):
        """Both are ACTIVE."""
        return all(port.is_up for port in self.ports)
