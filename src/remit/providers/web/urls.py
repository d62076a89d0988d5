"""URLs as this provider takes, compares and keeps them."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit, urlunsplit

from remit.codes import Code
from remit.providers.web.faults import WebError

LONGEST: Final = 2_048
_PORTS: Final = {"http": 80, "https": 443}
_LOW_PORTS: Final = 1_024
"""Below it only the two of the web are reached: mail, databases and others would take a request for their own."""
_TRACKING: Final = ("utm_", "mc_", "pk_", "_hs", "vero_", "oly_", "wt_")
_TRACKERS: Final = frozenset(
    {
        "fbclid",
        "gclid",
        "gclsrc",
        "dclid",
        "gbraid",
        "wbraid",
        "msclkid",
        "yclid",
        "igshid",
        "twclid",
        "ttclid",
        "mkt_tok",
    }
)
_KEPT: Final = "%/:@!$&'()*+,;=~-._"


def checked(url: str) -> str:
    """Return the URL in the form in which it is requested. Raises WebError (InvalidInput) for any other address.

    The host is lower case, in ASCII and without a trailing dot; user names, fragments and default ports are refused or
    dropped.
    """
    if len(url) > LONGEST or any(character <= " " or character == "\x7f" for character in url.strip()):
        raise _invalid(url, "it is longer than 2,048 characters, or has blanks or control characters in it")
    try:
        parts = urlsplit(url.strip())
        port, host = parts.port, (parts.hostname or "").rstrip(".")
    except ValueError as error:
        raise _invalid(url, "it cannot be read") from error
    scheme = parts.scheme.lower()
    if scheme not in _PORTS:
        raise _invalid(url, "only http and https are fetched")
    if not host or "@" in parts.netloc or "\\" in url:
        raise _invalid(url, "it has no host, or a user name, or a backslash")
    if port is not None and port != _PORTS[scheme] and (port < _LOW_PORTS and port not in _PORTS.values()):
        raise _invalid(url, f"port {port} is not one of the web")
    shown = f"[{host}]" if ":" in host else _ascii(url, host)
    place = shown if port is None or port == _PORTS[scheme] else f"{shown}:{port}"
    path = quote(parts.path or "/", safe=_KEPT)
    return urlunsplit((scheme, place, path, quote(parts.query, safe=_KEPT + "?[]"), ""))


def without_tracking(url: str) -> str:
    """Return a checked URL without the keys by which visitors are told apart."""
    parts = urlsplit(url)
    if not parts.query:
        return url
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    kept = [(key, value) for key, value in pairs if not _tracks(key.lower())]
    return url if len(kept) == len(pairs) else urlunsplit((*parts[:3], urlencode(kept), ""))


def joined(base: str, target: str) -> str:
    """Return where a link or a redirect of a page leads. Raises WebError."""
    try:
        return checked(urljoin(base, target.strip()))
    except ValueError as error:
        raise _invalid(target, "it cannot be read") from error


def origin_of(url: str) -> str:
    """Return scheme, host and port of a checked URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def host_of(url: str) -> str:
    """Return the host of a checked URL, without its port."""
    return urlsplit(url).hostname or ""


def _tracks(key: str) -> bool:
    return key in _TRACKERS or key.startswith(_TRACKING)


def _ascii(url: str, host: str) -> str:
    try:
        return host.encode("idna").decode("ascii").lower()
    except UnicodeError as error:
        raise _invalid(url, "its host is not a name") from error


def _invalid(url: str, why: str) -> WebError:
    return WebError(f"{url[:200]!r}: {why}", Code.InvalidInput)
