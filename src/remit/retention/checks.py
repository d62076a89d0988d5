"""Whether records are kept long enough, for `remit doctor`."""

from __future__ import annotations

from remit.capability import Check, Look
from remit.errors import SettingsError
from remit.retention.rule import FLOOR, read_rules

_SHORT = "six months is the least for a high-risk system (AI Act, articles 19 and 26)"


async def check_retention(look: Look) -> list[Check]:
    """One check for each rule, and one for evidence that goes sooner than its record."""
    try:
        rules = read_rules(look.settings)
    except SettingsError as error:
        return [Check("retention", "fail", error.message, error.remedy)]
    days = look.settings.evidence.retention_days
    checks = [
        Check("retention", "warn", f"{rule.words}, and {_SHORT}", f'Write keep = "{FLOOR}d" or more.')
        if rule.is_short
        else Check("retention", "ok", rule.words)
        for rule in rules
    ]
    if 0 < days < FLOOR:
        checks.append(
            Check(
                "retention",
                "warn",
                f"evidence.retention_days is {days}, and {_SHORT}",
                f"Leave it out, or set it to {FLOOR} or more; 0 is forever.",
            )
        )
    return checks
