"""Views of an issue's work, as faces show it. Pure."""

from __future__ import annotations

import msgspec

from remit.work.result import WorkResult
from remit.work.unit import Run


class UnitView(msgspec.Struct, frozen=True, kw_only=True):
    """An issue's work as faces show it."""

    issue_ref: str
    title: str
    state: str
    reason: str
    active: str
    """The run that may give a result; empty: none."""
    runs: list[Run]
    """Newest first."""
    results: dict[str, WorkResult]
    """The accepted results, by run."""
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
