"""The public keys of one issuer: found by its metadata, fetched within bounds, and kept for a while.

Tokens choose which key is asked for, so what they can make us fetch is bounded: one attempt in COOL_S, whatever keys
they name. Keys are fetched over TLS, or from this machine where the operator named it so. The issuer's own host may be
private, for the operator named it; a place that its metadata names may not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec

from remit.http.addresses import BlockedAddressError, Resolver, resolved
from remit.http.connector import judging_connector, private_if
from remit.http.urls import InvalidUrlError, checked, place_of

if TYPE_CHECKING:
    from remit.clock import Clock

FRESH_S: Final = 600.0
"""Seconds after which keys are fetched again."""
STALE_S: Final = 3_600.0
"""Seconds for which keys count while the issuer cannot be reached."""
COOL_S: Final = 30.0
"""Seconds between two attempts."""
MAX_BYTES: Final = 256 * 1024
MAX_KEYS: Final = 100
_PATIENCE_S: Final = 10.0
_log: Final = logging.getLogger("remit.http")


class KeyFetchError(Exception):
    """The keys of an issuer cannot be had; the message says why."""


class IssuerKeys:
    """The keys of an issuer, by their ids."""

    def __init__(self, issuer: str, clock: Clock, resolve: Resolver = resolved) -> None:
        self._issuer = issuer
        self._clock = clock
        self._resolve = resolve
        self._keys: dict[str, dict[str, Any]] = {}
        self._metadata: dict[str, Any] = {}
        self._fetched = self._tried = float("-inf")
        self._alone = asyncio.Lock()

    async def key(self, key_id: str) -> dict[str, Any] | None:
        """The key (JWK) of an id; None if the issuer has none, as far as can be found out now."""
        if self._is_due(key_id):
            async with self._alone:
                if self._is_due(key_id):
                    await self._refresh()
        return self._keys.get(key_id) if self._age() < STALE_S else None

    async def metadata(self) -> dict[str, Any]:
        """Return what the issuer says of itself; empty: it cannot be reached."""
        if self._age() >= FRESH_S:
            await self.key("")
        return self._metadata if self._age() < STALE_S else {}

    def _age(self) -> float:
        return self._clock.monotonic() - self._fetched

    def _is_due(self, key_id: str) -> bool:
        wanted = key_id not in self._keys or self._age() >= FRESH_S
        return wanted and self._clock.monotonic() - self._tried >= COOL_S

    async def _refresh(self) -> None:
        self._tried = self._clock.monotonic()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                keys = await self._fetch()
        except (KeyFetchError, aiohttp.ClientError, OSError, TimeoutError, BlockedAddressError) as error:
            _log.warning(
                "the keys of the issuer %s cannot be fetched: %s", self._issuer, str(error) or type(error).__name__
            )
        else:
            self._keys, self._fetched = keys, self._clock.monotonic()

    async def _fetch(self) -> dict[str, dict[str, Any]]:
        async with aiohttp.ClientSession(
            connector=judging_connector(self._resolve, 2), cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
        ) as client:
            metadata = None
            for url in metadata_urls(self._issuer):
                if (metadata := await self._document(client, url)) is not None:
                    break
            if metadata is None:
                raise KeyFetchError("it has no metadata (OpenID Connect Discovery, or RFC 8414)")
            if metadata.get("issuer") != self._issuer:
                raise KeyFetchError("its metadata is that of another issuer")
            document = await self._document(client, self._place_of_keys(metadata))
        self._metadata = metadata
        if document is None or not isinstance(keys := document.get("keys"), list):
            raise KeyFetchError("there is no set of keys")
        return {
            key["kid"]: key
            for key in keys[:MAX_KEYS]
            if isinstance(key, dict) and isinstance(key.get("kid"), str) and key.get("use", "sig") == "sig"
        }

    def _place_of_keys(self, metadata: Mapping[str, Any]) -> str:
        try:
            url = checked(str(metadata.get("jwks_uri", "")))
        except InvalidUrlError as error:
            raise KeyFetchError(f"where its keys are, is not a URL: {error}") from error
        if not url.startswith("https://") and place_of(url) != place_of(self._issuer):
            raise KeyFetchError("its keys are not at an https URL")
        return url

    async def _document(self, client: aiohttp.ClientSession, url: str) -> dict[str, Any] | None:
        """A JSON object; None for an answer that is not 200. Redirections are not followed. Raises KeyFetchError."""
        with private_if(place_of(url) == place_of(self._issuer)):
            async with client.get(url, allow_redirects=False, headers={"accept": "application/json"}) as response:
                if response.status != 200:  # noqa: PLR2004 - OK
                    return None
                body = bytearray()
                async for piece in response.content.iter_chunked(16 * 1024):
                    body += piece
                    if len(body) > MAX_BYTES:
                        raise KeyFetchError(f"{url} is larger than {MAX_BYTES} bytes")
        try:
            document = msgspec.json.decode(bytes(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise KeyFetchError(f"{url} is not JSON") from error
        return document if isinstance(document, dict) else None


def metadata_urls(issuer: str) -> list[str]:
    """The places of an issuer's metadata (OpenID Connect Discovery 1.0, section 4; RFC 8414, section 3)."""
    parts = urlsplit(issuer)
    path = parts.path.rstrip("/")
    origin = f"{parts.scheme}://{parts.netloc}"
    return [
        f"{origin}{path}/.well-known/openid-configuration",
        f"{origin}/.well-known/oauth-authorization-server{path}",
    ]
