from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import Any

import msgspec
import pytest

from remit.api.route import SentEvent
from remit.clock import SystemClock
from remit.pages.live import COALESCE_S, SPACING_S, PageChannels, Rows, changes, regions_of
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow


def page(**regions: str) -> bytes:
    parts = [
        f'<div id="{name}" data-live="whole"><!--live-->{text}<!--/live--></div>' for name, text in regions.items()
    ]
    return f"<main>{''.join(parts)}</main>".encode()


class Journal:
    """News that a test gives out, and the page that stands in it."""

    def __init__(self) -> None:
        self.mark = 1
        self.news = asyncio.Event()
        self.page = page(a="1", b="1")
        self.made = 0

    async def changed(self, since: int) -> int:
        while since >= self.mark:
            self.news.clear()
            await self.news.wait()
        return self.mark

    async def make(self) -> bytes:
        self.made += 1
        return self.page

    def write(self, **regions: str) -> None:
        self.page = page(**regions)
        self.mark += 1
        self.news.set()


async def first(events: AsyncIterator[SentEvent]) -> Any:
    sent = await asyncio.wait_for(anext(events), PATIENCE_S)
    return SentEvent(sent.id, sent.event, msgspec.json.decode(sent.data))


def log(*rows: str) -> bytes:
    lines = "\n  ".join(f'<tr id="s-{row[0]}"><td>{row}</td></tr>' for row in rows)
    return f'<tbody id="rows" data-live="log"><!--live-->\n  {lines}<!--/live--></tbody>'.encode()


def test_regions_are_those_that_our_templates_mark() -> None:
    made = regions_of(page(a="x", b="<p>&lt;!--live--&gt;</p>"))
    assert made.regions == {"a": b"x", "b": b"<p>&lt;!--live--&gt;</p>"}
    assert made.state == regions_of(page(a="x", b="<p>&lt;!--live--&gt;</p>")).state != regions_of(page(a="x")).state


async def test_a_page_is_made_once_for_all_who_see_the_same() -> None:
    journal, channels = Journal(), PageChannels(SystemClock())
    async with (
        channels.followed("key", journal.make, nullcontext(journal.changed)) as one,
        channels.followed("key", journal.make, nullcontext(journal.changed)) as other,
    ):
        assert one is other
        feeds = [one.follow(""), other.follow("")]
        assert [(await first(feed)).data for feed in feeds] == [{"a": "1", "b": "1"}] * 2
        journal.write(a="1", b="2")
        assert [(await first(feed)).data for feed in feeds] == [{"b": "2"}] * 2
        assert journal.made == 2


class Hasty(SystemClock):
    """A clock that a test turns, on which nobody waits."""

    def __init__(self) -> None:
        self.at = 0.0
        self.sleeps = list[float]()

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, no time


async def test_a_large_page_rests_but_not_after_its_first_making() -> None:
    journal, clock = Journal(), Hasty()

    async def make() -> bytes:
        clock.at += 0.15
        return await journal.make()

    async with PageChannels(clock).followed("key", make, nullcontext(journal.changed)) as channel:
        feed = channel.follow("")
        await first(feed)
        journal.write(a="2", b="1")
        await first(feed)
        journal.write(a="3", b="1")
        await first(feed)
    assert clock.sleeps[:4] == [SPACING_S, COALESCE_S, pytest.approx(1.5), COALESCE_S]


def test_of_a_log_only_the_rows_that_changed_are_sent() -> None:
    old, new = regions_of(log("a1", "b1", "c1")), regions_of(log("a1", "b2", "d1"))
    (sent,) = changes(old, new).values()
    assert sent == Rows('<tr id="s-b"><td>b2</td></tr><tr id="s-d"><td>d1</td></tr>', ["s-c"])
    assert isinstance(changes(None, new)["rows"], str)
    assert changes(new, new) == {}


async def test_what_changed_is_written_once_for_all_who_had_the_same() -> None:
    journal, channels = Journal(), PageChannels(SystemClock())
    async with channels.followed("key", journal.make, nullcontext(journal.changed)) as channel:
        feeds = [channel.follow("") for _ in range(2)]
        for _ in range(2):
            one, other = [await asyncio.wait_for(anext(feed), PATIENCE_S) for feed in feeds]
            assert one.data is other.data
            journal.write(a="2", b="1")


async def test_whoever_comes_back_gets_what_is_different_or_nothing() -> None:
    journal, channels = Journal(), PageChannels(SystemClock())
    async with channels.followed("key", journal.make, nullcontext(journal.changed)) as channel:
        sent = await first(channel.follow(""))
        back = channel.follow(sent.id)
        waiting = asyncio.ensure_future(anext(back))
        await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, no time
        journal.write(a="2", b="1")
        assert msgspec.json.decode((await asyncio.wait_for(waiting, PATIENCE_S)).data) == {"a": "2"}
        assert (await first(channel.follow(sent.id))).data == {"a": "2", "b": "1"}


async def test_a_page_that_cannot_be_made_ends_its_streams() -> None:
    async def make() -> bytes:
        raise ValueError("gone")

    journal, channels = Journal(), PageChannels(SystemClock())
    async with channels.followed("key", make, nullcontext(journal.changed)) as channel:
        assert [sent async for sent in channel.follow("")] == []
    async with channels.followed("key", journal.make, nullcontext(journal.changed)) as channel:
        assert (await first(channel.follow(""))).data == {"a": "1", "b": "1"}
