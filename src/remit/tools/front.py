"""The port that stands before the models of a program which a call runs, so that what it asks them passes the gate."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from remit.tools.provider import CallContext


class ServedModel(msgspec.Struct, frozen=True):
    """Where the model of a program is served, and on which terms the program may ask it."""

    wire: str
    """The provider whose wire it speaks: `openai`, `anthropic` or `google`."""
    url: str = ""
    """Its address, as the program would be told it; empty: that of the settings."""
    key: str = ""
    budget: Mapping[str, float] = {}
    """The `tokens`, `cost` (US dollars) and `calls` that the program may use."""
    gated: bool = False
    """Whether each of its tools passes a gate: one that did not is recorded."""


class FrontAddress(msgspec.Struct, frozen=True):
    """The address and the key that a program is told in the place of its provider's."""

    url: str
    key: str


class Front(Protocol):
    """Stands before the models of a program: what it asks them passes the gate, below the call that runs it."""

    def open(self, ctx: CallContext, model: ServedModel) -> AbstractAsyncContextManager[FrontAddress]:
        """Answer within the block. Raise ProviderError, or OSError if nothing can be listened at."""
        ...
