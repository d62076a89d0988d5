"""Folders of the user's own, outside any project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def data_folder(env: Mapping[str, str]) -> Path:
    """Where a user's own things are kept: logins, what is trusted, the journal of wrapped servers."""
    return Path(env.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "remit"
