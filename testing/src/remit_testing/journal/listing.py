"""Heads as lists: by kind, state, name, label; newest first; page by page."""

from __future__ import annotations

from remit.clock import SECOND
from remit.journal.event import OPEN_STATES, HeadPatch, HeadQuery, StreamTally
from remit.journal.journal import Journal
from remit.journal.labels import conditions
from remit_testing.clock import ManualClock, TickingClock
from remit_testing.journal.storage import Storage, job, note, opened


async def _names(journal: Journal, query: HeadQuery) -> list[str]:
    return [head.stream for head in await journal.heads(query)]


async def check_the_newest_stream_comes_first(storage: Storage) -> None:
    """By creation, whatever was appended since; and every field of a listed head is that of the head itself."""
    async with opened(storage, TickingClock()) as journal:
        assert await journal.heads(HeadQuery()) == []
        writers = [await job(journal, f"job/{name}") for name in "bca"]
        await journal.append(writers[0], note(2), synced=True, patch=HeadPatch(state="x", labels={"a": "b"}))
        assert await _names(journal, HeadQuery()) == ["job/a", "job/c", "job/b"]
        assert await journal.heads(HeadQuery(states=("x",))) == [await journal.head("job/b")]


async def check_lists_by_kind_and_state(storage: Storage) -> None:
    """Of one kind, in one of several states."""
    async with opened(storage, TickingClock()) as journal:
        for number, state in enumerate(("pending", "running", "done", "running")):
            await job(journal, f"job/{number}", HeadPatch(state=state))
        await journal.create("session/a", "session", note(1), patch=HeadPatch(state="running"))
        assert await _names(journal, HeadQuery(kind="session")) == ["session/a"]
        assert await _names(journal, HeadQuery(states=("running",))) == ["session/a", "job/3", "job/1"]
        assert await _names(journal, HeadQuery(kind="job", states=("running", "done"))) == ["job/3", "job/2", "job/1"]
        assert await _names(journal, HeadQuery(kind="job", states=("gone",))) == []


async def check_lists_by_title_and_age(storage: Storage) -> None:
    """A text anywhere in the title, whose letters from A to Z may have any size; wildcards stand for themselves."""
    async with opened(storage, TickingClock()) as journal:
        titles = ["Restock Milk", "restock 100%", "Ärger", "100x"]
        for number, title in enumerate(titles):
            await job(journal, f"job/{number}", HeadPatch(title=title))
        for text, numbers in (("STOCK", [1, 0]), ("100%", [1]), ("Är", [2]), ("ärg", []), ("100_", []), ("x", [3])):
            assert await _names(journal, HeadQuery(text=text)) == [f"job/{number}" for number in numbers], text
        times = [head.created_at for head in await journal.heads(HeadQuery())]
        assert len(await _names(journal, HeadQuery(since=max(times)))) == times.count(max(times))
        assert await _names(journal, HeadQuery(since=max(times) + 1)) == []


async def check_counts_by_state(storage: Storage) -> None:
    """Of one kind; a state that no stream is in is left out."""
    async with opened(storage, TickingClock()) as journal:
        assert await journal.counts("job") == {}
        for number, state in enumerate(("pending", "running", "done", "running")):
            await job(journal, f"job/{number}", HeadPatch(state=state))
        await journal.create("session/a", "session", note(1), patch=HeadPatch(state="running"))
        assert await journal.counts("job") == {"pending": 1, "running": 2, "done": 1}


async def check_lists_by_several_states_with_every_other_condition(storage: Storage) -> None:
    """The newest of all of them, page by page, whatever else is asked for."""
    async with opened(storage, TickingClock()) as journal:
        for number in range(12):
            name = "rare" if number % 4 == 0 else "usual"
            state = ("pending", "running", "done")[number % 3]
            await job(journal, f"job/{number}", HeadPatch(state=state, labels={"remit.name": name}, title=name))
        states = ("running", "pending", "running")
        assert await _names(journal, HeadQuery(kind="job", states=states, limit=3)) == ["job/10", "job/9", "job/7"]
        second = HeadQuery(kind="job", states=states, before="job/7", limit=2)
        assert await _names(journal, second) == ["job/6", "job/4"]
        rare = HeadQuery(kind="job", states=states, labels={"remit.name": "rare"})
        assert await _names(journal, rare) == ["job/4", "job/0"]
        assert await _names(journal, HeadQuery(kind="job", labels={"remit.name": "rare"})) == [
            "job/8",
            "job/4",
            "job/0",
        ]
        assert await _names(journal, HeadQuery(states=states, text="RARE")) == ["job/4", "job/0"]


