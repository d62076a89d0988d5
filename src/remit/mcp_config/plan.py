"""The plan of an import: every server that was found, what it becomes here, and what its user has to do."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from remit.errors import SettingsError
from remit.mcp_config.foreign import Foreign
from remit.mcp_config.secrets import SecretReplacer
from remit.regex import regex
from remit.settings.file import Base
from remit.settings.mcp import McpServer
from remit.settings.mcp_servers import read_server

_WHERE: Final = ("command", "cwd", "url", "env", "headers")
"""Fields that make two servers the same one."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One server that was found."""

    name: str
    """Its name here."""
    original: str
    """Its name in its file."""
    client: str
    file: str
    status: Literal["new", "known", "skipped"]
    """To be written; there already, the same; or of no use here."""
    transport: str = ""
    where: str = ""
    """The program, or the URL without secrets."""
    notes: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    """Environment variables to set, with what they stand for."""
    table: dict[str, Any] = {}
    """The table to write; not to be shown."""

    def __repr__(self) -> str:
        """Without what may be secret."""
        return f"Planned({self.original!r} -> {self.name!r}, {self.status})"


def plan(
    foreign_servers: Iterable[Foreign],
    existing: Sequence[McpServer],
    wanted: Sequence[str],
    base: Base,
    *,
    keep_secrets: bool,
) -> list[Planned]:
    """Say for each server what becomes of it; of those found only the `wanted`, by either name, or all without any."""
    cloak = SecretReplacer()
    known = list(existing)
    planned = []
    for foreign in foreign_servers:
        if not wanted or foreign.name in wanted or server_name(foreign.name) in wanted:
            outcome, server = _planned(
                foreign, carry(foreign, base.folder), known, base, None if keep_secrets else cloak
            )
            planned.append(outcome)
            known += [server] if server else []
    return planned


def _planned(
    foreign: Foreign, carried: Carried, known: list[McpServer], base: Base, cloak: SecretReplacer | None
) -> tuple[Planned, McpServer | None]:
    name = server_name(foreign.name)
    none = Planned(name=name, original=foreign.name, client=foreign.client, file=str(foreign.file), status="skipped")
    if carried.skipped:
        return replace(none, notes=(carried.skipped,)), None
    table, variables = _cloaked(name, carried, cloak)
    try:
        server = read_server({"name": name, **table}, name, base, str(base.folder))
    except SettingsError as error:
        return replace(none, notes=(error.message.removeprefix(f"{name} ({name}): "),)), None
    reached = replace(none, transport=server.transport, where=server.where)
    same = next((server_known for server_known in known if _is_same(server_known, server)), None)
    if same is not None:
        return replace(reached, name=same.name, status="known", notes=(f"{same.name} already exists",)), None
    server = replace(server, name=free_name(name, {server_known.name for server_known in known}))
    planned = replace(
        reached,
        name=server.name,
        status="new",
        notes=(*_renamed(foreign.name, name, server.name), *carried.notes),
        variables=variables,
        table={"name": server.name, **table},
    )
    return planned, server


def _renamed(original: str, name: str, free: str) -> list[str]:
    if free != name:
        return [f"the name {name} is taken: renamed to {free}"]
    if free != original:
        return [f"renamed to {free}: names are lower-case letters, digits and single underscores"]
    return []


def _cloaked(name: str, carried: Carried, cloak: SecretReplacer | None) -> tuple[dict[str, Any], dict[str, str]]:
    if cloak is None:
        return carried.table, carried.variables
    table, replaced = cloak.table(name, carried.table)
    return table, {**carried.variables, **{secret.variable: f"the secret in {secret.place}" for secret in replaced}}


def _is_same(server: McpServer, other: McpServer) -> bool:
    return all(getattr(server, field) == getattr(other, field) for field in _WHERE)


_STDIO: Final = "stdio"
_HTTP: Final = frozenset({"http", "streamable-http", "streamablehttp", "streamable_http"})


