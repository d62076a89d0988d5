"""The driver `container`: docker or podman, with the runtime of the operator's choice, such as gVisor's runsc.

The command line of docker and podman; both take these words.
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
import os
import platform
import shutil
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Final

import msgspec

from remit.parts.sandbox.cleanup import cleanup_process, passed_on
from remit.parts.sandbox.driver import Isolation, IsolationCheck, ProbeReport
from remit.parts.sandbox.drives import FailedCheckError, SupervisingDriver
from remit.parts.sandbox.identity import UserIdentity, identity
from remit.parts.sandbox.limits import OWN
from remit.parts.sandbox.scratch import ScratchFolder, scratch
from remit.parts.sandbox.seccomp import ARCHITECTURES, profile
from remit.parts.sandbox.supervisor import Supervised
from remit.process.enclosure import (
    WORKSPACE,
    FolderMount,
    Listener,
    ProgramRun,
    Receipt,
    RunLimits,
    SandboxUnavailableError,
    Spec,
    quiet,
)

_CLOSED: Final = [
    "--interactive",
    "--network",
    "none",
    "--read-only",
    "--cap-drop",
    "ALL",
    "--security-opt",
    "no-new-privileges",
    "--ipc",
    "private",
    "--cgroupns",
    "private",
    "--pull",
    "never",
    "--log-driver",
    "none",
    "--stop-timeout",
    "0",
    "--hostname",
    "sandbox",
]
_PODMAN: Final = ["--read-only-tmpfs=false", "--security-opt", "mask=/proc/cmdline:/proc/keys:/proc/key-users"]
"""It would make `/run` and `/var/tmp` writable, without a limit, and show what of `/proc` is the machine's."""
_LINE_BYTES: Final = 60_000
"""Longer lines of a file of variables are not read."""
_PROCESSES: Final = 16_384
"""Of the container's user on the whole machine; its cgroup holds its own. What podman asks for by itself is refused
where this machine's root may not raise limits."""


class RunFiles:
    """The files that docker and podman read: the profile, and variables, which no list of processes may show."""

    def __init__(self, folder: Path, profile: bytes) -> None:
        self.profile = folder / "seccomp.json" if profile else None
        self.variables = folder / "variables"
        self.resolver = folder / "resolv.conf"
        """Empty: docker shows a container without a network the machine's."""
        self._folder = folder
        self._profile = profile

    def write(self, env: Mapping[str, str]) -> None:
        """Write them. Raises SandboxUnavailableError for a variable that such a file cannot hold, and OSError."""
        lines = [_line(name, value) for name, value in env.items()]
        self._write(self.variables, b"".join(lines))
        self._write(self.resolver, b"")
        self.resolver.chmod(0o444)
        if self.profile is not None:
            self._write(self.profile, self._profile)

    def _write(self, path: Path, data: bytes) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(data)


def _line(name: str, value: str) -> bytes:
    try:
        line = f"{name}={value}\n".encode()
    except UnicodeEncodeError:
        line = b""
    if not line or len(line) > _LINE_BYTES or any(mark in line[:-1] for mark in b"\n\r\0"):
        reason = (
            f"the driver container passes no variable like {name}: one line of UTF-8, {_LINE_BYTES:,} bytes at most"
        )
        raise SandboxUnavailableError(reason, "Give the program a file instead, or use the driver bwrap.")
    return line


class Container:
    """The container as the settings say it."""

    def __init__(self, mark: str, program: str, image: str, runtime: str = "") -> None:
        self.mark = mark
        self.program = program
        self.image = image
        self.runtime = runtime

    def run(self, spec: Spec, identity: UserIdentity, files: RunFiles) -> list[str]:
        """The words that run a program."""
        podman = self.program.endswith("podman")
        words = [self.program, "run", "--name", self._name(spec.id), *_CLOSED, *(_PODMAN if podman else ())]
        if files.profile is not None:
            words += ["--security-opt", f"seccomp={files.profile}"]
        if self.runtime:
            words += ["--runtime", self.runtime]
        if identity.uid is not None:
            words += ["--user", f"{identity.uid}:{identity.gid}"]
        elif podman:
            words += ["--userns", "keep-id"]
        words += [*_limits(spec), "--workdir", spec.cwd]
        ours = FolderMount(spec.workspace, WORKSPACE, writable=True), FolderMount(files.resolver, "/etc/resolv.conf")
        for mount in (*ours, *spec.mounts):
            words += _bind(mount)
        return [*words, "--env-file", str(files.variables), "--entrypoint", spec.argv[0], self.image, *spec.argv[1:]]

    def remove(self, run: str) -> list[str]:
        """The words that end a container and delete it."""
        return [self.program, "rm", "--force", self._name(run)]

    def ran_out_of_memory(self, run: str) -> list[str]:
        """The words that print `true` if the kernel ended a program that wanted more memory than it may have."""
        return [self.program, "inspect", "--format", "{{.State.OOMKilled}}", self._name(run)]

    def _name(self, run: str) -> str:
        return f"{self.mark}-{run}"


