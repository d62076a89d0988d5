"""The section `[limits]`: its tables `[limits."PATTERN"]` bound how often and how many at once tools are called."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

import msgspec

from remit.errors import SettingsError
from remit.settings.base import Base
from remit.settings.section import About, Count, Seconds, Section, converted

_UNITS: Final = {"s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
"""Microseconds."""
_RATE: Final = re.compile(r"([1-9][0-9]{0,8})/(s|min|h|d)")
_RATE_FORM: Final = r"^[1-9][0-9]{0,8}/(s|min|h|d)$"
_Of = Annotated[
    str,
    msgspec.Meta(pattern=r"^(principal|recipe|tool|label:.+)$", description="principal, recipe, tool or label:NAME"),
]


def _read(tables: dict[str, dict[str, Any]], _base: Base) -> dict[str, dict[str, Any]]:
    """Return the tables as they are. Raise SettingsError for one that does not fit."""
    limits_of(tables)
    return tables


class LimitSettings(Section, frozen=True):
    """How often, and how many at once, tools may be called by all processes together."""

    tables: ClassVar[str] = "tools"

    tools: Annotated[
        dict[str, dict[str, Any]],
        About(
            'Written as `[limits."web.*"]`: `rate`, `burst`, `concurrency`, `breaker`, `breaker_seconds`, '
            "`wait_seconds`, `queue`, `each` and `share` of the tools that a pattern names, see [limits](limits.md).",
            entry="remit.settings.sections.limits:CallLimit",
            resolve=_read,
        ),
    ] = {}  # noqa: RUF012 - msgspec copies it


class CallLimit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limit of the tools that one pattern names."""

    rate: Annotated[
        str, msgspec.Meta(pattern=_RATE_FORM, description="calls in a time (s, min, h or d), as in 60/min")
    ] = ""
    """Calls in a time, such as `60/min`; empty: any number."""
    burst: Count | None = None
    """Calls that may come at once if there were none for long; None: as many as `rate` names."""
    concurrency: Count | None = None
    """Calls under way at once; None: any number."""
    breaker: Count | None = None
    """Failures to reach the tool, one after the other, after which no call is tried for a while; None: it is always."""
    breaker_seconds: Seconds = 30
    """Seconds until the next call is tried then."""
    wait_seconds: Annotated[int, msgspec.Meta(ge=0, le=3_600)] = 10
    """Seconds that a call waits for its turn."""
    queue: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 100
    """Calls that may wait in one process."""
    each: _Of | None = None
    """Whatever has this limit for itself: each `principal`, `recipe`, `tool` or `label:NAME`; None: all share it."""
    share: _Of = "principal"
    """Those who take turns while calls wait."""

    @property
    def period(self) -> int:
        """Microseconds between two calls at the rate; 0 without a rate."""
        parts = _RATE.fullmatch(self.rate)
        return max(1, _UNITS[parts[2]] // int(parts[1])) if parts else 0

    @property
    def room(self) -> int:
        """Calls that may come at once."""
        parts = _RATE.fullmatch(self.rate)
        return self.burst or (int(parts[1]) if parts else 1)


def call_limits(settings: LimitSettings) -> dict[str, CallLimit]:
    """Return the limits, by the pattern of their tools. Raises SettingsError."""
    return limits_of(settings.tools)


def limits_of(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, CallLimit]:
    """Return the limits that tables say. Raises SettingsError."""
    keys = f"Its keys are: {', '.join(CallLimit.__struct_fields__)}; a rate is written as 60/min."
    limits = {}
    for pattern, table in tables.items():
        limit = limits[pattern] = converted(table, CallLimit, f'limits."{pattern}"', keys)
        if not (limit.rate or limit.concurrency or limit.breaker):
            remedy = "Give it a rate, a concurrency or a breaker."
            raise SettingsError(f'limits."{pattern}" limits nothing', remedy=remedy)
    return limits
