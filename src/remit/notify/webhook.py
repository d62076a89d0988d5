"""Posts a message to a URL, once: no redirects, no proxy, and a bounded answer.

The signature follows Standard Webhooks (https://www.standardwebhooks.com), for which most languages have a library:
`webhook-id`, `webhook-timestamp` and `webhook-signature` with HMAC-SHA256 over `ID.TIMESTAMP.BODY`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import http.client
import re
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from remit.clock import SECOND
from remit.errors import SettingsError
from remit.notify.answer import LONGEST_S, SILENCE_S, Answer
from remit.notify.message import slack_text
from remit.notify.target import url_problem
from remit.settings.expansion import expand, sendable
from remit.version import __version__

if TYPE_CHECKING:
    from remit.blocking import Threads
    from remit.notify.message import Message
    from remit.notify.target import Target

_ANSWER: Final = 2_048
"""Bytes of the answer that are read."""
_PREFIX: Final = "whsec_"
_SECONDS: Final = re.compile("[0-9]{1,6}")


async def post(target: Target, message: Message, environ: Mapping[str, str], now: int, threads: Threads) -> Answer:
    """Post a message. Raises SettingsError, OSError, TimeoutError or http.client.HTTPException."""
    who = f"notify {target.name}"
    url = sendable(expand(target.url, environ, who), f"{who}: its url")
    problem = url_problem(url)
    if problem is not None:
        raise SettingsError(f"{who}: {problem[0]}", remedy=problem[1])
    body = message.encoded if target.format == "json" else slack_text(message)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"remit/{__version__}",
        "Idempotency-Key": message.id,
        **{name: sendable(expand(text, environ, who), f"{who}: {name}") for name, text in target.headers.items()},
    }
    if target.secret:
        headers |= signature(expand(target.secret, environ, who), message.id, now // SECOND, body, who)
    parts = urlsplit(url)
    host = parts.hostname or ""
    connection = (
        http.client.HTTPSConnection(host, parts.port, timeout=SILENCE_S, context=ssl.create_default_context())
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=SILENCE_S)
    )
    place = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return await _asked(connection, place, body, headers, threads)


def signature(secret: str, identifier: str, seconds: int, body: bytes, who: str) -> dict[str, str]:
    """The headers that prove who sent a body, and when. Raises SettingsError for a key that cannot be used."""
    try:
        key = base64.b64decode(secret[len(_PREFIX) :], validate=True) if secret.startswith(_PREFIX) else secret.encode()
    except binascii.Error as error:
        why = f"{who}: its secret begins with {_PREFIX}, and what follows is not base64"
        raise SettingsError(why, remedy="Copy it again, or leave the prefix out.") from error
    if not key:
        raise SettingsError(f"{who}: its secret is empty", remedy="Set the variable that it refers to.")
    digest = hmac.new(key, f"{identifier}.{seconds}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": identifier,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


async def _asked(
    connection: http.client.HTTPConnection, place: str, body: bytes, headers: Mapping[str, str], threads: Threads
) -> Answer:
    """One request in a thread; once the time is over, its socket is shut, so that the thread ends too."""

    def ask() -> Answer:
        connection.request("POST", place, body, dict(headers))
        response = connection.getresponse()
        text = response.read(_ANSWER).decode("utf-8", "replace").strip()
        words = f"HTTP {response.status} {response.reason}".rstrip()
        ok = 200 <= response.status < 300  # noqa: PLR2004 - the class of answers that means success
        pause = _SECONDS.fullmatch(response.headers.get("Retry-After", "").strip())
        return Answer(ok, words if ok or not text else f"{words}: {text}", float(pause[0]) if pause else 0.0)

    try:
        async with asyncio.timeout(LONGEST_S):
            return await threads.run(ask)
    finally:
        if connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
