"""Answers that leave over HTTP, told to parts that record them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, NamedTuple


class Read(NamedTuple):
    """An answer that leaves."""

    face: Literal["http", "page"]
    operation: str
    """The name of the route, or the path of the page."""
    names: Mapping[str, str]
    """The names in its path, such as that of a `job`."""
    principal: str
    """The reader; empty if the server knows no tokens."""


Reader = Callable[[Read], Awaitable[None]]
"""Is told of an answer before it leaves; what it raises is answered instead."""
