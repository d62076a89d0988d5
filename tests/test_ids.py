from __future__ import annotations

import asyncio
import re
import time
import uuid
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit import ids
from remit.ids import decode, encode, new_id, span_id, trace_id

NUMBERS = st.integers(0, 2**128 - 1)


def made() -> uuid.UUID:
    return uuid.UUID(int=decode(new_id("job").removeprefix("job_")))


@given(NUMBERS)
def test_encoding_round_trips(number: int) -> None:
    text = encode(number)
    assert re.fullmatch("[0-7][0-9a-hjkmnp-tv-z]{25}", text)
    assert decode(text) == number


@given(NUMBERS, NUMBERS)
def test_text_sorts_as_numbers_do(one: int, other: int) -> None:
    assert (encode(one) < encode(other)) == (one < other)


@given(st.text(max_size=30))
def test_what_is_no_identifier_is_refused(text: str) -> None:
    try:
        number = decode(text)
    except ValueError:
        return
    assert encode(number) == text


@pytest.mark.parametrize("text", ["", "0" * 25, "0" * 27, "8" + "0" * 25, "z" * 26, "0" * 25 + "u", "0" * 25 + "A"])
def test_neither_length_nor_alphabet_nor_size_may_be_wrong(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode(text)


def test_a_burst_sorts_in_order_of_creation_and_is_unique() -> None:
    found = [made() for _ in range(20_000)]
    assert all(one < other for one, other in pairwise(found))
    assert {(one.version, one.variant) for one in found} == {(7, uuid.RFC_4122)}


def test_order_survives_a_clock_that_stands_still_or_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = made().int >> 80
    times = [now, now - 5, *[now] * 9_000, now - 1_000, now + 60_000, now + 60_000]
    monkeypatch.setattr(ids, "_moments", ids._Moments())
    monkeypatch.setattr(time, "time_ns", lambda: times.pop(0) * 1_000_000)
    found = [made() for _ in range(len(times))]
    assert all(one < other for one, other in pairwise(found))


def test_an_identifier_carries_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "_moments", ids._Moments())
    monkeypatch.setattr(time, "time_ns", lambda: 1_767_225_600_123_999_999)
    assert made().int >> 80 == 1_767_225_600_123


async def test_threads_never_make_the_same() -> None:
    batches = await asyncio.gather(
        *(asyncio.to_thread(lambda: [new_id("job") for _ in range(2_000)]) for _ in range(8))
    )
    found = [one for batch in batches for one in batch]
    assert len(set(found)) == len(found)
    assert all(batch == sorted(batch) for batch in batches)


@given(st.sampled_from(["job", "c", "ses"]))
def test_an_identifier_names_its_kind(prefix: str) -> None:
    found = new_id(prefix)
    assert found.startswith(f"{prefix}_")
    assert len(found) == len(prefix) + 27
    assert trace_id(found) == f"{decode(found.rpartition('_')[2]):032x}"


def test_span_ids_are_sixteen_digits() -> None:
    assert re.fullmatch("[0-9a-f]{16}", span_id())
    assert span_id() != span_id()
