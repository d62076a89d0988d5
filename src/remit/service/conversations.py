"""Conversations of agents, out of the journal: to be shown, exported, and gone on with in another job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.agents.openai_messages import to_openai
from remit.canonical import sha256
from remit.codes import Code
from remit.errors import NotFoundError, StateError
from remit.jobs.state import ENDED, History, stream_of
from remit.journal.kinds import CommandCommitted, CommandStarted, MessageKept, decode
from remit.models.message import Message
from remit.models.message import decode as message_of
from remit.models.thread import START, tip_of

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal

RECIPE: Final = "agent"
_OWN: Final = frozenset({"task", "earlier", "messages"})
"""What another task is not given again."""


class Conversations:
    """The conversations of one journal."""

    def __init__(self, journal: Journal) -> None:
        """Look at `journal`."""
        self._journal = journal

    # --- queries

    async def messages(self, job: str) -> list[Message]:
        """What was said in a job, oldest first: the newest prompt, and the answer to it. Raises NotFoundError."""
        events = await self._journal.read(stream_of(job))
        if not events:
            raise NotFoundError(f"no job {job}", code=Code.JOB_NOT_FOUND, remedy="`remit jobs` lists them.")
        fold = _Fold()
        for event in events:
            await fold.take(event, self._journal)
        return fold.messages()

    async def in_openai_format(self, job: str) -> list[dict[str, Any]]:
        """The same as the Chat Completions API takes it. Raises NotFoundError."""
        return to_openai(await self.messages(job))

    async def continuation(self, job: str, task: str) -> dict[str, Any]:
        """The input of a job that goes on with an agent's conversation. Raises NotFoundError or StateError."""
        messages = await self.messages(job)
        head = await self._journal.head(stream_of(job))
        created = History(await self._journal.read(stream_of(job))).created
        if created is None or created.name != RECIPE:
            why = f"{job} is no conversation: it runs {created.name if created else 'nothing'}"
            raise StateError(why, remedy=f"`remit jobs` lists those of the recipe {RECIPE}.")
        if head is None or head.state not in ENDED:
            raise StateError(f"{job} has not answered yet", remedy=f"See it through with `remit resume {job}`.")
        given = msgspec.json.decode(await self._journal.value(created.input, created.input_blob) or b"{}")
        kept = {name: value for name, value in given.items() if name not in _OWN}
        return {**kept, "task": task, "earlier": [msgspec.to_builtins(message) for message in messages]}


class _Fold:
    """Puts the newest prompt together."""

    def __init__(self) -> None:
        self._bodies: dict[str, bytes] = {}
        self._before: dict[str, tuple[str, str]] = {START: ("", "")}
        self._tip = START
        self._answer = b""

    async def take(self, event: Event, journal: Journal) -> None:
        payload = decode(event.kind, event.data) if event.kind.startswith("command_") else None
        if isinstance(payload, CommandStarted):
            self._tip, self._answer = payload.after, b""
            for one in payload.added:
                await self._add(one, journal)
        elif isinstance(payload, CommandCommitted) and payload.error is None:
            self._answer = await journal.value(payload.result, payload.result_blob) or b""
            self._bodies[sha256(self._answer)] = self._answer

    async def _add(self, one: MessageKept, journal: Journal) -> None:
        body = await journal.value(one.body, one.body_blob)
        if body is not None:
            self._bodies[one.digest] = body
        before, self._tip = self._tip, tip_of(self._tip, one.digest)
        self._before[self._tip] = (before, one.digest)

    def messages(self) -> list[Message]:
        digests: list[str] = []
        tip = self._tip
        while tip != START:
            tip, digest = self._before[tip]
            digests.append(digest)
        found = [message_of(self._bodies[digest]) for digest in reversed(digests)]
        return [*found, message_of(self._answer)] if self._answer else found
