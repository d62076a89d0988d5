"""Folders of the user's own, outside any project."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path


def data_folder(env: Mapping[str, str]) -> Path:
    """Return where a user's own things are kept: logins, what is trusted, the journal of wrapped servers."""
    return Path(env.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "remit"


def login_folder(env: Mapping[str, str]) -> Path:
    """Return the folder of logins at MCP servers, a file each (remit.settings.logins)."""
    return data_folder(env) / "mcp-auth"


def server_folders(env: Mapping[str, str]) -> Path:
    """Return what the folders lie in that MCP servers are started in unless they say another one."""
    return data_folder(env) / "mcp-servers"


def server_log(env: Mapping[str, str], name: str) -> Path:
    """Return the path of the log of an MCP server of this name."""
    return data_folder(env) / "mcp-logs" / f"{name}.log"


def former(log: Path) -> Path:
    """The part of a log before this file."""
    return log.with_name(f"{log.name}.1")


def server_folder(env: Mapping[str, str], project: Path, name: str) -> Path:
    """Return where a project's MCP server of this name is started: a folder of its own, not the project."""
    return server_folders(env) / f"{name}-{hashlib.sha256(os.fsencode(project)).hexdigest()[:16]}"
