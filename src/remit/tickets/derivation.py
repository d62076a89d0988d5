"""Which tickets are derived from others, and what deriving one ended with. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from remit.codes import Code


class Derivation(msgspec.Struct, frozen=True, kw_only=True):
    """Which tickets are derived."""

    replies: bool = False
    """Derive REPLY tickets (`ENABLE_REPLY_DERIVATION`)."""
    tool_only: bool = False
    """Stop after TOOL tickets, whatever their verdict."""


NO_DERIVATION: Final = Derivation()


class Derived(msgspec.Struct, frozen=True, kw_only=True):
    """What deriving ended with."""

    reason: str
    """Name of the code: one of the contract's reasons, or DERIVE_FAILED."""
    ticket: str = ""

    @property
    def ok(self) -> bool:
        """Return whether the derived ticket exists now."""
        return self.reason in _DERIVED


_DERIVED: Final = frozenset({Code.created.name, Code.idempotent.name, Code.recovered_orphan.name})
