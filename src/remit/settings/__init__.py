"""Frozen settings and their one loader: defaults < remit.toml < environment < flags."""

from __future__ import annotations

from remit.settings.loader import load, override
from remit.settings.model import Explained, Settings
from remit.settings.table import SettingDoc, documented

__all__ = ["Explained", "SettingDoc", "Settings", "documented", "load", "override"]
