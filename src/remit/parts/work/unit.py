"""A work unit: an issue with its runs, folded from its events, and the rules of its flow. Pure.

One run at most is active. The flow says what state an issue is in after a result, and what comes next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import takewhile
from typing import Any, ClassVar, Final, Literal

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.journal import kinds as k
from remit.journal.event import Event
from remit.parts.work import kinds as w
from remit.parts.work.comment import BodyStatus
from remit.parts.work.references import IssueRef
from remit.parts.work.result import ABSENT, WorkResult
from remit.regex import regex

MAX_RETRIES: Final = 2
"""Runs that may fail one after another before the issue is blocked."""

LACKING: Final = Code.env_unavailable.name
"""The code of a result whose run lacked what it needs, such as a key, a program or room: the work has not failed."""
_REST_S: Final = 30.0
_MAX_REST_S: Final = 3_600.0
_NAMES: Final = regex(r"(?:\*\*)?(DependsOn|BlockedBy)(?:\*\*)?\s*(?::(.*))?", re.IGNORECASE)
_REFERENCE: Final = regex(r"[\w./-]*#\d+")
_FIELD: Final = 500
_PRIORITY: Final = "prio:"


TOOLS: Final = "executor."
MANUAL: Final = "manual"
"""The executor that is a person: the run waits for a result that someone hands in."""


def tool_of(name: str) -> str:
    """Return the name of an executor's tool: `executor.NAME`, or `executor.acp.NAME`."""
    return f"{TOOLS}{name.replace(':', '.')}"


class FlowStep(msgspec.Struct, frozen=True):
    """Where an issue goes after a result."""

    state: BodyStatus
    next: str
    """The next step, and the one who takes it, in words."""


def step_after(result: WorkResult, failures: int) -> FlowStep:
    """Return where an issue goes; `failures` counts the runs before this one that failed, one after another."""
    lacking = ", ".join(result.missing())
    if result.status == "fail" and result.result_code == LACKING:
        return FlowStep("doing", "See to what the run lacked, then run it again.")
    match result.status:
        case "ok" if lacking:
            return FlowStep("blocked", f"Add what the result lacks: {lacking}.")
        case "ok":
            return FlowStep("review", "Review the change, then decide.")
        case "blocked":
            return FlowStep("blocked", f"Resolve {', '.join(result.blocked_by) or 'what blocks it'}, then unblock.")
        case "fail" if failures >= MAX_RETRIES:
            return FlowStep("blocked", f"{failures + 1} runs failed: change the order or the executor.")
        case "fail":
            return FlowStep("doing", "Run it again, or switch the executor.")


def rest_after(lacked: int) -> float:
    """Return the seconds until an issue is tried again whose last runs lacked their environment."""
    return min(_REST_S * 2 ** min(lacked - 1, 20), _MAX_REST_S) if lacked else 0.0


def dependencies_in(body: str, project: str) -> tuple[IssueRef, ...]:
    """Return the issues that a text names under `DependsOn` or `BlockedBy`; `#12` is one of the same project."""
    refs = dict[IssueRef, None]()
    for text in _named(body):
        for word in _REFERENCE.findall(text):
            with suppress(UsageError):
                refs[IssueRef.parse(word if not word.startswith("#") else f"{project}{word}")] = None
    return tuple(refs)


def _named(body: str) -> Iterator[str]:
    """Return what stands behind the names, on their line or below their heading."""
    within = False
    for text in body.splitlines():
        heading = text.startswith("#") and not _REFERENCE.match(text)
        name = _NAMES.fullmatch(text.strip("# \t"))
        if name is not None:
            within = heading
            yield name[2] or ""
        elif heading:
            within = False
        elif within:
            yield text


def field_in(body: str, name: str) -> str:
    """Return what stands behind a name at the head of an issue, such as `SpecRef: …`; empty for `none`."""
    for text in body.splitlines():
        label, colon, value = text.strip("*# \t").partition(":")
        if colon and label.strip("* ").lower() == name.lower():
            return "" if value.strip("* ").lower() == ABSENT else value.strip("* ")[:_FIELD]
    return ""


def parent_in(body: str, project: str) -> str:
    """Return the issue of which a text says that it is a part: `Parent: #12`; empty for none."""
    named = field_in(body, "Parent")
    with suppress(UsageError):
        return str(IssueRef.parse(f"{project}{named}" if named.startswith("#") else named)) if named else ""
    return ""


def urgency(labels: tuple[str, ...]) -> str:
    """Return what issues are ordered by: those with `prio:p0` come before those with `prio:p1`, and those with none."""
    return min((label for label in labels if label.startswith(_PRIORITY)), default=f"{_PRIORITY}~")


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
        counted = [result for result in results if result.code != LACKING]
        return sum(1 for _ in takewhile(lambda result: result.state == "doing", counted))

    @property
    def lacked(self) -> int:
        """Return how many of the last runs ended for want of their environment, one after another."""
        last = (self.results.get(name) for name in reversed(self.runs))
        return sum(1 for _ in takewhile(lambda result: result is not None and result.code == LACKING, last))

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
