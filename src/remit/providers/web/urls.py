"""URLs as this provider takes, compares and keeps them."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from remit.codes import Code
from remit.http import urls
from remit.providers.web.faults import WebError

_TRACKING: Final = ("utm_", "mc_", "pk_", "_hs", "vero_", "oly_", "wt_")
_TRACKERS: Final = frozenset(
    "fbclid gclid gclsrc dclid gbraid wbraid msclkid yclid igshid twclid ttclid mkt_tok".split()  # noqa: SIM905 - a word each
)


def checked(url: str) -> str:
    """Return the URL in the form in which it is requested. Raises WebError (InvalidInput) for any other address."""
    try:
        return urls.checked(url)
    except urls.InvalidUrlError as error:
        raise WebError(str(error), Code.InvalidInput) from error


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
        raise WebError(f"{target[:200]!r}: it cannot be read", Code.InvalidInput) from error


def origin_of(url: str) -> str:
    """Return scheme, host and port of a checked URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def host_of(url: str) -> str:
    """Return the host of a checked URL, without its port."""
    return urlsplit(url).hostname or ""


def _tracks(key: str) -> bool:
    return key in _TRACKERS or key.startswith(_TRACKING)
