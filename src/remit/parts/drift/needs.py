"""Versions of code and tools that open jobs need, the processes that have them, and what can be retired.

Drift of code: the versions of recipes and plans that recorded jobs, against the code of this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.jobs.program import PLANNER_VERSION
from remit.jobs.recipe import declared
from remit.journal import kinds as k
from remit.record.states import worker_words
from remit.record.uses import UseCollector
from remit.record.walk import Shares, jobs_under

if TYPE_CHECKING:
    from remit.engines.presence import Present
    from remit.jobs.recipe import Recipes
    from remit.journal.event import Event
    from remit.record.uses import Use
    from remit.record.walk import RootOrigin, Take
    from remit.tools.catalog import Catalog
    from remit.tools.migration import Migrations


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
        self._jobs: dict[str, tuple[RootOrigin, _Version]] = {}
        self._children: dict[tuple[str, str], dict[str, RootOrigin]] = {}
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

    def _create(self, origin: RootOrigin, event: Event, payload: k.JobCreated) -> None:
        if event.at >= self._since and (not self._job or origin.id == self._job):
            self._jobs[origin.root] = origin, _Version(payload.execution_version)

    def _mismatch(self, origin: RootOrigin, _event: Event, payload: k.VersionMismatchRecorded) -> None:
        job = self._jobs.get(origin.root)
        if job is not None and payload.subject in _CODE:
            version = job[1]
            if payload.policy != "fail" or payload.current == version.last:
                version.under = payload.current

    def _effect(self, origin: RootOrigin, _event: Event, _payload: k.Payload) -> None:
        job = self._jobs.get(origin.root)
        if job is not None:
            job[1].last = job[1].under

    def _child(self, origin: RootOrigin, event: Event, payload: k.ChildStarted) -> None:
        self._effect(origin, event, payload)
        if payload.refused is None:
            self._began.note(origin, event, (payload.name, payload.version))
            self._run(origin, (payload.name, payload.version))

    def _fork(self, origin: RootOrigin, _event: Event, payload: k.JobForked) -> None:
        """Count a fork among the jobs that run the recipes which it shares."""
        for child, _ in self._began.of(origin, payload):
            self._run(origin, child)

    def _run(self, origin: RootOrigin, child: tuple[str, str]) -> None:
        if origin.root in self._jobs:
            self._children.setdefault(child, {}).setdefault(origin.root, origin)

    def drifts(self, recipes: Recipes) -> list[CodeDrift]:
        """Return every version, the worst first."""
        groups: dict[tuple[Kind, str, str], list[RootOrigin]] = {}
        for origin, version in self._jobs.values():
            kind: Kind = "plan" if origin.kind == "plan" else "recipe"
            groups.setdefault((kind, origin.name if kind == "recipe" else "plans", version.last), []).append(origin)
        for (name, recorded), origins in self._children.items():
            groups.setdefault(("child", name, recorded), []).extend(origins.values())
        drifts = [_told(recipes, kind, name, recorded, of) for (kind, name, recorded), of in groups.items()]
        return sorted(drifts, key=lambda drift: (CLASSES.index(drift.change), -drift.open, -drift.ended, drift.name))


def _told(recipes: Recipes, kind: Kind, name: str, recorded: str, origins: list[RootOrigin]) -> CodeDrift:
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


NeedKind = Literal["recipe", "child", "plan", "tool"]


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """A version that open jobs need."""

    kind: NeedKind
    """`child`: a recipe that runs as a part of jobs of others."""
    name: str
    version: str
    schema: str
    """The digest of a tool's input schema; empty for code."""
    open: int
    open_jobs: tuple[str, ...]
    """The first few of them."""
    served: Literal["yes", "no", "unknown"]
    """Whether a process that works now has it; for a tool, whether it is offered here in that version and schema."""
    served_by: tuple[str, ...]
    """The processes that have it, for people."""


class Retirable(msgspec.Struct, frozen=True, kw_only=True):
    """Something that no open job needs."""

    kind: Literal["recipe", "migration", "patch"]
    """`patch`: the old way of a change that `run.patched` names."""
    name: str
    version: str
    """The declared version, the recorded version that a migration is for, or the name of the change."""
    why: str


class VersionsReport(msgspec.Struct, frozen=True, kw_only=True):
    """The versions that open jobs need, and what can be retired."""

    open: int
    """Open jobs."""
    needs: tuple[Need, ...]
    """Needs, those that no process has first."""
    retirable: tuple[Retirable, ...]
    workers: tuple[str, ...]
    """The processes that work now, for people."""


class NeedCollector(UseCollector):
    """Collects the uses of tools, and tools that open questions ask for: an answer has them called."""

    def __init__(self, now: int) -> None:
        super().__init__()
        self._now = now
        self._questions: dict[str, tuple[RootOrigin, Event, k.ConfirmationRequested]] = {}

    @property
    def takers(self) -> Mapping[type[k.Payload], Take]:
        return {
            **super().takers,
            k.ConfirmationRequested: self._ask,
            k.ConfirmationDecided: self._decide,
            k.ConfirmationUsed: self._close,
        }

    def uses(self) -> Iterable[Use]:
        """Return every use, with those that questions wait to make."""
        for origin, event, question in self._questions.values():
            key = question.tool_name, question.provider_id, question.tool_version, question.request_schema_hash
            self._share(origin, event, key, 0)
        return self.by_key.values()

    def _ask(self, origin: RootOrigin, event: Event, payload: k.ConfirmationRequested) -> None:
        whole = event.stream != origin.root and payload.tool_name and payload.request_schema_hash
        if whole and (payload.expires_at is None or payload.expires_at > self._now):
            self._questions[event.stream] = origin, event, payload

    def _decide(self, _origin: RootOrigin, event: Event, payload: k.ConfirmationDecided) -> None:
        if payload.decision != "approve":
            self._questions.pop(event.stream, None)

    def _close(self, _origin: RootOrigin, event: Event, _payload: k.ConfirmationUsed) -> None:
        self._questions.pop(event.stream, None)


