"""Are code and tools still those the job was recorded with? Checked before anything runs (contract: versioning).

Compared are the code of the job and of the recipes within it, the planner, the tool registry, and each tool that was
called: its provider, its version, and both schemas, with the class of what changed in them. What a provider offers that
cannot be listed now is not known, and no difference.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.canonical import digest
from remit.codes import Code
from remit.errors import NotCanonicalError, VersionError
from remit.jobs.skills import NO_SKILLS, pins_of
from remit.journal.kinds import SchemaDriftRecorded, VersionMismatchRecorded
from remit.tools.drift import compare_input, compare_output

if TYPE_CHECKING:
    from remit.jobs.program import JobProgram
    from remit.jobs.skills import Skills
    from remit.jobs.state import CallRecord, JobHistory
    from remit.journal.journal import Journal
    from remit.journal.writer import StreamWriter
    from remit.tools.catalog import Catalog, Tool
    from remit.tools.migration import Migrations

_log: Final = logging.getLogger("remit.jobs")
_PATIENCE_S: Final = 2.0
"""Seconds to wait for tools that are still being listed; their versions are not known then."""

Subject = Literal[
    "execution", "planner", "recipe", "registry", "tool", "provider", "request", "response", "model", "skill"
]
_CODE: Final = frozenset({"execution", "planner", "recipe"})
"""Subjects that are code of ours; a difference under `fail` is EXECUTION_VERSION_MISMATCH, else TOOL_SCHEMA_DRIFT."""
_OF_JOB: Final = frozenset({"execution", "planner"})
"""Subjects of which one at a time continues a job, and may do so again after another one."""
_SERVER: Final = "mcp_"
"""The beginning of a server's provider id: an older Remit recorded no version of its tools. For any other tool, a
version that is declared later is a change.
"""
_HARMLESS: Final = frozenset({"identical", "annotation_only", "compatible"})


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded version and today's."""

    subject: str
    """`execution`, `planner`, `recipe` for one that runs as a part of the job, `registry`, or a tool's name."""
    recorded: str
    current: str
    """Empty if the tool is gone."""
    about: Subject = "execution"
    """The part of it that differs; `request` and `response` are a tool's schemas."""
    migrated: bool = False
    """Whether a registered migration covers it: the policy `migrate` goes on then."""
    drift: str = ""
    """Class of a schema's change: `annotation_only`, `compatible` or `breaking`; empty: the old one is not kept."""

    @property
    def refused(self) -> bool:
        """Say whether the policy `fail` refuses to go on: any tool of the registry may have changed, and a text too."""
        return self.about != "registry" and self.drift not in _HARMLESS

    @property
    def words(self) -> str:
        """Return both versions in a sentence."""
        if self.about == "registry":
            return (
                "other tools are offered here than when the job began; the calls that it made are compared one by one"
            )
        what = {"tool": " version", "provider": " provider", "request": " input schema", "response": " output schema"}
        changed = f" ({self.drift})" if self.drift else ""
        recorded, current = self.recorded or "none", self.current or "missing"
        return f"{self.subject}{what.get(self.about, '')} was recorded as {recorded}, and is now {current}{changed}"


async def differences(
    history: JobHistory,
    program: JobProgram | None,
    catalog: Catalog,
    journal: Journal,
    migrations: Migrations,
    skills: Skills = NO_SKILLS,
) -> list[Difference]:
    """Everything that differs, the code first, then recipes within it, skills, the registry, and tools by name."""
    drift = _of_code(history, program) + await _of_skills(history, skills)
    if not history.places:
        return drift  # no tool was called under other versions yet
    tools = await _Tools(catalog, journal, migrations).compare(history)
    created = history.created
    if created is not None and catalog.settled and created.tool_registry_version not in {"", catalog.version}:
        recorded, current = created.tool_registry_version, catalog.version
        drift.append(Difference(subject="registry", about="registry", recorded=recorded, current=current))
    return drift + tools


