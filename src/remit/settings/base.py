"""What relative paths in settings are relative to."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Base(NamedTuple):
    """A folder, and the home of the user."""

    folder: Path
    home: Path | None
    """What a leading `~` stands for."""

    def path(self, text: str) -> Path:
        """The absolute path, symbolic links followed. Raises OSError, RuntimeError or ValueError."""
        if self.home is not None and (text == "~" or text.startswith("~/")):
            return Path(self.home, text[2:]).resolve()
        return Path(self.folder, text).resolve()
