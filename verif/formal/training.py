"""Training with a peer, lanes and software that do as they please."""

from amaranth.hdl import Cat, Module, Signal

from hdl.link.training import ELAPSED_BITS, Training
from isa.link import LinkConfig, LinkState
from verif.formal.harness import AnyConst, AnySeq, Harness

LONGEST = 1000
"""Timeouts up to this many cycles."""
_BOUNDED = (
    LinkState.DETECT,
    LinkState.LOCK,
    LinkState.ALIGN,
    LinkState.TS1,
    LinkState.TS2,
    LinkState.CREDIT_INIT,
    LinkState.RECOVERY,
)
_RECEIVING = (LinkState.TS2, LinkState.CREDIT_INIT, LinkState.ACTIVE)


class Probed(Training):
    """Training that shows registers of its own, and carries the mutations."""

    def __init__(self, link, mutation):
        super().__init__(link, restart_cycles=2)
        self.mutation = mutation
        self.elapsed = Signal(ELAPSED_BITS)
        self.start_seen, self.initialising = Signal(), Signal()

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += [
            self.elapsed.eq(self._elapsed),
            self.start_seen.eq(self._start_seen),
            self.initialising.eq(self._initialise),
        ]
        if self.mutation == "restarts":
            with m.If(self.frame_valid & (self.state == LinkState.DETECT)):
                m.d.sync += self._elapsed.eq(0)
        if self.mutation == "early":
            receiving = Cat(self.state == state for state in _RECEIVING).any()
            m.d.comb += self.rx_enable.eq(receiving)
        if self.mutation == "keeps":
            m.d.comb += self.clear.eq(0)
        if self.mutation == "same_session":
            m.d.comb += self.clear.eq(self.lost & ~self.fresh)
        return m


class Bounds(Harness):
    """Mutations: "restarts" the time at frames, "early" enables the receiver without START,
    "keeps" state when the peer has lost its own, "same_session".
    """

    def elaborate(self, platform):
        m = Module()
        self.begin(m)
        link = LinkConfig(beat_bytes=16, lanes=4)
        m.submodules.design = design = Probed(link, self.mutation)
        for path, member, value in design.signature.flatten(design):
            if member.flow.name == "In" and path != ("timeout",):
                value = value.as_value() if hasattr(value, "as_value") else value
                m.d.comb += value.eq(AnySeq(len(value)))
        m.d.comb += design.timeout.eq(AnyConst(ELAPSED_BITS))
        self.assume(m, design.timeout <= LONGEST)

        def during(*states):
            return Cat(design.state == state for state in states).any()

        # Time runs in every bounded state, from 0 at its entry, and ends it
        was_state, was_elapsed = Signal.like(design.state), Signal(ELAPSED_BITS)
        was_initialising, alive = Signal(), Signal()
        m.d.sync += [
            was_state.eq(design.state),
            was_elapsed.eq(design.elapsed),
            was_initialising.eq(design.initialising),
            alive.eq(1),
        ]
        stays, again = Signal(), Signal()
        m.d.comb += [
            stays.eq(alive & during(*_BOUNDED) & (design.state == was_state)),
            # TS1 begins anew when the peer has lost its state, RECOVERY when it has run out
            again.eq(
                (design.elapsed == 0)
                & (
                    (was_initialising & during(LinkState.TS1))
                    | ((was_elapsed == design.timeout) & during(LinkState.RECOVERY))
                )
            ),
        ]
        self.prove(m, "leaves", ~during(*_BOUNDED) | (design.elapsed <= design.timeout))
        self.prove(m, "leaves", ~stays | again | (design.elapsed == was_elapsed + 1))
        self.prove(m, "leaves", ~alive | (design.state == was_state) | (design.elapsed == 0))

        # START has come since the receiver was last out of use
        seen = Signal()
        with m.If(~during(*_RECEIVING)):
            m.d.sync += seen.eq(0)
        with m.Elif(design.rx_start):
            m.d.sync += seen.eq(1)
        self.prove(m, "start", ~design.rx_enable | seen)
        self.invariant(m, ~design.start_seen | ~during(*_RECEIVING) | seen)
        self.invariant(m, ~(design.start_seen & during(LinkState.TS2)))

        # One life of the link's state knows one session of the peer
        valid, session = Signal(), Signal(32)
        with m.If(design.clear):
            m.d.sync += valid.eq(0)
        with m.Elif(design.rx_enable):
            m.d.sync += [valid.eq(1), session.eq(design.peer_session)]
        same = session == design.peer_session
        self.prove(m, "session", ~(design.rx_enable & valid) | same)
        self.invariant(m, ~valid | same)
        in_data = during(LinkState.CREDIT_INIT, LinkState.ACTIVE)
        # Nothing leads from data to TS1 directly
        self.invariant(m, ~(design.initialising & design.fresh & during(LinkState.TS1)))
        # `fresh` falls in the first cycle of CREDIT_INIT
        self.invariant(m, ~(design.fresh & during(LinkState.ACTIVE)))
        losing = design.initialising | design.clear
        self.invariant(m, ~(design.fresh & valid) | in_data | losing)

        # And its own session: it changes only as the state is cleared
        was_session = Signal(32)
        m.d.sync += was_session.eq(design.session)
        self.prove(m, "own", ~alive | (design.session == was_session) | design.clear)

        self.reach(m, "leaves", stays & (design.elapsed == design.timeout) & (was_elapsed == 4))
        self.reach(m, "start", design.rx_enable & design.up)
        self.reach(m, "session", valid & design.clear)
        self.reach(m, "own", alive & (design.session != was_session))
        return m
