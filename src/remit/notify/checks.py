"""Whether the targets of `[[notify]]` take their messages, for `remit doctor`."""

from __future__ import annotations

from remit.capability import Check, Look
from remit.errors import JournalError, RemitError


async def check_targets(look: Look) -> list[Check]:
    """One check for each target."""
    try:
        async with look.open() as remit:
            views = await remit.service.notifications.views()
    except JournalError:  # which has a check of its own
        return []
    except RemitError as error:
        return [Check.failed("notify", error)]
    return [
        Check(
            "notify",
            "fail",
            f"{view.target} does not take messages: {view.fails}",
            f"Correct it, and try it: remit notify test {view.target}",
        )
        if view.fails
        else Check("notify", "ok", f"{view.target}: {view.where}")
        for view in views
    ]
