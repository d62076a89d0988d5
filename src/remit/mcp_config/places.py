"""Where MCP clients keep their configuration on Linux and macOS, as their documentation says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

Client = Literal["claude-desktop", "claude-code", "cursor", "vscode", "codex"]
CLIENTS: Final[tuple[Client, ...]] = get_args(Client)
_EDITIONS: Final = ("Code", "Code - Insiders", "VSCodium")


class Place(NamedTuple):
    """A file that a client may have written."""

    client: Client
    file: Path


def usual_places(project: Path, env: Mapping[str, str], *, mac: bool) -> list[Place]:
    """Every file to look at, those of the project before those of the user; most will not be there."""
    found = [
        Place("claude-code", project / ".mcp.json"),
        Place("cursor", project / ".cursor/mcp.json"),
        Place("vscode", project / ".vscode/mcp.json"),
    ]
    if not env.get("HOME"):
        return found
    home = Path(env["HOME"])
    support = home / "Library/Application Support" if mac else Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    found += [
        Place("claude-code", Path(env.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"),
        Place("claude-desktop", support / "Claude/claude_desktop_config.json"),
        Place("cursor", home / ".cursor/mcp.json"),
        Place("codex", Path(env.get("CODEX_HOME") or home / ".codex") / "config.toml"),
    ]
    for edition in _EDITIONS:
        user = support / edition / "User"
        found += [Place("vscode", file) for file in (user / "mcp.json", *sorted(user.glob("profiles/*/mcp.json")))]
    return list(dict.fromkeys(found))  # the home folder may be the project


def client_of(file: Path) -> Client | None:
    """Whose file it is, by its name and folder; None where that does not say."""
    if file.name in {".mcp.json", ".claude.json"}:
        return "claude-code"
    if file.name == "claude_desktop_config.json":
        return "claude-desktop"
    if file.suffix == ".toml":
        return "codex"
    folders = file.absolute().parent.parts
    if ".cursor" in folders:
        return "cursor"
    return "vscode" if ".vscode" in folders or not set(_EDITIONS).isdisjoint(folders) else None
