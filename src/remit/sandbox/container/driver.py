"""The driver `container`."""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import shutil
from pathlib import Path
from typing import Final

import msgspec

from remit.process.enclosure import Listener
from remit.sandbox.cleanup import cleanup_process, passed_on
from remit.sandbox.container.command import Container, RunFiles
from remit.sandbox.drives import FailedCheckError, SupervisingDriver
from remit.sandbox.execution import Execution, Receipt, quiet
from remit.sandbox.identity import Identity, identity
from remit.sandbox.isolation import Check, Isolation, ProbeReport
from remit.sandbox.limits import Limits
from remit.sandbox.scratch import Scratch, scratch
from remit.sandbox.seccomp.filter import ARCHITECTURES
from remit.sandbox.seccomp.profile import profile
from remit.sandbox.spec import WORKSPACE, Spec
from remit.sandbox.supervised import Supervised

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
        code, said = await _ran([program, "version", "--format", "{{.Client.Version}}"])
        self._version = said.split()[-1] if code == 0 and said.strip() else "unknown"
        with scratch() as folder:
            argv = ("/bin/sh", "-c", "echo isolated")
            spec = Spec(id=f"probe-{os.getpid()}", argv=argv, workspace=folder, limits=Limits(wall_ms=_PROBE_MS))
            execution = await self.run(spec, quiet)
        if execution.stdout.data != _SAYS:
            why = execution.stderr.data.decode(errors="replace").strip() or f"it ended with {execution.status}"
            raise FailedCheckError("run", why, remedy_for(why, program, image))
        if _IGNORED in execution.stderr.data:
            why = "podman ignores the limits of memory, processes and processor share here"
            raise FailedCheckError("limits", why, "Use cgroups of version 2, or run Remit and podman as root.")
        check = Check("run", ok=True, detail=f"{program}, {image}")
        return ProbeReport(driver=self.name, version=self._version, level=self._level, limits=_HELD, checks=(check,))

    async def run(self, spec: Spec, listener: Listener) -> Execution:
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

    async def _judged(self, name: str, execution: Execution) -> Execution:
        """Name the limit that only the container's service knows of."""
        if execution.signal != "SIGKILL" or execution.limit:
            return execution
        _, said = await _ran(self._container.ran_out_of_memory(name))
        return msgspec.structs.replace(execution, limit="memory_bytes") if said.strip() == "true" else execution


class _Run(Supervised):
    """The program that started the container; what runs in there is no child of ours, and would outlive it."""

    def __init__(self, spec: Spec, listener: Listener, container: Container) -> None:
        super().__init__(spec, listener)
        self._scratch = Scratch()
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
        self.start(self._container.run(spec, identity(), files), Identity(), env=passed_on(), folder=folder)

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
    found = next((remedy for part, remedy in _KNOWN if part in message), "")
    unknown = (
        "Check whether it runs at all: `{program} run --rm {image} /bin/sh -c true`. Start its service if it has one."
    )
    return (found or unknown).format(program=program, image=image)
