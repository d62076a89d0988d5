"""Holds an answer until there is news, for some seconds, or until the client leaves or the server stops."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from remit.api.route import ApiRequest
from remit.tasks import first

T = TypeVar("T")


async def held(asked: ApiRequest, news: Coroutine[Any, Any, T], seconds: float | None) -> T | None:
    """Return what `news` returns; None if it does not within `seconds`, or if client or server are gone first."""
    found: T | None = (await first(news, asked.stopping.wait(), asked.left(), seconds=seconds))[0]
    return found