def _of_code(history: JobHistory, program: JobProgram | None) -> list[Difference]:
    created = history.created
    of_code: list[Difference] = []
    if created is None or program is None:
        return of_code
    if history.execution and not program.runs(history.execution):
        about: Subject = "planner" if created.kind == "plan" else "execution"
        recorded, migrated = history.execution, program.migrates(history.execution)
        of_code.append(
            Difference(subject=about, about=about, recorded=recorded, current=program.version, migrated=migrated)
        )
    for name, recorded in sorted({(child.name, child.version) for child in history.children.values()}):
        # One that is not registered came along with the code that runs it, or is missed when it is needed.
        recipe = program.recipes.find(name, recorded)
        if recipe is not None and not recipe.runs(recorded):
            current, migrated = f"{name} {recipe.execution_version}", recipe.migrates(recorded)
            was = f"{name} {recorded}"
            of_code.append(
                Difference(subject="recipe", about="recipe", recorded=was, current=current, migrated=migrated)
            )
    return of_code


async def _of_skills(history: JobHistory, skills: Skills) -> list[Difference]:
    pins = pins_of(history.created)
    now = await skills.digests([pin.name for pin in pins]) if pins else {}
    return [
        Difference(
            subject="skill",
            about="skill",
            recorded=f"{pin.name} {pin.digest}",
            current=f"{pin.name} {now[pin.name]}" if pin.name in now else "",
        )
        for pin in pins
        if now.get(pin.name) != pin.digest
    ]


class _Tools:
    """Compares the tools that a job called with those of today."""

    def __init__(self, catalog: Catalog, journal: Journal, migrations: Migrations) -> None:
        self._catalog = catalog
        self._journal = journal
        self._migrations = migrations

    async def compare(self, history: JobHistory) -> list[Difference]:
        """Everything that differs, by the name of the tool."""
        records: dict[str, CallRecord] = {}
        for record in history.calls.values():
            if record.started is not None and record.started.request_schema_hash:
                records[record.started.tool_name] = record
        changes: list[Difference] = []
        patience = asyncio.timeout(_PATIENCE_S)
        try:
            async with patience:
                for name in records:
                    await self._catalog.find(name)
        except TimeoutError:
            _log.info("some tools are not listed yet; their versions were not compared")
        for name, record in sorted(records.items()):
            changes += await self._tool(name, record)
        return changes

    async def _tool(self, name: str, record: CallRecord) -> list[Difference]:
        started, finished = record.started, record.finished
        if started is None or not self._catalog.heard(started.provider_id):
            return []  # what a provider offers that cannot be listed is not known
        tool = self._catalog.known(name)
        if tool is None:
            return [
                Difference(
                    subject=name, about="request", recorded=started.request_schema_hash, current="", drift="breaking"
                )
            ]
        pairs: list[tuple[Subject, str, str]] = [
            ("provider", started.provider_id, tool.meta.provider_id),
            ("tool", started.tool_version, tool.meta.version),
            ("request", started.request_schema_hash, _hash(tool, "request")),
            ("response", finished.response_schema_hash if finished else "", _hash(tool, "response")),
        ]
        migrated = self._migrations.find(name, started.tool_version, started.request_schema_hash) is not None
        return [
            Difference(
                subject=name, about=about, recorded=recorded, current=current,
                migrated=migrated and about != "provider", drift=await self._drift(tool, about, recorded),
            )
            for about, recorded, current in pairs
            if (recorded or (about == "tool" and not started.provider_id.startswith(_SERVER))) and recorded != current
        ]  # fmt: skip

    async def _drift(self, tool: Tool, about: Subject, recorded: str) -> str:
        """The class of a schema's change."""
        if about not in {"request", "response"}:
            return ""
        old = await self._journal.schema(recorded)
        if old is None:
            return ""
        if about == "request":
            return compare_input(old, tool.meta.input_schema).value
        return compare_output(old, tool.meta.output_schema).value


