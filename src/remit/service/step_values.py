"""The whole input and result of a step, of whatever kind it is: as its arguments and value on every face."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from remit.errors import PayloadErasedError
from remit.gateway.confirmation import KIND as CONFIRMATION
from remit.journal import kinds as k
from remit.journal.event import HeadQuery
from remit.journal.lineage import whole
from remit.models.message import Message
from remit.models.message import decode as message_of
from remit.models.openai_messages import to_openai
from remit.record.earlier import prompts_of
from remit.record.values import ERASED, value_of

if TYPE_CHECKING:
    from remit.jobs.records import CallRecord, ModelRecord, WaitRecord
    from remit.jobs.state import History
    from remit.journal.event import Event
    from remit.journal.journal import Journal


async def prompt_of(journal: Journal, events: list[Event], step: str) -> list[Message]:
    """The messages that the newest attempt of a step asked a model, oldest first; none if it asked none.

    Raises PayloadErasedError.
    """
    prompts = await prompts_of(journal, events, own=False)
    asked = prompts.asked(step)
    return asked.messages() if asked is not None else []


async def answer_of(journal: Journal, record: ModelRecord) -> Message | None:
    """Return what a model answered; None if it did not. Raises PayloadErasedError."""
    committed = record.committed
    if committed is None:
        return None
    recorded = await journal.value(committed.result, committed.result_blob)
    return message_of(recorded) if recorded is not None else None


class StepValues:
    """The values of the steps of one job or session."""

    def __init__(self, journal: Journal, history: History, stream: str) -> None:
        self._journal = journal
        self._history = history
        self._stream = stream

    async def args(self, step: str, question: str = "") -> Any:
        """A step's input; None if it has none. `question`: the newest one that people are asked about a call."""
        history = self._history
        if step in history.calls:
            return await self._args_of_call(history.calls[step], question)
        if step in history.models:
            return await self._prompt(step, history.models[step])
        if step in history.children:
            child = history.children[step]
            return await value_of(self._journal, child.input, child.input_blob)
        if step in history.compensations:
            return {"steps": list(history.compensations[step].steps)}
        wait = self._wait(step)
        return _purpose(wait.waiting) if wait is not None else None

    async def value(self, step: str) -> Any:
        """A step's result; None if it has none."""
        history, journal = self._history, self._journal
        if step in history.calls:
            finished = history.calls[step].finished
            return await value_of(journal, finished.result, finished.result_blob) if finished else None
        if step in history.models:
            return await self._answer(history.models[step])
        if step in history.values:
            return history.values[step].value
        if step in history.returned:
            returned = history.returned[step]
            return await value_of(journal, returned.result, returned.result_blob)
        if step in history.compensated:
            done = history.compensated[step]
            return {"undone": list(done.undone), "left": list(done.left)}
        return await self._came(step)

    async def _args_of_call(self, record: CallRecord, question: str) -> Any:
        started = record.started
        if started is not None:
            return await value_of(self._journal, started.args, started.args_blob)
        if not question or record.refused is not None:
            return None
        # Nothing of it is recorded in the job before the answer.
        heads = await self._journal.heads(HeadQuery(kind=CONFIRMATION, labels={"id": question}, limit=1))
        return await self._args_asked(heads[0].stream) if heads else None

    async def _args_asked(self, stream: str) -> Any:
        for event in await self._journal.read(stream):
            request = k.decode(event.kind, event.data)
            if isinstance(request, k.ConfirmationRequested):
                return await value_of(self._journal, request.args, request.args_blob)
        return None

    async def _prompt(self, step: str, record: ModelRecord) -> Any:
        started = record.started
        if started is None:
            return None
        try:
            events = await whole(self._journal, await self._journal.read(self._stream))
            messages = await prompt_of(self._journal, events, step)
        except PayloadErasedError:
            return ERASED
        settings = await value_of(self._journal, started.prompt, started.prompt_blob)
        named = settings if isinstance(settings, dict) else {}
        return {
            "messages": to_openai(messages),
            "tools": await self._offered(named.get("tools") or ""),
            **{name: named[name] for name in ("choice", "sampling") if name in named},
        }

    async def _answer(self, record: ModelRecord) -> Any:
        """Return what a model answered, as a message; None if it did not."""
        try:
            answer = await answer_of(self._journal, record)
        except PayloadErasedError:
            return ERASED
        return to_openai([answer])[0] if answer is not None else None

    async def _came(self, step: str) -> Any:
        """Return what a wait brought; None if nothing came."""
        wait = self._wait(step)
        came = wait.completed if wait is not None else None
        if not isinstance(came, k.WaitCompleted):
            return None
        return await value_of(self._journal, came.payload, came.payload_blob)

    async def _offered(self, digest: str) -> list[str]:
        """The names of the tools that a model was offered."""
        kept = await self._journal.blob(digest) if digest else None
        specs: list[dict[str, Any]] = msgspec.json.decode(kept) if kept is not None else []
        return [spec["name"].replace("__", ".") for spec in specs]

    def _wait(self, step: str) -> WaitRecord | None:
        return next((wait for (place, _), wait in self._history.waits.items() if place == step), None)


def _purpose(waiting: k.JobWaiting) -> dict[str, Any]:
    """Return what a step waits for."""
    match waiting.wait_type:
        case "timer":
            return {"until": waiting.due_at}
        case "human":
            return {"question": waiting.reason, "until": waiting.due_at}
        case _:
            return {waiting.wait_type: waiting.correlation_key, "until": waiting.due_at}
