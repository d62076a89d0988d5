"""A method of a channel: an object is posted to it, and an answer comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import aiohttp
import msgspec

from remit.parts.notify.sender import SILENCE_S
from remit.process.environment import without

_LARGEST: Final = 4 * 1024 * 1024
_PIECE: Final = 64 * 1024


class MethodReply(NamedTuple):
    """The answer of a method."""

    status: int
    data: bytes


async def ask(
    url: str, body: Mapping[str, Any], *, secret: str, headers: Mapping[str, str] | None = None, wait_s: float = 0.0
) -> MethodReply:
    """Call a method, which may wait so long itself. Raises OSError, TimeoutError or ValueError without `secret`."""
    timeout = aiohttp.ClientTimeout(total=SILENCE_S + wait_s)
    sent = {"content-type": "application/json; charset=utf-8", **(headers or {})}
    async with aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as client:
        try:
            async with client.post(
                url, data=msgspec.json.encode(body), headers=sent, allow_redirects=False
            ) as response:
                return MethodReply(response.status, await _read(response))
        except aiohttp.ClientError as error:
            raise OSError(without([secret], str(error)) or type(error).__name__) from None


async def _read(response: aiohttp.ClientResponse) -> bytes:
    data = bytearray()
    async for piece in response.content.iter_chunked(_PIECE):
        data += piece
        if len(data) > _LARGEST:
            raise ValueError("the answer is too long")
    return bytes(data)
