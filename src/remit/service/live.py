"""Recorded calls of read-only tools made once more, and compared with what they returned then.

Each goes through the gate, in a session of its own (rule 1): policy decides on it as on any other call, and it is
recorded. No tool above L0 and none with side effects is called, whatever its record says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from remit.errors import PayloadErasedError
from remit.record.job_story import story_of
from remit.redact import preview, preview_of
from remit.tools.meta import Level

if TYPE_CHECKING:
    from remit.jobs.records import CallRecord
    from remit.journal.journal import Journal
    from remit.record.outcome import OutcomeView
    from remit.tools.catalog import Catalog


class LiveCall(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded call that was made again, or was not."""

    step: str
    tool: str
    verdict: Literal["same", "changed", "failed", "skipped"]
    recorded: str = ""
    now: str = ""
    """The value that it returned, or why it failed or was not made; empty: the same."""


class LiveReport(msgspec.Struct, frozen=True, kw_only=True):
    """The read-only calls of a job or session, made again."""

    job: str
    session: str
    """The session that the new calls are recorded in."""
    calls: tuple[LiveCall, ...]

    @property
    def differs(self) -> bool:
        """Whether a tool returned something else, or failed."""
        return any(call.verdict in {"changed", "failed"} for call in self.calls)


class Caller(Protocol):
    """Makes calls in a session."""

    async def open(self, face: Literal["cli"], *, client: str) -> str:
        """Open a session; its identifier."""
        ...

    async def call(self, session: str, tool: str, args: dict[str, Any]) -> OutcomeView:
        """Call a tool through the gate."""
        ...


class LiveCalls:
    """Makes the read-only calls of one journal's jobs again."""

    def __init__(self, journal: Journal, catalog: Catalog, sessions: Caller) -> None:
        self._journal = journal
        self._catalog = catalog
        self._sessions = sessions

    async def again(self, identifier: str) -> LiveReport:
        """Make the read-only calls of a job or session again that succeeded. Raises NotFoundError."""
        story = await story_of(self._journal, identifier)
        session = await self._sessions.open("cli", client=f"remit replay --live of {identifier}")
        calls = [await self._call(session, step, record) for step, record in story.history.calls.items()]
        return LiveReport(job=identifier, session=session, calls=tuple(call for call in calls if call is not None))

    async def _call(self, session: str, step: str, record: CallRecord) -> LiveCall | None:
        started, finished = record.started, record.finished
        if started is None or finished is None or finished.outcome != "success" or finished.decided_by:
            return None
        tool = await self._catalog.find(started.tool_name)
        if tool is None or tool.meta.capability_level > Level.L0 or tool.meta.side_effects:
            why = "it is gone" if tool is None else "it may have side effects"
            return LiveCall(step=step, tool=started.tool_name, verdict="skipped", now=why)
        try:
            args = await self._journal.value(started.args, started.args_blob)
            recorded = await self._journal.value(finished.result, finished.result_blob) or b"null"
        except PayloadErasedError as error:
            return LiveCall(step=step, tool=started.tool_name, verdict="skipped", now=error.message)
        outcome = await self._sessions.call(session, started.tool_name, msgspec.json.decode(args or b"{}"))
        shown = preview(recorded)
        if outcome.status != "ok":
            why = f"{outcome.code}: {outcome.reason}"
            return LiveCall(step=step, tool=started.tool_name, verdict="failed", recorded=shown, now=why)
        same = msgspec.json.decode(msgspec.json.encode(outcome.value)) == msgspec.json.decode(recorded)
        now = "" if same else preview_of(outcome.value)
        return LiveCall(
            step=step, tool=started.tool_name, verdict="same" if same else "changed", recorded=shown, now=now
        )
