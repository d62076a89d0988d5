"""Where MCP clients keep their configuration on Linux and macOS, as their documentation says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

Client = Literal["claude-desktop", "claude-code", "cursor", "vscode", "codex"]
CLIENTS: Final[tuple[Client, ...]] = get_args(Client)
_EDITIONS: Final = ("Code", "Code - Insiders", "VSCodium")


class ClientPlace(NamedTuple):
    """A file that a client may have written."""

    client: Client
    file: Path


def usual_places(project: Path, env: Mapping[str, str], *, mac: bool) -> list[ClientPlace]:
    """Every file to look at, those of the project before those of the user; most will not be there."""
    files = [
        ClientPlace("claude-code", project / ".mcp.json"),
        ClientPlace("cursor", project / ".cursor/mcp.json"),
        ClientPlace("vscode", project / ".vscode/mcp.json"),
    ]
    if not env.get("HOME"):
        return files
    own: tuple[Client, ...] = ("claude-code", "claude-desktop", "cursor", "codex")
    files += [ClientPlace(client, file) for client in own if (file := file_of(client, env, None, mac=mac)) is not None]
    support = _support(env, mac=mac)
    for edition in _EDITIONS:
        user = support / edition / "User"
        files += [
            ClientPlace("vscode", file) for file in (user / "mcp.json", *sorted(user.glob("profiles/*/mcp.json")))
        ]
    return list(dict.fromkeys(files))  # the home folder may be the project


def file_of(client: Client, env: Mapping[str, str], project: Path | None, *, mac: bool) -> Path | None:
    """The file in which a client looks for its user's servers, or for those of a project; None: it has none."""
    if project is not None:
        names = {"claude-code": ".mcp.json", "cursor": ".cursor/mcp.json", "vscode": ".vscode/mcp.json"}
        return project / names[client] if client in names else None
    if not env.get("HOME"):
        return None
    home, support = Path(env["HOME"]), _support(env, mac=mac)
    return {
        "claude-code": Path(env.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json",
        "claude-desktop": support / "Claude/claude_desktop_config.json",
        "cursor": home / ".cursor/mcp.json",
        "codex": Path(env.get("CODEX_HOME") or home / ".codex") / "config.toml",
        "vscode": support / _EDITIONS[0] / "User/mcp.json",
    }[client]


def _support(env: Mapping[str, str], *, mac: bool) -> Path:
    """The folder in which desktop programs keep their own."""
    home = Path(env["HOME"])
    return home / "Library/Application Support" if mac else Path(env.get("XDG_CONFIG_HOME") or home / ".config")


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
