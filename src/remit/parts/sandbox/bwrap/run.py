"""One run of bwrap, from its start to the end of its last process.

The command line of bwrap; docs/sandbox.md says what each part of it stops.

Where hosts may be reached, a small program makes a network namespace, listens in it, hands the listening socket to us,
and becomes bwrap, which then shares it: the proxy answers from outside, and nothing within can reach further.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from remit.clock import SystemClock
from remit.parts.sandbox import limits as limiting
from remit.parts.sandbox.cgroups import Counted, Leaf
from remit.parts.sandbox.child import GroupChild, ProcessEnd
from remit.parts.sandbox.cleanup import cleanup_process
from remit.parts.sandbox.identity import UserIdentity
from remit.parts.sandbox.proxy import Proxy
from remit.parts.sandbox.supervisor import RunWatch, outputs
from remit.process.enclosure import (
    PROXY_PORT,
    WORKSPACE,
    ConnectionAttempt,
    Listener,
    RunUsage,
    SandboxUnavailableError,
    Spec,
    Stream,
    python,
)

_NETWORK_SOURCE: Final = f"""
import ctypes, fcntl, os, socket, struct, sys
fd, uid, gid = int(sys.argv[1]), os.getuid(), os.getgid()
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x50000000):  # CLONE_NEWUSER | CLONE_NEWNET
    sys.exit("unshare: " + os.strerror(ctypes.get_errno()))
