"""A work unit: an issue with its runs, folded from its events. One run at most is active. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any, ClassVar, Final, Literal

import msgspec

from remit.journal import kinds as k
from remit.journal.event import Event
from remit.parts.work import kinds as w
from remit.parts.work.flow import LACKING
from remit.parts.work.references import IssueRef

STREAM_KIND: Final = "work"
State = Literal["todo", "doing", "review", "blocked", "needs-human", "done"]
STATES: Final[tuple[State, ...]] = ("todo", "doing", "review", "blocked", "needs-human", "done")
Standing = Literal["active", "accepted", "refused", "stopped"]


class Run(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One attempt at an issue."""

    run_id: str
    role: str
    executor: str
    standing: Standing
    by: str = ""
    reason: str = ""
    """Why it took the place of `previous`, was stopped, or was refused."""
    previous: str = ""
    code: str = ""
    """Why its result was refused."""
    started_at: int = 0
    """Microseconds since the Unix epoch."""
    ended_at: int = 0
    job: str = ""
    """The job that carries it out; empty: someone does it outside of Remit."""
    group: str = ""
    """The group for which the control plane started it."""
    late: int = 0
    """Results that came after it was no longer active; they are archived."""


class WorkUnit:
    """Everything recorded of one issue."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.opened: w.WorkOpened | None = None
        self.state: State = "todo"
        self.reason = ""
        """The reason why it is in this state."""
        self.blocked_by: tuple[str, ...] = ()
        """The open issues that it waits for."""
        self.active = ""
        """The run that may give a result; empty: none."""
        self.runs: dict[str, Run] = {}
        self.orders: dict[str, w.WorkRunStarted] = {}
        self.results: dict[str, w.WorkResultAccepted] = {}
        self.late: dict[str, list[w.WorkResultDiscarded]] = {}
        self.unwritten: dict[str, w.WorkResultAccepted | w.WorkRunStarted] = {}
        """Comments that are still to be written to the issue, by trigger."""
        self.written: dict[str, str] = {}
        """Comments that stand there, by trigger."""
        self.updated_at = 0
        for event in events:
            self.add(k.decode(event.kind, event.data), event.at)

    @property
    def issue(self) -> IssueRef:
        """The issue. Raise AssertionError for a stream that no unit began."""
        if self.opened is None:
            raise AssertionError("the stream does not begin with work_opened")
        return IssueRef.parse(self.opened.issue_ref)

    @property
    def title(self) -> str:
        """The issue's title, as it was when work on it began."""
        return self.opened.title if self.opened is not None else ""

    @property
    def parent(self) -> str:
        """The issue of which it is a part; empty: of none."""
        return self.opened.parent if self.opened is not None else ""

    @property
    def run_numbers(self) -> int:
        """Return how many runs the issue has had."""
        return len(self.runs)

    @property
    def failures(self) -> int:
        """Return how many results failed, one after another, up to now. A lack of the environment is no failure."""
        results = [self.results[name] for name in reversed(self.runs) if name in self.results]
        counted = [one for one in results if one.code != LACKING]
        return sum(1 for _ in takewhile(lambda one: one.state == "doing", counted))

    @property
    def lacked(self) -> int:
        """Return how many of the last runs ended for want of their environment, one after another."""
        last = (self.results.get(name) for name in reversed(self.runs))
        return sum(1 for _ in takewhile(lambda one: one is not None and one.code == LACKING, last))

    @property
    def last(self) -> Run | None:
        """Return the newest run; None without any."""
        return next(reversed(self.runs.values()), None)

    def add(self, payload: k.Payload | None, at: int) -> None:
        """Take in one more event."""
        fold = self._folds.get(type(payload))
        if fold is not None:
            fold(self, payload, at)
            self.updated_at = at

    # --- one method per kind

    def _opened(self, payload: w.WorkOpened, _at: int) -> None:
        self.opened = payload

    def _started(self, payload: w.WorkRunStarted, at: int) -> None:
        self.orders[payload.run_id] = payload
        self.runs[payload.run_id] = Run(
            run_id=payload.run_id,
            role=payload.role,
            executor=payload.executor,
            standing="active",
            by=payload.by,
            reason=payload.reason,
            previous=payload.previous,
            job=payload.job,
            group=payload.group,
            started_at=at,
        )
        if payload.trigger:
            self.unwritten[payload.trigger] = payload
        self.active, self.state, self.reason, self.blocked_by = payload.run_id, "doing", "", ()

    def _stopped(self, payload: w.WorkRunStopped, at: int) -> None:
        self._end(payload.run_id, "stopped", at).reason = payload.reason
        self.state, self.reason = "todo", payload.reason

    def _accepted(self, payload: w.WorkResultAccepted, at: int) -> None:
        self._end(payload.run_id, "accepted", at)
        self.results[payload.run_id] = payload
        self._put(payload.state, "")
        if payload.trigger:
            self.unwritten[payload.trigger] = payload

    def _refused(self, payload: w.WorkResultRefused, at: int) -> None:
        run = self._end(payload.run_id, "refused", at)
        run.code, run.reason = payload.code, payload.reason
        self.state, self.reason = "needs-human", payload.reason

    def _discarded(self, payload: w.WorkResultDiscarded, _at: int) -> None:
        self.late.setdefault(payload.run_id, []).append(payload)
        if payload.run_id in self.runs:
            self.runs[payload.run_id].late += 1

    def _written(self, payload: w.WorkWritten, _at: int) -> None:
        self.unwritten.pop(payload.trigger, None)
        self.written[payload.trigger] = payload.reference

    def _moved(self, payload: w.WorkMoved, _at: int) -> None:
        self._put(payload.state, payload.reason)
        self.blocked_by = payload.blocked_by

    def _put(self, state: str, reason: str) -> None:
        self.state, self.reason = next((known for known in STATES if known == state), "needs-human"), reason

    def _end(self, run_id: str, standing: Standing, at: int) -> Run:
        run = self.runs[run_id]
        run.standing, run.ended_at = standing, at
        if self.active == run_id:
            self.active = ""
        return run

    _folds: ClassVar[dict[type, Callable[[Any, Any, int], None]]] = {
        w.WorkOpened: _opened,
        w.WorkRunStarted: _started,
        w.WorkRunStopped: _stopped,
        w.WorkResultAccepted: _accepted,
        w.WorkResultRefused: _refused,
        w.WorkResultDiscarded: _discarded,
        w.WorkWritten: _written,
        w.WorkMoved: _moved,
    }


def stream_of(issue: IssueRef) -> str:
    """Return the stream of an issue's work."""
    return f"work/{issue.file_name}"
