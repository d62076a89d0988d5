"""Telegram as a bot meets it: its methods on a real socket, with the limits that it holds, and people who press."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web

TOKEN: Final = "42:the-token_of-the-bot"
CHAT: Final = -1001


class RefusalError(Exception):
    """What a method says instead of doing what it is asked."""


class Telegram:
    """Keeps what it is asked, and what people press until it is told that this came."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.updates: list[dict[str, Any]] = []
        self.refusal: dict[str, Any] = {}
        """What it answers instead of doing what it is asked."""
        self.polls = self.most_polls = 0
        self.api = ""
        self._numbers = 0
        self._news = asyncio.Event()

    def said(self, method: str) -> list[str]:
        return [body["text"] for name, body in self.asked if name == method]

    def buttons(self, number: int = 1) -> dict[str, str]:
        """What a message's buttons carry."""
        body = [body for method, body in self.asked if method == "sendMessage"][number - 1]
        rows = body.get("reply_markup", {}).get("inline_keyboard", [])
        return {key["text"]: key["callback_data"] for row in rows for key in row if "callback_data" in key}

    def chat(self, number: int) -> int:
        """The chat that a message is in."""
        return int([body for method, body in self.asked if method == "sendMessage"][number - 1]["chat_id"])

    def press(self, data: str, user: int = 1, number: int = 1, chat: int = CHAT) -> None:
        message = {"message_id": number, "chat": {"id": chat, "type": "supergroup"}, "date": 1}
        person = {"id": user, "is_bot": False, "first_name": "whoever"}
        query = {"id": f"q{self._numbers}", "from": person, "message": message, "chat_instance": "1", "data": data}
        self.send({"callback_query": query})

    def send(self, update: dict[str, Any]) -> None:
        self._numbers += 1
        self.updates.append({"update_id": self._numbers, **update})
        self._news.set()

    async def method(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != TOKEN:
            return web.json_response({"ok": False, "error_code": 401, "description": "Unauthorized"}, status=401)
        if self.refusal:
            return web.json_response({"ok": False, **self.refusal}, status=self.refusal["error_code"])
        name, body = request.match_info["method"], await request.json()
        self.asked.append((name, body))
        try:
            result = await self._result(name, body)
        except RefusalError as error:
            return web.json_response({"ok": False, "error_code": 400, "description": f"{error}"}, status=400)
        return web.json_response({"ok": True, "result": result})

    async def _result(self, name: str, body: dict[str, Any]) -> Any:
        if name == "getUpdates":
            return await self._poll(body["offset"])
        if name == "answerCallbackQuery":
            if len(body["text"]) > 200:
                raise RefusalError("MESSAGE_TOO_LONG")
            return True
        check(body)
        sent = [body for method, body in self.asked if method == "sendMessage"]
        return {"message_id": body.get("message_id", len(sent)), "chat": {"id": body["chat_id"]}, "text": body["text"]}

    async def _poll(self, offset: int) -> list[dict[str, Any]]:
        self.polls += 1
        self.most_polls = max(self.polls, self.most_polls)
        try:
            self.updates = [update for update in self.updates if update["update_id"] >= offset]
            while not self.updates:
                self._news.clear()
                await self._news.wait()
            return self.updates
        finally:
            self.polls -= 1


def check(body: dict[str, Any]) -> None:
    """Hold a message to Telegram's limits."""
    if not 1 <= len(body["text"].encode("utf-16-le")) // 2 <= 4096:
        raise RefusalError("Bad Request: message is too long")
    for key in [key for row in body.get("reply_markup", {}).get("inline_keyboard", []) for key in row]:
        if not 1 <= len(key.get("callback_data", "x").encode()) <= 64:
            raise RefusalError("Bad Request: BUTTON_DATA_INVALID")
        if not key.get("url", "https://").startswith("https://"):
            raise RefusalError("Bad Request: inline keyboard button URL is invalid")


@asynccontextmanager
async def telegram_api(telegram: Telegram) -> AsyncIterator[None]:
    """Serve Telegram's methods within the block."""
    app = web.Application()
    app.router.add_post("/bot{token}/{method}", telegram.method)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    telegram.api = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield
    finally:
        await runner.cleanup()
