"""docs/schedules.md: a schedule by a cron expression in a zone comes once in the night in which clocks go back."""

from here import project, remit, told

project()
assert told(
    "schedule",
    "add",
    "monthly",
    "triage",
    "--cron",
    "30 2 * * *",
    "--zone",
    "Europe/Berlin",
    "--input",
    '{"customer": "ada"}',
)
assert "2026-10-25 02:30:00+02:00\n2026-10-26 02:30:00+01:00" in remit(
    "schedule", "next", "monthly", "--from", "2026-10-25"
)
