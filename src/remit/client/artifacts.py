"""What a server's jobs left."""

from __future__ import annotations

from remit.canonical import sha256
from remit.client.connection import Connection
from remit.codes import Code
from remit.errors import ServerError
from remit.service.views import ArtifactRow


class RemoteArtifacts:
    """The artifacts of a server's jobs; see ArtifactsPort."""

    def __init__(self, connection: Connection) -> None:
        """Ask over `connection`."""
        self._connection = connection

    async def rows(self, job: str) -> list[ArtifactRow]:
        """The files that a job's or session's steps left, and what they wrote."""
        found: list[ArtifactRow] = await self._connection.ask("artifacts.rows", job)
        return found

    async def read(self, job: str, digest: str) -> bytes:
        """The bytes of one of them, which have this digest."""
        data: bytes = await self._connection.ask("artifacts.read", job, digest)
        if sha256(data) != digest:
            why = f"the received bytes of {digest} have another digest"
            raise ServerError(why, code=Code.SERVER_ANSWER_INVALID, remedy="Ask again.")
        return data
