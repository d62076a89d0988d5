"""Each row: a storage that breaks one promise, and the check of the journal suite that catches it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from remit.clock import Clock
from remit.errors import JournalError
from remit.journal.event import Append, Commit, Ends, Event, HeadPatch, HeadQuery, Lease, LeaseClaim, Scanned
from remit.journal.journal import Journal
from remit.journal.sqlite.store import MEMORY, SqliteStore
from remit_testing.journal import JOURNAL_CHECKS, SHARED_CHECKS, Check
from remit_testing.journal import storage as words

Instead = Callable[..., Any]


class Broken:
    """A good storage, except for what it is told to do otherwise."""

    def __init__(self, clock: Clock, instead: dict[str, Instead]) -> None:
        self._good = SqliteStore(MEMORY, clock)
        self._instead = instead

    def __getattr__(self, name: str) -> Any:
        if name in self._instead:
            return lambda *given: self._instead[name](self._good, *given)
        return getattr(self._good, name)


class BrokenStorage:
    """One instance of it."""

    def __init__(self, **instead: Instead) -> None:
        self._instead = instead

    @asynccontextmanager
    async def open(self, clock: Clock) -> AsyncIterator[Journal]:
        store: Any = Broken(clock, self._instead)
        journal = Journal(store, clock)
        try:
            yield journal
        finally:
            await journal.close()


def _changed(commit: Commit, change: Callable[[Append], Append]) -> Commit:
    commit.appends = tuple(map(change, commit.appends))
    return commit


def forgetful_of_wakes(store: SqliteStore, commit: Commit) -> None:
    store.submit(_changed(commit, lambda append: msgspec.structs.replace(append, expect_wakes=None)))


def without_patches(store: SqliteStore, commit: Commit) -> None:
    store.submit(_changed(commit, lambda append: msgspec.structs.replace(append, patch=HeadPatch())))


def keeping_leases(store: SqliteStore, commit: Commit) -> None:
    def keep(append: Append) -> Append:
        return msgspec.structs.replace(append, patch=msgspec.structs.replace(append.patch, release=False))

    store.submit(_changed(commit, keep))


def one_by_one(store: SqliteStore, commit: Commit) -> None:
    """A spanning commit is not one transaction."""
    for append in commit.appends[1:]:
        store.submit(Commit(appends=(append,), at=commit.at))
    commit.appends = commit.appends[:1]
    store.submit(commit)


def sleeping_through(store: SqliteStore, commit: Commit) -> None:
    commit.wakes = ()
    store.submit(commit)


def deaf(_store: SqliteStore, commit: Commit) -> None:
    """Takes everything and keeps nothing."""
    if commit.on_done is not None:
        commit.on_done(None)


async def backwards(store: SqliteStore, stream: str, after: int, limit: int) -> list[Event]:
    return (await store.read(stream, after, limit))[::-1]


async def one_short(store: SqliteStore, stream: str, after: int, limit: int) -> list[Event]:
    return await store.read(stream, after + (after > 0), limit)


async def retouched(store: SqliteStore, stream: str, after: int, limit: int) -> list[Event]:
    events = await store.read(stream, after, limit)
    return [msgspec.structs.replace(event, data=event.data + b" ") for event in events]


async def careless(store: SqliteStore, claim: LeaseClaim) -> list[Lease]:
    """Claims what is held, and what is not due."""
    return await store.claim(msgspec.structs.replace(claim, now=2**52))


async def greedy(store: SqliteStore, claim: LeaseClaim) -> list[Lease]:
    return await store.claim(msgspec.structs.replace(claim, limit=100))


async def any_state(store: SqliteStore, claim: LeaseClaim) -> list[Lease]:
    return await store.claim(msgspec.structs.replace(claim, states=()))


async def unordered(store: SqliteStore, claim: LeaseClaim) -> list[Lease]:
    return (await store.claim(claim))[::-1]


async def forgetful(store: SqliteStore, claim: LeaseClaim) -> list[Lease]:
    return [msgspec.structs.replace(lease, previous_state="") for lease in await store.claim(claim)]


async def brutal(store: SqliteStore, stream: str, claim: LeaseClaim, _over: str | None) -> Lease | None:
    head = await store.head(stream)
    return await store.acquire(stream, claim, head.lease_owner if head else None)


async def generous(store: SqliteStore, leases: Sequence[tuple[str, int]], until: int) -> list[str]:
    await store.renew(leases, until)
    return [stream for stream, _ in leases]


async def unlabelled(store: SqliteStore, query: HeadQuery) -> list[Any]:
    return await store.heads(msgspec.structs.replace(query, labels={}))


async def endless(store: SqliteStore, query: HeadQuery) -> list[Any]:
    return await store.heads(msgspec.structs.replace(query, limit=1_000))


async def oldest_first(store: SqliteStore, query: HeadQuery) -> list[Any]:
    return (await store.heads(query))[::-1]


async def no_blob(_store: SqliteStore, _digest: str) -> None:
    return None


async def nothing_due(_store: SqliteStore, _kind: str, _routes: tuple[str, ...]) -> None:
    return None


async def any_route(store: SqliteStore, claim: LeaseClaim) -> list[Lease]:
    return await store.claim(msgspec.structs.replace(claim, routes=()))


async def due_on_any_route(store: SqliteStore, kind: str, _routes: tuple[str, ...]) -> int | None:
    return await store.next_due(kind, ())


async def unmoved(store: SqliteStore, since: int) -> int:
    return await store.changed(0) if since == 0 else since


async def past_the_page(store: SqliteStore, after: int, kinds: tuple[str, ...], limit: int) -> Scanned:
    """Goes on one too far."""
    found = await store.scan(after, kinds, limit)
    return msgspec.structs.replace(found, position=found.position + found.more)


async def past_the_stretch(store: SqliteStore, after: int, limit: int) -> Ends:
    """Tells of what comes later."""
    return await store.ends(after, limit + 1)


async def never_done(store: SqliteStore, after: int, kinds: tuple[str, ...], limit: int) -> Scanned:
    return msgspec.structs.replace(await store.scan(after, kinds, limit), more=True)


async def of_any_kind(store: SqliteStore, after: int, _kinds: tuple[str, ...], limit: int) -> Scanned:
    return await store.scan(after, (), limit)


BREAKS: list[tuple[str, Instead, str]] = [
    ("submit", forgetful_of_wakes, "check_no_wake_up_is_lost_while_parking"),
    ("submit", without_patches, "check_the_head_follows_the_events"),
    ("submit", keeping_leases, "check_releasing_frees_the_stream"),
    ("submit", one_by_one, "check_a_spanning_commit_is_refused_whole"),
    ("submit", one_by_one, "check_one_consumer_wins"),
    ("submit", sleeping_through, "check_a_wake_makes_a_dormant_stream_due"),
    ("submit", deaf, "check_events_come_back_as_appended"),
    ("read", backwards, "check_events_come_back_as_appended"),
    ("read", one_short, "check_a_long_stream_is_read_whole"),
    ("read", retouched, "check_an_untouched_stream_verifies"),
    ("claim", careless, "check_a_held_stream_is_not_claimed"),
    ("claim", careless, "check_what_is_not_due_is_not_claimed"),
    ("claim", greedy, "check_a_claim_respects_its_limit"),
    ("claim", any_state, "check_what_is_not_due_is_not_claimed"),
    ("claim", unordered, "check_higher_priority_comes_first"),
    ("claim", forgetful, "check_a_claim_leases_a_due_stream"),
    ("acquire", brutal, "check_a_held_stream_is_not_claimed"),
    ("acquire", brutal, "check_one_of_many_claimers_wins"),
    ("renew", generous, "check_only_the_holder_renews"),
    ("heads", unlabelled, "check_lists_by_label"),
    ("heads", endless, "check_lists_page_by_page"),
    ("heads", oldest_first, "check_the_newest_stream_comes_first"),
    ("blob", no_blob, "check_values_of_any_size_are_kept"),
    ("claim", any_route, "check_a_claim_takes_only_the_routes_it_serves"),
    ("next_due", due_on_any_route, "check_a_claim_takes_only_the_routes_it_serves"),
    ("next_due", nothing_due, "check_next_due_is_the_earliest"),
    ("scan", past_the_page, "check_a_scan_goes_page_by_page"),
    ("scan", never_done, "check_a_scan_gives_every_event"),
    ("scan", of_any_kind, "check_a_scan_of_some_kinds_gives_those"),
    ("ends", past_the_stretch, "check_the_ends_of_a_stretch_are_the_newest_events_in_it"),
    ("changed", unmoved, "check_changed_returns_at_once_for_a_newcomer"),
]


def check(name: str) -> Check:
    (found,) = [one for one in JOURNAL_CHECKS if one.__name__ == name]
    return found


@pytest.mark.parametrize(
    ("method", "instead", "name"), BREAKS, ids=[f"{instead.__name__}-{name}" for _, instead, name in BREAKS]
)
async def test_a_broken_promise_is_caught(
    method: str, instead: Instead, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "PATIENCE_S", 2.0)
    with pytest.raises((AssertionError, JournalError)):
        await check(name)(BrokenStorage(**{method: instead}))


@pytest.mark.parametrize("name", sorted({name for _, _, name in BREAKS}))
async def test_the_same_check_passes_on_a_good_storage(name: str) -> None:
    await check(name)(BrokenStorage())


async def test_a_storage_that_never_answers_runs_out_of_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "PATIENCE_S", 0.01)

    def silent(*_given: Any) -> Awaitable[None]:
        return asyncio.get_running_loop().create_future()

    with pytest.raises(TimeoutError):
        await check("check_an_unknown_stream_is_empty")(BrokenStorage(head=silent))


def test_every_check_is_listed_once_and_says_what_it_checks() -> None:
    checks = [*JOURNAL_CHECKS, *SHARED_CHECKS]
    assert len({one.__name__ for one in checks}) == len(checks)
    assert all(one.__doc__ for one in checks)