for name, text in (("setgroups", "deny"), ("uid_map", f"{{uid}} {{uid}} 1"), ("gid_map", f"{{gid}} {{gid}} 1")):
    with open("/proc/self/" + name, "w") as file:
        file.write(text)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as loopback:
    fcntl.ioctl(loopback, 0x8914, struct.pack("16sH14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
door = socket.socket()
door.bind(("127.0.0.1", {PROXY_PORT}))
door.listen(64)
socket.send_fds(socket.socket(fileno=fd), [b"x"], [door.fileno()])
door.close()
os.execv(sys.argv[2], sys.argv[3:])
"""
PROXIED: Final = dict.fromkeys(
    ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), f"http://127.0.0.1:{PROXY_PORT}"
) | {"no_proxy": "localhost,127.0.0.1", "NODE_USE_ENV_PROXY": "1"}
"""Variables that programs look for a proxy in."""
UID: Final = 1000
"""The user that the program is in its own user namespace."""
_ISOLATE: Final = (
    f"--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup --uid {UID} "
    f"--gid {UID} --hostname sandbox --cap-drop ALL --new-session --die-with-parent --clearenv"
).split()
_NOTHING_WITHIN: Final = ("--disable-userns", "--assert-userns-disabled")
"""No namespace of users is made inside; a browser makes those of its own sandbox (seccomp/rules.py says which)."""
_ROOT: Final = [
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/sbin",
    "/sbin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--dir",
    "/etc",
    "--ro-bind-try",
    "/etc/ld.so.cache",
    "/etc/ld.so.cache",
    "--ro-bind-try",
    "/etc/alternatives",
    "/etc/alternatives",
    "--ro-bind-try",
    "/etc/localtime",
    "/etc/localtime",
    "--ro-bind-try",
    "/etc/ssl/certs",
    "/etc/ssl/certs",
    "--ro-bind-try",
    "/etc/fonts",
    "/etc/fonts",
]
_KERNEL: Final = [
    "--proc",
    "/proc",
    "--ro-bind",
    "/proc/sys",
    "/proc/sys",
    "--dev",
    "/dev",
]
_HIDDEN: Final = ("/proc/cmdline", "/proc/keys", "/proc/key-users")
"""Files that no namespace keeps the machine's own of; not every kernel has all of them."""
_CLOSED: Final = ["--remount-ro", "/dev", "--remount-ro", "/"]

PATH: Final = "/usr/local/bin:/usr/bin:/bin"
ENVIRONMENT: Final[Mapping[str, str]] = {
    "PATH": PATH,
    "HOME": WORKSPACE,
    "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
    "LANG": "C.UTF-8",
    "USER": "sandbox",
    "PYTHONDONTWRITEBYTECODE": "1",
}
FILES: Final[Mapping[str, bytes]] = {
    "/etc/passwd": (
        b"root:x:0:0::/:/bin/false\nsandbox:x:1000:1000::/workspace:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
    ),
    "/etc/group": b"root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n",
    "/etc/hosts": b"127.0.0.1 localhost sandbox\n::1 localhost\n",
    "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
}


class Descriptors(NamedTuple):
    """Open files that bwrap is given."""

    status: int
    """Gets bwrap's reports."""
    block: int
    """Read before the program begins; it has no end, so that nothing begins because we have ended."""
    filter: int
    environment: int
    """With what `environment` gives: other users of the machine can read a command line, and so no secret is in it."""
    files: tuple[int, ...]
    """With the contents of FILES, in order."""


def environment(spec: Spec) -> bytes:
    """The words that set the program's variables, as bwrap reads them from a descriptor."""
    variables = {**ENVIRONMENT, **(PROXIED if spec.network else {}), **spec.env}
    return b"".join(os.fsencode(f"--setenv\0{name}\0{value}\0") for name, value in variables.items())


def command(mark: str, spec: Spec, fds: Descriptors, before: Sequence[str] = ()) -> list[str]:
    """Bwrap's whole command line for a run, which `mark` begins; `before` are words that start the program within."""
    size = str(spec.limits.tmp_bytes)
    words = [mark, *_ISOLATE, *(() if spec.rules == "browser" else _NOTHING_WITHIN)]
    if not spec.network:
        words.append("--unshare-net")  # else it shares one that holds only the proxy's door
    words += ["--args", str(fds.environment), *_ROOT]
    for fd, path in zip(fds.files, FILES, strict=True):
        words += ["--perms", "0444", "--file", str(fd), path]
    words += _KERNEL
    for path in filter(os.path.exists, _HIDDEN):
        words += ["--ro-bind", "/dev/null", path]
    for place in ("/dev/shm", "/tmp"):  # noqa: S108 - the sandbox's own
        words += ["--size", size, "--perms", "1777", "--tmpfs", place]
    words += ["--bind", str(spec.workspace), WORKSPACE]
    for mount in spec.mounts:
        words += ["--bind" if mount.writable else "--ro-bind", str(mount.source), mount.target]
    words += ["--chdir", spec.cwd, *_CLOSED]
    words += ["--json-status-fd", str(fds.status), "--block-fd", str(fds.block), "--seccomp", str(fds.filter)]
    return [*words, "--", *before, *spec.argv]


class StatusLine(msgspec.Struct):
    """A line that bwrap writes to its status descriptor."""

    child: int | None = msgspec.field(name="child-pid", default=None)
    exit_code: int | None = msgspec.field(name="exit-code", default=None)


class RunEnd(NamedTuple):
    """The end of a run."""

    code: int | None
    """None: the sandbox was ended from outside."""
    limit: str
    stdout: Stream
    stderr: Stream
    usage: RunUsage


class BwrapRun:
    """A sandbox that was started; its program begins once the limits are set."""

    def __init__(self, spec: Spec, leaf: Leaf | None, listener: Listener) -> None:
        self.spec = spec
        self.limit = ""
        self._stopped = False
        self._leaf = leaf
        self._clock = SystemClock()
        self._began = 0.0
        self._child: GroupChild | None = None
        self._first: ProcessEnd | None = None
        self._first_pid = 0
        self._reports = bytearray()
        self._status_fd = self._block_fd = -1
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[int] = self._loop.create_future()
        self._code: int | None = None
        self._stdout, self._stderr = outputs(spec, listener, self.stop)
        self._watch: RunWatch | None = None
        self._proxy: Proxy | None = None
        self._door: socket.socket | None = None

    def start(
        self, program: Path, filter_: bytes, identity: UserIdentity, stdin: int, inherited: Sequence[int] = ()
    ) -> None:
        """Start bwrap; the program gets the descriptors `inherited` too. Raises OSError; nothing is left open then."""
        self._began = self._clock.monotonic()
        mine: list[int] = []
        descriptors: list[int] = []

        def pipe() -> tuple[int, int]:
            reading, writing = os.pipe2(os.O_CLOEXEC)
            mine.append(reading)
            descriptors.append(writing)
            return reading, writing

        try:
            status_r, status_w = pipe()
            out_r, out_w = pipe()
            err_r, err_w = pipe()
            block_r, self._block_fd = os.pipe2(os.O_CLOEXEC)
            descriptors.append(block_r)
            # A pipe that can be written to from this end as well: a reader at this end would never see it end
            # (fifo(7)).
            block = os.open(f"/proc/self/fd/{block_r}", os.O_RDWR | os.O_CLOEXEC)
            descriptors.append(block)
            filter_fd = _memory(descriptors, filter_)
            env_fd = _memory(descriptors, environment(self.spec))
            files = tuple(_memory(descriptors, content) for content in FILES.values())
            before = limiting.words(self.spec.limits, counted=self._leaf is not None)
            fds = Descriptors(status_w, block, filter_fd, env_fd, files)
            argv = command(cleanup_process().mark, self.spec, fds, before)
            passed = [status_w, block, filter_fd, env_fd, *files, *inherited]
            if self.spec.network:
                self._door, theirs = socket.socketpair()
                descriptors.append(theirs.detach())
                passed.append(descriptors[-1])
                argv, program = [*_before_network(descriptors[-1], program), *argv], Path(python())
            self._child = GroupChild.start(
                argv,
                stdin=stdin,
                stdout=out_w,
                stderr=err_w,
                pass_fds=passed,
                identity=identity,
                program=program,
            )
        except BaseException:
            for fd in (*mine, self._block_fd):
                _close(fd)
            raise
        finally:
            for fd in descriptors:
                _close(fd)
        self._stdout.follow(out_r)
        self._stderr.follow(err_r)
        os.set_blocking(status_r, False)
        self._status_fd = status_r
        self._loop.add_reader(status_r, self._reported)

    async def ready(self) -> bool:
        """Return once the sandbox stands, with every limit set; its program has not begun. False: it was stopped.

        Raises SandboxUnavailableError if bwrap ended instead.
        """
        child = self._child
        if child is None:
            raise AssertionError("the run was not started")
        ended = asyncio.ensure_future(child.ended())
        await asyncio.wait({self._ready, ended}, return_when=asyncio.FIRST_COMPLETED)
        if not self._ready.done() and not self._was_stopped():
            raise await self._refused()
        ended.cancel()
        if self._was_stopped():
            return False
        pid = self._ready.result()
        try:
            await self._serve()
            limiting.apply(pid, self.spec.limits, counted=self._leaf is not None)
            if self._leaf is not None:
                self._leaf.set(self.spec.limits, limiting.OWN)
                self._leaf.add(pid)
        except OSError as error:
            if self._was_stopped():
                return False
            self.stop("")
            if isinstance(error, ProcessLookupError):
                raise await self._refused() from error
            raise SandboxUnavailableError(f"the limits cannot be set: {error}") from error
        return not self._was_stopped()

    async def _serve(self) -> None:
        """Open the door of the network, if there is one.

        Raises SandboxUnavailableError, or OSError if it was stopped.
        """
        if self._door is None:
            return
        self._proxy = Proxy(self.spec.network, private=self.spec.private, listener=self.spec.listener)
        try:
            await self._proxy.serve(_network_door(self._door))
        except OSError as error:
            if self._was_stopped():
                raise
            raise SandboxUnavailableError(f"the network has no proxy: {error}") from error

    @property
    def connections(self) -> list[ConnectionAttempt]:
        """Return what it tried to reach."""
        return self._proxy.connections if self._proxy is not None else []

    def release(self) -> None:
        """Let the program begin; nothing is counted yet."""
        with suppress(BrokenPipeError):
            os.write(self._block_fd, b"x")

    def begin(self) -> None:
        """Let the program begin; from now on its time counts."""
        self._began = self._clock.monotonic()
        self.release()
        self._watch = RunWatch(self.spec, self._first_pid, self._leaf, self.stop)

    @property
    def waits(self) -> bool:
        """Return whether what was released still runs, so that it can become another program."""
        return self._first is not None and not self._first.done and not self._stopped

    def become(self, spec: Spec, listener: Listener) -> None:
        """Turn what was released into the program of `spec`: from now on its time and use count."""
        self.spec = spec
        self._stdout.belongs(spec.limits.stdout_bytes, listener)
        self._stderr.belongs(spec.limits.stderr_bytes, listener)
        if self._leaf is not None:
            self._leaf.restart()
        self._began = self._clock.monotonic()
        self._watch = RunWatch(spec, self._first_pid, self._leaf, self.stop)

    async def ended(self) -> RunEnd:
        """Return how it ended; every process of it is gone."""
        child, first = self._child, self._first
        if child is None:
            raise AssertionError("the run was not started")
        await child.ended()
        if first is not None:
            first.kill()  # bwrap reports the program's end; what it left running goes now
            await first.wait()
        wall = int((self._clock.monotonic() - self._began) * 1000)
        if self._watch is not None:
            await self._watch.ended()
        stdout, stderr = await self._stdout.ended(), await self._stderr.ended()
        self._reported()
        counted = self._leaf.counted() if self._leaf is not None else None
        self._judge(counted)
        return RunEnd(self._code, self.limit, stdout, stderr, self._usage(wall, counted))

    def stop(self, limit: str) -> None:
        """End it, for a limit that was hit if one is named.

        Before bwrap has told its child, that would outlive it: it is killed as soon as it is known.
        """
        self.limit = self.limit or limit
        self._stopped = True
        if self._first is not None:
            self._first.kill()

    async def close(self) -> None:
        """End it if it still runs, and leave nothing open."""
        self.stop("")
        if self._child is not None:
            await self._child.ended()
            if self._first is not None:
                await self._first.wait()
                self._first.close()
            self._child.close()
        if self._watch is not None:
            await self._watch.ended()
        if self._proxy is not None:
            await self._proxy.close()
        if self._door is not None:
            self._door.close()
        self._stdout.close()
        self._stderr.close()
        self._close_status()
        _close(self._block_fd)
        self._block_fd = -1
        if not self._ready.done():
            self._ready.cancel()

    def _was_stopped(self) -> bool:
        return self._stopped

    # --- what bwrap reports

    def _reported(self) -> None:
        while self._status_fd >= 0:
            try:
                data = os.read(self._status_fd, 4_096)
            except BlockingIOError:
                return
            if not data:
                self._close_status()
            self._reports += data
            *lines, rest = bytes(self._reports).split(b"\n")
            self._reports[:] = rest
            for line in filter(None, lines):
                self._report(line)

    def _report(self, line: bytes) -> None:
        try:
            report = msgspec.json.decode(line, type=StatusLine)
        except msgspec.DecodeError:
            return
        if report.exit_code is not None:
            self._code = report.exit_code
        if report.child is not None and self._first is None:
            with suppress(ProcessLookupError):
                self._first = ProcessEnd(os.pidfd_open(report.child))
                self._first_pid = report.child
                if self._stopped:
                    self._first.kill()
            if not self._ready.done():
                self._ready.set_result(report.child)

    def _close_status(self) -> None:
        if self._status_fd >= 0:
            self._loop.remove_reader(self._status_fd)
            _close(self._status_fd)
            self._status_fd = -1

    async def _refused(self) -> SandboxUnavailableError:
        if self._first is not None:
            await self._first.wait()
        stderr = (await self._stderr.ended()).data.decode(errors="replace").strip()
        return SandboxUnavailableError(stderr[:1_000] or "bwrap ended without a message")

    # --- its outcome

    def _judge(self, counted: Counted | None) -> None:
        """Name the limit that the kernel held, if one did."""
        if self.limit:
            return
        if counted is not None and counted.out_of_memory:
            self.limit = "memory_bytes"
        elif self._code == 128 + signal.SIGXCPU:
            self.limit = "cpu_ms"
        elif self._code == 128 + signal.SIGXFSZ:
            self.limit = "file_bytes"
        elif counted is not None and counted.out_of_pids:
            self.limit = "pids"
        elif self._watch is not None:
            self.limit = self._watch.exceeded

    def _usage(self, wall_ms: int, counted: Counted | None) -> RunUsage:
        if counted is not None and self._leaf is not None:
            return RunUsage(
                wall_ms=wall_ms,
                cpu_ms=counted.cpu_ms,
                memory_bytes=counted.memory_bytes,
                mechanism=f"cgroup v{self._leaf.version}",
            )
        usage = self._watch.usage if self._watch is not None else None
        if usage is None:
            return RunUsage(wall_ms=wall_ms)
        return RunUsage(
            wall_ms=wall_ms, cpu_ms=usage.cpu_ms, memory_bytes=usage.memory_bytes, mechanism="seen every 50 ms"
        )


def _memory(fds: list[int], content: bytes) -> int:
    """A file without a name that holds some bytes, to be read from its start."""
    fd = os.memfd_create("remit", os.MFD_CLOEXEC)
    fds.append(fd)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _close(fd: int) -> None:
    if fd >= 0:
        with suppress(OSError):
            os.close(fd)


def _before_network(fd: int, program: Path) -> list[str]:
    """The words that stand before those of `program`; `fd` is the other end of the socket given to `_network_door`."""
    return [python(), "-I", "-S", "-c", _NETWORK_SOURCE, str(fd), str(program)]


def _network_door(ours: socket.socket) -> socket.socket:
    """The listening socket that was handed over. Raises OSError if there is none."""
    _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    if not fds:
        raise OSError("the network namespace could not be made")
    return socket.socket(fileno=fds[0])
