"""Whether the folders that file tools may use are there, for `remit doctor`."""

from __future__ import annotations

import os
from pathlib import Path

from remit.capability import Check, Look


async def check_folders(look: Look) -> list[Check]:
    """One check for each root."""
    return [_check(root) for root in look.settings.fs.roots]


def _check(root: str) -> Check:
    if not Path(root).is_dir():
        return Check("folder", "fail", f"{root} is not a folder", "Correct fs.roots.")
    if not os.access(root, os.R_OK | os.X_OK):
        return Check("folder", "fail", f"{root} cannot be read", "Give yourself read access, or correct fs.roots.")
    return Check("folder", "ok", root if os.access(root, os.W_OK) else f"{root} (cannot be written to)")
