"""Single faults: each thing that an end sends, hit once in each state of the other end in which it
is ever sent.  The link comes up or recovers, nothing is lost, doubled or out of order (the bench
looks at each packet), and no state is given up.
"""

import pytest

from isa.link import LinkState, Reason
from verif.link_bench import Item, Scenario, link_bench

S = LinkState
SMALL = {"beat_bytes": 16, "lanes": 4, "replay_bytes": 8192}
CONTEXTS = {"start": 0, "traffic": 1, "retrain": 2, "errors": 3}
"""When the fault may come: from reset on; in traffic; in traffic and a retrain; in traffic behind a
flit error in each direction.
"""
REACHED = {
    "start": {
        Item.DETECT: [S.DETECT],
        Item.LOCK: [S.LOCK],
        Item.ALIGN: [S.ALIGN],
        Item.TS1: [S.TS1],
        Item.TS2: [S.TS2],
        Item.START: [S.CREDIT_INIT],
        Item.CONTROL: [S.CREDIT_INIT, S.ACTIVE],
        Item.REPLAY: [S.CREDIT_INIT],
        Item.DATA: [S.ACTIVE],
        Item.ACKNOWLEDGE: [S.ACTIVE],
        Item.CREDIT: [S.ACTIVE],
    },
    "traffic": dict.fromkeys(
        (Item.CONTROL, Item.DATA, Item.ACKNOWLEDGE, Item.CREDIT), [S.ACTIVE]
    ),
    "retrain": {
        Item.DETECT: [S.ACTIVE, S.RECOVERY],
        Item.LOCK: [S.RECOVERY],
        Item.ALIGN: [S.LOCK, S.ALIGN, S.RECOVERY],
        Item.TS1: [S.ALIGN, S.TS1],
        Item.TS2: [S.TS1, S.TS2, S.CREDIT_INIT],
        Item.START: [S.CREDIT_INIT],
        Item.CONTROL: [S.ACTIVE],
        Item.REPLAY: [S.CREDIT_INIT],
        Item.DATA: [S.ACTIVE],
        Item.RESEND: [S.CREDIT_INIT, S.ACTIVE],
        Item.ACKNOWLEDGE: [S.ACTIVE],
        Item.CREDIT: [S.CREDIT_INIT, S.ACTIVE],
    },
    "errors": dict.fromkeys(
        (Item.CONTROL, Item.REPLAY, Item.DATA, Item.RESEND, Item.NAK, Item.ACKNOWLEDGE,
         Item.CREDIT), [S.ACTIVE]
    ),
}  # fmt: skip


def hit(context, item, state):
    """The run with that fault."""
    return link_bench(**SMALL).run(
        Scenario(
            cycles=6000,
            warm_cycles=1000,
            rate=0.01,
            maximum=9,
            delay=20,
            timeout=2048,
            fault_kind=item,
            fault_state=state,
            fault_later=CONTEXTS[context],
        )
    )


def flits(run, name):
    return run[f"{name}_a"] + run[f"{name}_b"]


CASES = [(context, item) for context in CONTEXTS for item in REACHED[context]]


@pytest.mark.parametrize(("context", "item"), CASES, ids=lambda x: getattr(x, "name", x))
def test_one_fault(context, item):
    for state in REACHED[context][item]:
        run, where = hit(context, item, state), f"{item.name} while the peer is in {state.name}"
        assert run["hits"] == 1, where
        assert run["lost_a"] == run["lost_b"] == 1, f"{where}: state was lost without need"
        assert run["given_up"] == 0, where
        assert run["packets_a"] > 20 and run["packets_b"] > 20, where
        first = {Reason(run[f"reasons_{side}"] & 31) for side in "ab"}
        if context == "retrain":
            assert first == {Reason.SOFTWARE, Reason.PEER_TRAINING}, where
        elif item == Item.START:
            assert first == {Reason.TRAINING_TIMEOUT, Reason.PEER_TRAINING}, where
        else:
            assert first == {Reason.NONE}, where
        if context == "retrain":  # a lost START takes another round
            assert run["RECOVERIES_a"] == run["RECOVERIES_b"] == 1 + (item == Item.START), where
        elif context != "start":
            assert run["RECOVERIES_a"] == run["RECOVERIES_b"] == 0, where
            assert run["CRC_ERRORS_b"] == 1 + (context == "errors"), where


@pytest.mark.nightly
@pytest.mark.parametrize("context", CONTEXTS)
def test_nothing_else_is_ever_sent(context):
    """The rest of the matrix: such a thing is not sent in such a state, so nothing is hit."""
    for item in Item:
        for state in LinkState:
            if state not in REACHED[context].get(item, ()):
                assert hit(context, item, state)["hits"] == 0, (item, state)
