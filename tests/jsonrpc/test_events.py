"""Events are the same however the bytes come in and whatever ends their lines, within a cap."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.jsonrpc.stream import EventReader, LineTooLongError, SentEventText

CAP = 10_000
WORDS = st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=["Cs"]), max_size=20)


def fed(chunks: list[bytes], cap: int = CAP) -> list[SentEventText]:
    events = EventReader(cap)
    return [event for chunk in chunks for event in events.feed(chunk)]


@given(
    st.lists(st.lists(WORDS, min_size=1, max_size=3), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 600), max_size=20),
)
def test_any_chunking_and_any_ends_of_lines_give_the_same_events(
    texts: list[list[str]], end: str, cuts: list[int]
) -> None:
    stream = "".join("".join(f"data: {line}{end}" for line in lines) + end for lines in texts).encode()
    places = sorted({0, *(min(cut, len(stream)) for cut in cuts), len(stream)})
    chunks = [stream[a:b] for a, b in pairwise(places)]
    assert fed([*chunks, b"\n"]) == [SentEventText("message", "\n".join(lines).encode()) for lines in texts]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: one\n\n", [SentEventText("message", b"one")]),
        (b"data:one\n\n", [SentEventText("message", b"one")]),
        (b"data:  one\n\n", [SentEventText("message", b" one")]),
        (b"data\n\n", [SentEventText("message", b"")]),
        (
            b"event: other\ndata: one\n\ndata: two\n\n",
            [SentEventText("other", b"one"), SentEventText("message", b"two")],
        ),
        (b": ping\n\n", []),
        (b"event: nothing\n\ndata: one\n\n", [SentEventText("message", b"one")]),
        (b"unknown: x\ndata: one\n\n", [SentEventText("message", b"one")]),
        (b"\xef\xbb\xbfdata: one\n\n", [SentEventText("message", b"one")]),
        (b"data: cut off", []),
    ],
    ids=str,
)
def test_fields_mean_what_the_standard_says(stream: bytes, events: list[SentEventText]) -> None:
    assert fed([stream]) == events


def test_it_is_kept_where_the_stream_stands() -> None:
    events = EventReader(CAP)
    assert (events.last_id, events.retry_ms) == ("", None)
    assert events.feed(b"id: 7\nretry: 20\ndata: one\n\n") == [SentEventText("message", b"one")]
    assert (events.last_id, events.retry_ms) == ("7", 20)
    assert events.feed(b"id: 8\0\nretry: soon\nretry: 9999999999999\ndata: hal") == []
    events.restart()
    assert events.feed(b"data: two\n\n") == [SentEventText("message", b"two")], (
        "what broke off belongs to the other stream"
    )
    assert (events.last_id, events.retry_ms) == ("7", 20)
    events.feed(b"id: 9\ndata: the connection breaks he")
    assert events.last_id == "7", "what did not come whole has to come again"
    events.restart()
    events.feed(b"id\n\n")
    assert events.last_id == ""


def test_the_two_halves_of_an_end_of_line_may_come_apart() -> None:
    events = EventReader(CAP)
    assert [events.feed(chunk) for chunk in (b"data: x\r", b"\n", b"\n")] == [[], [], [SentEventText("message", b"x")]]


@pytest.mark.parametrize("chunks", [[b"data: " + b"x" * 20], [b"data: 1234\n"] * 3, [b"x" * 11]])
def test_an_event_beyond_the_cap_ends_it(chunks: list[bytes]) -> None:
    with pytest.raises(LineTooLongError, match="longer than 10 bytes"):
        fed(chunks, cap=10)
