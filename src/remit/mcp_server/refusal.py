"""What a client over HTTP is told instead of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from remit.jsonrpc import message

if TYPE_CHECKING:
    from mcp_types import RequestId
    from starlette.types import Send


class Refusal(Exception):  # noqa: N818 - it is an answer, not an accident
    """A request that is not served."""

    def __init__(self, status: int, text: str, **headers: str) -> None:
        """Refuse with an HTTP status and a sentence."""
        super().__init__(text)
        self._status = status
        self._body = text.encode()
        self._kind = b"text/plain; charset=utf-8"
        self._headers = headers

    @classmethod
    def rpc(cls, status: int, code: int, text: str, data: Any = None, about: RequestId | None = None) -> Self:
        """The same as an error of JSON-RPC."""
        refusal = cls(status, text)
        told = {"code": code, "message": text} if data is None else {"code": code, "message": text, "data": data}
        refusal._body = message.error(about, told).body
        refusal._kind = b"application/json"
        return refusal

    async def say(self, send: Send) -> None:
        """Answer the request."""
        headers = [(b"content-type", self._kind), (b"content-length", str(len(self._body)).encode())]
        headers += [(name.replace("_", "-").encode(), value.encode()) for name, value in self._headers.items()]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        await send({"type": "http.response.body", "body": self._body})
