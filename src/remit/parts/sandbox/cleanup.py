"""Has a process wait for our end that deletes what we leave if we are killed; see `leftovers`."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from remit.parts.sandbox import leftovers

_PROGRAM: Final = Path(leftovers.__file__)
_PYTHON: Final = "/usr/bin/python3"
_FD: Final = 3
_PASSED_ON: Final = (
    "PATH",
    "HOME",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
)


class CleanupProcess:
    """The process that waits, for one process of ours."""

    def __init__(self) -> None:
        self.mark: Final = leftovers.mark_of(os.getpid())
        """The mark that everything that we make bears."""
        self._busy = threading.Lock()
        self._pid = 0
        self._fd = -1
        self._lines: set[str] = set()

    def begin(self) -> None:
        """Have it wait, before anything is made that could stay. Raises OSError."""
        with self._busy:
            if not self._waits():
                self._start()

    def tell(self, kind: Literal["folder", "cgroup", "container"], place: Path) -> None:
        """Say where we make folders or cgroups that bear our mark, or with which program containers. Raises OSError."""
        self.begin()
        line = f"{kind} {place}\n"
        if line not in self._lines and "\n" not in str(place):
            self._lines.add(line)
            self._say(line)

    def leave(self) -> None:
        """Let go of the pipe: in a process that was forked it would hide the end of the one it belongs to."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _waits(self) -> bool:
        if not self._pid:
            return False
        with suppress(ChildProcessError):
            return os.waitpid(self._pid, os.WNOHANG)[0] == 0
        return False

    def _start(self) -> None:
        self.leave()
        reading, self._fd = os.pipe2(os.O_CLOEXEC)
        python = sys.executable or _PYTHON
        try:
            self._pid = os.posix_spawn(
                python,
                [python, "-I", "-S", "-B", str(_PROGRAM), str(_FD)],
                passed_on(),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, reading, _FD),
                    *((os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(_FD)),
                ],
                setsid=True,
            )
        finally:
            os.close(reading)
        self._say(f"mark {self.mark}\n", *sorted(self._lines))

    def _say(self, *lines: str) -> None:
        with suppress(BrokenPipeError):  # it was killed just now: the next `begin` starts another
            os.write(self._fd, "".join(lines).encode("utf-8", "surrogateescape"))


def passed_on() -> dict[str, str]:
    """The variables that docker and podman need to find their service and their images."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


_processes: Final[list[CleanupProcess]] = []


def cleanup_process() -> CleanupProcess:
    """Ours."""
    if not _processes:
        _processes.append(CleanupProcess())
    return _processes[0]


def _forked() -> None:
    while _processes:
        _processes.pop().leave()


os.register_at_fork(after_in_child=_forked)
