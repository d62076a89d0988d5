"""A rule: how long which records are kept. What `[[retention]]` in remit.toml says, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec

from remit.clock import DAY
from remit.errors import SettingsError
from remit.jobs.plans.problem import EXPECTED, parse_duration
from remit.parts.retention.settings import RetentionSettings
from remit.settings.file import Base
from remit.settings.parts import settings_of
from remit.settings.section import converted

if TYPE_CHECKING:
    from remit.journal.event import StreamHead
    from remit.settings import Settings

Kind = Literal["job", "session", "ticket", "work", "schedule_day", "notification", "login", "push_subscription"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
FLOOR: Final = 183
"""Days that records of a high-risk AI system are kept at least: six months (AI Act, articles 19 and 26)."""


class RetentionRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[retention]]` table."""

    keep: str
    """The time from the last event on, such as `365d`."""
    kinds: tuple[Kind, ...] = KINDS
    """Only records of these kinds."""
    states: tuple[str, ...] = ()
    """Only records in one of these states; empty: any."""
    recipes: tuple[str, ...] = ()
    """Names or patterns of recipes and plans; empty: any."""
    labels: dict[str, str] = {}
    """Labels that the record must have."""
    archive: str = ""
    """The folder for evidence packages, written before anything goes; empty: none."""

    @property
    def time(self) -> int:
        """Return how long, in microseconds."""
        return (parse_duration(self.keep) or 0) * 1_000

    @property
    def is_short(self) -> bool:
        """Return whether it is less than six months."""
        return self.time < FLOOR * DAY

    @property
    def words(self) -> str:
        """Return which records are kept how long."""
        which = [", ".join(self.kinds), *self.states, *self.recipes, *(f"{k}={v}" for k, v in self.labels.items())]
        return f"{' '.join(which)}: {self.keep}"

    def fits(self, head: StreamHead) -> bool:
        """Return whether it is about this record."""
        return (
            head.kind in self.kinds
            and (not self.states or head.state in self.states)
            and (
                not self.recipes
                or any(fnmatchcase(head.labels.get("remit.name", ""), recipe) for recipe in self.recipes)
            )
            and self.labels.items() <= head.labels.items()
        )


def rule_for(rules: Sequence[RetentionRule], head: StreamHead, now: int) -> RetentionRule | None:
    """Return the rule by which a record may go now: of those that fit it, the one that keeps it longest."""
    fitting = [rule for rule in rules if rule.fits(head)]
    longest = max(fitting, key=lambda rule: rule.time, default=None)
    return longest if longest is not None and head.updated_at <= now - longest.time else None


def read_rules(settings: Settings) -> tuple[RetentionRule, ...]:
    """Return the rules of the settings. Raise SettingsError that names file, number and key."""
    source = settings.sources.get("retention.rules", "retention")
    tables = settings_of(settings, "retention", RetentionSettings).rules
    return tuple(
        _rule(table, f"{source}: retention number {number}", settings.folder) for number, table in enumerate(tables, 1)
    )


def _rule(table: Mapping[str, Any], where: str, folder: Path) -> RetentionRule:
    rule = converted(table, RetentionRule, where, "docs/audit.md shows the keys of a rule.")
    if parse_duration(rule.keep) is None:
        raise SettingsError(f"{where}: keep must be {EXPECTED}", remedy="Write, for example, 365d.")
    archive = str(Base(folder, None).path(rule.archive)) if rule.archive else ""
    return msgspec.structs.replace(rule, archive=archive)
