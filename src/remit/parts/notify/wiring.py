"""Notifications as the settings say: what delivers them beside a worker or a server, and what looks at them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from remit.capability import Check, Look, Upkeep
from remit.errors import JournalError, RemitError, SettingsError
from remit.parts.notify.notifications import Notifications, TargetView, add_target
from remit.parts.notify.people import read_directory, read_targets
from remit.parts.notify.sender import AT_ONCE, Sender
from remit.parts.notify.target import check_secret
from remit.parts.notify.work import NotificationWork
from remit.settings.expansion import expand

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.engines.port import Engine
    from remit.http.access import Access
    from remit.http.guard import Guard
    from remit.http.router import PartMount
    from remit.parts.notify.channels import NotifyChannels
    from remit.parts.notify.devices import Devices
    from remit.parts.notify.sender import AttemptEnd, Notice
    from remit.parts.notify.target import NotifyTarget
    from remit.service.noun_means import NounOpening
    from remit.service.parts import Parts
    from remit.settings import Settings
    from remit.wiring.runtime import Runtime

PART: Final = "notify"
_LAST_S: Final = 5.0
"""Seconds for messages that are on their way when the process stops."""


class Notifier(msgspec.Struct, frozen=True):
    """What tells the targets of one process."""

    work: NotificationWork
    engine: Engine

    async def run(self, _tell: Callable[[str], object]) -> None:
        """Tell the targets until cancelled. Raises JournalError."""
        try:
            await self._begin()
            await self.engine.stopped()
        except asyncio.CancelledError:
            await self.engine.drain(_LAST_S)
            await self.engine.stop()
            raise

    async def _begin(self) -> None:
        """Begin, or begin again after the engine's failure. Raises JournalError."""
        for target in self.work.routes:
            await add_target(self.work.journal, target)
        if self.engine.failure is None:
            self.engine.start()
        else:
            await self.engine.restart()


def open_notifier(runtime: Runtime) -> Notifier | None:
    """Return what delivers notifications in this process; None without `[[notify]]`. Raises SettingsError."""
    targets = _targets(runtime.settings)
    if not targets:
        return None
    channels = _channels(runtime) if any(target.answerable for target in targets) else None
    directory = read_directory(runtime.settings)
    work = NotificationWork(runtime.journal, targets, _sender(runtime), _console(runtime), channels, directory)
    return Notifier(work, runtime.engine_for(work, concurrency=len(targets) + AT_ONCE))


def _targets(settings: Settings) -> tuple[NotifyTarget, ...]:
    """Return the targets. Raises SettingsError, also where a secret is too short for its use."""
    targets = read_targets(settings)
    for target in targets:
        secret = _secret(target) if target.push else None
        if secret is not None:
            check_secret(target, secret)
    return targets


def _secret(target: NotifyTarget) -> str | None:
    """Return the secret of a target; None: it is not there, which an attempt says."""
    try:
        return expand(target.secret, os.environ, target.name)
    except SettingsError:
        return None


def _channels(runtime: Runtime) -> NotifyChannels:
    from remit.parts.notify.answers import ChannelAnswers  # noqa: PLC0415 - few targets can be answered
    from remit.parts.notify.channels import NotifyChannels  # noqa: PLC0415 - few targets can be answered

    journal, service = runtime.journal, runtime.service
    answers = ChannelAnswers(service, journal, read_directory(runtime.settings).accounts)
    return NotifyChannels(service, journal, runtime.services.confirmations.proofs, answers, os.environ)


def open_mounts(remit: Remit, _guard: Guard) -> list[PartMount]:
    """Return what `remit serve` answers at for channels. Raises SettingsError."""
    every = _targets(remit.settings)
    targets = [target for target in every if target.slack]
    if not targets and not any(target.push for target in every):
        return []
    from remit.http.router import PartMount  # noqa: PLC0415 - only a server needs it
    from remit.pages.entry import NOBODY  # noqa: PLC0415 - only a server needs it
    from remit.parts.notify.pages import SCRIPTS, Scripts  # noqa: PLC0415 - only a server needs it
    from remit.parts.notify.slack import PATH, SlackPart  # noqa: PLC0415 - only a server needs it

    async def stranger(_headers: Mapping[str, str]) -> Access:
        return NOBODY

    slack = PartMount(PATH, SlackPart(remit.runtime.journal, targets, os.environ), None, stranger)
    return [slack, PartMount(SCRIPTS, Scripts(), None, stranger)]


def open_notifications(opening: NounOpening) -> Notifications:
    """The targets, to look at and to test. Raises SettingsError."""
    parts = opening.parts
    targets, directory = _targets(parts.settings), read_directory(parts.settings)
    return Notifications(parts.journal, targets, _sender(parts), _console(parts), directory)


def work_on_notifications(remit: Remit, _stop: asyncio.Event, _role: str) -> Upkeep | None:
    """Return what tells the targets of `[[notify]]`; None without any. Raises SettingsError."""
    notifier = open_notifier(remit.runtime)
    return None if notifier is None else Upkeep(PART, notifier.run)


async def check_targets(look: Look) -> list[Check]:
    """One check for each target."""
    try:
        async with look.open() as remit:
            views = await remit.service.notifications.views()
    except JournalError:  # which has a check of its own
        return []
    except RemitError as error:
        return [Check.failed("notify", error)]
    return [_check(view) for view in views]


def _check(view: TargetView) -> Check:
    if not (view.fails or view.deaf):
        return Check("notify", "ok", f"{view.target}: {view.where}")
    finding = f"does not take messages: {view.fails}" if view.fails else f"does not say what is pressed: {view.deaf}"
    remedy = f"Correct it, and try it: remit notify test {view.target}"
    return Check("notify", "fail", f"{view.target} {finding}", remedy)


def _sender(parts: Parts) -> Sender:
    async def post(target: NotifyTarget, message: Notice, environ: Mapping[str, str]) -> AttemptEnd:
        if target.push:
            return await _devices(parts).send(target, message)
        from remit.parts.notify.channels import post  # noqa: PLC0415 - few targets can be answered

        return await post(target, message, environ)

    return Sender(os.environ, str(parts.settings.folder), parts.journal.clock, post)


def open_devices(opening: NounOpening) -> Devices:
    """Return the devices of people. Raises SettingsError."""
    return _devices(opening.parts)


def _devices(parts: Parts) -> Devices:
    try:
        from remit.parts.notify.devices import Devices  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        reason = f"push of [[notify]] needs {error.name}, which is not installed"
        raise SettingsError(reason, remedy="Install it: pip install 'remit[jwt]'") from error
    return Devices(parts.journal, _targets(parts.settings), os.environ)


def _console(parts: Parts) -> str:
    return parts.settings.serve.public_url.rstrip("/")
