"""What is looked at from outside: a program does its worst, and afterwards nothing of it may be left or believed.

Each check is a program in Python, limits that are stricter than usual, and a judge that says what leaked. Every
program ends by itself, also where nothing holds it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from remit.parts.sandbox.artifacts import Collected, collect
from remit.process.enclosure import MB, ProgramRun, RunLimits
from tests.parts.sandbox.abuse.world import VARIABLE, World


class Seen(NamedTuple):
    """What there is to judge."""

    found: ProgramRun
    work: Path
    world: World
    before: dict[str, set[str]]
    """What the machine showed before; see `machine`."""

    @property
    def said(self) -> str:
        return self.found.stdout.data.decode(errors="replace")

    def collected(self, **limits: int) -> Collected:
        return collect(self.work, RunLimits(**limits))


Judge = Callable[[Seen], str]


class Check(NamedTuple):
    title: str
    code: str
    judge: Judge
    limits: dict[str, int]
    watched: bool
    """Whether the machine is looked at while the program runs."""
    alone: bool
    """Whether nothing else may run, for the machine after it is compared with the machine before it."""


CHECKS: Final[list[Check]] = []
SLEEPER: Final = f"1000.{os.getpid()}"
"""Names what is not to outlive its sandbox."""


def check(
    title: str, code: str, *, watched: bool = False, alone: bool = False, **limits: int
) -> Callable[[Judge], Judge]:
    def add(judge: Judge) -> Judge:
        CHECKS.append(Check(title, code, judge, limits, watched, alone))
        return judge

    return add


def machine() -> dict[str, set[str]]:
    """What a sandbox may not change: this process' descriptors, the mounts, the cgroups, the processes by their words."""
    top = Path("/sys/fs/cgroup")
    return {
        "descriptors": {f"{name} {_link(name)}" for name in os.listdir("/proc/self/fd") if _link(name)},
        "mounts": set(Path("/proc/self/mountinfo").read_text().splitlines()),
        "cgroups": {path.name for pattern in ("remit-*", "*/remit-*", "*/*/remit-*") for path in top.glob(pattern)},
        "processes": {words for words in commands() if SLEEPER in words} | children(),
    }


