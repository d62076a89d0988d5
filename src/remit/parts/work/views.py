"""Views of an issue's work, as faces show it. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from remit.parts.work.result import WorkResult
from remit.parts.work.store import UnitRow
from remit.parts.work.unit import Run


class UnitView(msgspec.Struct, frozen=True, kw_only=True):
    """An issue's work as faces show it."""

    issue_ref: str
    title: str
    state: str
    reason: str
    parent: str = ""
    """The issue of which it is a part."""
    children: list[UnitRow] = []
    """The issues that are parts of it, newest first."""
    active: str
    """The run that may give a result; empty: none."""
    runs: list[Run]
    """Newest first."""
    results: dict[str, WorkResult]
    """The accepted results, by run."""
    unready: dict[str, str] = {}
    """Why pull requests do not say the result, by run."""
    unwritten: list[str]
    """Triggers of comments that are still to be written."""
    written: dict[str, str]
    """The comments that stand in the issue, by trigger."""


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is the active one now."""

    issue_ref: str
    run_id: str
    job: str
    """The job that carries it out; empty: a person does."""
    warnings: list[str]


class TurnStep(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Something that the control plane did about an issue, or would do."""

    issue_ref: str
    action: Literal["start", "resume", "stop", "block", "unblock", "label", "ask", "accept", "reject", "write"]
    detail: str = ""
    error: str = ""
    """Why it was not done; it is tried again."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One look of the control plane at all issues."""

    steps: list[TurnStep]
    leads: bool = True
    """False: another process is the control plane, and nothing was done."""
    active: int = 0
    """Runs that were under way as it began."""
