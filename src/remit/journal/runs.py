"""Runs: most commits of a group follow each other on the same few streams, and are written as one."""

from __future__ import annotations

from remit.journal.event import NO_PATCH, Append, Commit, Event


class AppendRun:
    """Appends of one writer on one stream that follow each other without a gap, folded into one."""

    __slots__ = ("commits", "events", "first", "last")

    def __init__(self, append: Append, index: int) -> None:
        self.first = self.last = append
        self.events: list[Event] = list(append.events)
        self.commits = [index]

    def takes(self, append: Append) -> bool:
        """Return whether the append continues this run."""
        return append.expect_hash == self.events[-1].hash and append.epoch == self.first.epoch

    def add(self, append: Append, index: int) -> None:
        """Fold the append of commit `index` in."""
        self.last = append
        self.events += append.events
        self.commits.append(index)


def folds(commit: Commit) -> bool:
    """Return whether a commit is only events at the end of one existing stream, and perhaps blobs."""
    if len(commit.appends) != 1 or commit.wakes:
        return False
    append = commit.appends[0]
    plain = append.patch is NO_PATCH and append.expect_wakes is None
    return plain and append.expect_seq > 0 and bool(append.events)