def _link(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        return ""


def children() -> set[str]:
    """Processes that this one has started and not seen the end of."""
    found = Path("/proc/self/task").glob("*/children")
    return {f"process {pid}" for file in found for pid in file.read_text().split()}


def commands() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


def _left(seen: Seen) -> str:
    return "; ".join(sorted(machine()["processes"] - seen.before["processes"]))


def _ended_for(*limits: str) -> Judge:
    def judge(seen: Seen) -> str:
        return "" if seen.found.limit in limits else f"it ended with {seen.found.status}, limit {seen.found.limit!r}"

    return judge


# --- processes that want to stay

DAEMON: Final = (
    "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
    f"        os.execv('/bin/sleep', ['sleep', '{SLEEPER}'])\n    os._exit(0)\nos.wait()"
)
check("a daemon with a session of its own stays", DAEMON, alone=True)(_left)
check(
    "a process that ignores signals stays",
    "import os, signal\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n"
    f"if os.fork() == 0: os.execv('/bin/sleep', ['sleep', '{SLEEPER}'])",
    alone=True,
)(_left)
check(
    "a process that stopped itself stays",
    f"import os, signal\nif os.fork() == 0:\n    os.kill(os.getpid(), signal.SIGSTOP)\n    os.execv('/bin/sleep', "
    f"['sleep', '{SLEEPER}'])",
    alone=True,
)(_left)
check(
    "a program that stops itself is never ended",
    "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nprint('went on')",
    wall_ms=300,
)(lambda seen: "" if "went on" in seen.said else _ended_for("wall_ms")(seen))
check(
    "a program that closed its output is never ended",
    "import os\nos.close(1); os.close(2)\nfor _ in range(10**10): pass",
    wall_ms=300,
)(_ended_for("wall_ms"))
check("a program that does nothing is never ended", "for _ in range(10**10): pass", wall_ms=300)(_ended_for("wall_ms"))


@check(
    "a program ends the sandbox's first process and goes on",
    "import os\nos.kill(1, 9) if os.getpid() < 900 else 0\nprint('alive')",
    alone=True,
)
def first(seen: Seen) -> str:
    return _left(seen)


# --- limits


@check(
    "more processes than the limit run at once",
    "import os\ntry:\n    for i in range(64):\n        if os.fork() == 0:\n            import time; time.sleep(0.5); os._exit(0)\n"
    "        print(i, flush=True)\nexcept OSError: pass\nimport time; time.sleep(0.4)",
    pids=16,
)
def forks(seen: Seen) -> str:
    made = len(seen.said.split())
    return f"{made} were started" if made > 20 and seen.found.limit != "pids" else ""


HOG: Final = "x = bytearray({0}); print(len(x))"
check("one process has more memory than the limit", HOG.format(300 * MB), memory_bytes=96 * MB)(
    lambda seen: "it had it" if str(300 * MB) in seen.said else ""
)
check(
    "processes together have more memory than the limit",
    "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        x = bytearray(b'1') * 40_000_000; time.sleep(0.6); "
    "open('had', 'ab').write(b'x'); os._exit(0)\ntry:\n    while True: os.wait()\nexcept OSError: pass",
    memory_bytes=128 * MB,
)(lambda seen: "all six had it" if len(_content(seen, "had")) == 6 else "")
check(
    "processes together use more processor time than the limit",
    "import os\nfor _ in range(3):\n    if os.fork() == 0:\n        for _ in range(10**10): pass\nos.wait()",
    cpu_ms=300,
    wall_ms=8_000,
)(_ended_for("cpu_ms"))
check(
    "a file grows over the limit",
    "f = open('big', 'wb')\nfor _ in range(8): f.write(bytes(1_000_000))\nf.close()",
    file_bytes=2 * MB,
)(lambda seen: f"{_size(seen, 'big')} bytes" if _size(seen, "big") > 2 * MB else "")
check("a file with a hole grows over the limit", "open('big', 'wb').truncate(1 << 40)", file_bytes=2 * MB)(
    lambda seen: f"{_size(seen, 'big')} bytes" if _size(seen, "big") > 2 * MB else ""
)
check(
    "the workspace grows over the limit",
    "for i in range(200):\n    f = open('f%d' % i, 'wb'); f.write(bytes(100_000)); f.close()\nfor _ in range(10**8): pass",
    workspace_bytes=4 * MB,
    wall_ms=5_000,
)(_ended_for("workspace_bytes"))
check(
    "the workspace gets more files than the limit",
    "import time\nfor i in range(3_000):\n    f = open('f%d' % i, 'wb'); f.close()\nfor _ in range(10**8): pass",
    workspace_files=1_000,
    wall_ms=5_000,
)(_ended_for("workspace_files"))
check(
    "/tmp takes more than the limit",
    "import os\nf = open(os.environ['TMPDIR'] + '/big', 'wb')\nfor _ in range(8): f.write(bytes(1_000_000))\n"
    "f.close(); print('all')",
    tmp_bytes=2 * MB,
)(lambda seen: "it was written" if "all" in seen.said and seen.found.limit != "tmp_bytes" else "")
check(
    "/dev/shm takes more than the limit",
    "f = open('/dev/shm/big', 'wb')\nfor _ in range(8): f.write(bytes(1_000_000))\nf.close(); print('all')",
    tmp_bytes=2 * MB,
)(lambda seen: "it was written" if "all" in seen.said else "")
check("open files exceed the limit", "fs = [open('/dev/null') for _ in range(200)]\nprint('all')", descriptors=64)(
    lambda seen: "all were opened" if "all" in seen.said else ""
)

# --- output

check(
    "endless output fills the runtime",
    "while True: print('x' * 1000)",
    stdout_bytes=10_000,
    wall_ms=9_000,
)(lambda seen: f"{len(seen.said)} bytes were kept" if len(seen.said) > 10_000 or not seen.found.limit else "")
check(
    "endless errors without a line's end fill the runtime",
    "import os\nwhile True: os.write(2, b'x' * 1000)",
    stderr_bytes=10_000,
    wall_ms=9_000,
)(lambda seen: "too much was kept" if len(seen.found.stderr.data) > 10_000 or not seen.found.limit else "")
check("bytes that are not text are changed", "import os\nos.write(1, bytes(range(256)))")(
    lambda seen: "" if seen.found.stdout.data == bytes(range(256)) else "they were"
)
check(
    "a program forges its own exit code",
    "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'{\"exit-code\": 0}\\n')\n    except OSError: pass\nos._exit(3)",
)(lambda seen: "" if seen.found.exit_code == 3 else f"it ended with {seen.found.exit_code}")

# --- what it leaves in its workspace


def _content(seen: Seen, name: str) -> bytes:
    try:
        return (seen.work / name).read_bytes()
    except OSError:
        return b""


def _size(seen: Seen, name: str) -> int:
    try:
        return (seen.work / name).stat().st_size
    except OSError:
        return 0


def _not_taken(seen: Seen) -> str:
    taken = [one.path for one in seen.collected().artifacts]
    return f"{taken} were taken" if taken else ""


check("a link to a file of the machine is collected", "import os\nos.symlink('/etc/passwd', 'x')")(_not_taken)
check("a linked folder is walked", "import os\nos.symlink('/etc', 'x')")(_not_taken)
check("a file with two names is collected", "import os\nopen('x', 'w').close(); os.link('x', 'y')")(_not_taken)
check("a named pipe holds the collector up", "import os\nos.mkfifo('x')")(_not_taken)
check("a socket is collected", "import socket\nsocket.socket(socket.AF_UNIX).bind('x')")(_not_taken)
check("a closed folder holds the collector up", "import os\nos.mkdir('x'); open('x/y', 'w').close(); os.chmod('x', 0)")(
    lambda seen: _not_taken(seen) if os.geteuid() else ""
)
check("folders without end hold the collector up", "import os\nfor _ in range(300):\n    os.mkdir('d'); os.chdir('d')")(
    _not_taken
)


@check("a name that is not text breaks the collector", r"open(b'\xff\xfe', 'w').close()")
def bytes_as_a_name(seen: Seen) -> str:
    taken = [one.path for one in seen.collected().artifacts]
    return "" if taken == [r"\xff\xfe"] else f"{taken} were taken"


@check(
    "names that look like options or lines are believed",
    "for name in ('-rf', 'a\\nb', '$(id)', ' '): open(name, 'w').close()",
)
def names(seen: Seen) -> str:
    return "" if len(seen.collected().artifacts) == 4 else "they were"


@check("more files than the limit are collected", "for i in range(50): open('f%d' % i, 'w').close()")
def many(seen: Seen) -> str:
    return "" if len(seen.collected(artifact_files=10).artifacts) == 10 else "they were"


@check("files of more bytes than the limit are collected", "open('x', 'wb').truncate(1 << 27)")
def large(seen: Seen) -> str:
    return "" if not seen.collected(artifact_bytes=MB).artifacts else "they were"


@check("a file that runs as its owner is left", "import os\nopen('x', 'w').close()\nos.chmod('x', 0o6755)")
def owner(seen: Seen) -> str:
    modes = [path.lstat().st_mode for path in seen.work.iterdir()]
    return "it was" if any(mode & (stat.S_ISUID | stat.S_ISGID) for mode in modes) else ""


@check("files of root are left", "open('x', 'w').close()")
def of_root(seen: Seen) -> str:
    return "they were" if (seen.work / "x").stat().st_uid == 0 else ""


@check("a core file is left", "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
def core(seen: Seen) -> str:
    return "it was" if [path for path in seen.work.iterdir() if "core" in path.name] else ""


# --- the machine around it


@check("a secret variable stands in a process list", "import os, time\ntime.sleep(0.3)", watched=True)
def listed(seen: Seen) -> str:
    return "it did" if any("hidden-value" in words for words in seen.before["commands"]) else ""


@check("another conversation's files change", f"print('{VARIABLE}')")
def other(seen: Seen) -> str:
    place = Path(seen.world.facts["other"])
    same = (place / "private").read_bytes() == b"private" and len(list(place.iterdir())) == 1
    return "" if same else "they did"


@check(
    "a server in the sandbox can be reached",
    "import socket, time\ns = socket.socket()\ns.bind(('0.0.0.0', 18761))\ns.listen()\ntime.sleep(0.4)",
    watched=True,
)
def reached(seen: Seen) -> str:
    return "it was" if seen.before["reached"] else ""


def _unchanged(kind: str) -> Judge:
    def judge(seen: Seen) -> str:
        return "; ".join(sorted(machine()[kind] - seen.before[kind]))

    return judge


BUSY: Final = "f = open('x', 'w'); f.write('x'); f.close(); print('x')"
check("the runtime keeps a descriptor", BUSY, alone=True)(_unchanged("descriptors"))
check("a mount stays", BUSY, alone=True)(_unchanged("mounts"))
check("a process stays", BUSY, alone=True)(_left)
