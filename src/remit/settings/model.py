"""Every setting, in one place: its type and limits, its default, what it means, its environment names.

The loader, `remit config` and docs/configuration.md all read these classes; a setting exists nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from remit.redact import mask

Count = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Bytes = Annotated[int, msgspec.Meta(ge=1, le=2**40)]
EvidenceBytes = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
Seconds = Annotated[int, msgspec.Meta(ge=1, le=10 * 365 * 86_400)]
Texts = tuple[Annotated[str, msgspec.Meta(min_length=1)], ...]


class About(NamedTuple):
    """What the type of a setting does not say."""

    meaning: str
    env: tuple[str, ...] = ()
    """Environment names beside `REMIT_<SECTION>_<NAME>`, which comes first where several are set."""


class JournalSettings(msgspec.Struct, frozen=True):
    """Where everything is recorded."""

    url: Annotated[
        str,
        About(
            "The journal: a path, `sqlite:///path`, `postgresql://user:password@host/database?schema=remit` or "
            "`:memory:`. Empty: `.remit/journal.db` in the project folder.",
            env=("REMIT_JOURNAL",),
        ),
    ] = ""

    def __repr__(self) -> str:
        """Without the password."""
        return f"JournalSettings(url={mask(self.url)!r})"


class AppSettings(msgspec.Struct, frozen=True):
    """Your code, and who you are."""

    modules: Annotated[
        Texts,
        About(
            "Python files or dotted modules that define tools and recipes. Separated as in PATH in the environment.",
            env=("REMIT_MODULES",),
        ),
    ] = ()
    principal: Annotated[
        str,
        About("Who asks, as recorded with every call. Empty: the name of the OS user.", env=("REMIT_PRINCIPAL",)),
    ] = ""


class ToolSettings(msgspec.Struct, frozen=True):
    """Which tools there are and how strictly they are held to their schemas."""

    preferred_provider_order: Annotated[
        Texts,
        About("Which provider serves a name that several offer: the first that matches; `*` stands for any ending."),
    ] = ("builtin", "mcp_*", "stub")
    choose: Annotated[
        Literal["order", "safest"],
        About("How to choose between several providers of a name: by that order, or the tool that can do least."),
    ] = "order"
    schema_gate: Annotated[
        Literal["strict", "warn", "off"],
        About(
            "What becomes of a value that breaks its tool's schema: refused, reported, or not looked at.",
            env=("SCHEMA_GATE_MODE",),
        ),
    ] = "strict"
    no_mcp: Annotated[
        bool,
        About("Whether to do without MCP servers; scripted tools stand in for theirs.", env=("NO_MCP",)),
    ] = False
    max_value_bytes: Annotated[
        Bytes,
        About("The largest result of a tool, as JSON; a larger one is a failure."),
    ] = 16 * 1024 * 1024


class FsSettings(msgspec.Struct, frozen=True):
    """What the file tools may touch."""

    roots: Annotated[Texts, About("The folders that file tools see; nothing outside them can be named.")] = (".",)
    max_read_bytes: Annotated[Bytes, About("The largest file that file tools read.")] = 2_000_000


class PolicySettings(msgspec.Struct, frozen=True):
    """What may be called by whom."""

    rules: Annotated[
        tuple[dict[str, Any], ...],
        About("The rules, one `[[policy.rules]]` table each. A JSON array in the environment."),
    ] = ()
    tests: Annotated[
        tuple[dict[str, Any], ...],
        About("What the rules should say to a call, one `[[policy.tests]]` table each; `remit policy test` runs them."),
    ] = ()
    remembered: Annotated[
        bool,
        About("Whether approvals that a person chose to have remembered count as rules."),
    ] = True


class ConfirmSettings(msgspec.Struct, frozen=True):
    """How people are asked."""

    expires_seconds: Annotated[
        Seconds,
        About("How long a question may stay unanswered; after that the call is refused."),
    ] = 86_400


class JobSettings(msgspec.Struct, frozen=True):
    """How jobs run."""

    concurrency: Annotated[Count, About("Jobs that one worker runs at the same time.")] = 16
    lease_seconds: Annotated[
        Seconds,
        About("How long a job of a worker that vanished stays out of reach of others."),
    ] = 30
    mismatch: Annotated[
        Literal["warn", "fail"],
        About("What to do when a job resumes under other versions than it was recorded with."),
    ] = "warn"
    drain_seconds: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=86_400)],
        About("How long a worker that is told to stop waits for running calls to end."),
    ] = 20


class EvidenceSettings(msgspec.Struct, frozen=True):
    """What is kept of what tools found."""

    inline_limit_bytes: Annotated[
        EvidenceBytes,
        About("The largest piece of evidence kept within a report.", env=("EVIDENCE_INLINE_LIMIT_BYTES",)),
    ] = 4_096
    raw_limit_bytes: Annotated[
        EvidenceBytes,
        About("The largest piece of evidence stored beside a report.", env=("EVIDENCE_RAW_LIMIT_BYTES",)),
    ] = 1_000_000
    max_items_per_report: Annotated[
        Count,
        About("How many pieces of evidence a report may list.", env=("EVIDENCE_MAX_ITEMS_PER_REPORT",)),
    ] = 50
    retention_days: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=36_500)],
        About(
            "How long the evidence stored beside a report is kept; its digest is kept for ever, and with 0 so is it.",
            env=("EVIDENCE_RETENTION_DAYS",),
        ),
    ] = 7


class OutputSettings(msgspec.Struct, frozen=True):
    """What commands print."""

    color: Annotated[
        Literal["auto", "always", "never"],
        About(
            "Whether to colour; auto: on a terminal. Any `NO_COLOR` means never, any `FORCE_COLOR` means always.",
            env=("NO_COLOR", "FORCE_COLOR"),
        ),
    ] = "auto"


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
    fs: FsSettings
    policy: PolicySettings
    confirm: ConfirmSettings
    jobs: JobSettings
    evidence: EvidenceSettings
    output: OutputSettings

    file: Path | None
    """The remit.toml that was read."""
    folder: Path
    """The project folder: that file's, or the working folder where there is none."""
    sources: Mapping[str, str]
    """Where each setting came from, by key."""

    def explain(self) -> list[Explained]:
        """Every setting with its value and where that came from, in the order of the documentation; secrets masked."""
        places = ((key, *key.split("."), source) for key, source in self.sources.items())
        rows = ((key, getattr(getattr(self, section), name), source) for key, section, name, source in places)
        return [Explained(key, mask(value) if isinstance(value, str) else value, source) for key, value, source in rows]
