"""Failures in a browser, as the causes of the tools contract: one table of Chromium's errors."""

from __future__ import annotations

import re
from typing import Final, Literal

from remit.codes import Code
from remit.errors import ProviderError
from remit.redact import line

GONE: Final = (
    "No page is open: the browser was closed, was idle for too long, or Remit was restarted. Call browser.navigate."
)
_TABLE: Final = (
    (
        r"Target (?:page, context or browser|closed)|has been closed|Target crashed|Page crashed",
        Code.ConnectionError,
        GONE,
    ),
    (r"net::ERR_NAME_NOT_RESOLVED", Code.dns_failed, "the name has no address"),
    (r"net::ERR_(?:CERT|SSL)_\w+", Code.tls_failed, "the certificate is not trusted, or TLS failed"),
    (r"net::ERR_(?:CONNECTION_)?TIMED_OUT", Code.timeout_connect, "it did not accept the connection in time"),
    (
        r"net::ERR_(?:CONNECTION|ADDRESS|TUNNEL|PROXY|SOCKET|EMPTY|INTERNET|NETWORK)_\w+",
        Code.connect_failed,
        "it cannot be reached, or closed the connection",
    ),
    (r"intercepts pointer events", Code.InvalidInput, "something else lies over the element; take a snapshot"),
    (r"Timeout \d+ms exceeded", Code.Timeout, "it was not done in time; take a snapshot to see what is there"),
    (r"Unknown key", Code.InvalidInput, "there is no such key; keys are named like Enter, Escape, Tab, ArrowDown, a"),
    (r"not an? <(?:input|select|textarea)>|Element is not", Code.InvalidInput, "the element cannot take this"),
)
_NET: Final = re.compile(r"net::ERR_\w+")


class BrowserError(ProviderError):
    """Something that the browser or a page did not do; `cause` says why."""

    def __init__(self, message: str, cause: Code = Code.InvalidInput, effect: Literal["", "unknown"] = "") -> None:
        super().__init__(message, cause=cause, effect=effect)


def browser_error(what: str, error: BaseException) -> BrowserError:
    """Return what an exception of Playwright means; its log, which holds command lines, is left out."""
    said = str(error)
    if isinstance(error, TimeoutError):
        return BrowserError(f"{what}: the page did not answer in time", Code.Timeout)
    for pattern, cause, words in _TABLE:
        if re.search(pattern, said):
            named = _NET.search(said)
            return BrowserError(
                words if words is GONE else f"{what}: {words}{f' ({named[0]})' if named else ''}", cause
            )
    first = said.partition("\nCall log")[0].partition("Browser logs")[0]
    cause = Code.NetworkError if "net::" in said else Code.InvalidInput
    return BrowserError(f"{what}: {line(first, 200)}", cause, "unknown")  # a click may have been done