async def check_tallies_by_time_state_and_length(storage: Storage) -> None:
    """Of one kind and from a moment on; what is not closed took no time yet."""
    clock = ManualClock()
    async with opened(storage, clock) as journal:
        await job(journal, "job/early", HeadPatch(state="done", closed=True))
        clock.advance(1)
        since = clock.now()
        for number, took_s in enumerate((0.01, 0.09, 0.1, 0.5)):
            writer = await job(journal, f"job/{number}", HeadPatch(state="running"))
            clock.advance(took_s)
            await journal.append(writer, note(2), synced=True, patch=HeadPatch(state="done", closed=number < 3))
        clock.advance(20)
        await job(journal, "job/later", HeadPatch(state="pending"))
        await journal.create("session/a", "session", note(1), patch=HeadPatch(state="running"))
        tallies = await journal.tallies("job", since, 10 * SECOND, (SECOND // 20, SECOND // 10, SECOND))
        assert sorted(tallies, key=lambda tally: (tally.stretch, str(tally.took))) == [
            StreamTally(0, "done", 0, 1),
            StreamTally(0, "done", 1, 1),
            StreamTally(0, "done", 2, 1),
            StreamTally(0, "done", None, 1),
            StreamTally(2, "pending", None, 1),
        ]
        assert sum(tally.number for tally in await journal.tallies("job", 0, SECOND, ())) == 6
        assert await journal.tallies("job", clock.now() + 1, SECOND, (50,)) == []


async def check_lists_by_prefix(storage: Storage) -> None:
    """The characters of the prefix stand for themselves, and end nowhere but where it ends."""
    async with opened(storage, TickingClock()) as journal:
        names = ["job/a", "job/a/inbox", "job/a/z", "job/a/\U0001f600", "job/aa", "job/A/x", "job/a%/x", "job_a/x", "k"]
        for name in names:
            await job(journal, name)
        assert await _names(journal, HeadQuery(prefix="job/a/")) == ["job/a/\U0001f600", "job/a/z", "job/a/inbox"]
        assert await _names(journal, HeadQuery(prefix="job/a%")) == ["job/a%/x"]
        assert await _names(journal, HeadQuery(prefix="job_")) == ["job_a/x"]
        assert await _names(journal, HeadQuery(prefix="job/aa")) == ["job/aa"]
        assert await _names(journal, HeadQuery(prefix="")) == names[::-1]


async def check_lists_by_label(storage: Storage) -> None:
    """All labels given have to be there with just these values; keys and values may hold any character."""
    async with opened(storage, TickingClock()) as journal:
        labels = [{"team": "a", "x.y": "1"}, {"team": "b"}, {"team": "a"}, {'q"\\': "é'\n"}, {"1": "2"}, {}]
        for number, label in enumerate(labels):
            await job(journal, f"job/{number}", HeadPatch(labels=label))
        for wanted, numbers in (
            ({"team": "a"}, [2, 0]),
            ({"team": "a", "x.y": "1"}, [0]),
            ({"x": "1"}, []),
            ({'q"\\': "é'\n"}, [3]),
            ({"1": "2"}, [4]),
            ({"team": ""}, []),
            ({}, [5, 4, 3, 2, 1, 0]),
        ):
            assert await _names(journal, HeadQuery(labels=wanted)) == [f"job/{number}" for number in numbers], wanted


async def check_lists_jobs_by_their_labels(storage: Storage) -> None:
    """Numbers and moments of labels are compared by size, texts by every character; changed labels are found anew."""
    async with opened(storage, TickingClock()) as journal:
        filed: list[dict[str, str]] = [
            {"size": "9", "team": "a"},
            {"size": "10", "team": "b"},
            {"size": "-1.5e3", "at": "2026-11-29T12:00:00+01:00"},
            {"size": "big", "at": "2026-11-29T11:30:00Z"},
            {"size": "007", "team": "a"},
            {},
        ]
        writers = [
            await job(journal, f"job/{number}", HeadPatch(labels=labels, state="pending"))
            for number, labels in enumerate(filed)
        ]
        await journal.append(writers[5], note(6), synced=True, patch=HeadPatch(labels={"size": "11"}))
        await journal.append(writers[0], note(7), synced=True, patch=HeadPatch(labels={"team": "a"}))
        for texts, numbers in (
            (["size>=10"], [5, 1]),
            (["size>10"], [5]),
            (["size<0"], [2]),
            (["size<=9"], [2]),
            (["size>2020-01-01T00:00:00Z"], []),
            (["at<2026-11-29T11:15:00Z"], [2]),
            (["at>=2026-11-29T12:30:00+01:00"], [3]),
            (["team=a"], [4, 0]),
            (["team=b", "size>1", "size<11"], [1]),
            (["size=007"], [4]),
        ):
            labels, bounds = conditions(texts)
            for states in ((), ("pending",), OPEN_STATES, ("pending", "failed")):
                query = HeadQuery(kind="job", labels=labels, bounds=bounds, states=states)
                assert await _names(journal, query) == [f"job/{number}" for number in numbers], texts


async def check_lists_page_by_page(storage: Storage) -> None:
    """At most `limit`; `before` goes on after a stream of the last page, and new streams do not disturb that."""
    async with opened(storage, TickingClock()) as journal:
        for number in range(7):
            await job(journal, f"job/{number}", HeadPatch(state="even" if number % 2 == 0 else "odd"))
        query = HeadQuery(kind="job", states=("even",), limit=2)
        first = await _names(journal, query)
        assert first == ["job/6", "job/4"]
        await job(journal, "job/8", HeadPatch(state="even"))
        second = await _names(journal, HeadQuery(kind="job", states=("even",), limit=2, before=first[-1]))
        assert second == ["job/2", "job/0"]
        assert await _names(journal, HeadQuery(kind="job", states=("even",), limit=2, before=second[-1])) == []
        assert await _names(journal, HeadQuery(before="job/none")) == []
