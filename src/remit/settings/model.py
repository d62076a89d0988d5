"""The settings as loaded: every section by its name in remit.toml."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from remit.settings.file import NO_FILE, PartSetting, SettingsFile
from remit.settings.section import Section
from remit.settings.sections.calls import (
    ConfirmSettings,
    EvidenceSettings,
    LimitSettings,
    ModelSettings,
    PolicySettings,
    ToolSettings,
)
from remit.settings.sections.mcp import McpSettings
from remit.settings.sections.process import (
    AppSettings,
    ClientSettings,
    FsSettings,
    JobSettings,
    JournalSettings,
    OutputSettings,
    ReadinessSettings,
    ServeSettings,
)
from remit.settings.sections.secrets import SecretSettings

HIDDEN: Final = "(set)"
"""Stands for the value of a setting of a part that the core does not know."""


class Explained(NamedTuple):
    """One setting as it stands."""

    key: str
    value: Any
    source: str
    """`default`, `command line`, the name of an environment variable, or the path of a file."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings, as loaded: every path in them is absolute, every empty default filled in."""

    journal: JournalSettings
    app: AppSettings
    tools: ToolSettings
    limits: LimitSettings
    secrets: SecretSettings
    mcp: McpSettings
    fs: FsSettings
    policy: PolicySettings
    confirm: ConfirmSettings
    jobs: JobSettings
    models: ModelSettings
    evidence: EvidenceSettings
    readiness: ReadinessSettings
    serve: ServeSettings
    clients: ClientSettings
    output: OutputSettings

    file: Path | None
    """The remit.toml that was read."""
    folder: Path
    """The project folder: that file's, or the working folder if there is none."""
    working_folder: Path
    """The folder that relative paths in the environment and in flags count from."""
    sources: Mapping[str, str]
    """Where each setting came from, by key."""
    doubted: Collection[str] = ()
    """The settings, and other settings files of the folder by name, whose word does not count here."""
    guarded: bool = False
    """Whether another settings file of the folder counts only as someone trusted it (remit.trust.state)."""
    written: SettingsFile = NO_FILE
    """The remit.toml as it was when it was read."""
    declared: Mapping[str, Section] = msgspec.field(default_factory=dict)
    """The sections of the parts that declared theirs, by name: remit.settings.table."""
    parts: Mapping[str, PartSetting] = msgspec.field(default_factory=dict)
    """The text of the settings of parts that declared none, by key: remit.settings.parts."""

    def section(self, name: str) -> Section | None:
        """Return a section, by its name in remit.toml; None if there is none."""
        section: Section | None = self.declared.get(name) or getattr(self, name, None)
        return section

    def shown(self, section: str, name: str) -> Any:
        """Return the value of a setting without secrets. Raise KeyError if there is no such section."""
        section_found = self.section(section)
        if section_found is None:
            raise KeyError(section)
        return section_found.shown(name)

    def has_file(self, name: str) -> bool:
        """Return whether the folder has another settings file of this name, and its word counts here."""
        return name not in self.doubted and os.path.lexists(self.folder / name)

    def value(self, key: str, default: Any) -> Any:
        """Return a setting by its key; the default if the part is not here that declares it."""
        section, _, name = key.partition(".")
        return getattr(self.section(section), name, default)

    def explain(self) -> list[Explained]:
        """Every setting with its value and where that came from, in the order of the documentation; secrets masked."""
        rows = ((key, *key.split("."), source) for key, source in self.sources.items() if key not in self.parts)
        known = [Explained(key, self.shown(section, name), source) for key, section, name, source in rows]
        # Only the part knows which of its settings are secrets, and showing them does not load it.
        return known + [Explained(key, HIDDEN, written.source) for key, written in self.parts.items()]
