"""The output of a program, read as it comes: any bytes, lines without an end, more than anyone wants."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal

from remit.process.enclosure import Listener, Stream
from remit.sandbox.spec import Spec

_CHUNK: Final = 64 * 1024
_FLOOD: Final = 16
"""A program that writes so many times its limit is ended: it will not stop by itself."""


class Output:
    """One pipe's reader: keeps the first bytes, counts the rest."""

    def __init__(
        self, name: Literal["stdout", "stderr"], most: int | None, listener: Listener, flooded: Callable[[str], None]
    ) -> None:
        self.name = name
        self._most = most
        self._listener = listener
        self._flooded = flooded
        self._kept = bytearray()
        self._total = 0
        self._ended = asyncio.Event()
        self._fd = -1
        self._loop = asyncio.get_running_loop()

    def belongs(self, most: int, listener: Listener) -> None:
        """Keep so much for a run that begins now; nothing was written yet."""
        self._most = most
        self._listener = listener

    def follow(self, fd: int) -> None:
        """Read from a pipe, which is then ours to close."""
        os.set_blocking(fd, False)
        self._fd = fd
        self._loop.add_reader(fd, self._read)

    async def ended(self) -> Stream:
        """All of it, once every program that held the pipe is gone."""
        await self._ended.wait()
        return Stream(bytes(self._kept), self._total)

    def close(self) -> None:
        """Read no more."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        self._ended.set()

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        self._take(data)

    def _take(self, data: bytes) -> None:
        self._total += len(data)
        if self._most is None:
            self._listener(self.name, data)
            return
        wanted = data[: max(0, self._most - len(self._kept))]
        if wanted:
            self._kept += wanted
            with suppress(Exception):  # a listener that fails is no reason to lose output
                self._listener(self.name, wanted)
        if self._total > max(self._most, _CHUNK) * _FLOOD:
            self._flooded(f"{self.name}_bytes")


def outputs(spec: Spec, listener: Listener, flooded: Callable[[str], None]) -> tuple[Output, Output]:
    """The readers of a run's stdout and stderr."""
    lasts = spec.feed is not None
    return (
        Output("stdout", None if lasts else spec.limits.stdout_bytes, listener, flooded),
        Output("stderr", None if lasts else spec.limits.stderr_bytes, listener, flooded),
    )
