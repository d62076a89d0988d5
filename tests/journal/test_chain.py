from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import ChainBrokenError
from remit.journal.event import Event, link, root, verify

Facts = list[tuple[str, int, bytes]]
FACTS = st.lists(
    st.tuples(st.text(min_size=1, max_size=30), st.integers(0, 2**62), st.binary(max_size=60)), min_size=1, max_size=6
)


def chained(stream: str, facts: Facts) -> list[Event]:
    previous, events = root(stream), []
    for seq, (kind, at, data) in enumerate(facts, 1):
        previous = link(previous, seq, at, kind, data)
        events.append(Event(stream, seq, kind, at, data, previous))
    return events


def broken(stream: str, events: list[Event], original: list[Event]) -> bool:
    """Whether the change is found: by the chain, or because the end is not where the head says it is."""
    try:
        return verify(stream, events) != (len(original), original[-1].hash)
    except ChainBrokenError:
        return True


def test_the_chain_is_the_one_that_is_documented() -> None:
    start = sha256(b"remit-chain-1\0job/\xc3\xa4").digest()
    frame = (1).to_bytes(8, "big") + (1_700_000_000_000_000).to_bytes(8, "big") + (2).to_bytes(2, "big")
    value = sha256(start + frame + b"ki" + b"{}").digest()
    assert root("job/ä") == start
    assert link(start, 1, 1_700_000_000_000_000, "ki", b"{}") == value


@given(st.text(min_size=1), FACTS)
def test_an_unchanged_stream_verifies_to_its_length_and_last_value(stream: str, facts: Facts) -> None:
    events = chained(stream, facts)
    assert verify(stream, events) == (len(facts), events[-1].hash)


@given(st.data(), FACTS)
def test_any_change_of_an_event_is_found(data: st.DataObject, facts: Facts) -> None:
    events = chained("job/a", facts)
    index = data.draw(st.integers(0, len(facts) - 1))
    changed = data.draw(st.sampled_from(CHANGES))(events[index], data)
    assert broken("job/a", [*events[:index], changed, *events[index + 1 :]], events)


def flip(content: bytes, data: st.DataObject) -> bytes:
    """The same with one bit turned, or with one byte more if there is none."""
    if not content:
        return b"\0"
    place, bit = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(0, 7))
    return content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]


CHANGES: list[Callable[[Event, st.DataObject], Event]] = [
    lambda event, data: msgspec.structs.replace(event, data=flip(event.data, data)),
    lambda event, data: msgspec.structs.replace(event, hash=flip(event.hash, data)),
    lambda event, data: msgspec.structs.replace(event, at=event.at ^ 1 << data.draw(st.integers(0, 61))),
    lambda event, data: msgspec.structs.replace(event, seq=event.seq ^ 1 << data.draw(st.integers(0, 30))),
    lambda event, _: msgspec.structs.replace(event, kind=event.kind + "x"),
    lambda event, _: msgspec.structs.replace(event, kind="", data=event.kind.encode() + event.data),
]


@given(st.data(), FACTS.filter(lambda facts: len(facts) > 1))
def test_any_other_order_is_found(data: st.DataObject, facts: Facts) -> None:
    events = chained("job/a", facts)
    order = data.draw(st.permutations(events).filter(lambda order: order != events))
    assert broken("job/a", order, events)
    renumbered = [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(order, 1)]
    assert broken("job/a", renumbered, events)


@given(st.data(), FACTS)
def test_a_dropped_or_doubled_event_is_found(data: st.DataObject, facts: Facts) -> None:
    events = chained("job/a", facts)
    index = data.draw(st.integers(0, len(facts) - 1))
    assert broken("job/a", events[:index] + events[index + 1 :], events)
    assert broken("job/a", [*events[: index + 1], *events[index:]], events)


@given(FACTS, st.text(min_size=1).filter(lambda name: name != "job/a"))
def test_events_of_another_stream_are_found(facts: Facts, other: str) -> None:
    events = chained("job/a", facts)
    assert broken(other, events, events)


def test_the_first_bad_event_is_named() -> None:
    events = chained("job/a", [("kind", 1, b"1"), ("kind", 2, b"2"), ("kind", 3, b"3")])
    with pytest.raises(ChainBrokenError, match="event 2 is missing"):
        verify("job/a", [events[0], events[2]])
    with pytest.raises(ChainBrokenError, match=r"event 3 \(kind\) does not match"):
        verify("job/a", [*events[:2], msgspec.structs.replace(events[2], data=b"4")])
