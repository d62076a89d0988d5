"""What probes are made of. Runs within the sandbox: the standard library alone, on Python 3.9 or newer.

A probe says what it got (it *leaked*), or says nothing or raises OSError (the sandbox *held*). It has to be harmless
also where nothing holds it: it asks with arguments that the kernel refuses after it has let the call in, opens without
writing, sends signal 0.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

Facts = dict[str, str]
"""What of the machine outside is tried to be reached."""
Try = Callable[[Facts], "str | None"]

STUCK_S: Final = 5
BAD: Final = 1
"""An address that nothing lies at: who follows it answers EFAULT."""
REFUSALS: Final = (errno.EPERM, errno.ENOSYS)
libc = ctypes.CDLL(None, use_errno=True)


class Probe(NamedTuple):
    group: str
    title: str
    run: Try


PROBES: Final[list[Probe]] = []


def probe(group: str, title: str) -> Callable[[Try], Try]:
    def add(run: Try) -> Try:
        PROBES.append(Probe(group, title, run))
        return run

    return add


def called(number: int, *args: int) -> tuple[int, int]:
    """A system call by its number: what it returned, and errno."""
    ctypes.set_errno(0)
    found = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(arg) for arg in args))
    return found, ctypes.get_errno()


def let_in(number: int, *args: int) -> str:
    """Whether the kernel looked at the arguments of a call, which are no good."""
    found, error = called(number, *args)
    if found == -1 and error in REFUSALS:
        return ""
    return "done" if found >= 0 else errno.errorcode.get(error, str(error))


def opened(path: str, flags: int = os.O_RDONLY) -> str:
    """Whether a file can be opened; nothing is read or written."""
    os.close(os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY))
    return f"{path} was opened"


def read(path: str, most: int = 200) -> str:
    with open(path, "rb") as file:
        return file.read(most).decode(errors="replace").strip()


def x86_64() -> bool:
    return platform.machine() == "x86_64"


def verdict_of(one: Probe, facts: Facts) -> tuple[str, str]:
    """Run a probe in a process of its own: (held, leaked or broken; what it got)."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _tried(one, facts, writing)
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        said = file.read()
    _, status = os.waitpid(pid, 0)
    if said:
        verdict, detail = json.loads(said)
        return verdict, detail
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in {signal.SIGSYS, signal.SIGSEGV, signal.SIGXFSZ}:
        return "held", signal.Signals(os.WTERMSIG(status)).name
    return "broken", f"it ended with status {status}"


def _tried(one: Probe, facts: Facts, fd: int) -> None:
    signal.alarm(STUCK_S)
    try:
        got = one.run(facts) or ""
    except OSError as error:
        answer = ("held", str(error))
    except Exception as error:  # a probe that is wrong proves nothing
        answer = ("broken", repr(error))
    else:
        answer = ("leaked", got[:200]) if got else ("held", "")
    with suppress(OSError):
        os.write(fd, json.dumps(answer).encode())