class Carried(NamedTuple):
    """The fate of an entry."""

    table: dict[str, Any]
    """Keys of a `[[mcp.servers]]` table without its name, secrets still in it; empty where it was skipped."""
    skipped: str
    """Why it cannot be used; empty where it can."""
    notes: tuple[str, ...]
    variables: dict[str, str]
    """Environment variables it needs, with what they stand for."""


def carry(foreign: Foreign, folder: Path | None = None) -> Carried:
    """Turn an entry into a table of the remit.toml in `folder`. What does not fit is said, never dropped in silence."""
    translation = EntryTranslation(foreign)
    entry = foreign.entry
    if "url" not in entry and isinstance(entry.get("httpUrl"), str):  # Gemini's word for streamable HTTP
        entry = {"url" if key == "httpUrl" else key: value for key, value in entry.items()}
    kind = _kind(entry)
    if kind not in {_STDIO, "http"}:
        return Carried({}, kind, (), {})
    keys = ("command", "args", "env", "cwd") if kind == _STDIO else ("url", "headers")
    table: dict[str, Any] = {}
    for key in keys:
        if entry.get(key) not in (None, "", [], {}):
            problem = _take(table, key, entry[key], translation)
            if problem:
                return Carried({}, problem, (), {})
    if kind == _STDIO:
        table["command"] = [table["command"], *table.pop("args", [])]
        if foreign.project is not None and foreign.project != folder:
            _place(table, foreign.project, translation)
    if foreign.disabled or entry.get("disabled") is True or entry.get("enabled") is False:
        table["disabled"] = True
    if foreign.disabled:
        translation.notes["it is disabled there, so it is imported as disabled"] = None
    others = [key for key in entry if key not in keys and entry[key] not in (None, "", [], {})]
    dropped = [key for key in others if key not in {"type", "transport", "disabled", "enabled"}]
    notes = [*translation.notes, *([f"not carried over: {', '.join(dropped)}"] if dropped else [])]
    return Carried(table, "", tuple(notes), translation.variables)


def _kind(entry: Mapping[str, Any]) -> str:
    """`stdio`, `http`, or why it is neither."""
    written = entry.get("type", entry.get("transport"))
    kind = written.lower() if isinstance(written, str) else ""
    if kind in _HTTP or (not kind and "command" not in entry):
        if isinstance(entry.get("url"), str) and entry["url"]:
            return "http"
        fields = ", ".join(key for key in entry if key not in {"type", "transport"})
        return "it has no command and no url" + (f", only {fields}" if fields else "")
    if kind in {_STDIO, ""}:
        return _STDIO if isinstance(entry.get("command"), str) and entry["command"].strip() else "it has no command"
    if kind == "sse":
        return "its transport is sse, which is not supported; ask whether the server also speaks streamable HTTP"
    return f"its type {kind} is not supported"


def _place(table: dict[str, Any], project: Path, translation: EntryTranslation) -> None:
    """Let the relative paths of a server count from the project that it was written for."""
    words = [*table["command"], *table.get("env", {}).values()]
    if "cwd" in table:
        if not table["cwd"].startswith(("/", "~", "$")):
            table["cwd"] = str(project / table["cwd"])
    elif any(word in {".", ".."} or word.startswith(("./", "../")) for word in words) or any(
        "/" in word and not word.startswith("/") and (project / word).exists() for word in words
    ):
        table["cwd"] = str(project)
        translation.notes[f"it runs in {project}, where its relative paths are"] = None


