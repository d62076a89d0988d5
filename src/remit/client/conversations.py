"""Conversations of agents behind a server."""

from __future__ import annotations

from typing import Any

from remit.api.routes.conversations import ConversationQuery, SayBody
from remit.api.routes.jobs import WaitQuery
from remit.client.connection import Connection
from remit.client.person import only_oneself
from remit.ids import new_id
from remit.service.jobs import Options
from remit.service.views import JobRow


class RemoteConversations:
    """The conversations of a server; see ConversationsPort."""

    def __init__(self, connection: Connection) -> None:
        """Ask over `connection`."""
        self._connection = connection

    async def in_openai_format(self, job: str, step: str = "") -> list[dict[str, Any]]:
        """What was said in a job, or at one of its steps, as the Chat Completions API takes it. Raise NotFoundError."""
        query = ConversationQuery(step=step)
        found: list[dict[str, Any]] = await self._connection.ask("conversations.view", job, query=query)
        return found

    async def say(self, job: str, text: str, options: Options | None = None, *, key: str = "") -> str:
        """Say something to an agent; the job that answers: this one if it is at work, else a new one."""
        options = options or Options()
        only_oneself(options.principal)
        body = SayBody(
            text=text,
            title=options.title,
            labels=options.labels,
            priority=options.priority,
            policy=tuple(dict(rule) for rule in options.policy),
            tools=options.tools,
            budget=dict(options.budget),
            job=options.job,
        )
        # The key lets a request whose answer was lost be sent again.
        row: JobRow = await self._connection.ask(
            "conversations.say", job, query=WaitQuery(), body=body, key=key or new_id("say")
        )
        return row.job
