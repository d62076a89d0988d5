"""Notifications as the settings say: what delivers them beside a worker or a server, and what looks at them."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.capability import Check, Look
from remit.errors import JournalError, RemitError
from remit.notify.following import add_target
from remit.notify.notifications import Notifications
from remit.notify.sender import AT_ONCE, Sender
from remit.notify.target import read_targets
from remit.notify.work import NotificationWork

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.engines.port import Engine
    from remit.service.opening import NounOpening
    from remit.service.parts import Parts
    from remit.wiring.runtime import Runtime

_log: Final = logging.getLogger("remit.notify")
_AGAIN_S: Final = 5.0
"""Seconds until notifications begin again after a failure of the journal."""
_LAST_S: Final = 5.0
"""Seconds for messages that are on their way when the process stops."""


class Notifier(msgspec.Struct, frozen=True):
    """What tells the targets of one process."""

    work: NotificationWork
    engine: Engine

    async def begin(self) -> None:
        """Begin, or begin again after the engine's failure. Raises JournalError."""
        for target in self.work.routes:
            await add_target(self.work.journal, target)
        if self.engine.failure is None:
            self.engine.start()
        else:
            await self.engine.restart()


def open_notifier(runtime: Runtime) -> Notifier | None:
    """Return what delivers notifications in this process; None without `[[notify]]`. Raises SettingsError."""
    targets = read_targets(runtime.settings)
    if not targets:
        return None
    work = NotificationWork(runtime.journal, targets, _sender(runtime), _console(runtime))
    return Notifier(work, runtime.engine_for(work, concurrency=len(targets) + AT_ONCE))


def open_notifications(opening: NounOpening) -> Notifications:
    """The targets, to look at and to test. Raises SettingsError."""
    parts = opening.parts
    return Notifications(parts.journal, read_targets(parts.settings), _sender(parts), _console(parts))


def work_on_notifications(
    remit: Remit, _stop: asyncio.Event, _role: str
) -> Callable[[], Coroutine[Any, Any, None]] | None:
    """Return what tells the targets of `[[notify]]`; None without any. Raises SettingsError."""
    notifier = open_notifier(remit.runtime)
    return None if notifier is None else partial(keep_notifier, remit, notifier)


async def keep_notifier(remit: Remit, notifier: Notifier) -> None:
    """Tell the targets of `[[notify]]`, and begin again after a failure of the journal."""
    engine = notifier.engine
    try:
        while True:
            try:
                await remit.service.workers.rested(str, _AGAIN_S)
                await notifier.begin()
                await engine.stopped()
            except JournalError as error:
                _log.warning("notifications start again in %g s: %s", _AGAIN_S, error)
            await remit.clock.sleep(_AGAIN_S)
    finally:
        await engine.drain(_LAST_S)
        await engine.stop()


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


def _sender(parts: Parts) -> Sender:
    return Sender(os.environ, str(parts.settings.folder), parts.journal.clock)


def _console(parts: Parts) -> str:
    return parts.settings.serve.public_url.rstrip("/")
