"""Migrations of arguments: what an earlier version of a tool was given, as today's version takes it.

A call that was recorded under an earlier version of its tool, and is to be made again, keeps the recorded arguments. A
migration brings them into today's form, so that the job can go on (setting `jobs.mismatch = "migrate"`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from remit.codes import Code
from remit.errors import NameInvalidError, UsageError

Adapt = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes recorded arguments and returns those of today; pure."""
_DIGEST: Final = "sha256:"
LIMIT_S: Final = 10.0
"""Seconds that a migration may take."""


class Migration:
    """The way in which arguments for one earlier version of a tool become arguments for today's."""

    def __init__(self, tool: str, recorded: str, adapt: Adapt) -> None:
        if not tool or not recorded:
            msg = "a migration names a tool and the version that it migrates from"
            raise NameInvalidError(msg, remedy='Write @migration("tool.name", recorded="1").')
        self.tool = tool
        self.recorded = recorded
        self.adapt = adapt
        self.__doc__ = adapt.__doc__

    def __call__(self, args: dict[str, Any]) -> dict[str, Any]:
        """Arguments for today's tool. Raises UsageError (INVALID_TOOL_ARGS) if the function fails or returns others."""
        try:
            adapted: object = self.adapt(args)
        except Exception as error:
            raise self._failed(f"{type(error).__name__}: {error}") from error
        if not isinstance(adapted, dict):
            raise self._failed(f"it returned {type(adapted).__name__}, not a dict")
        return adapted

    async def within(self, args: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Arguments for today's tool, made in a thread of its own: one that hangs or loops holds up no job.

        Raises UsageError (INVALID_TOOL_ARGS) as a call does, and if it takes longer than so many seconds.
        """
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[dict[str, Any]] = loop.create_future()

        def settle(result: dict[str, Any] | BaseException) -> None:
            if outcome.done():
                return
            if isinstance(result, BaseException):
                outcome.set_exception(result)
            else:
                outcome.set_result(result)

        def work() -> None:
            result: dict[str, Any] | BaseException
            try:
                result = self(args)
            except UsageError as error:
                result = error
            except BaseException as error:  # noqa: BLE001 - of code that is not ours: it ends the migration alone
                result = self._failed(f"{type(error).__name__}: {error}")
            with suppress(RuntimeError):  # the loop is closed, and nothing waits any more
                loop.call_soon_threadsafe(settle, result)

        thread = threading.Thread(target=work, name=f"remit:migration:{self.tool}", daemon=True)
        thread.start()
        try:
            async with asyncio.timeout(seconds):
                return await outcome
        except TimeoutError:
            _interrupt(thread)
            raise self._failed(f"it did not end within {seconds:g} s") from None

    def _failed(self, reason: str) -> UsageError:
        msg = f"{self.tool}: the migration from {self.recorded} failed: {reason}"
        return UsageError(msg, code=Code.INVALID_TOOL_ARGS, remedy="Fix the migration, then resume the job.")


def _interrupt(thread: threading.Thread) -> None:
    """End a thread that runs Python code; one that waits in C stays until the process ends."""
    if thread.ident is not None and thread.is_alive():
        import ctypes  # noqa: PLC0415 - for one that goes on too long

        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))


def migration(tool: str, *, recorded: str) -> Callable[[Adapt], Migration]:
    """Make a migration of a function that takes the recorded arguments and returns those of today.

    `recorded` is the earlier version that the tool declared, or the digest of the input schema that it had, as
    `remit replay` shows it (`sha256:…`).
    """
    return lambda adapt: Migration(tool, recorded, adapt)


class Migrations:
    """The migrations that a process knows."""

    def __init__(self, migrations: Iterable[Migration] = ()) -> None:
        self._migrations: dict[tuple[str, str], Migration] = {}
        for each in migrations:
            key = (each.tool, each.recorded.removeprefix(_DIGEST))
            if self._migrations.setdefault(key, each) is not each:
                msg = f"two migrations are for {each.tool} as of {each.recorded}"
                raise NameInvalidError(msg, remedy="Keep one of them.")

    def all(self) -> list[Migration]:
        """Return every migration, in the order in which they were registered."""
        return list(self._migrations.values())

    def find(self, tool: str, version: str, schema: str) -> Migration | None:
        """The migration for a tool as it was recorded: by its input schema's digest, else by its version."""
        if not self._migrations:
            return None
        exact = self._migrations.get((tool, schema.removeprefix(_DIGEST)))
        return exact if exact is not None else self._migrations.get((tool, version))
