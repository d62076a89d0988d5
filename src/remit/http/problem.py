"""Refusals as problem details (RFC 9457), with the stable code beside the standard members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code

if TYPE_CHECKING:
    from starlette.types import Send


class HttpRefusal(Exception):  # noqa: N818 - it is an answer, not an accident
    """A request that is not served."""

    name = ""
    """The stable code's name, for the access log."""

    def __init__(self, status: int, body: bytes, kind: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(body.decode(errors="replace"))
        self.status = status
        self.body = body
        self._headers = {"content-type": kind, "content-length": str(len(body)), **(headers or {})}

    async def say(self, send: Send) -> None:
        """Answer the request."""
        headers = [(name.encode(), value.encode()) for name, value in self._headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


METADATA: Final = "/.well-known/oauth-protected-resource"
"""The path of the document that names the issuers of tokens that count (RFC 9728)."""
KIND: Final = "application/problem+json"
_PHRASES: Final = {
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
    499: "Client Closed Request",
}
"""Words of RFC 9110 that are Python's own from 3.13 on."""


def phrase(status: int) -> str:
    """Return the words of a status as RFC 9110 has them."""
    from http import HTTPStatus  # noqa: PLC0415 - for who refuses something

    return _PHRASES.get(status) or HTTPStatus(status).phrase


class HttpProblem(HttpRefusal):
    """A request that is refused, in a form that every HTTP client can read.

    The body holds `type` (about:blank: the code says more than a URI would), `title`, `status`, `detail` and
    `error_code`, as the contract's 503 has it (tickets, "Codes"), then what else the code is documented with.
    """

    def __init__(self, code: Code, detail: str = "", headers: Mapping[str, str] | None = None, **members: Any) -> None:
        self.code = code
        self.name = code.name
        self.detail = detail or code.meaning
        self.remedy = str(members.get("remedy", ""))
        body = {
            "type": "about:blank",
            "title": phrase(code.http),
            "status": code.http,
            "detail": self.detail,
            "error_code": code.name,
            **members,
        }
        super().__init__(code.http, msgspec.json.encode(body), KIND, headers)


def unauthenticated(reason: str, metadata: str = "") -> HttpProblem:
    """The refusal of a token (RFC 6750, section 3); `metadata` is the URL that says who gives one (RFC 9728)."""
    challenge = f'Bearer error="invalid_token", error_description="{reason}"'
    challenge += f', resource_metadata="{metadata}"' if metadata else ""
    return HttpProblem(Code.UNAUTHENTICATED, reason, {"www-authenticate": challenge})
