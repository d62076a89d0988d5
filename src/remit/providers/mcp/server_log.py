"""The log of a server: when it was connected and lost, and what it wrote to stderr, in a file that stays small.

Every process that uses a server of this name adds to the same file. Secrets are masked line by line.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from remit.clock import isoformat
from remit.process.environment import without
from remit.redact import mask
from remit.settings.places import former

if TYPE_CHECKING:
    from remit.clock import Clock

_LONGEST: Final = 8 * 1024
"""Bytes of a line; what is longer goes on in the next."""
_BEYOND: Final = 1024
"""Bytes that are read on behind the end of a long line, to see whether a secret goes on there."""
_TRIES: Final = 64
_BETWEEN: Final = re.compile(rb"[^\w.~+/=:-]+")
"""Runs of characters that no token holds."""
_SHORT: Final = 3
"""Characters of a line of a secret that is not masked by itself."""
_log: Final = logging.getLogger("remit.mcp")


class ServerLog:
    """Adds to a file, and moves it away once it holds half of what is kept."""

    def __init__(self, path: Path, cap: int, clock: Clock) -> None:
        self._path = path
        self._cap = cap
        self._clock = clock
        self._rest = b""
        self.secrets: list[str] = []
        """Values of the server's environment that a keyring gave, whatever their names are."""

    def feed(self, data: bytes, secrets: list[str]) -> None:
        """Take what a server wrote to stderr, whole lines of it at once; `secrets` were given to it."""
        if not self._cap:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        secrets = _in_lines(secrets)
        beyond = max(_BEYOND, *(len(secret.encode()) for secret in secrets), 0)
        while len(self._rest) > _LONGEST + beyond:
            end = _end(self._rest[: _LONGEST + beyond], secrets)
            lines.append(self._rest[:end])
            self._rest = self._rest[end:]
        if lines:  # all at once: to look for secrets in each line alone takes ten times as long
            self._write([line.rstrip() for line in _masked(b"\n".join(lines), secrets).split("\n")])

    def note(self, text: str, secrets: list[str] | None = None) -> None:
        """Take a line of ours, after what the server wrote last."""
        if self._rest:
            self.feed(b"\n", secrets or [])
        if self._cap:
            self._write([f"remit: {mask(text)}"])

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
