"""Notifications as the settings say: what delivers them, and what looks at them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import msgspec

from remit.engines.local import LocalEngine
from remit.errors import SettingsError
from remit.notify.following import add_target
from remit.notify.notifications import Notifications
from remit.notify.sender import AT_ONCE, Sender
from remit.notify.target import read_targets
from remit.notify.work import NotificationWork

if TYPE_CHECKING:
    from remit.engines.port import Engine
    from remit.wiring.runtime import Runtime

_SCHEMES: Final = ("https://", "http://")


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
    """What delivers notifications in this process; None without `[[notify]]`. Raises SettingsError."""
    settings, journal = runtime.settings, runtime.journal
    targets = read_targets(settings)
    if not targets:
        return None
    work = NotificationWork(journal, targets, _sender(runtime), _console(runtime))
    concurrency = len(targets) + AT_ONCE
    return Notifier(work, LocalEngine(work, concurrency=concurrency, lease_s=settings.jobs.lease_seconds))


def notifications_of(runtime: Runtime) -> Notifications:
    """The targets, to look at and to test. Raises SettingsError."""
    return Notifications(runtime.journal, read_targets(runtime.settings), _sender(runtime), _console(runtime))


def _sender(runtime: Runtime) -> Sender:
    return Sender(os.environ, str(runtime.settings.folder), runtime.journal.clock)


def _console(runtime: Runtime) -> str:
    url = runtime.settings.serve.public_url
    if url and not url.startswith(_SCHEMES):
        why = "serve.public_url must begin with https:// or http://"
        raise SettingsError(why, remedy="Write, for example, https://remit.example.com.")
    return url.rstrip("/")
