"""The times of a job: when it was queued, worked, waited, or lay where a worker had left it. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from remit.journal import kinds as k

SegmentKind = Literal["queued", "working", "waiting", "stuck", "interrupted"]


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of time."""

    kind: SegmentKind
    """`stuck`: the code at hand could not go on; `interrupted`: no worker held the job, which waited for nothing."""
    since: int
    """Microseconds since the Unix epoch."""
    until: int | None
    """None: it goes on."""


class Timeline:
    """The times of a job as far as its events are read."""

    def __init__(self) -> None:
        self._found: list[Segment] = []
        self.kind: SegmentKind = "queued"
        self._since: int | None = None
        self._last = 0
        self._calls: set[str] = set()
        self._waits: set[tuple[str, str]] = set()
        self._ended = False

    def add(self, payload: k.Payload, at: int, *, taken: bool = False) -> None:
        """Read one more event; one that was `taken` from another job is no work of this one."""
        if taken:
            self._fold(payload)
            return
        if self._since is None:
            self._since = at
        elif isinstance(payload, k.RecoveryStarted):
            self._turn("interrupted", self._last)
            self._turn("working", at)
        else:
            self._fold(payload)
            self._turn(self._doing(payload), at)
        self._last = at
        if isinstance(payload, k.JobCompleted | k.JobFailed | k.JobCancelled):
            self._ended = True

    def segments(self, *, stopped: bool = False) -> tuple[Segment, ...]:
        """Say the segments, with the last stretch; nothing has worked on one that is `stopped` since its last event."""
        if stopped and self.kind == "working" and self._since is not None and not self._ended:
            left = Segment(kind="interrupted", since=self._last, until=None)
            return (*self._found, *_stretch("working", self._since, self._last), left)
        last = () if self._since is None else _stretch(self.kind, self._since, self._last if self._ended else None)
        return (*self._found, *last)

    @property
    def queued(self) -> tuple[int, int]:
        """From when to when it was queued before its first work; of no length if it was not, or still is."""
        first = self._found[0] if self._found else None
        return (first.since, first.until) if first and first.kind == "queued" and first.until else (0, 0)

    def _fold(self, payload: k.Payload) -> None:
        match payload:
            case k.ToolInvocationStarted():
                self._calls.add(payload.step)
            case k.ToolInvocationFinished() | k.GateRefused():
                self._calls.discard(payload.step)
            case k.JobWaiting():
                self._calls.discard(payload.step)
                self._waits.add((payload.step, payload.correlation_key))
            case k.WaitCompleted() | k.TimerFired():
                self._waits.discard((payload.step, payload.correlation_key))
            case _:
                pass

    def _doing(self, payload: k.Payload) -> SegmentKind:
        if isinstance(payload, k.JobWaiting) and payload.correlation_key.startswith("stuck:"):
            self._waits.discard((payload.step, payload.correlation_key))
            return "stuck"
        if isinstance(payload, k.PlanGenerated | k.JobForked):
            return "queued"
        return "waiting" if self._waits and not self._calls else "working"

    def _turn(self, kind: SegmentKind, at: int) -> None:
        if kind != self.kind:
            self._found += _stretch(self.kind, self._since or 0, at)
            self.kind, self._since = kind, at


def _stretch(kind: SegmentKind, since: int, until: int | None) -> tuple[Segment, ...]:
    return (Segment(kind=kind, since=since, until=until),) if until is None or until > since else ()
