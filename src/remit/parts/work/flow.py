"""The rules of the flow: what state an issue is in after a result, and what comes next. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from remit.codes import Code
from remit.errors import UsageError
from remit.parts.work.comment import BodyStatus
from remit.parts.work.references import IssueRef
from remit.parts.work.result import ABSENT, WorkResult

MAX_RETRIES: Final = 2
"""Runs that may fail one after another before the issue is blocked."""

LACKING: Final = Code.env_unavailable.name
"""The code of a result whose run lacked what it needs, such as a key, a program or room: the work has not failed."""
_REST_S: Final = 30.0
_MAX_REST_S: Final = 3_600.0
_NAMES: Final = re.compile(r"(?:\*\*)?(DependsOn|BlockedBy)(?:\*\*)?\s*(?::(.*))?", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"[\w./-]*#\d+")
_FIELD: Final = 500
_PRIORITY: Final = "prio:"


class FlowStep(NamedTuple):
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
