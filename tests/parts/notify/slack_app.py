"""Slack as an app meets it: its methods on a real socket, and requests that it signs when someone presses a button."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from remit import Remit
from remit.clock import SECOND
from remit.http.access import Access
from remit.http.guard import LOOPBACK, Guard
from remit.http.router import PartMount, Router
from remit.http.server import listen, serve
from remit.pages.entry import NOBODY
from remit.parts.notify.people import read_targets
from remit.parts.notify.slack import PATH, SlackPart

SECRET: Final = "the signing secret of the app"
TEAM: Final = "T1"


class Slack:
    """Keeps what it is asked, and presses buttons."""

    def __init__(self, remit: Remit) -> None:
        self.remit = remit
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.error = ""
        """What it says instead of doing what it is asked."""
        self.api = self.url = ""

    def posts(self) -> list[dict[str, Any]]:
        return [body for method, body in self.asked if method == "chat.postMessage"]

    def buttons(self, number: int = 0) -> dict[str, str]:
        """The marks of a message's buttons, by what they do."""
        found = [one for block in self.posts()[number]["blocks"] for one in block.get("elements", ())]
        return {one["action_id"]: one["value"] for one in found if "value" in one}

    def said(self, method: str) -> list[str]:
        return [body["text"] for name, body in self.asked if name == method]

    def place(self, number: int = 0) -> dict[str, str]:
        return {"channel_id": "C1", "message_ts": f"17.{number}"}

    def pressed(self, action: str, mark: str, user: str = "U1", team: str = TEAM, number: int = 0) -> dict[str, Any]:
        return {
            "type": "block_actions",
            "team": {"id": team},
            "user": {"id": user, "name": "whoever"},
            "container": self.place(number),
            "trigger_id": "t1",
            "actions": [{"action_id": action, "value": mark}],
        }

    async def press(self, action: str, user: str = "U1", number: int = 0, **more: Any) -> int:
        return await self.send(self.pressed(action, self.buttons(number)[action], user, number=number, **more))

    async def send(
        self, payload: Any, *, secret: str = SECRET, age_s: int = 0, tamper: bytes = b"", nonce: str = ""
    ) -> int:
        """Send a request as Slack signs it; the status of the answer."""
        body = urlencode({"payload": json.dumps({**payload, "action_ts": nonce or str(len(self.asked))})}).encode()
        sent = str(self.remit.clock.now() // SECOND - age_s).encode()
        digest = hmac.new(secret.encode(), b"v0:%b:%b" % (sent, body), hashlib.sha256).hexdigest()
        headers = {
            "x-slack-request-timestamp": sent.decode(),
            "x-slack-signature": f"v0={digest}",
            "content-type": "application/x-www-form-urlencoded",
        }
        async with (
            aiohttp.ClientSession() as client,
            client.post(self.url + PATH, data=body + tamper, headers=headers) as answer,
        ):
            return answer.status

    async def method(self, request: web.Request) -> web.Response:
        self.asked.append((request.match_info["method"], await request.json()))
        assert request.headers["authorization"] == "Bearer xoxb-1"
        if self.error:
            return web.json_response({"ok": False, "error": self.error})
        return web.json_response({"ok": True, "channel": "C1", "ts": f"17.{len(self.posts()) - 1}"})


@asynccontextmanager
async def slack_api(slack: Slack) -> AsyncIterator[None]:
    """Serve Slack's methods within the block."""
    app = web.Application()
    app.router.add_post("/api/{method}", slack.method)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    slack.api = f"http://127.0.0.1:{runner.addresses[0][1]}/api"
    try:
        yield
    finally:
        await runner.cleanup()


@asynccontextmanager
async def served(slack: Slack, environ: Mapping[str, str]) -> AsyncIterator[None]:
    """Serve what Slack sends requests to within the block."""

    async def stranger(_headers: Mapping[str, str]) -> Access:
        return NOBODY

    remit, stop = slack.remit, asyncio.Event()
    part = SlackPart(remit.runtime.journal, read_targets(remit.settings), environ)
    router = Router(Guard(LOOPBACK, (), remit.clock), [PartMount(PATH, part, None, stranger)])
    with listen("127.0.0.1", 0) as listening:
        running = asyncio.create_task(serve(router, listening, stop))
        slack.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            yield
        finally:
            stop.set()
            await running
