"""The handler of a replay: nothing new happens, and nothing is written."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Never

if TYPE_CHECKING:
    from remit.gateway.outcome import Outcome
    from remit.jobs.effects.port import Answer, CallRequest, Question, Wait
    from remit.jobs.records import CallRecord, ModelRecord, WaitRecord
    from remit.jobs.spans import Activity
    from remit.jobs.state import Value
    from remit.journal.event import Blob
    from remit.journal.kinds import ChildEnded, ChildStarted, CommandStarted, CompensationCompleted


class RefusingEffects:
    """A handler that does nothing new: a branch that wants something new stops there."""

    def __init__(self, activity: Activity) -> None:
        self.ends: list[tuple[str, str]] = []
        """Places where the recording ends, and what the recipe wants there."""
        self.undos: dict[str, tuple[str, dict[str, Any]]] = {}
        """Undo calls that the recipe makes from recorded values, and that are not recorded themselves."""
        self.default_model = ""
        self.models: list[tuple[str, str, str]] = []
        """Questions that would go to another model now: the place, the recorded model, today's."""
        self._activity = activity

    async def call(self, request: CallRequest, record: CallRecord) -> Outcome:  # noqa: ARG002 - the port's
        return await self._stop(request.step, f"a call of {request.tool}")

    async def ask(self, question: Question, record: ModelRecord) -> Outcome:  # noqa: ARG002 - the port's
        return await self._stop(question.step, "a question to a model")

    async def model_differs(self, started: CommandStarted, current: str) -> None:
        self.models.append((started.step, f"{started.llm_provider}/{started.llm_model}", current))

    async def value(self, step: str, kind: type[Value]) -> Value:
        return await self._stop(step, kind.KIND.removesuffix("_recorded"))

    async def wait(self, wait: Wait, record: WaitRecord | None) -> Answer:  # noqa: ARG002 - the port's
        return await self._stop(wait.step, f"a wait ({wait.type})")

    async def poll(self, wait: Wait) -> Answer | None:  # noqa: ARG002 - the port's
        return None

    async def child(self, started: ChildStarted, blobs: tuple[Blob, ...]) -> Never:  # noqa: ARG002 - the port's
        await self._stop(started.step, f"the recipe {started.name}")

    async def child_ended(self, ended: ChildEnded, blobs: tuple[Blob, ...]) -> None:
        """Do nothing: a replay writes nothing."""

    async def patch(self, name: str) -> None:
        """Do nothing: a replay writes nothing."""

    async def declare(self, step: str, undo: tuple[str, dict[str, Any]]) -> None:
        self.undos[step] = undo

    async def compensate(self, step: str) -> CompensationCompleted:
        return await self._stop(step, "to undo what was done")

    async def _stop(self, step: str, wanted: str) -> Never:
        self.ends.append((step, wanted))
        self._activity.block()
        try:
            while True:
                await asyncio.get_running_loop().create_future()
        finally:
            self._activity.unblock()

    def progress(self, done: float | None, total: float | None, message: str, /) -> None:
        """Do nothing: a replay shows no progress."""

    def now(self) -> int:
        return 0  # bounds of waits are compared by what was recorded, not by today's clock
