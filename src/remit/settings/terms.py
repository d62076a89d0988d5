"""The terms that a tool or an MCP server gets in the sandbox: `sandbox = true`, or a table of these keys."""

from __future__ import annotations

from remit.process.enclosure import SandboxTerms


def terms_of(given: bool | SandboxTerms) -> SandboxTerms | None:
    """The terms behind a value; None for false."""
    if isinstance(given, SandboxTerms):
        return given
    return SandboxTerms() if given else None
