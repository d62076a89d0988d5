"""The acts of a remit.toml that its folder must be trusted for.

Every setting counts, but those listed here as harmless: a new setting needs trust until someone has thought about it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from remit.errors import SettingsError
from remit.regex import regex
from remit.settings import Settings
from remit.settings.file import MAX_BYTES, read_plain
from remit.settings.table import table

if TYPE_CHECKING:
    from remit.settings.mcp import McpServer

HARMLESS: Final = frozenset({
    "evidence.inline_limit_bytes", "evidence.max_items_per_report", "evidence.raw_limit_bytes", "fs.max_read_bytes",
    "jobs.code_version", "jobs.concurrency", "jobs.drain_seconds", "jobs.lease_seconds", "jobs.mismatch",
    "limits.tools", "mcp.drain_ms", "mcp.grace_ms", "mcp.pins_file", "mcp.timeout_ms", "mcp.untrusted_input",
    "models.at_once", "models.day_cents", "models.day_tokens", "models.patience_seconds", "output.color",
    "policy.tests", "readiness.required", "tools.max_value_bytes", "tools.untrusted_output",
})  # fmt: skip
"""Settings that run nothing, allow nothing, send nothing and lead nowhere, whatever their value."""
_UNREADABLE: Final = b"\0"
"""Stands for a file that cannot be read: it is of no form."""
_VARIABLE: Final = regex(r"(?<!\$)\$\{([A-Za-z_]\w*)")
_STRICTER: Final = frozenset({"ask", "deny"})


_beside: Final[dict[str, str]] = {}


def declare_files(references: Mapping[str, str]) -> None:
    """Make known the settings files that parts read beside remit.toml, by name in its folder.

    The struct of each says with `acts` what the file's bytes would do, each act as the end of "It would …".
    """
    _beside.update(references)


class SettingsClaim(msgspec.Struct, frozen=True):
    """One thing that a settings file would do."""

    key: str
    """The setting."""
    text: str
    """The act, as the end of "It would …"."""


def claims(settings: Settings, env: Mapping[str, str]) -> tuple[SettingsClaim, ...]:
    """Everything that the files would do and that needs trust, in the order of the settings; none without a file."""
    keys = [key for key, source in settings.sources.items() if source == str(settings.file) and key not in HARMLESS]
    linked = settings.sources["journal.url"] == "default" and list(_journal(settings, env))
    links = [SettingsClaim("journal.url", f"{text}, through a link") for text in linked or ()]
    files = [file for file in beside_in(settings) if file.name not in settings.doubted]
    beside = [SettingsClaim(file.name, text) for file in files for text in acts_of(file.name, _content(file))]
    return (*links, *(SettingsClaim(key, text) for key in keys for text in _texts(key, settings, env)), *beside)


def beside_in(settings: Settings) -> list[Path]:
    """Return the other settings files that the folder has."""
    return [settings.folder / name for name in _beside if os.path.lexists(settings.folder / name)]


def acts_of(name: str, data: bytes) -> Iterator[str]:
    """Return what one of the other settings files would do that needs trust."""
    module, _, struct = _beside[name].partition(":")
    texts: Iterator[str] = getattr(import_module(module), struct).acts(data)
    return texts


def _content(file: Path) -> bytes:
    try:
        return read_plain(file, MAX_BYTES)
    except OSError:
        return _UNREADABLE


def _texts(key: str, settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    speak = _SPOKEN.get(key)
    if speak is not None:
        yield from speak(settings, env)
        return
    if key in settings.parts:
        yield f"set {key}"
        return
    section, _, name = key.partition(".")
    if (say := table()[key].about.claims) is not None:
        yield from say(settings.value(key, None))
        return
    yield f"set {key} to {msgspec.json.encode(settings.shown(section, name)).decode()}"


def _modules(settings: Settings, _env: Mapping[str, str]) -> Iterator[str]:
    for name in settings.app.modules:
        yield f"import {_near(name, settings.folder)}"


def _capabilities(settings: Settings, _env: Mapping[str, str]) -> Iterator[str]:
    for name in settings.app.capabilities:
        yield f"run the installed part {name}"


def _servers(settings: Settings, env: Mapping[str, str]) -> Iterator[str]:
    from remit.settings.mcp_servers import configured_servers  # noqa: PLC0415 - every look at a folder would pay for it

    try:
        servers = configured_servers(settings, env)
    except SettingsError:
        yield "start MCP servers that cannot be read"
        return
    for server in servers.enabled:
        if servers.origins[server.name] == str(settings.file):
            yield from _server(server)


def _server(server: McpServer) -> Iterator[str]:
    if server.url:
        yield f"connect to the MCP server {server.name} at {server.where}"
    else:
        yield f"start the MCP server {server.name}: {shlex.join(server.command)}"
    texts = (*server.command, *server.env.values(), *server.headers.values(), *(server.oauth or {}).values())
    secrets = sorted({name for text in texts for name in _VARIABLE.findall(text)})
    if secrets:
        yield f"give {server.name} {', '.join(f'${name}' for name in secrets)} of your environment"
    if server.tools or server.level != "L2":
        levels = ", ".join(f"{name} {level}" for name, level in {"all tools": server.level, **server.tools}.items())
        yield f"take the levels of {server.name} as {levels}"


def _rules(settings: Settings, _env: Mapping[str, str]) -> Iterator[str]:
    for number, rule in enumerate(settings.policy.rules, 1):
        if rule.get("effect") not in _STRICTER:
            tools = rule.get("tools")
            named = ", ".join(map(str, tools)) if isinstance(tools, list | tuple) else tools
            whatever = ", whatever text they come from" if rule.get("taint") == "allow" else ""
            yield f"allow without asking, by rule {rule.get('id', number)}: {named}{whatever}"


def _groups(settings: Settings, _env: Mapping[str, str]) -> Iterator[str]:
    if any(rule.get("effect") not in _STRICTER for rule in settings.policy.rules):
        yield f"say who and what rules mean by {', '.join(f'@{name}' for name in settings.policy.groups)}"


def _pots(settings: Settings, _env: Mapping[str, str]) -> Iterator[str]:
    if any(rule.get("effect") not in _STRICTER for rule in settings.policy.rules):
        yield f"say how much rules allow by the pots {', '.join(settings.policy.pots)}"


def _taint(settings: Settings, _env: Mapping[str, str]) -> Iterator[str]:
    if settings.policy.taint == "allow":
        yield "let untrusted text decide what the calls of agents reach"


def _trusted(settings: Settings, _env: Mapping[str, str]) -> Iterator[str]:
    if settings.tools.trusted_output:
        yield f"trust what these tools return: {', '.join(settings.tools.trusted_output)}"


def _always(settings: Settings, _env: Mapping[str, str]) -> Iterator[str]:
    if settings.tools.always_trusted_output:
        named = ", ".join(settings.tools.always_trusted_output)
        yield f"trust what these tools return, whatever text went in: {named}"


def _roots(settings: Settings, _env: Mapping[str, str]) -> Iterator[str]:
    for root in settings.fs.roots:
        if not Path(root).is_relative_to(settings.folder):
            yield f"let tools read and write below {root}"


def _anywhere(settings: Settings, _env: Mapping[str, str]) -> Iterator[str]:
    if settings.fs.search_anywhere:
        yield "let folder.search and folder.read look into any folder"


def _journal(settings: Settings, _env: Mapping[str, str]) -> Iterator[str]:
    shown = settings.journal.shown("url")
    if "://" in shown or not Path(shown).is_relative_to(settings.folder):
        yield f"keep the journal at {shown}"


_SPOKEN: Final[dict[str, Callable[[Settings, Mapping[str, str]], Iterator[str]]]] = {
    "app.modules": _modules,
    "app.capabilities": _capabilities,
    "mcp.servers": _servers,
    "policy.rules": _rules,
    "policy.groups": _groups,
    "policy.pots": _pots,
    "policy.taint": _taint,
    "tools.trusted_output": _trusted,
    "tools.always_trusted_output": _always,
    "fs.roots": _roots,
    "fs.search_anywhere": _anywhere,
    "journal.url": _journal,
}
"""Settings whose value says whether they need trust, and in which words."""


def _near(name: str, folder: Path) -> str:
    path = Path(name)
    return str(path.relative_to(folder)) if path.is_absolute() and path.is_relative_to(folder) else name
