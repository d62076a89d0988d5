"""As whom sandboxes run: never as root, even if Remit does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec

_ONLY_OURS: Final = 60_900
"""No system hands out a uid from 60578 to 61183 (systemd, "Users, Groups, UIDs and GIDs")."""
CLOSED: Final = (
    "Remit runs as root, and programs in the sandbox as another user. Run Remit as a plain user, or move it to where "
    "every user may read it."
)
"""The remedy for a folder that the sandbox's user cannot read."""


class UserIdentity(msgspec.Struct, frozen=True):
    """Which user a child becomes; None: it stays who we are."""

    uid: int | None = None
    gid: int | None = None

    def own(self, path: Path) -> None:
        """Give a file or folder to that user. Raises OSError."""
        if self.uid is not None:
            os.chown(path, self.uid, self.gid or self.uid, follow_symlinks=False)

    def admit(self, folder: Path) -> None:
        """Let that user pass a folder of ours, and no other. Raises OSError."""
        if self.uid is not None:
            os.chown(folder, -1, self.gid or self.uid)
        folder.chmod(0o700 if self.uid is None else 0o710)

    def make(self, folder: Path) -> None:
        """Make a folder, and those above it that are missing, for us and that user alone. Raises OSError."""
        for place in (*reversed(folder.parents[:3]), folder):
            if not place.exists():
                place.mkdir(0o700, parents=True, exist_ok=True)
                self.admit(place)

    def may(self, state: os.stat_result, mode: int) -> bool:
        """Return whether a file's own bits let that user do what `mode` says: 4 read, 1 pass."""
        who = 6 if state.st_uid == self.uid else 3 if state.st_gid == self.gid else 0
        return bool(state.st_mode >> who & mode)


def identity() -> UserIdentity:
    """Return the sandbox's user. Even within its own user namespace, root could write what the host obeys."""
    return UserIdentity(_ONLY_OURS, _ONLY_OURS) if os.geteuid() == 0 else UserIdentity()


def reachable(path: Path) -> bool:
    """Return whether the sandbox's user may pass the folders above a path, and read it, if it is not ourselves."""
    user = identity()
    if user.uid is None:
        return True
    try:
        place = path.resolve(strict=True)
        return user.may(place.stat(), 4) and all(user.may(folder.stat(), 1) for folder in place.parents)
    except OSError:
        return False
