"""Posts to servers that settings name: a collector, a log of anchors."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

from remit.redact import line

_TOLD: Final = 200
"""Bytes of a refusal that are shown."""


def post(url: str, body: bytes, headers: Mapping[str, str], timeout_s: float, longest: int) -> bytes:
    """Return what a server answers, so many bytes at most. Redirections are not followed.

    Raise OSError if there is no answer, or not a good one: HTTPError, with what the server said, if it said so.
    """
    request = urllib.request.Request(url, body, dict(headers))  # noqa: S310 - the caller looked at its scheme
    try:
        with _OPENER.open(request, timeout=timeout_s) as response:
            answer: bytes = response.read(longest)
            return answer
    except urllib.error.HTTPError as error:
        with error:
            error.msg = line(error.read(_TOLD).decode(errors="replace")) or error.msg
        raise
    except urllib.error.URLError as error:
        raise ConnectionError(str(error.reason)) from error
    except http.client.HTTPException as error:  # what answers speaks another language
        raise ConnectionError(f"no answer of HTTP: {type(error).__name__}") from error


class _Direct(urllib.request.HTTPRedirectHandler):
    """Follows no redirection, for the headers may be secret."""

    def redirect_request(self, *_: Any) -> None:
        """Leave the answer as it is."""


_OPENER: Final = urllib.request.build_opener(_Direct)
