"""Ending children when we are killed: Linux sends a child a signal at the death of its parent, if the child asks it to.

The child asks through util-linux's `setpriv`, which becomes the program itself. Asking from a `preexec_fn` would run
Python between fork and exec, which may deadlock in a process with threads. Elsewhere, and without `setpriv`, a child
only sees that its stdin is closed.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

_PROBE_S: Final = 5.0
_ASK: Final = ("--pdeathsig", "KILL", "--")


def bound(command: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> list[str]:
    """The command that has the kernel kill `command` when the thread that starts it ends.

    It is `command` itself on a system that cannot. Raises OSError if the program cannot be started, because behind
    `setpriv` only its exit status would say so.
    """
    asking = _asking()
    return [*asking, _program(command[0], cwd, env), *command[1:]] if asking else list(command)


@cache
def _asking() -> tuple[str, ...]:
    """The words before a command; none if this system has none. Runs `setpriv` once, to see whether it knows how."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    if setpriv is None:
        return ()
    words = (setpriv, *_ASK)
    try:
        probe = subprocess.run([*words, setpriv, "--version"], capture_output=True, check=False, timeout=_PROBE_S)  # noqa: S603 - a program found on our own PATH
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return words if probe.returncode == 0 else ()


def _program(name: str, cwd: str, env: Mapping[str, str]) -> str:
    """The path of a program, found as `exec` finds it. Raises OSError."""
    if os.sep in name:
        path = Path(cwd or ".") / name
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        if not (path.is_file() and os.access(path, os.X_OK)):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        return name
    found = shutil.which(name, path=env.get("PATH", os.defpath))
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return found
