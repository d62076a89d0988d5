"""An answer that is given instead of the one that was wanted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Send


class Refusal(Exception):  # noqa: N818 - it is an answer, not an accident
    """A request that is not served."""

    name = ""
    """The stable code's name, for the access log."""

    def __init__(self, status: int, body: bytes, kind: str, headers: Mapping[str, str] | None = None) -> None:
        """Refuse with an HTTP status and a body of media type `kind`."""
        super().__init__(body.decode(errors="replace"))
        self.status = status
        self.body = body
        self._headers = {"content-type": kind, "content-length": str(len(body)), **(headers or {})}

    async def say(self, send: Send) -> None:
        """Answer the request."""
        headers = [(name.encode(), value.encode()) for name, value in self._headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})
