"""Reads remit.toml again beside a command that stays up: once it was changed, and on SIGHUP.

What was read last holds until something better is there: a file that is broken, gone, or not trusted as it is now,
changes nothing, and is looked at again until it is right.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from remit.errors import RemitError, SettingsError
from remit.redact import line
from remit.tasks import first

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.cli.context import CommandState
    from remit.settings import Settings

_log: Final = logging.getLogger("remit.settings")
PART: Final = "settings"
"""The settings, as `/health` shows them."""
LOOK_S: Final = 1.0
"""Seconds between two looks at the file; one that was changed is read at the second look, when it is written whole."""

Stamp = tuple[int, int, int] | None


async def keep_settings(
    state: CommandState,
    remit: Remit,
    flags: Mapping[str, Any],
    *,
    hangup: bool = False,
    arrived: Callable[[str], None] = lambda _server: None,
) -> None:
    """Keep the settings of `remit`, which was opened with `flags`, as its file says.

    With `hangup`, SIGHUP has the file read at once. `arrived` is told the name of each MCP server that is added. A
    process that began without a file reads none.
    """
    if remit.settings.file is not None:
        keeper = _Keeper(state, remit, flags, remit.settings.file, arrived)
        with _hangups(keeper.wanted, taken=hangup):
            await keeper.keep()


class _Keeper:
    """The settings of one process."""

    def __init__(
        self, state: CommandState, remit: Remit, flags: Mapping[str, Any], file: Path, arrived: Callable[[str], None]
    ) -> None:
        self.wanted = asyncio.Event()
        """The file is to be read, changed or not."""
        self._state, self._remit, self._flags = state, remit, dict(flags)
        self._file, self._arrived = file, arrived
        self._refusal = ""
        """The error of the last attempt to read it."""
        self._notice = ""

    async def keep(self) -> None:
        """Look at the file, until this is cancelled."""
        self._remit.service.health.report(PART)
        before = done = _stamp(self._file)
        if self._remit.settings.written.differs:
            done = None  # changed since it was read
        while True:
            await first(self._remit.clock.sleep(LOOK_S), self.wanted.wait())
            stamp = _stamp(self._file)
            whole, before = stamp == before, stamp
            if self.wanted.is_set() or self._refusal or (whole and stamp != done):
                self.wanted.clear()
                done = stamp
                await self._reread()

    async def _reread(self) -> None:
        try:
            difference = await self._remit.reread(self._settings(), self._arrived)
        except RemitError as error:
            self._tell(f"{error.code.name}: {error.message}")
            return
        self._tell("", difference.waiting)
        if difference.words:
            _log.warning("%s was read again: %s", self._file, difference.words)

    def _settings(self) -> Settings:
        """The settings as the file is now. Raises SettingsError, also if it is not trusted as it is now."""
        from remit.cli.trust_question import standing_of
        from remit.trust.state import untrusted

        try:
            settings = self._state.with_modules(self._state.settings(self._flags, file=self._file))
            standing = standing_of(settings, trusted=self._state.trust)
        except OSError as error:
            raise SettingsError(f"{self._file}: cannot be read: {error.strerror or error}") from error
        if not standing.settings_trusted:
            raise untrusted(standing)
        if settings.written.differs:
            raise SettingsError(f"{self._file} was changed while it was read")
        return settings

    def _tell(self, reason: str, waiting: tuple[str, ...] = ()) -> None:
        """Say in the log and in `/health` how the settings are, the log only of what is new."""
        text = ""
        if reason:
            text = f"{self._file} is not read, and the settings from before hold: {line(reason)}"
        elif waiting:
            text = f"{self._file} has other settings that need a restart: {', '.join(waiting)}"
        if text and text != self._notice:
            _log.log(logging.ERROR if reason else logging.WARNING, "%s", text)
        self._refusal, self._notice = reason, text
        self._remit.service.health.report(PART, text)


def _stamp(file: Path) -> Stamp:
    """Return what tells one version of a file from the next; None: it is not there."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def _hangups(wanted: asyncio.Event, *, taken: bool) -> Iterator[None]:
    """Set `wanted` on SIGHUP within the block; at a terminal the signal ends the command, as others do."""
    before = signal.getsignal(signal.SIGHUP)
    if not taken or (before is not signal.SIG_IGN and _has_terminal()):
        yield
        return
    loop = asyncio.get_running_loop()
    signal.signal(signal.SIGHUP, lambda _number, _frame: loop.call_soon_threadsafe(wanted.set))
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def _has_terminal() -> bool:
    """Return whether this process has a terminal, of whose end the signal would tell it."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
