"""The folder that relative paths in settings are relative to, and a raw setting of a part."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple


class Base(NamedTuple):
    """A folder, and the home of the user."""

    folder: Path
    home: Path | None
    """The folder that a leading `~` stands for."""

    def path(self, text: str) -> Path:
        """The absolute path, symbolic links followed. Raises OSError, RuntimeError or ValueError."""
        if self.home is not None and (text == "~" or text.startswith("~/")):
            return Path(self.home, text[2:]).resolve()
        return Path(self.folder, text).resolve()


class PartSetting(NamedTuple):
    """A setting of a part, as it was written."""

    key: str
    value: Any
    source: str
    base: Base
    is_text: bool
    """True if it comes from the environment, and has to be read as its type."""
