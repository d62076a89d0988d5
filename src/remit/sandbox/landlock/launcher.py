"""Runs one program under Landlock and the seccomp filter, and ends everything that it started.

Run as a program of its own by an isolated Python, from its source: it imports only the standard library. What it
is to do stands as JSON in the file behind the descriptor that is its first argument. Sources: landlock(7), prctl(2).
"""

import ctypes
import json
import os
import resource
import signal
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # landlock_create_ruleset(2) and the next two, alike on all machines
_ASK_VERSION, _PATH_BENEATH = 1, 1
_PDEATHSIG, _SECCOMP, _SUBREAPER, _NO_NEW_PRIVS, _FILTER = 1, 22, 36, 38, 2
_EXECUTE, _WRITE, _READ, _READ_DIR = 1, 2, 4, 8
_FIRST = (1 << 13) - 1  # what version 1 knows
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_LATER = ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL))
_NETWORK_SINCE, _SCOPES_SINCE = 4, 6
_TCP = 3  # bind and connect
_SCOPES = 3  # abstract sockets and signals
_ENDED = 137  # 128 + SIGKILL

libc = ctypes.CDLL(None, use_errno=True)


def checked(value: int, what: str) -> int:
    """The value, or the end of this process with the reason."""
    if value < 0:
        os.write(2, f"landlock: {what}: {os.strerror(ctypes.get_errno())}\n".encode())
        os._exit(126)
    return value


def restrict(reads: Iterable[str], writes: Iterable[str], devices: Iterable[str]) -> None:
    """Give up all files but these, TCP, and signals to what is not ours, as far as the kernel knows how."""
    asked = libc.syscall(_CREATE, None, ctypes.c_size_t(0), _ASK_VERSION)
    version = checked(asked, "the kernel has no Landlock")
    known = _FIRST
    for since, right in _LATER:
        known |= right if version >= since else 0
    network, scopes = version >= _NETWORK_SINCE, version >= _SCOPES_SINCE
    rules = struct.pack("=QQQ", known, _TCP if network else 0, _SCOPES if scopes else 0)  # landlock_ruleset_attr
    size = 24 if scopes else 16 if network else 8
    ruleset = checked(libc.syscall(_CREATE, rules, ctypes.c_size_t(size), 0), "no ruleset")
    readable = _READ | _READ_DIR | _EXECUTE
    for paths, access in ((reads, readable), (writes, known), (devices, _READ | _WRITE | _IOCTL)):
        for path in paths:
            allow(ruleset, path, access & known)
    checked(libc.syscall(_RESTRICT, ruleset, 0), "it cannot be entered")
    os.close(ruleset)


def allow(ruleset: int, path: str, access: int) -> None:
    """Leave a file or folder within reach, if it is there."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if not os.path.isdir(path):
        access &= _READ | _WRITE | _EXECUTE | _TRUNCATE | _IOCTL
    rule = struct.pack("=Qi", access, fd)  # landlock_path_beneath_attr
    checked(libc.syscall(_ADD, ruleset, _PATH_BENEATH, rule, 0), f"no rule for {path}")
    os.close(fd)


def filter_calls(code: bytes) -> None:
    """Put the seccomp filter on."""
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HP", len(code) // 8, ctypes.addressof(buffer))  # sock_fprog
    checked(libc.prctl(_SECCOMP, _FILTER, program, 0, 0), "no filter")


def below(pid: int) -> list[int]:
    """All processes that a process started, and those that they did."""
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                for child in file.read().split():
                    found += [int(child), *below(int(child))]
    return found


def end_all() -> None:
    """Kill everything below us until nothing is left; we inherit what lost its parent."""
    while True:
        found = below(os.getpid())
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, 0 if found else os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def become(task: dict[str, Any]) -> None:
    """Become the program; ends this process if that is not possible."""
    os.setsid()
    os.umask(0o022)
    os.chdir(task["cwd"])
    for name, pair in task["limits"].items():
        resource.setrlimit(getattr(resource, "RLIMIT_" + name.upper()), tuple(pair))
    checked(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "privileges cannot be given up")
    restrict(task["reads"], task["writes"], task["devices"])
    filter_calls(bytes.fromhex(task["filter"]))
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        os.execve(task["argv"][0], task["argv"], task["env"])  # noqa: S606 - the sandboxed program itself
    except OSError as error:
        os.write(2, f"{task['argv'][0]}: {error.strerror}\n".encode())
        os._exit(127)


def awaited(pid: int, ends: set[signal.Signals]) -> int | None:
    """How our child ended, as waitpid tells; None if we are to end it."""
    while True:
        if signal.sigwait(ends) != signal.SIGCHLD:
            return None
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == pid:
                    return ended[1]


def main() -> int:
    """Run the task; the exit code, as a shell would tell it."""
    libc.prctl(_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    with open(int(sys.argv[1]), encoding="utf-8") as file:
        task = json.load(file)
    ends = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    if os.getppid() != task["parent"]:
        return _ENDED
    pid = os.fork()
    if pid == 0:
        try:
            become(task)
        finally:
            os._exit(126)
    status = awaited(pid, ends)
    end_all()
    if status is None:
        return _ENDED
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


if __name__ == "__main__":
    os._exit(main())
