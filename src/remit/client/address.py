"""The URL of a server, and what may be sent there."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from remit.errors import UsageError
from remit.http.guard import LOOPBACK

_EXAMPLE: Final = "Give a URL such as https://remit.example or http://127.0.0.1:8320."


def base_url(text: str, token: str) -> str:
    """The URL without a slash at its end.

    Raise UsageError if it is not one of HTTP, or if the token would cross a network as plain text.
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageError(f"{text!r:.200} is not a URL: {error}", remedy=_EXAMPLE) from error
    if parts.scheme not in {"http", "https"} or not host or port == 0:
        raise UsageError(f"{text!r:.200} is not the URL of a server", remedy=_EXAMPLE)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError("the URL of a server has only a host and a path", remedy="Pass the token as REMIT_TOKEN.")
    if token and parts.scheme == "http" and host not in LOOPBACK:
        remedy = "Use https, or a tunnel to an address of this machine."
        raise UsageError(f"the token would be sent to {host} unencrypted", remedy=remedy)
    if not (token.isascii() and token.isprintable()):
        raise UsageError("the token has characters that cannot be sent", remedy="Correct REMIT_TOKEN.")
    return text.rstrip("/")


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a URL of `base_url`; None for this machine, and where it names none."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return None if host in LOOPBACK or proxy_bypass(host) else getproxies().get(parts.scheme)
