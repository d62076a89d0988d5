"""The scripts of the page of devices: one of the page, and the worker that shows notices, which sees no other page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from remit.codes import Code
from remit.http.problem import HttpProblem
from remit.http.router import StatelessPart
from remit.pages.page import SAFE

if TYPE_CHECKING:
    from starlette.types import Receive, Send

SCRIPTS: Final = "/channels/push"
_FOLDER: Final = Path(__file__).parent / "static"
_NAMES: Final = ("page.js", "worker.js")


class Scripts(StatelessPart):
    """Serves them to everyone (remit.http.router.ServerPart)."""

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the port's
        name = scope["path"].removeprefix(f"{SCRIPTS}/")
        if name not in _NAMES or scope["method"] != "GET":
            raise HttpProblem(Code.PATH_UNKNOWN)
        data = (_FOLDER / name).read_bytes()
        own = {"content-type": "text/javascript; charset=utf-8", "cache-control": "no-cache"}
        headers = {**SAFE, **own, "content-length": str(len(data))}
        encoded = [(key.encode(), text.encode()) for key, text in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": encoded})
        await send({"type": "http.response.body", "body": data})