class PatchCollector:
    """Collects which jobs take the new way of which change, by recipe."""

    def __init__(self) -> None:
        self._jobs: dict[str, dict[str, RootOrigin]] = {}
        self._took: dict[tuple[str, str], set[str]] = {}
        self._came_by: Shares[str] = Shares()

    @property
    def takers(self) -> Mapping[type[k.Payload], Take]:
        """The beginning of jobs, and the changes that they came by, or share as forks."""
        return {k.JobCreated: self._create, k.PatchRecorded: self._patch, k.JobForked: self._fork}

    def _create(self, origin: RootOrigin, _event: Event, payload: k.JobCreated) -> None:
        self._jobs.setdefault(payload.name, {})[origin.root] = origin

    def _patch(self, origin: RootOrigin, event: Event, payload: k.PatchRecorded) -> None:
        self._came_by.note(origin, event, payload.name)
        self._took.setdefault((origin.name, payload.name), set()).add(origin.root)

    def _fork(self, origin: RootOrigin, _event: Event, payload: k.JobForked) -> None:
        for change, _ in self._came_by.of(origin, payload):
            self._took.setdefault((origin.name, change), set()).add(origin.root)

    def settled(self) -> Iterable[tuple[str, str]]:
        """Recipes and changes whose old way no open job of the recipe may still take."""
        for (recipe, change), took in sorted(self._took.items()):
            if all(origin.ended or root in took for root, origin in self._jobs[recipe].items()):
                yield recipe, change


def needs_of(
    code: Iterable[CodeDrift], uses: Iterable[Use], catalog: Catalog, workers: Sequence[Present]
) -> tuple[Need, ...]:
    """Return what open jobs need; what no process has comes first."""
    needs = [_code(drift, workers) for drift in code if drift.open]
    needs += [need for use in uses if (need := _tool(use, catalog)) is not None]
    order = ("no", "unknown", "yes")
    return tuple(
        sorted(needs, key=lambda each: (order.index(each.served), each.kind, -each.open, each.name, each.version))
    )


def _code(drift: CodeDrift, workers: Sequence[Present]) -> Need:
    serving = [worker for worker in workers if _carries(worker, drift)]
    return Need(
        kind=drift.kind,
        name=drift.name,
        version=drift.recorded,
        schema="",
        open=drift.open,
        open_jobs=drift.open_jobs,
        served="yes" if serving else "no",
        served_by=tuple(worker_words(worker.started.owner) for worker in serving),
    )


def _carries(worker: Present, drift: CodeDrift) -> bool:
    if drift.kind == "plan":
        return drift.recorded in {"", f"remit-{worker.started.remit}"}
    return drift.recorded in worker.started.recipes.get(drift.name, ())


def _tool(use: Use, catalog: Catalog) -> Need | None:
    use_told = use.told()
    if not use_told.open_jobs:
        return None
    tool = catalog.known(use_told.tool)
    served: Literal["yes", "no", "unknown"] = "no"
    if tool is not None:
        same = (tool.meta.version, tool.input.hash) == (use_told.version, use_told.request_schema_hash)
        served = "yes" if same else "no"
    elif not catalog.heard(use_told.provider_id) and use_told.provider_id in catalog.provider_ids:
        served = "unknown"
    return Need(
        kind="tool",
        name=use_told.tool,
        version=use_told.version,
        schema=use_told.request_schema_hash,
        open=len(use_told.open_jobs),
        open_jobs=use_told.open_jobs[:_EXAMPLES],
        served=served,
        served_by=(use_told.provider_id,) if served == "yes" else (),
    )


def retirable_of(
    code: Iterable[CodeDrift],
    uses: Iterable[Use],
    migrations: Migrations,
    patches: PatchCollector,
    workers: Sequence[Present],
) -> tuple[Retirable, ...]:
    """Return what can be retired: old versions of recipes that processes carry, migrations, and old ways of changes."""
    needed = {
        (dependency.name, declared(dependency.recorded))
        for dependency in code
        if dependency.open and dependency.kind != "plan"
    }
    retirable = [
        Retirable(
            kind="recipe", name=name, version=version, why="no open job was recorded by it, and new jobs run another"
        )
        for name, version in _older(workers)
        if (name, version) not in needed
    ]
    open_uses = {
        (use_told.tool, dependency)
        for use in uses
        if (use_told := use.told()).open_jobs
        for dependency in _names(use_told.version, use_told.request_schema_hash)
    }
    retirable += [
        Retirable(
            kind="migration", name=dependency.tool, version=dependency.recorded, why="no open job called the tool so"
        )
        for dependency in migrations.all()
        if (dependency.tool, dependency.recorded.removeprefix("sha256:")) not in open_uses
    ]
    retirable += [
        Retirable(kind="patch", name=recipe, version=change, why="every open job of the recipe takes the new way")
        for recipe, change in patches.settled()
    ]
    return tuple(retirable)


def _names(version: str, schema: str) -> tuple[str, str]:
    """The forms in which a migration may name what a call was recorded under."""
    return version, schema.removeprefix("sha256:")


def _older(workers: Sequence[Present]) -> list[tuple[str, str]]:
    """Versions of recipes that processes carry and do not run new jobs under."""
    carried: set[tuple[str, str]] = set()
    newest: set[tuple[str, str]] = set()
    for worker in workers:
        for name, versions in worker.started.recipes.items():
            carried.update((name, declared(version)) for version in versions)
            newest.update((name, declared(version)) for version in versions[:1])
    return sorted(carried - newest)
