"""Drift of code: the versions of recipes and plans that recorded jobs, against the code of this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.jobs.program import PLANNER_VERSION
from remit.journal import kinds as k
from remit.record.walk import Shares, jobs_under

if TYPE_CHECKING:
    from remit.jobs.recipe import Recipes
    from remit.journal.event import Event
    from remit.record.walk import Origin, Take

CodeClass = Literal["gone", "changed", "migrates", "same"]
CLASSES: Final[tuple[CodeClass, ...]] = ("gone", "changed", "migrates", "same")
"""Order from the worst to the best. `migrates`: today's code says that it continues jobs of that version."""
_EXAMPLES: Final = 5
_CODE: Final = frozenset({"execution", "planner"})


class CodeDrift(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a recipe or of plans that recorded jobs."""

    name: str
    kind: Literal["recipe", "plan", "child"]
    """`child`: a recipe that ran as a part of jobs of others."""
    change: CodeClass
    recorded: str
    current: str
    """Today's; empty: this process has no such recipe."""
    open: int
    """Jobs under it that have not ended."""
    ended: int
    open_jobs: tuple[str, ...]
    """The first few of those."""


Kind = Literal["recipe", "plan", "child"]


class _Version:
    """The version that a job's last effect was recorded under, as remit.jobs.state has it."""

    __slots__ = ("last", "under")

    def __init__(self, began: str) -> None:
        self.last = self.under = began


class CodeCollector:
    """Collects the versions of code that jobs ran under."""

    def __init__(self, since: int = 0, job: str = "") -> None:
        self._since = since
        self._job = job
        self._jobs: dict[str, tuple[Origin, _Version]] = {}
        self._children: dict[tuple[str, str], dict[str, Origin]] = {}
        self._began: Shares[tuple[str, str]] = Shares()

    @property
    def takers(self) -> Mapping[type[k.Payload], Take]:
        """The beginning of jobs, effects, and what goes on under other code."""
        effects = (k.ToolInvocationStarted, k.TimeRecorded, k.RandomRecorded, k.UuidRecorded, k.WaitCompleted)
        return {
            k.JobCreated: self._create,
            k.VersionMismatchRecorded: self._mismatch,
            k.ChildStarted: self._child,
            k.JobForked: self._fork,
            **dict.fromkeys(effects, self._effect),
        }

    def _create(self, origin: Origin, event: Event, payload: k.JobCreated) -> None:
        if event.at >= self._since and (not self._job or origin.id == self._job):
            self._jobs[origin.root] = origin, _Version(payload.execution_version)

    def _mismatch(self, origin: Origin, _event: Event, payload: k.VersionMismatchRecorded) -> None:
        job = self._jobs.get(origin.root)
        if job is not None and payload.subject in _CODE:
            version = job[1]
            if payload.policy != "fail" or payload.current == version.last:
                version.under = payload.current

    def _effect(self, origin: Origin, _event: Event, _payload: k.Payload) -> None:
        job = self._jobs.get(origin.root)
        if job is not None:
            job[1].last = job[1].under

    def _child(self, origin: Origin, event: Event, payload: k.ChildStarted) -> None:
        self._effect(origin, event, payload)
        if payload.refused is None:
            self._began.note(origin, event, (payload.name, payload.version))
            self._run(origin, (payload.name, payload.version))

    def _fork(self, origin: Origin, _event: Event, payload: k.JobForked) -> None:
        """Count a fork among the jobs that run the recipes which it shares."""
        for child, _ in self._began.of(origin, payload):
            self._run(origin, child)

    def _run(self, origin: Origin, child: tuple[str, str]) -> None:
        if origin.root in self._jobs:
            self._children.setdefault(child, {}).setdefault(origin.root, origin)

    def drifts(self, recipes: Recipes) -> list[CodeDrift]:
        """Return every version, the worst first."""
        groups: dict[tuple[Kind, str, str], list[Origin]] = {}
        for origin, version in self._jobs.values():
            kind: Kind = "plan" if origin.kind == "plan" else "recipe"
            groups.setdefault((kind, origin.name if kind == "recipe" else "plans", version.last), []).append(origin)
        for (name, recorded), origins in self._children.items():
            groups.setdefault(("child", name, recorded), []).extend(origins.values())
        drifts = [_told(recipes, kind, name, recorded, of) for (kind, name, recorded), of in groups.items()]
        return sorted(drifts, key=lambda one: (CLASSES.index(one.change), -one.open, -one.ended, one.name))


def _told(recipes: Recipes, kind: Kind, name: str, recorded: str, origins: list[Origin]) -> CodeDrift:
    change, current = _compared(recipes, kind, name, recorded)
    jobs = jobs_under(origins, _EXAMPLES)
    return CodeDrift(name=name, kind=kind, change=change, recorded=recorded, current=current, **jobs)


def _compared(recipes: Recipes, kind: Kind, name: str, recorded: str) -> tuple[CodeClass, str]:
    if kind == "plan":
        return ("same" if recorded in {"", PLANNER_VERSION} else "changed"), PLANNER_VERSION
    recipe = recipes.find(name, recorded)
    if recipe is None:
        return "gone", ""
    if not recorded or recipe.runs(recorded):
        return "same", recipe.execution_version
    return ("migrates" if recipe.migrates(recorded) else "changed"), recipe.execution_version
