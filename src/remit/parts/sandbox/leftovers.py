"""Deletes what a runtime leaves when it is killed: a program of its own, started by it, which outlives it.

The runtime alone holds the other end of a pipe, into which it writes its mark and where it makes folders and cgroups.
The end of the pipe is the end of the runtime, and of whatever it forked that has not become another program yet. No
other process could do it: bwrap's child asks to die with its parent too late, and lives on if that is killed before.

A mark is `remit-sandbox-NAMESPACE-PID-START`: it names one process of one PID namespace, and no later one of that
number. All that a runtime makes bears it: folders, cgroups and containers in their names, processes among their words.
What stays if this program is killed as well is deleted by that of the next runtime.

Only the standard library is imported: it is run by path, without any package.
"""

import fcntl
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

PREFIX = "remit-sandbox-"
_MARK = re.compile(rb"remit-sandbox-(\d+)-(\d+)-(\d+)")
_PAUSE_S = 0.01
_QUIET = 3
"""Looks that find nothing before nothing is there."""
_WORDLESS_S = 2.0
"""A program that becomes another has no words for a moment, on a busy machine a long one; later it hides them."""
_PATIENCE_S = 60.0
_SERVICE_S = 20.0
"""For a service of containers to make one, or delete it."""
_TRIES = 100
_FRESH_S = 60.0
"""A folder that was made just now may not be locked yet."""
_FLAGS, _STARTED = 6, 19
"""Where a process' flags and start stand in /proc/PID/stat after its name (`proc_pid_stat(5)`, fields 9 and 22)."""
_KERNEL = 0x00200000
"""PF_KTHREAD among the flags."""


def mark_of(pid: int) -> str:
    """The mark of a process that runs."""
    return f"{PREFIX}{_namespace()}-{pid}-{_started(pid)}"


def lives(mark: str) -> bool:
    """Return whether the process that a name begins with the mark of may still run."""
    match = _MARK.match(mark.encode())
    if match is None or int(match[1]) != _namespace():
        return True  # not ours to judge
    return _started(int(match[2])) == int(match[3])


def delete(folder: Path) -> None:
    """Delete a folder with whatever a program left in it, closed folders as well."""
    shutil.rmtree(folder, onerror=_opened)


def remove(cgroup: Path) -> None:
    """Kill what is in a cgroup and delete it; one that is not there is fine."""
    for _ in range(_TRIES):
        for pid in members(cgroup):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            cgroup.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            _pause()  # the kernel says nothing when the last process has left
        else:
            return