def _take(table: dict[str, Any], key: str, value: Any, translation: EntryTranslation) -> str:
    """Put a value into the table; why that is not possible, or nothing."""
    if key in {"env", "headers"}:
        if not isinstance(value, dict):
            return f"its {key} is not an object"
        table[key] = {
            name: _text(item, translation) for name, item in value.items() if isinstance(item, str | int | float)
        }
        for name in [name for name in value if name not in table[key]]:
            translation.notes[f"not carried over: {key} {name}, which is not text"] = None
    elif key == "args":
        if not isinstance(value, list) or not all(isinstance(item, str | int | float) for item in value):
            return "its args are not a list of texts"
        table[key] = [_text(item, translation) for item in value]
    elif isinstance(value, str):
        text = _text(value, translation)
        table[key] = text.replace("${HOME}", "~", 1) if key == "cwd" else text
    else:
        return f"its {key} is not text"
    return ""


def _text(value: str | float, translation: EntryTranslation) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return translation.text(value) if isinstance(value, str) else str(value)


_REFERENCE: Final = regex(r"\$\{([^}]*)\}")
_OURS: Final = regex(r"(?:env:)?[A-Za-z_]\w*(?::-[^}]*)?", re.ASCII)
_WORDS: Final = regex(r"[^A-Za-z0-9]+")


class EntryTranslation:
    """Turns the texts of one entry into ours, and remembers what has to be set for them."""

    def __init__(self, foreign: Foreign) -> None:
        self.notes: dict[str, None] = {}
        """The notes for its user, in order, each once."""
        self.variables: dict[str, str] = {}
        """Variables to set, and what they stand for."""
        self._foreign = foreign
        self._fixed = _fixed(foreign)

    def text(self, value: str) -> str:
        """A text with the references of its client turned into ours."""
        if self._foreign.client == "claude-desktop":
            if "${" in value:
                self.notes["Claude Desktop does not expand ${…}, so it is kept as it is"] = None
            return value.replace("${", "$${")
        return _REFERENCE.sub(self._reference, value)

    def _reference(self, match: re.Match[str]) -> str:
        inner = match[1]
        kind, separator, name = inner.partition(":")
        if inner in self._fixed:
            return self._fixed[inner]
        if kind == "input" and separator:
            return self._input(name)
        if _OURS.fullmatch(inner):
            return match[0]
        variable = _variable(inner)
        self.variables[variable] = f"what {match[0]} stood for"
        return f"${{{variable}}}"

    def _input(self, name: str) -> str:
        prompt_input = self._foreign.inputs.get(name, {})
        variable = _variable(name)
        default = prompt_input.get("default")
        if isinstance(default, str) and default and not prompt_input.get("password") and "}" not in default:
            return f"${{{variable}:-{default}}}"
        words = prompt_input.get("description")
        self.variables[variable] = words if isinstance(words, str) else f"what VS Code asks for as {name}"
        return f"${{{variable}}}"


def _fixed(foreign: Foreign) -> dict[str, str]:
    """Return what the editors' own variables stand for here."""
    if foreign.client not in {"cursor", "vscode"}:
        return {}
    fixed: dict[str, str] = {"userHome": "${HOME}", "pathSeparator": "/", "/": "/"}
    folder = foreign.file.absolute().parent
    if folder.name in {".cursor", ".vscode"}:
        project = folder.parent
        fixed |= {
            "workspaceFolder": str(project),
            "workspaceRoot": str(project),
            "workspaceFolderBasename": project.name,
        }
    return fixed


def _variable(text: str) -> str:
    name = _WORDS.sub("_", text).strip("_").upper()
    return f"_{name}" if name[:1].isdigit() else name or "VALUE"


_OTHERS: Final = regex("[^a-z0-9]+")
LONGEST: Final = 32
"""Characters, so that its tools' names still fit what models take."""


def server_name(name: str) -> str:
    """The nearest name of lower-case letters, digits and single underscores: `My Server` gives `my_server`."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return _OTHERS.sub("_", plain).strip("_")[:LONGEST].rstrip("_") or "server"


def free_name(name: str, taken: Container[str]) -> str:
    """The name, with the first number behind it that makes it free."""
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}_{number}", number + 1
    return candidate
