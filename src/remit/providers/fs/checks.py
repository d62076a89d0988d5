"""Whether the folders that file tools may use are there, for `remit doctor`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from remit.capability import Check

if TYPE_CHECKING:
    from remit.settings import Settings


async def check_folders(settings: Settings) -> list[Check]:
    """One check for each root."""
    return [_check(root) for root in settings.fs.roots]


def _check(root: str) -> Check:
    if not Path(root).is_dir():
        return Check("folder", "fail", f"{root} is not a folder", "Correct fs.roots.")
    if not os.access(root, os.R_OK | os.X_OK):
        return Check("folder", "fail", f"{root} cannot be read", "Give yourself read access, or correct fs.roots.")
    return Check("folder", "ok", root if os.access(root, os.W_OK) else f"{root} (cannot be written to)")
