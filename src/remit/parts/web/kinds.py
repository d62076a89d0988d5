"""Events of the web. All of these are ours."""

from __future__ import annotations

from typing import ClassVar

from remit.journal.kinds.payload import Payload


class SearchBlocked(Payload, frozen=True, kw_only=True):
    """Ours, in the stream `search/BACKEND`: a search backend blocked Remit, and is not asked for a while."""

    KIND: ClassVar[str] = "search_blocked"
    cause: str
    """The code that it blocked with, such as `captcha_required`."""
    until: int
    """Microseconds since the Unix epoch until which it is not asked."""
