"""A program at a real pseudo-terminal, as a person would have it: what it shows is waited for, never a time."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.patience import PATIENCE_S

_CONTROL: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r")
_ANSWERS: Final = {"\x1b[6n": "\x1b[1;1R", "\x1b[c": "\x1b[?1;2c"}
"""What a terminal answers a program that asks where its cursor is, and what it can do."""
# A session's leader gets the terminal that it opens first as its own; only then does Ctrl-C become a signal.
_OWN_TERMINAL: Final = 'exec "$0" "$@" <"$REMIT_TEST_TTY" >"$REMIT_TEST_TTY" 2>&1'


class Terminal:
    """Runs a program at a terminal of a given size."""

    def __init__(
        self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], columns: int = 100, lines: int = 40
    ) -> None:
        self._master, slave = os.openpty()
        termios.tcsetwinsize(slave, (lines, columns))
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", _OWN_TERMINAL, *command],
            cwd=cwd,
            env={**env, "REMIT_TEST_TTY": os.ttyname(slave), "TERM": "xterm-256color"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.raw = ""
        self._seen = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        """Everything it wrote, without control sequences."""
        return _CONTROL.sub("", self.raw)

    def expect(self, pattern: str) -> re.Match[str]:
        """Wait until something new matches; later calls look behind it."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = re.search(pattern, self.text[self._seen :], re.MULTILINE)
            if found is not None:
                self._seen += found.end()
                return found
            if not self._more(deadline):
                msg = f"{pattern!r} did not come; after {self._seen} characters: {self.text[self._seen :]!r}"
                raise AssertionError(msg)

    def type(self, keys: str) -> None:
        """Press keys; `\\r` is Enter, `\\x03` Ctrl-C."""
        os.write(self._master, keys.encode())

    def enter(self, line: str) -> None:
        """Type a line and, once it is seen, Enter; a program may draw it in pieces, and move its cursor for spaces."""
        self.type(line)
        self.expect(r"\s*".join(map(re.escape, line.replace(" ", ""))))
        self.type("\r")

    def watch(self, seconds: float) -> None:
        """Look on for some time, as a person does who thinks."""
        deadline = time.monotonic() + seconds
        while self._more(deadline):
            pass

    def end(self) -> int:
        """Wait until the program has ended; its exit status."""
        deadline = time.monotonic() + PATIENCE_S
        while self._more(deadline):
            pass
        return self.process.wait(timeout=PATIENCE_S)

    def _more(self, deadline: float) -> bool:
        """Read what has come; False where the program is gone, or time is up."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            piece = os.read(self._master, 65_536)
        except OSError:  # the other side is closed
            return False
        text = piece.decode(errors="replace")
        self.raw += text
        for question, answer in _ANSWERS.items():
            if question in text:
                self.type(answer)
        return bool(piece)
