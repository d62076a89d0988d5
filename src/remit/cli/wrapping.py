"""A server that stands on a command line and in no file: how it is named, started, and where its calls are recorded."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Final

from remit.cli.context import State
from remit.settings.places import data_folder

_RUNNERS: Final = frozenset({"npx", "uvx", "node", "python", "python3", "uv", "run", "docker", "bunx", "pnpm", "dlx"})
_ANYBODY: Final = frozenset({"index", "main", "server", "mcp", "cli", "app", "start"})
"""Names of program files whose folder says whose they are."""
_FOLDERS: Final = frozenset({"dist", "build", "src", "bin", "lib"})
_LONGEST: Final = 40


def wrapped(name: str, words: Sequence[str], **more: Any) -> dict[str, Any]:
    """The settings under which this server is the only one; it sees the environment and folder that we see."""
    table = {
        "name": name,
        "command": [word.replace("${", "$${") for word in words],
        "cwd": str(Path.cwd()),
        "env": _passed_on(os.environ),
        **{key: value for key, value in more.items() if value},
    }
    return {"mcp.servers": [table], "mcp.servers_json": "[]"}


def recorded(state: State, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with a journal of the user's own where no project has one: a client may start us anywhere."""
    settings = state.settings(dict(flags))
    if settings.file is not None or settings.sources["journal.url"] != "default":
        return dict(flags)
    return {**flags, "journal.url": str(data_folder(os.environ) / "journal.db")}


def name_of(words: Sequence[str]) -> str:
    """A server's name made from its command: of `npx -y @scope/server-memory@1.2`, `memory`."""
    plain = [word for word in words if not word.startswith("-")]
    named = [word for word in plain if PurePath(word).name not in _RUNNERS] or plain or list(words)
    path = PurePath(re.sub(r"(?<=.)@[^/]*$", "", named[0]))
    stems = [path.name.removesuffix(".py").removesuffix(".js").removesuffix(".mjs"), *reversed(path.parent.parts)]
    telling = [stem for stem in stems if stem.lower() not in _ANYBODY | _FOLDERS and stem.strip("./")]
    parts = [part for part in re.split(r"[^a-z0-9]+", (telling or stems)[0].lower()) if part]
    useful = [part for part in parts if part not in {"mcp", "server"}] or parts
    return "_".join(useful)[:_LONGEST].strip("_") or "server"


def _passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """References to all the client gave us but our own settings: the server sees what it would see without us."""
    named = (name for name in environ if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII))
    return {name: f"${{{name}}}" for name in named if not name.startswith("REMIT_")}
