"""Showing how a server's tools differ from their pin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.cli.tables import moment
from remit.cli.text import clean, one_line

if TYPE_CHECKING:
    from remit.cli.context import State
    from remit.service.mcp import ServerDiff, ToolDiff
    from remit.tools.pins import Pin

_STYLES: Final = {"+": "ok", "-": "failed"}
_AROUND: Final = 3
"""Lines of a definition that are shown around each change."""


def pin_shown(server: str, pin: Pin) -> dict[str, Any]:
    """Return a new pin as JSON."""
    return {"server": server, "by": pin.by, "tools": pin.tools, "names_hash": pin.names_hash}


def plain(found: ServerDiff) -> dict[str, Any]:
    """The differences as JSON."""
    return {
        "server": found.server,
        "pinned_at": found.pin.at,
        "pinned_by": found.pin.by,
        "digest": found.digest,
        "changes": msgspec.to_builtins(found.changes),
        "tools": msgspec.to_builtins(found.tools),
    }


def show(state: State, found: ServerDiff) -> None:
    """The differences for people, every changed word of them."""
    out = state.output.out
    pin = found.pin
    since = f"since {moment(pin.at)}, when {one_line(pin.by)} took them ({pin.how.replace('_', ' ')})"
    if not found.changes:
        out.line(f"nothing has changed in {found.server} {since}")
        return
    counts = [f"{len(names)} {how}" for how, names in msgspec.structs.asdict(found.changes).items() if names]
    out.line(out.style(f"{found.server}: {', '.join(counts)} {since}", "bold"))
    for tool in found.tools:
        drift = f" ({tool.drift.replace('_', ' ')})" if tool.drift else ""
        out.line()
        out.line(f"{out.style(tool.how, 'warn')} {one_line(tool.name)}{drift}")
        for line in _near(tool):
            out.line("  " + out.style(clean(line), _STYLES.get(line[0], "dim")))


def _near(tool: ToolDiff) -> list[str]:
    """The lines that differ, and a few around each."""
    differs = [number for number, line in enumerate(tool.lines) if line[0] != " "]
    near = {number + offset for number in differs for offset in range(-_AROUND, _AROUND + 1)}
    shown: list[str] = []
    for number, line in enumerate(tool.lines):
        if number in near:
            shown.append(line)
        elif not shown or shown[-1] != "  …":
            shown.append("  …")
    return shown