def _bind(mount: FolderMount) -> list[str]:
    """The words for a mount. By `--volume`, docker would make a folder that is deleted meanwhile once more."""
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    if not mount.writable:
        fields.append("readonly")
    line = StringIO()
    csv.writer(line, lineterminator="").writerow(fields)  # both read the word as a line of CSV
    return ["--mount", line.getvalue()]


def _limits(spec: Spec) -> list[str]:
    limits = spec.limits
    memory = str(limits.memory_bytes)
    words = ["--memory", memory, "--memory-swap", memory, "--pids-limit", str(limits.pids + OWN)]
    words += ["--cpus", f"{limits.cpu_percent / 100:.2f}", "--shm-size", str(limits.tmp_bytes)]
    held = {"nofile": limits.descriptors, "fsize": limits.file_bytes, "core": 0, "cpu": -(-limits.cpu_ms // 1000)}
    held["nproc"] = _PROCESSES
    for name, value in held.items():
        words += ["--ulimit", f"{name}={value}:{value}"]
    return [*words, "--tmpfs", f"/tmp:rw,nosuid,nodev,size={limits.tmp_bytes},mode=1777"]  # noqa: S108 - the container's own


_PROGRAMS: Final = ("podman", "docker")
_OWN_KERNEL: Final = frozenset({"runsc", "kata", "kata-runtime", "io.containerd.kata.v2"})
"""Runtimes that keep a program from the host's kernel."""
_HELD: Final = {
    "wall_ms": "timer",
    "cpu_ms": "rlimit for each process",
    "memory_bytes": "the container's cgroup",
    "pids": "the container's cgroup",
    "cpu_percent": "the container's cgroup",
    "descriptors": "rlimit",
    "file_bytes": "rlimit",
    "tmp_bytes": "size of the tmpfs",
    "workspace_bytes": "checked every 50 ms (soft)",
    "workspace_files": "checked every 50 ms (soft)",
    "stdout_bytes": "reader",
    "stderr_bytes": "reader",
    "artifact_bytes": "collector",
    "artifact_files": "collector",
}
_PROBE_MS: Final = 60_000
_PATIENCE_S: Final = 20.0
_AGAIN_S: Final = 0.1
"""Between two attempts to delete a container that was not there."""
_SAYS: Final = b"isolated\n"
_IGNORED: Final = b"Resource limits are not supported and ignored"
"""Warnings of podman to a plain user on a machine with cgroups of version 1, before it runs the program all the same.
"""
_MACHINES: Final = {"arm64": "aarch64", "AMD64": "x86_64"}
"""Other names of the same processor, on systems that run containers in a Linux of their own."""


class ContainerDriver(SupervisingDriver):
    """Runs programs in containers; the image has to be there, nothing is pulled."""

    name = "container"

    def __init__(self, program: str = "", image: str = "", runtime: str = "") -> None:
        super().__init__()
        program = program or next((path for name in _PROGRAMS if (path := shutil.which(name))), "")
        self._container = Container(cleanup_process().mark, program, image, runtime)
        self._version = ""
        self._level = Isolation.kernel if runtime in _OWN_KERNEL else Isolation.namespaces

    async def look(self) -> ProbeReport:
        program, image = self._container.program, self._container.image
        if not program:
            raise FailedCheckError("program", "neither podman nor docker is installed", "Install one of them.")
        if not image:
            remedy = 'Name one that is there, such as container_image = "python:3.13-slim".'
            raise FailedCheckError("image", "sandbox.container_image names no image", remedy)
        code, output = await _ran([program, "version", "--format", "{{.Client.Version}}"])
        self._version = output.split()[-1] if code == 0 and output.strip() else "unknown"
        with scratch() as folder:
            argv = ("/bin/sh", "-c", "echo isolated")
            spec = Spec(id=f"probe-{os.getpid()}", argv=argv, workspace=folder, limits=RunLimits(wall_ms=_PROBE_MS))
            execution = await self.run(spec, quiet)
        if execution.stdout.data != _SAYS:
            reason = execution.stderr.data.decode(errors="replace").strip() or f"it ended with {execution.status}"
            raise FailedCheckError("run", reason, remedy_for(reason, program, image))
        if _IGNORED in execution.stderr.data:
            reason = "podman ignores the limits of memory, processes and processor share here"
            raise FailedCheckError("limits", reason, "Use cgroups of version 2, or run Remit and podman as root.")
        check = IsolationCheck("run", ok=True, detail=f"{program}, {image}")
        return ProbeReport(driver=self.name, version=self._version, level=self._level, limits=_HELD, checks=(check,))

    async def run(self, spec: Spec, listener: Listener) -> ProgramRun:
        cleanup_process().tell("container", Path(self._container.program))
        run = self.runs[spec.id] = _Run(spec, listener, self._container)
        filtered = _profile()
        receipt = Receipt(
            driver=self.name,
            version=self._version,
            isolation=self._level.name,
            filter_hash=f"sha256:{hashlib.sha256(filtered).hexdigest()}" if filtered else "",
            limits=_HELD,
        )
        try:
            run.launch(filtered)
            return await self._judged(spec.id, await run.ended(receipt))
        finally:
            await asyncio.shield(run.close())
            del self.runs[spec.id]

    async def _judged(self, name: str, execution: ProgramRun) -> ProgramRun:
        """Name the limit that only the container's service knows of."""
        if execution.signal != "SIGKILL" or execution.limit:
            return execution
        _, output = await _ran(self._container.ran_out_of_memory(name))
        return msgspec.structs.replace(execution, limit="memory_bytes") if output.strip() == "true" else execution


class _Run(Supervised):
    """The program that started the container; what runs in there is no child of ours, and would outlive it."""

    def __init__(self, spec: Spec, listener: Listener, container: Container) -> None:
        super().__init__(spec, listener)
        self._scratch = ScratchFolder()
        self._task = spec
        self._container = container
        self._remove = container.remove(spec.id)
        self._removing: asyncio.Task[None] | None = None

    def launch(self, filtered: bytes) -> None:
        """Start the container. Raises OSError and SandboxUnavailableError."""
        spec = self._task
        folder = self._scratch.beside("files")
        files = RunFiles(folder, filtered)
        files.write({"HOME": WORKSPACE, "LANG": "C.UTF-8", **spec.env})
        # podman's monitor makes a file where it is when a program runs out of memory
        self.start(self._container.run(spec, identity(), files), UserIdentity(), env=passed_on(), folder=folder)

    @property
    def first(self) -> None:
        return

    def stop(self, limit: str) -> None:
        self.limit = self.limit or limit
        self._stopped = True
        if self._removing is None:
            self._removing = asyncio.create_task(self._removed(), name="remit:container-removal")

    async def close(self) -> None:
        try:
            await super().close()
            if self._removing is not None:
                await self._removing
        finally:
            self._scratch.close()

    async def _removed(self) -> None:
        """Delete the container, and once more until it cannot come any more."""
        ended = asyncio.ensure_future(self._child.ended() if self._child is not None else _nothing())
        until = asyncio.get_running_loop().time() + _PATIENCE_S
        over = False
        while not over:
            over = ended.done()
            await _ran(self._remove)
            await asyncio.wait([ended], timeout=_AGAIN_S)
            if self._child is not None and asyncio.get_running_loop().time() > until:
                self._child.kill()


def _profile() -> bytes:
    """Our seccomp profile for this machine; empty if there is none, so that the service's own holds."""
    machine = _MACHINES.get(platform.machine(), platform.machine())
    return profile(machine) if machine in ARCHITECTURES else b""


async def _nothing() -> None:
    """It was never started."""


async def _ran(words: list[str]) -> tuple[int, str]:
    """Exit code and stdout of a program that answers soon; what goes wrong is an exit code as well."""
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=passed_on(),
        )
    except OSError:
        return 127, ""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            out, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return 124, ""
    return process.returncode or 0, out.decode(errors="replace")


_RUNTIME: Final = "Install that runtime and make it known to the service, or leave sandbox.container_runtime empty."
_KNOWN: Final = (
    (
        "cgroups in hybrid mode",
        'crun cannot work with both versions of cgroups mounted: install runc and set container_runtime = "runc".',
    ),
    ("image not known", "Fetch the image: `{program} pull {image}`."),
    ("No such image", "Fetch the image: `{program} pull {image}`."),
    ("Unable to find image", "Fetch the image: `{program} pull {image}`."),
    (
        "permission denied while trying to connect",
        "Add this user to the group docker, or use podman.",
    ),
    ("Cannot connect to the Docker daemon", "Start the service: `systemctl start docker`."),
    ("OCI runtime", _RUNTIME),
    ("runtime name", _RUNTIME),
    ("Unknown runtime", _RUNTIME),
    (
        "newuidmap",
        (
            "Give this user a range of user numbers, `usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "
            "USER`, and install the package uidmap."
        ),
    ),
    (
        "rlimits",
        "The limits of this process are lower than those of the sandbox: raise them (`ulimit -Hn`), or lower its own.",
    ),
)


def remedy_for(message: str, program: str, image: str) -> str:
    """Return what to do about a message of docker or podman; how to look further, if it is not known."""
    known = next((remedy for part, remedy in _KNOWN if part in message), "")
    unknown = (
        "Check whether it runs at all: `{program} run --rm {image} /bin/sh -c true`. Start its service if it has one."
    )
    return (known or unknown).format(program=program, image=image)
