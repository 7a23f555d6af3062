"""Search through all states of go-back-N: which windows are safe for a modulus of sequence numbers.

Two FIFO channels of bounded depth lose any message at any place; the sender may go back at any
time (more than NAK and timer ever ask for), the receiver acknowledges at any time.  A state is bad
if the receiver accepts a flit that is not the next one.  With `halves` (the rule of docs/link.md:
ahead is a gap, behind a duplicate, half the numbers away an error) it is also bad if a flit is put
into the wrong half.  Window 511 of modulus 1024 is modulus / 2 - 1.

    python -m verif.go_back_n
"""

import sys
from collections import deque

CHANNEL = 3


def search(modulus, window, halves=False, channel=CHANNEL, most=5_000_000):
    """(True if no state is bad, states visited).  RuntimeError beyond `most` states.

    State, relative to the number that the receiver expects: base, pointer, next of the sender
    (absolute minus expected), forward messages (absolute minus expected), acknowledgements
    (absolute minus expected).  Only absolute modulo `modulus` ever decides what a side does, and
    equal differences behave alike, so the relative state is enough.
    """
    start: tuple = (0, 0, 0, (), ())
    seen, queue = {start}, deque([start])
    while queue:
        for state in _successors(queue.popleft(), modulus, window, halves, channel):
            if state is None:
                return False, len(seen)
            if state not in seen:
                seen.add(state)
                queue.append(state)
                if len(seen) > most:
                    raise RuntimeError(f"more than {most} states")
    return True, len(seen)


def _successors(state, modulus, window, halves, channel):
    """States behind one event; None for a flit accepted wrongly."""
    base, pointer, following, forward, back = state
    if len(forward) < channel:
        if pointer < following:
            yield base, pointer + 1, following, (*forward, pointer), back
        elif following - base < window:
            yield base, pointer + 1, following + 1, (*forward, pointer), back
    if pointer != base:
        yield base, base, following, forward, back
    if len(back) < channel:
        yield base, pointer, following, forward, (*back, 0)
    for index in range(len(forward)):
        yield base, pointer, following, forward[:index] + forward[index + 1 :], back
    for index in range(len(back)):
        yield base, pointer, following, forward, back[:index] + back[index + 1 :]
    if back:
        yield _acknowledged(state, modulus)
    if forward:
        yield _received(state, modulus, halves)


def _acknowledged(state, modulus):
    """The sender reads an acknowledgement, by its number modulo the modulus."""
    base, pointer, following, forward, back = state
    distance = (back[0] - base) % modulus
    if distance <= following - base:
        base += distance
        pointer = max(pointer, base)
    return base, pointer, following, forward, back[1:]


def _received(state, modulus, halves):
    """The receiver reads a flit: accepts it if its number is the expected one, both modulo."""
    base, pointer, following, forward, back = state
    number, rest = forward[0], forward[1:]
    ahead = number % modulus
    if halves and ahead:
        is_gap, is_duplicate = 0 < ahead < modulus // 2, ahead > modulus // 2
        if is_gap != (number > 0) or is_duplicate != (number < 0):
            return None
    if ahead:
        return base, pointer, following, rest, back
    if number:
        return None
    shifted = tuple(each - 1 for each in rest), tuple(each - 1 for each in back)
    return base - 1, pointer - 1, following - 1, *shifted


TABLE = (
    (4, 3, False, True),
    (4, 4, False, False),
    (8, 4, False, True),
    (8, 7, False, True),
    (8, 8, False, False),
    (8, 3, True, True),
    (8, 4, True, False),
    (16, 7, True, True),
    (16, 8, True, False),
)
"""(modulus, window, halves, whether it is safe)."""


def main():
    wrong = False
    for modulus, window, halves, expected in TABLE:
        safe, states = search(modulus, window, halves)
        verdict = "safe" if safe else "not safe"
        rule = "halves" if halves else "equal"
        print(f"modulus {modulus:2} window {window} {rule:6} {verdict:8} {states:9,} states")
        wrong |= safe != expected
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
