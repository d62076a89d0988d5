"""The driver `landlock`."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import signal
import sys
from pathlib import Path
from typing import Final

import msgspec

from remit.sandbox import limiting
from remit.sandbox.capability import Capability, Check, Isolation
from remit.sandbox.drives import FailedCheckError, SupervisingDriver
from remit.sandbox.execution import Execution, Listener, Receipt, quiet
from remit.sandbox.identity import identity
from remit.sandbox.limits import Limits
from remit.sandbox.scratch import Scratch, scratch
from remit.sandbox.seccomp import filter as seccomp
from remit.sandbox.spec import WORKSPACE, Spec
from remit.sandbox.supervised import Supervised

_PYTHONS: Final = ("/usr/bin/python3", "/usr/local/bin/python3")
_READS: Final = (
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/fonts",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_KERNEL: Final = "It needs Linux 5.13 or newer, started with landlock among lsm=…."
_SOFT: Final = "checked every 50 ms (soft)"
_HELD: Final = {
    "wall_ms": "timer",
    "cpu_ms": f"rlimit for each process; all together {_SOFT}",
    "memory_bytes": f"rlimit for each process; all together {_SOFT}",
    "pids": _SOFT,
    "cpu_percent": "not held",
    "descriptors": "rlimit",
    "file_bytes": "rlimit",
    "tmp_bytes": _SOFT,
    "workspace_bytes": _SOFT,
    "workspace_files": _SOFT,
    "stdout_bytes": "reader",
    "stderr_bytes": "reader",
    "artifact_bytes": "collector",
    "artifact_files": "collector",
}


class LandlockDriver(SupervisingDriver):
    """Keeps programs to their folders and off the network, without namespaces.

    `/workspace` and `/tmp` in a program's arguments and variables become the folders themselves.
    """

    name = "landlock"

    async def look(self) -> Capability:
        """Run a program that tries to read what it must not."""
        if sys.platform != "linux" or platform.machine() not in seccomp.ARCHITECTURES:
            why = f"it needs Linux on x86_64 or aarch64, this is {sys.platform} on {platform.machine()}"
            raise FailedCheckError("system", why, "Use the driver container or wasm.")
        if _version() < 1:
            raise FailedCheckError("landlock", "the kernel has no Landlock", _KERNEL)
        if _python() is None:
            raise FailedCheckError(
                "python", f"its launcher needs {' or '.join(_PYTHONS)}", "Install the system's Python 3."
            )
        with scratch() as folder:
            code = "cat /etc/passwd /proc/self/status 2>/dev/null || echo isolated"
            spec = Spec(id="probe", argv=("/bin/sh", "-c", code), workspace=folder, limits=Limits(wall_ms=10_000))
            execution = await self.run(spec, quiet)
        if execution.stdout.data != b"isolated\n":
            why = execution.stderr.data.decode(errors="replace").strip() or "a program could read forbidden files"
            raise FailedCheckError("run", why, _KERNEL)
        check = Check("run", ok=True, detail=f"Landlock version {_version()}")
        version = str(_version())
        return Capability(driver=self.name, version=version, level=Isolation.process, limits=_HELD, checks=(check,))

    async def run(self, spec: Spec, listener: Listener) -> Execution:
        """Run a program to its end."""
        run = _Run(spec, listener)
        self.runs[spec.id] = run
        receipt = Receipt(
            driver=self.name,
            version=str(_version()),
            isolation=Isolation.process.name,
            filter_hash=seccomp.digest(platform.machine(), alone=False),
            limits=_HELD,
        )
        try:
            run.launch()
            return await run.ended(receipt)
        finally:
            await asyncio.shield(run.close())
            del self.runs[spec.id]


class _Run(Supervised):
    """A run, and the folder that is its `/tmp`."""

    def __init__(self, spec: Spec, listener: Listener) -> None:
        self._scratch = Scratch()
        self._folder = self._scratch.work
        super().__init__(spec, listener, self._folder)
        self._task = spec

    def launch(self) -> None:
        """Start the launcher. Raises OSError."""
        spec, work = self._task, str(self._task.workspace)
        places = {mount.target: str(mount.source) for mount in spec.mounts}
        places |= {WORKSPACE: work, "/tmp": str(self._folder)}  # noqa: S108 - the run's own

        def placed(word: str) -> str:
            for target, source in places.items():
                if word == target or word.startswith(target + "/"):
                    return source + word[len(target) :]
            return word

        env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": work,
            "TMPDIR": str(self._folder),
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        task = {
            "parent": os.getpid(),
            "argv": [placed(word) for word in spec.argv],
            "env": {**env, **{name: placed(value) for name, value in spec.env.items()}},
            "cwd": placed(spec.cwd),
            "reads": [*_READS, *(str(mount.source) for mount in spec.mounts if not mount.writable)],
            "writes": [work, str(self._folder), *(str(mount.source) for mount in spec.mounts if mount.writable)],
            "devices": _DEVICES,
            "filter": seccomp.encoded(platform.machine(), alone=False).hex(),
            "limits": limiting.inherited(spec.limits),
        }
        fd = os.memfd_create("remit-task", os.MFD_CLOEXEC)
        try:
            os.write(fd, msgspec.json.encode(task))
            os.lseek(fd, 0, os.SEEK_SET)
            source = Path(__file__).with_name("launcher.py").read_text(encoding="utf-8")
            self.start([_python() or "", "-I", "-S", "-c", source, str(fd)], identity(), pass_fds=(fd,))
        finally:
            os.close(fd)

    def stop(self, limit: str) -> None:
        """Have the launcher end all that it started, itself last."""
        self.limit = self.limit or limit
        self._stopped = True
        self.signal(signal.SIGTERM)

    async def close(self) -> None:
        """End it, and delete its `/tmp`."""
        await super().close()
        self._scratch.close()


def _python() -> str | None:
    return next((path for path in _PYTHONS if shutil.which(path)), None)


def _version() -> int:
    """The kernel's version of Landlock; 0 or less if it has none."""
    import ctypes  # noqa: PLC0415 - only this driver needs it

    return int(ctypes.CDLL(None, use_errno=True).syscall(444, None, ctypes.c_size_t(0), 1))