def members(cgroup: Path) -> list[int]:
    """The processes in a cgroup."""
    try:
        return [int(word) for word in (cgroup / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def kill_marked(is_leftover: Callable[[str], bool]) -> None:
    """Kill all processes with a mark that was left, until there is none."""
    quiet, until = 0, time.monotonic() + _PATIENCE_S
    wordless: dict[int, float] = {}
    while quiet < _QUIET and time.monotonic() < until:
        quiet += 1
        for pid in _processes():
            if _killed(pid, is_leftover) or _becomes(pid, wordless):
                quiet = 0
        _pause()


def sweep(kind: str, place: Path, is_leftover: Callable[[str], bool]) -> None:
    """Delete the folders or cgroups (`kind`) in a place whose mark was left, or the containers of a program."""
    if kind == "container":
        _sweep_containers(str(place), is_leftover)
        return
    with suppress(OSError):
        for entry in place.iterdir():
            if entry.name.startswith(PREFIX):
                if kind == "folder":
                    _delete_left(entry, sure=is_leftover(entry.name))
                elif is_leftover(entry.name):
                    remove(entry)


def _delete_left(folder: Path, *, sure: bool) -> None:
    """Delete a folder whose maker is dead; `sure`: so that whatever still holds it, or writes to it, is dying."""
    for _ in range(_TRIES if sure else 1):
        try:
            _unlocked(folder, sure=sure)
        except (FileNotFoundError, PermissionError):
            return
        except OSError:
            _pause()  # nothing tells of the end of a process that is not ours
        else:
            return


def _unlocked(folder: Path, *, sure: bool) -> None:
    """Delete a folder whose maker is dead. Raises OSError for one that is in use, or not ours.

    The lock tells, for a maker may have lived in another PID namespace.
    """
    if not sure and folder.stat().st_mtime > time.time() - _FRESH_S:  # noqa: TID251 - the clock of files
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_uid == os.geteuid():
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            delete(folder)
    finally:
        os.close(fd)


def _sweep_containers(program: str, is_leftover: Callable[[str], bool]) -> None:
    """Delete containers until there is none, nor anything that was asked for one.

    What makes a container is not killed, for it would leave half of one, unless it comes to nothing.
    """
    quiet, until = 0, time.monotonic() + _SERVICE_S
    while quiet < _QUIET:
        busy = [pid for pid in _processes() if _names(pid, is_leftover)]
        late = time.monotonic() > until
        listed = _said([program, "ps", "--all", "--filter", f"name={PREFIX}", "--format", "{{.Names}}"])
        names = [name for name in listed.split() if name.startswith(PREFIX) and is_leftover(name)]
        quiet = quiet + 1 if late or not (names or busy) else 0
        if names:
            _said([program, "rm", "--force", *names])
        for pid in busy if late else ():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        _pause()


def _names(pid: int, is_leftover: Callable[[str], bool]) -> bool:
    """Return whether a process has the name of a container among its words."""
    return any(
        word.startswith(PREFIX.encode()) and is_leftover(word.decode(errors="replace"))
        for word in _words(pid)
        if not _MARK.fullmatch(word)
    )


def _said(words: list[str]) -> str:
    """Return what a program says on stdout; one that fails, or takes too long, says nothing."""
    import subprocess  # noqa: PLC0415 - few keep containers, and all wait for this program to begin

    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SERVICE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def _opened(function: object, path: str, _info: object) -> None:
    """Open the folder that could not be read or written to, then try again."""
    for place in (os.path.dirname(path), path):
        if not os.path.islink(place):
            try:
                os.chmod(place, 0o700)
            except FileNotFoundError:
                return
    if callable(function):
        if function is os.open or function is os.scandir:
            shutil.rmtree(path)
        else:
            function(path)


# --- processes


def _processes() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            yield int(name)


def _killed(pid: int, is_leftover: Callable[[str], bool]) -> bool:
    """Kill a process if it has a mark that was left; the descriptor keeps it from being another one."""
    if not _is_left(pid, is_leftover):
        return False
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        if _is_left(pid, is_leftover):
            with suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
    finally:
        os.close(fd)
    return True


def _is_left(pid: int, is_leftover: Callable[[str], bool]) -> bool:
    return any(_MARK.fullmatch(word) and is_leftover(word.decode()) for word in _words(pid))


def _becomes(pid: int, wordless: dict[int, float]) -> bool:
    """Return whether a process may just be becoming another program; `wordless` keeps since when each has no words."""
    words = _words(pid)
    if not words or any(words) or _started(pid) == 0 or _is_kernel(pid):
        return False
    return time.monotonic() - wordless.setdefault(pid, time.monotonic()) < _WORDLESS_S


def _words(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _started(pid: int) -> int:
    """Return when a process was started, in ticks; 0 if it is not there, or dead."""
    try:
        words = _state(pid)
    except OSError:
        return 0
    return 0 if words[0] in {b"Z", b"X"} else int(words[_STARTED])


def _is_kernel(pid: int) -> bool:
    """Return whether it is a thread of the kernel, which never has words."""
    try:
        return bool(int(_state(pid)[_FLAGS]) & _KERNEL)
    except OSError:
        return True


def _state(pid: int) -> list[bytes]:
    """Return what /proc/PID/stat says after the name. Raises OSError."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def _pause() -> None:
    time.sleep(_PAUSE_S)  # noqa: TID251 - neither /proc nor a cgroup tells of the end of a process that is not ours


# --- the program


def _left_before(owner: str) -> bool:
    return not lives(owner)


def main(fd: int) -> None:
    """Read what the runtime says until it is gone, then delete what it left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # those are for the runtime
    os.closerange(fd + 1, 1_024)
    os.chdir("/")
    mark, places = "", []
    with open(fd, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            kind, _, rest = line.rstrip("\n").partition(" ")
            if kind == "mark":
                mark = rest
                kill_marked(_left_before)
            else:
                places.append((kind, Path(rest)))
                sweep(kind, Path(rest), _left_before)
    if not mark:
        return

    def left(name: str) -> bool:
        return name == mark or name.startswith(f"{mark}-") or _left_before(name)

    kill_marked(left)
    for kind, place in places:
        sweep(kind, place, left)


if __name__ == "__main__":
    main(int(sys.argv[1]))
