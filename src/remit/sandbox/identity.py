"""As whom sandboxes run: never as root, even if Remit does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

_ONLY_OURS: Final = 60_900
"""No system hands out a uid from 60578 to 61183 (systemd, "Users, Groups, UIDs and GIDs")."""
CLOSED: Final = (
    "Remit runs as root, and programs in the sandbox as another user. Run Remit as a plain user, or move it to where "
    "every user may read it."
)
"""The remedy for a folder that the sandbox's user cannot read."""


class Identity(NamedTuple):
    """Which user a child becomes; None: it stays who we are."""

    uid: int | None = None
    gid: int | None = None

    def own(self, path: Path) -> None:
        """Give a file or folder to that user. Raises OSError."""
        if self.uid is not None:
            os.chown(path, self.uid, self.gid or self.uid, follow_symlinks=False)


def identity() -> Identity:
    """Return the sandbox's user. Even within its own user namespace, root could write what the host obeys."""
    return Identity(_ONLY_OURS, _ONLY_OURS) if os.geteuid() == 0 else Identity()


def reachable(path: Path) -> bool:
    """Return whether any user may pass the folders above a path, and read it."""
    try:
        found = path.resolve(strict=True)
        if not found.stat().st_mode & 0o004:
            return False
        return all(folder.stat().st_mode & 0o001 for folder in found.parents)
    except OSError:
        return False
