"""From the runners of the settings to their providers: without any, nothing of them is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remit.errors import SettingsError

if TYPE_CHECKING:
    from remit.capability import Opening
    from remit.tools.provider import ToolProvider


def open_runners(opening: Opening) -> list[ToolProvider]:
    """Return one for each runner. Raises SettingsError or UsageError."""
    tables = opening.settings.value("runners.entries", default=())
    if not tables:
        return []
    from remit.providers.runners.settings import entries_of  # noqa: PLC0415 - only a process with runners needs it

    try:
        from remit.providers.runners.provider import RunnerProvider  # noqa: PLC0415 - an extra, and slow to import
    except ModuleNotFoundError as error:
        raise SettingsError(f"runners need {error.name}", remedy="Install it: pip install 'remit[models]'") from error
    return [RunnerProvider(entry, opening.clock) for entry in entries_of(tables)]
