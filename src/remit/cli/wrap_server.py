"""A server that stands on a command line and in no file: how it is named, started, and where its calls are recorded."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Final
from urllib.parse import urlsplit

from remit.cli.context import CommandState
from remit.cli.options import pairs
from remit.errors import UsageError
from remit.http.guard import LOOPBACK
from remit.mcp_config.secrets import is_url, refuse_secrets
from remit.settings.expansion import expand
from remit.settings.pictures import address
from remit.settings.places import data_folder

_RUNNERS: Final = frozenset({"npx", "uvx", "node", "python", "python3", "uv", "run", "docker", "bunx", "pnpm", "dlx"})
_ANYBODY: Final = frozenset({"index", "main", "server", "mcp", "cli", "app", "start"})
"""Names of program files whose folder says whose they are."""
_FOLDERS: Final = frozenset({"dist", "build", "src", "bin", "lib"})
_HOSTS: Final = frozenset({"mcp", "api", "www", "server"})
"""Parts of a host's name that do not say whose it is."""
_LONGEST: Final = 40


def wrapped(name: str, words: Sequence[str], **more: Any) -> dict[str, Any]:
    """The settings under which this server is the only one: a command, or a URL and headers as `K=V`."""
    place = answering(name, words[0], pairs(words[1:], "a header")) if is_url(words[0]) else started(words)
    return alone(name, place, **more)


def alone(name: str, place: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The settings under which the server at a place is the only one."""
    table = {"name": name, **place, **{key: value for key, value in more.items() if value}}
    return {"mcp.servers": [table], "mcp.servers_json": "[]"}


def started(words: Sequence[str], names: Sequence[str] = ()) -> dict[str, Any]:
    """The place of a server that a command starts; it sees the folder and environment that we see.

    Of the environment it sees what `names` names, if any are given, beside what every program needs.
    """
    command = [word.replace("${", "$${") for word in words]
    return {"command": command, "cwd": str(Path.cwd()), "env": _passed_on(os.environ, names)}


def answering(
    name: str, url: str, headers: Mapping[str, str] | None = None, issuers: Sequence[str] = ()
) -> dict[str, Any]:
    """The place of a server that answers at a URL, with a login where no header authorizes. Raises UsageError.

    What is secret stands in the environment, as `${NAME}`: everyone on this machine can read a command line. What a
    server is asked is read by everyone on the way, unless it is this machine or by TLS.
    """
    place: dict[str, Any] = {"url": url, "headers": dict(headers or {})}
    if "authorization" not in {header.lower() for header in headers or ()}:
        place["oauth"] = {"issuer": " ".join(issuers)} if issuers else {}
    refuse_secrets(name, place, "nothing was started")
    _check_private(expand(url, os.environ, f"MCP server {name}"), "the server's")
    for issuer in issuers:
        _check_private(issuer, "the issuer's", "--issuer ")
    return place


def _check_private(url: str, whose: str, option: str = "") -> None:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme != "http" or (parts.hostname or "") not in LOOPBACK:
        raise UsageError(
            f"{option}{address(url)} is not an https URL, nor one of this machine",
            remedy=f"Give {whose} https URL; http is for 127.0.0.1, localhost and ::1.",
        )


def recorded(state: CommandState, flags: Mapping[str, Any]) -> dict[str, Any]:
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


def name_at(url: str) -> str:
    """A server's name made from its URL: of `https://mcp.linear.app/mcp`, `linear`."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        host = ""
    labels = [] if ":" in host else host.split(".")
    telling = [label for label in labels[: max(len(labels) - 1, 1)] if label not in _HOSTS and not label.isdigit()]
    name = "_".join(part for part in re.split(r"[^a-z0-9]+", max(telling, key=len, default="")) if part)
    return name[:_LONGEST].strip("_") or "server"


def _passed_on(environ: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """References to all the client gave us but our own settings, or to what is named of it."""
    known = (name for name in environ if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII))
    return {name: f"${{{name}}}" for name in known if not name.startswith("REMIT_") and (not names or name in names)}
