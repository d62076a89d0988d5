"""Sessions in which nothing is called or recorded: a call gets the outcome that it had in a recorded program's run.

The n-th of equal calls gets the n-th outcome. What today's rules refuse, or was not called then, is refused.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from remit.canonical import digest
from remit.codes import Code
from remit.gateway.outcome import Outcome, refused
from remit.gateway.today import CallJudge
from remit.jobs.effects.outcomes import recorded_outcome
from remit.journal.event import HeadQuery
from remit.policy.decision import Caller
from remit.record.heads import SESSION
from remit.record.job_story import story_of
from remit.record.outcome import outcome_view
from remit.service.sessions import CALLERS, Sessions
from remit.tools.catalog import ResolveError

if TYPE_CHECKING:
    from remit.record.outcome import OutcomeView
    from remit.service.parts import Parts
    from remit.service.sessions import FaceName

_MOST: Final = 10_000
"""Sessions of one program."""


class RecordedSessions(Sessions):
    """Answers the calls of one program from the record of another run of it.

    `run` is the stream of the recorded program.
    """

    def __init__(self, parts: Parts, principal: str, run: str) -> None:
        super().__init__(parts.gateway, principal)
        self._services = parts.services
        self._run = run
        self._judge = CallJudge(parts.services, Caller(principal=principal, kind=CALLERS["mcp"], recipe="", stream=run))
        self._outcomes: defaultdict[tuple[str, str], deque[Outcome]] | None = None
        self._reading = asyncio.Lock()

    async def open(self, face: FaceName, **facts: Any) -> str:  # noqa: ARG002 - nothing of it is recorded
        return self._run

    async def call(self, session: str, tool: str, args: dict[str, Any] | None = None, **facts: Any) -> OutcomeView:  # noqa: ARG002 - nothing of it is recorded
        judged = await self._judge.judge(tool, args or {})
        outcome = await self._outcome(tool, args or {})
        if judged.effect == "refused" and outcome.status != "blocked":
            reason = f"{judged.reason}; when it was recorded, it ran"
            return outcome_view(refused(Code.recorded(judged.code, Code.POLICY_DENIED), reason))
        return outcome_view(outcome)

    async def record(self, *_: Any, **__: Any) -> None:
        return

    async def _outcome(self, tool: str, args: dict[str, Any]) -> Outcome:
        """Take the next outcome of a call, or a refusal if there is none."""
        with suppress(ResolveError):  # its refusal is recorded by the name that it was called by
            resolved, args = await self._services.catalog.resolve(tool, args)
            tool = resolved.meta.name
        async with self._reading:
            if self._outcomes is None:
                self._outcomes = await self._recorded()
        outcomes = self._outcomes[tool, digest(args)]
        if outcomes:
            return outcomes.popleft()
        reason = f"the replay departs from {self._run.partition('/')[2]}: this call has no recorded result"
        return refused(Code.NONDETERMINISTIC, reason, "Nothing is called in such a replay.")

    async def _recorded(self) -> defaultdict[tuple[str, str], deque[Outcome]]:
        """Return the outcomes of the program's calls by tool and arguments, each as often as it was called."""
        journal, outcomes = self._services.journal, defaultdict[tuple[str, str], deque[Outcome]](deque)
        heads = await journal.heads(HeadQuery(kind=SESSION, labels={"run": self._run}, limit=_MOST))
        for head in reversed(heads):
            history = (await story_of(journal, head.stream.partition("/")[2])).history
            for record in history.calls.values():
                announced = record.refused or record.started
                if record.ended and announced is not None:
                    outcome = await recorded_outcome(record, journal)
                    outcomes[announced.tool_name, announced.arguments_hash].append(outcome)
        return outcomes
