"""Posts to a channel: one request, and the answer that comes back."""

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
    """The answer to a post."""

    status: int
    data: bytes


async def ask(
    url: str, body: Mapping[str, Any], *, secret: str, headers: Mapping[str, str] | None = None, wait_s: float = 0.0
) -> MethodReply:
    """Call a method, which may wait so long itself. Raises as `post` does."""
    own = {"content-type": "application/json; charset=utf-8", **(headers or {})}
    return await post(url, msgspec.json.encode(body), own, secret=secret, wait_s=wait_s)


async def post(url: str, data: bytes, headers: Mapping[str, str], *, secret: str, wait_s: float = 0.0) -> MethodReply:
    """Post bytes. Raises OSError, TimeoutError or ValueError without `secret`."""
    timeout = aiohttp.ClientTimeout(total=SILENCE_S + wait_s)
    async with aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as client:
        try:
            async with client.post(url, data=data, headers=headers, allow_redirects=False) as response:
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
