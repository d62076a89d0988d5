"""Conversations of a server: what a request does not say by itself."""

from __future__ import annotations

from remit.api.routes.jobs import WaitQuery
from remit.client.connection import only_oneself
from remit.client.twin import Twin
from remit.ids import new_id
from remit.parts.agents.conversations import Conversations
from remit.parts.agents.routes import SayBody
from remit.record.views import JobRow
from remit.service.options import Options


class RemoteConversations(Twin, Conversations):
    """The conversations of a server."""

    async def say(self, job: str, text: str, options: Options | None = None, *, key: str = "") -> str:
        options = options or Options()
        only_oneself(options.principal)
        body = SayBody.of(options, text=text)
        # The key lets a request whose answer was lost be sent again.
        row: JobRow = await self._connection.ask(
            "conversations.say", job, query=WaitQuery(), body=body, key=key or new_id("say")
        )
        return row.job
