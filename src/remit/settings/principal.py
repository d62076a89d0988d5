"""Whose name the calls of this process carry."""

from __future__ import annotations

import getpass
import os

from remit.settings import Settings


def principal(settings: Settings) -> str:
    """Who asks where nobody else is named."""
    if settings.app.principal:
        return settings.app.principal
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"
