"""Whose name the calls of this process carry."""

from __future__ import annotations

import getpass
import os

from remit.settings import Settings


def principal(settings: Settings) -> str:
    """Who asks if no one else is named."""
    if settings.app.principal:
        return settings.app.principal
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"
