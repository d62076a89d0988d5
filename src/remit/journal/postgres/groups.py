"""The way that a group of commits becomes one statement of functions.py. Pure: commits in, columns out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from remit.journal.event import NO_PATCH, Append, Commit, Event
from remit.journal.runs import AppendRun, folds

_FOLD: Final = 14
_EACH: Final = 26
"""Arguments of the two functions."""


def _statement(fold: bool, each: bool, aside: bool) -> str:
    calls, used = [], 4 + aside
    for name, count in [("fold", _FOLD)] * fold + [("each", _EACH)] * each:
        calls.append(f"{name}({', '.join(f'${used + n}' for n in range(1, count + 1))})")
        used += count
    missed = " || ".join(calls)
    return f"SELECT aside($1, $2, $3, $4, {missed}, $5)" if aside else f"SELECT done($1, $2, $3, $4, {missed})"


_BOTH: Final = (True, False)
_STATEMENTS: Final = {(f, e, a): _statement(f, e, a) for f in _BOTH for e in _BOTH for a in _BOTH if f or e}


class Group:
    """Commits that are written together: runs of events, then the others in their order.

    All of them are `aside`, or none is; one that is `unleased` is alone.
    """

    def __init__(self, commits: Sequence[Commit]) -> None:
        self.commits = commits
        self.flush = any(commit.synced for commit in commits)
        self.heads = any(commit.changes_heads for commit in commits)
        self._others: list[int] = []
        runs: dict[str, AppendRun] = {}
        taken: set[str] = set()
        for index, commit in enumerate(commits):
            append = commit.appends[0] if commit.appends else None
            if append is not None and append.stream not in taken and folds(commit) and not commit.blobs:
                run = runs.get(append.stream)
                if run is None:
                    runs[append.stream] = AppendRun(append, index)
                    continue
                if run.takes(append):
                    run.add(append, index)
                    continue
            # What follows on these streams follows this commit.
            taken.update(each.stream for each in commit.appends)
            self._others.append(index)
        self._runs = sorted(runs.values(), key=lambda run: run.first.stream)

    def statement(self) -> tuple[str, list[Any]]:
        """The statement and its arguments after the writer, the group's number, flush and heads."""
        aside = self.commits[0].aside
        arguments: list[Any] = [self.commits[0].at if self.commits[0].unleased else None] if aside else []
        if self._runs:
            arguments += _fold_columns(self._runs)
        if self._others:
            arguments += _each_columns([self.commits[index] for index in self._others])
        return _STATEMENTS[bool(self._runs), bool(self._others), aside], arguments

    def alone(self) -> tuple[str, list[Any]]:
        """The statement that writes these commits in a transaction which others are part of."""
        columns = _each_columns(self.commits)
        return f"SELECT each({', '.join(f'${n}' for n in range(1, len(columns) + 1))})", columns

    def refused(self, places: Iterable[int]) -> tuple[list[int], bool]:
        """The commits behind the places that were refused, in their order; whether each needs a try of its own."""
        found: list[int] = []
        together = False
        for place in places:
            if place < 0:
                found.append(self._others[-place - 1])
            else:
                run = self._runs[place - 1]
                found += run.commits
                # Perhaps not all of it: two writers may have left the same events.
                together = together or len(run.commits) > 1
        return sorted(found), together


def _fold_columns(runs: Sequence[AppendRun]) -> list[list[Any]]:
    firsts, lasts = [run.first for run in runs], [run.events[-1] for run in runs]
    owned = [(place, event) for place, run in enumerate(runs, 1) for event in run.events]
    return [
        [append.stream for append in firsts],
        [append.expect_seq for append in firsts],
        [append.epoch for append in firsts],
        [append.expect_hash for append in firsts],
        [event.seq for event in lasts],
        [event.hash for event in lasts],
        [run.last.at for run in runs],
        [place for place, _ in owned],
        *_event_columns([event for _, event in owned]),
        [run.last.seal for run in runs],
    ]


def _each_columns(commits: Sequence[Commit]) -> list[list[Any]]:
    appends = [append for commit in commits for append in commit.appends]
    blobs = [blob for commit in commits for blob in commit.blobs]
    lasts = [append.events[-1] if append.events else None for append in appends]
    return [
        sorted({stream for commit in commits for stream in (*commit.wakes, *(a.stream for a in commit.appends))}),
        _ends(len(commit.appends) for commit in commits),
        [commit.at for commit in commits],
        [append.stream for append in appends],
        [append.kind for append in appends],
        [append.expect_seq for append in appends],
        [append.epoch for append in appends],
        [append.expect_hash for append in appends],
        [append.expect_wakes for append in appends],
        [last.seq if last else append.expect_seq for last, append in zip(lasts, appends, strict=True)],
        [last.hash if last else None for last in lasts],
        [append.at for append in appends],
        [_patch(append) for append in appends],
        _ends(len(append.events) for append in appends),
        *_event_columns([event for append in appends for event in append.events]),
        _ends(len(commit.wakes) for commit in commits),
        [stream for commit in commits for stream in commit.wakes],
        _ends(len(commit.blobs) for commit in commits),
        [blob.digest for blob in blobs],
        [blob.data for blob in blobs],
        [blob.until for blob in blobs],
        [append.seal for append in appends],
    ]


def _event_columns(events: Sequence[Event]) -> list[list[Any]]:
    return [
        [event.seq for event in events],
        [event.kind for event in events],
        [event.at for event in events],
        [event.data for event in events],
        [event.hash for event in events],
    ]


def apart(one: Commit, other: Commit) -> bool:
    """Return whether two commits are written by statements of their own."""
    return one.aside != other.aside or one.unleased or other.unleased


def _ends(counts: Iterable[int]) -> list[int]:
    """Return where each one's part of the next columns ends."""
    ends, end = [], 0
    for count in counts:
        end += count
        ends.append(end)
    return ends


def _patch(append: Append) -> str:
    """Return what changes in the head, as JSON: only what is set is there."""
    patch = append.patch
    if patch is NO_PATCH:
        return "{}"
    return msgspec.json.encode(patch).decode()
