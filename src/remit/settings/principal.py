"""Whose name the calls of this process carry."""

from __future__ import annotations

from remit.settings import Settings
from remit.settings.sections.process import account


def principal(settings: Settings) -> str:
    """Return who asks if no one else is named."""
    return settings.app.principal or account()
