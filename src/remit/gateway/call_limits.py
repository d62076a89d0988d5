"""Limits of calls, of which a list of tools needs one, and nothing else of the gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from remit.gateway.schema_gate import Mode


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds a call and what is kept of it."""

    schema_gate: Mode = "strict"
    """`off`, `warn` or `strict` (contract: tickets, "Gates")."""
    unprotected: tuple[str, ...] = ()
    """Tools of level L2 that may run in this process, by full name or glob."""
    trusted_output: tuple[str, ...] = ()
    """Tools whose results are trusted, by full name or glob, if what went in is; whatever they say of themselves."""
    always_trusted_output: tuple[str, ...] = ()
    """Tools whose results are trusted whatever went in."""
    untrusted_output: tuple[str, ...] = ()
    """Tools whose results are not; these count more."""
    max_value_bytes: int = 16 * 1024 * 1024
    confirm_expires_s: int = 86_400
    max_questions: int = 500
    """Questions of one principal that may be open at a time."""
    evidence_inline_bytes: int = 4_096
    evidence_raw_bytes: int = 1_000_000
    evidence_items: int = 50
    evidence_days: int = 7
    """0: forever."""
