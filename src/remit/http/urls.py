"""URLs that may be requested on behalf of someone else, in the form in which they are requested."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

LONGEST: Final = 2_048
_HERE: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_PORTS: Final = {"http": 80, "https": 443}
_LOW_PORTS: Final = 1_024
"""Below it only the two of the web are reached: mail, databases and others would take a request for their own."""
_KEPT: Final = "%/:@!$&'()*+,;=~-._"


class InvalidUrlError(ValueError):
    """The URL may not be requested; the message says why."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url[:200]!r}: {reason}")


def checked(url: str) -> str:
    """Return the URL in the form in which it is requested. Raises InvalidUrlError for any other address.

    The host is lower case, in ASCII and without a trailing dot; user names are refused, fragments and default ports
    dropped.
    """
    if len(url) > LONGEST or any(character <= " " or character == "\x7f" for character in url.strip()):
        raise InvalidUrlError(url, "it is longer than 2,048 characters, or has blanks or control characters in it")
    try:
        parts = urlsplit(url.strip())
        port, host = parts.port, (parts.hostname or "").rstrip(".")
    except ValueError as error:
        raise InvalidUrlError(url, "it cannot be read") from error
    scheme = parts.scheme.lower()
    if scheme not in _PORTS:
        raise InvalidUrlError(url, "only http and https are fetched")
    if not host or "@" in parts.netloc or "\\" in url:
        raise InvalidUrlError(url, "it has no host, or a user name, or a backslash")
    if port is not None and port != _PORTS[scheme] and (port < _LOW_PORTS and port not in _PORTS.values()):
        raise InvalidUrlError(url, f"port {port} is not one of the web")
    shown = f"[{host}]" if ":" in host else _ascii(url, host)
    place = shown if port is None or port == _PORTS[scheme] else f"{shown}:{port}"
    path = quote(parts.path or "/", safe=_KEPT)
    return urlunsplit((scheme, place, path, quote(parts.query, safe=_KEPT + "?[]"), ""))


def place_of(url: str) -> str:
    """Return host and port of a URL, as `host:port`; empty if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return ""
    return f"{parts.hostname}:{port}" if parts.hostname and port else ""


def _ascii(url: str, host: str) -> str:
    try:
        return host.encode("idna").decode("ascii").lower()
    except UnicodeError as error:
        raise InvalidUrlError(url, "its host is not a name") from error


def is_issuer(url: str) -> bool:
    """Return whether a URL may name an issuer: https, or http on this machine; without user, query and fragment."""
    try:
        parts = urlsplit(url)
        checked(url)
    except (InvalidUrlError, ValueError):
        return False
    return not parts.query and not parts.fragment and (parts.scheme == "https" or parts.hostname in _HERE)
