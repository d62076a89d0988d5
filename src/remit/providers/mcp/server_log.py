"""The log of a server: when it was connected and lost, and what it wrote to stderr, in a file that stays small.

Every process that uses a server of this name adds to the same file. Secrets are masked line by line. Of what comes in
one second only the beginning and the last lines are decoded, masked and written, and the rest is counted: a server that
writes megabytes does not wait until they are masked.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.clock import isoformat
from remit.process.child import Tail
from remit.process.environment import without
from remit.redact import PieceMask, mask
from remit.regex import regex
from remit.settings.places import former

if TYPE_CHECKING:
    from remit.clock import Clock

_LONGEST: Final = 8 * 1024
"""Bytes of a line; what is longer goes on in the next."""
_BEYOND: Final = 1024
"""Bytes that are read on behind the end of a long line, to see whether a secret goes on there."""
_TRIES: Final = 64
_BETWEEN: Final = regex(rb"[^\w.~+/=:-]+")
"""Runs of characters that no token holds."""
_SHORT: Final = 3
"""Characters of a line of a secret that is not masked by itself."""
SECOND_S: Final = 1.0
"""Seconds after which what a flood ended with is written."""
_A_SECOND: Final = 128 * 1024
"""Bytes from the beginning of a second that are written."""
_AROUND: Final = 32 * 1024
"""Bytes of the end of a flood that are masked, so that a secret that begins before its last lines is seen."""
_LAST: Final = 8 * 1024
"""Characters of the last lines of a flood that are written."""
_log: Final = logging.getLogger("remit.mcp")


class ServerLog:
    """Adds to a file, and moves it away once it holds half of what is kept."""

    def __init__(self, path: Path, cap: int, clock: Clock) -> None:
        self._path = path
        self._cap = cap
        self._clock = clock
        self._rest = b""
        self._until = float("-inf")
        self._room = 0
        self._flood: _Flood | None = None
        self._secrets: list[str] = []
        self._mask = PieceMask()
        self.secrets: list[str] = []
        """Values of the server's environment that a keyring gave, whatever their names are."""

    @property
    def flooded(self) -> bool:
        """Return whether something was left out that `settle` has to tell of, a second later."""
        return self._flood is not None

    def feed(self, data: bytes, secrets: list[str]) -> None:
        """Take what a server wrote to stderr; `secrets` were given to it."""
        if not self._cap:
            return
        self._secrets = secrets
        now = self._clock.monotonic()
        if now >= self._until:
            self.settle()
            self._until, self._room = now + SECOND_S, _A_SECOND
        if self._flood is None and len(data) > self._room:
            end = data.rfind(b"\n", 0, self._room) + 1 or self._room
            self._take(data[:end])
            self._flood, self._rest = _Flood(self._rest), b""
            self._room, data = 0, data[end:]
        if self._flood is not None:
            self._flood.feed(data)
        else:
            self._room -= len(data)
            self._take(data)

    def settle(self) -> None:
        """Say how much was left out, and write what came last."""
        if self._flood is None:
            return
        lines, self._rest = self._flood.ended()
        if self._flood.cut:
            self._mask = PieceMask()  # a key that had begun ended in what is left out, or before what is shown
        shown = _last(self._masked(lines)) if self._flood.cut else self._masked(lines)
        if left_out := self._flood.left_out(len(shown)):
            self._write([f"remit: {left_out}"])
        self._write(shown)
        if not self._flood.midway:
            self._flood = None

    def note(self, text: str) -> None:
        """Take a line of ours, after what the server wrote last."""
        self.settle()
        if self._rest:
            self._take(b"\n")
        if self._cap:
            self._write([f"remit: {mask(text)}"])

    def _take(self, data: bytes) -> None:
        """Write whole lines, all of them at once."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        secrets = _in_lines(self._secrets)
        beyond = max(_BEYOND, *(len(secret.encode()) for secret in secrets), 0)
        while len(self._rest) > _LONGEST + beyond:
            end = _end(self._rest[: _LONGEST + beyond], secrets)
            lines.append(self._rest[:end])
            self._rest = self._rest[end:]
        self._write(self._masked(lines))

    def _masked(self, lines: list[bytes]) -> list[str]:
        """Return lines as they are shown: to look for secrets in each line alone takes ten times as long."""
        if not lines:
            return []
        text = self._mask(without(_in_lines(self._secrets), b"\n".join(lines).decode(errors="replace")))
        return [line.rstrip() for line in text.split("\n")]

    def _write(self, lines: list[str]) -> None:
        head = f"{isoformat(self._clock.now())} {os.getpid()} "
        data = "".join(f"{head}{line}\n" for line in lines).encode()
        if not data:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            number = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                os.write(number, data[-self._cap :])
                full = os.fstat(number).st_size * 2 >= self._cap
            finally:
                os.close(number)
            if full:
                self._path.replace(former(self._path))
        except OSError as error:
            self._cap = 0
            _log.warning("%s: no more is kept of what the server writes: %s", self._path, error.strerror or error)


class _Flood:
    """The rest of a second, of which too much came: counted, and its end held. `rest` is a line that has no end yet."""

    def __init__(self, rest: bytes) -> None:
        self._tail = Tail(_AROUND)
        self._lines = 0
        self._reported = 0
        self.midway = False
        """Whether it is in a line whose beginning is gone, of which nothing may be shown."""
        self.feed(rest)

    @property
    def cut(self) -> bool:
        """Return whether its beginning is gone."""
        return self._tail.truncated

    def feed(self, data: bytes) -> None:
        """Take what came next."""
        self._tail.feed(data)
        self._lines += data.count(b"\n")

    def ended(self) -> tuple[list[bytes], bytes]:
        """Return its last whole lines, and the begin of the next."""
        data = self._tail.data
        start = data.find(b"\n") + 1 if self.cut else 0
        self.midway = self.cut and not start
        *lines, rest = [b""] if self.midway else data[start:].split(b"\n")
        return lines, rest

    def left_out(self, shown: int) -> str:
        """Return what is said of what is not shown, once; nothing if all is."""
        size, self._reported = self._tail.size - self._reported, self._tail.size
        lines, self._lines = max(0, self._lines - shown), 0
        if not self.cut or not size:
            return ""
        return f"left out: {lines:,} lines; {size:,} bytes came at once"


def _last(lines: list[str]) -> list[str]:
    """Return the last lines: at least one, and no more than are written."""
    room, start = _LAST, len(lines)
    while start and room > 0:
        start -= 1
        room -= len(lines[start]) + 1
    return lines[start:]


def _in_lines(secrets: list[str]) -> list[str]:
    """Return each line of a secret of several, such as a key in PEM: the log is masked line by line."""
    several = [part.strip() for secret in secrets if "\n" in secret for part in secret.splitlines()]
    return [*(secret for secret in secrets if "\n" not in secret), *(part for part in several if len(part) > _SHORT)]


def _masked(line: bytes, secrets: list[str]) -> str:
    return mask(without(secrets, line.decode(errors="replace")))


def _end(line: bytes, secrets: list[str]) -> int:
    """Return where a long line is cut: where both parts show what the whole shows, for half a secret is not masked."""
    whole = _masked(line, secrets)
    between = [match.end() for match in _BETWEEN.finditer(line, 0, _LONGEST)]
    ends: list[int] = [_LONGEST, *between[: -_TRIES - 1 : -1], *range(_LONGEST - 1, 0, -(_LONGEST // _TRIES))]
    for end in ends:
        if _masked(line[:end], secrets) + _masked(line[end:], secrets) == whole:
            return end
    return len(line)
