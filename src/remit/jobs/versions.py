"""Are code and tools still those the job was recorded with? Checked before anything runs (contract: versioning)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.codes import Code
from remit.errors import VersionError
from remit.journal.kinds import SchemaDriftRecorded, VersionMismatchRecorded

if TYPE_CHECKING:
    from remit.jobs.program import Program
    from remit.jobs.state import History
    from remit.journal.journal import Journal
    from remit.journal.writer import StreamWriter
    from remit.tools.catalog import Catalog


_CODE: Final[tuple[Literal["execution", "recipe"], ...]] = ("execution", "recipe")
"""Subjects that are code of ours; others are tools."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded version and today's."""

    subject: str
    """`execution`, `recipe` for one that runs as a part of the job, or a tool's name."""
    recorded: str
    current: str
    """Empty where the tool is gone."""


async def differences(history: History, program: Program | None, catalog: Catalog) -> list[Difference]:
    """Everything that differs, the code first, then recipes within it and tools by name."""
    found = []
    created = history.created
    if created is not None and program is not None and created.execution_version not in {"", program.version}:
        found.append(Difference(subject="execution", recorded=created.execution_version, current=program.version))
    for name, recorded in sorted({(child.name, child.version) for child in history.children.values()}):
        # One that is not registered came along with the code that runs it, or is missed when it is needed.
        current = program.recipes.version(name) if program is not None else ""
        if current not in {"", recorded}:
            found.append(Difference(subject="recipe", recorded=f"{name} {recorded}", current=f"{name} {current}"))
    seen: dict[str, str] = {}
    for record in history.calls.values():
        if record.started is not None and record.started.request_schema_hash:
            seen[record.started.tool_name] = record.started.request_schema_hash
    for name, recorded in sorted(seen.items()):
        tool = await catalog.find(name)
        current = tool.input.hash if tool is not None and tool.input is not None else ""
        if current != recorded:
            found.append(Difference(subject=name, recorded=recorded, current=current))
    return found


class Versions:
    """Applies the mismatch policy."""

    def __init__(self, journal: Journal, catalog: Catalog, policy: str) -> None:
        """`policy` is `warn` or `fail`."""
        self._journal = journal
        self._catalog = catalog
        self._policy = policy

    async def check(self, history: History, writer: StreamWriter, program: Program) -> None:
        """Record every difference once, with both sides. Raises VersionError where policy says `fail`."""
        if not history.places:
            return  # nothing has happened under other versions yet
        found = await differences(history, program, self._catalog)
        for one in found:
            if (one.subject, one.current) not in history.drifts:
                await self._journal.append(writer, self._event(one), synced=False)
        if found and self._policy == "fail":
            first = found[0]
            code = Code.EXECUTION_VERSION_MISMATCH if first.subject in _CODE else Code.TOOL_SCHEMA_DRIFT
            msg = f"{first.subject} was recorded as {first.recorded}; here it is {first.current or 'missing'}"
            raise VersionError(msg, code=code, remedy="Resume where that version runs, or set jobs.mismatch to warn.")

    def _event(self, one: Difference) -> VersionMismatchRecorded | SchemaDriftRecorded:
        code = next((each for each in _CODE if each == one.subject), None)
        if code is not None:
            return VersionMismatchRecorded(
                subject=code, recorded=one.recorded, current=one.current, policy=self._policy
            )
        return SchemaDriftRecorded(
            tool_name=one.subject, recorded=one.recorded, current=one.current, policy=self._policy
        )