def _hash(tool: Tool, about: Subject) -> str:
    """Digest of a tool's schema as its provider gave it, also if the tool is withheld."""
    schema = tool.meta.input_schema if about == "request" else tool.meta.output_schema
    try:
        return "" if schema is None else digest(schema)
    except NotCanonicalError:
        return ""


class Versions:
    """Applies the mismatch policy."""

    def __init__(
        self, journal: Journal, catalog: Catalog, policy: str, migrations: Migrations, skills: Skills = NO_SKILLS
    ) -> None:
        self._skills = skills
        self._journal = journal
        self._catalog = catalog
        self._migrations = migrations
        self._policy = policy

    @property
    def policy(self) -> str:
        """`warn`, `fail` or `migrate`."""
        return self._policy

    async def check(self, history: JobHistory, writer: StreamWriter, program: JobProgram) -> None:
        """Record every difference once, with both sides.

        Raises VersionError if the policy is `fail`, or `migrate` and no registered migration covers the difference.
        """
        drift = await differences(history, program, self._catalog, self._journal, self._migrations, self._skills)
        for difference in self._news(history, drift):
            _log.warning("%s: %s", writer.stream, difference.words)
            await self._journal.append(writer, self._event(difference), synced=False)
        refused = first_refused(drift, self._policy)
        if refused is not None:
            help_ = "register a migration" if self._policy == "migrate" else "set jobs.mismatch to warn"
            raise refusal(refused, f"Resume the job where that version runs, or {help_}.")

    def _news(self, history: JobHistory, changes: list[Difference]) -> list[Difference]:
        """Return what is not recorded yet, and that the recorded code goes on after other code was to."""
        news = [difference for difference in changes if self._is_news(history, difference)]
        created, back, was = history.created, history.execution, history.under
        if created is not None and was != back and not any(difference.about in _OF_JOB for difference in changes):
            about: Subject = "planner" if created.kind == "plan" else "execution"
            news.append(Difference(subject=about, about=about, recorded=was, current=back))
        return news

    def _is_news(self, history: JobHistory, difference: Difference) -> bool:
        if difference.about in _OF_JOB and self._policy != "fail":
            return difference.current != history.under  # other code may have gone on since this one did
        return (difference.subject, difference.current) not in history.drifts

    def _event(self, difference: Difference) -> VersionMismatchRecorded | SchemaDriftRecorded:
        match difference.about:
            case "request" | "response":
                return SchemaDriftRecorded(
                    tool_name=difference.subject, recorded=difference.recorded, current=difference.current,
                    drift=difference.drift, policy=self._policy, direction=difference.about,
                )  # fmt: skip
            case "model":
                msg = "a model's drift is recorded where it is asked"
                raise AssertionError(msg)
            case _:
                return VersionMismatchRecorded(
                    subject=difference.about, recorded=difference.recorded, current=difference.current,
                    policy=self._policy,
                    tool_name=difference.subject if difference.about in {"tool", "provider"} else "",
                )  # fmt: skip


def first_refused(changes: Iterable[Difference], policy: str) -> Difference | None:
    """The first difference that a mismatch policy refuses; None: it goes on."""
    if policy == "warn":
        return None
    return next(
        (
            difference
            for difference in changes
            if difference.refused and not (policy == "migrate" and difference.migrated)
        ),
        None,
    )


def refusal(difference: Difference, remedy: str) -> VersionError:
    """The error that a refused difference is answered with."""
    if difference.about in {"model", "skill"}:
        code = Code.MODEL_DRIFT if difference.about == "model" else Code.SKILL_DRIFT
    else:
        code = Code.EXECUTION_VERSION_MISMATCH if difference.about in _CODE else Code.TOOL_SCHEMA_DRIFT
    return VersionError(difference.words, code=code, remedy=remedy)
