"""Failures on the web, as the causes of the tools contract: one table of aiohttp's exceptions.

WebError (a ProviderError)
├── a page        dns_failed, connect_failed, tls_failed, timeout_connect, timeout_read, ssrf_blocked, http_403,
│                 http_429, content_too_large, unsupported_content_type, parse_failed, InvalidInput, NetworkError
└── a backend     WebBlocked (captcha_required, captcha_cooldown, http_403, http_429), WebProviderError, WebParseError
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import aiohttp

from remit.codes import Code
from remit.errors import ProviderError
from remit.http.addresses import BlockedAddressError
from remit.http.judging import BlockedSocketError
from remit.http.urls import place_of


class WebError(ProviderError):
    """A page or a search backend that gave no answer; `cause` says why, `blocked_by` what a site blocked it with.

    `headers` are those of a service that may say in them when it wants to be asked again.
    """

    def __init__(
        self, message: str, cause: Code, *, blocked_by: Code | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.blocked_by = blocked_by
        self.headers = headers or {}
        super().__init__(message, cause=cause, detail={"blocked_by": blocked_by.name} if blocked_by else None)


_TABLE: Final[tuple[tuple[type[BaseException], Code, str], ...]] = (
    (aiohttp.ClientConnectorDNSError, Code.dns_failed, "the name has no address"),
    (aiohttp.ClientConnectorCertificateError, Code.tls_failed, "the certificate is not trusted"),
    (aiohttp.ClientSSLError, Code.tls_failed, "TLS failed"),
    (aiohttp.ConnectionTimeoutError, Code.timeout_connect, "it did not accept the connection in time"),
    (aiohttp.SocketTimeoutError, Code.timeout_read, "it did not send its answer in time"),
    (TimeoutError, Code.timeout_read, "it did not send its answer in time"),
    (aiohttp.ClientConnectorError, Code.connect_failed, "it cannot be reached"),
    (aiohttp.ServerDisconnectedError, Code.connect_failed, "it closed the connection without an answer"),
    (aiohttp.InvalidURL, Code.InvalidInput, "it is not a URL"),
    (aiohttp.ClientPayloadError, Code.NetworkError, "the answer broke off"),
    (aiohttp.ClientError, Code.NetworkError, "the answer could not be read"),
    (OSError, Code.connect_failed, "it cannot be reached"),
)


def web_error(url: str, error: BaseException) -> WebError:
    """Return what an exception of a request means."""
    link: BaseException | None = error
    while link is not None:  # a refused address lies below what the connector made of it
        if isinstance(link, BlockedSocketError | BlockedAddressError):
            allow = f'; if it is one of yours, put "{place_of(url)}" into web.private'
            return WebError(f"{url}: {link}{allow}", Code.ssrf_blocked)
        link = getattr(link, "os_error", None) or link.__cause__ or link.__context__
    cause, words = next((cause, words) for kind, cause, words in _TABLE if isinstance(error, kind))
    return WebError(f"{url}: {words}", cause)
