"""What a tool or an MCP server gets in the sandbox: `sandbox = true`, or a table of these keys."""

from __future__ import annotations

import msgspec


class SandboxTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The terms of a program of the operator's own that runs in the sandbox; `true` stands for none of these."""

    roots: tuple[str, ...] = ()
    """Folders and files of this machine that it can read, under their own paths."""
    writable: tuple[str, ...] = ()
    """Folders that it can also change."""
    network: tuple[str, ...] = ()
    """Hosts that it may reach by HTTP, as `host`, `host:port` or `*.domain`; empty: no network at all."""
    limits: dict[str, int] = {}
    """Limits by their names in `[sandbox]`, stricter than there."""


def terms_of(given: bool | SandboxTerms) -> SandboxTerms | None:
    """The terms behind a value; None for false."""
    if isinstance(given, SandboxTerms):
        return given
    return SandboxTerms() if given else None
