"""The driver `wasm`."""

from __future__ import annotations

import asyncio
import fcntl
import importlib.metadata
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from remit.process.enclosure import Listener
from remit.sandbox import limiting
from remit.sandbox.cleanup import cleanup_process
from remit.sandbox.drives import FailedCheckError, SupervisingDriver
from remit.sandbox.execution import Execution, Receipt, quiet
from remit.sandbox.identity import Identity, identity
from remit.sandbox.isolation import Check, Isolation, ProbeReport
from remit.sandbox.limits import Limits
from remit.sandbox.scratch import scratch
from remit.sandbox.spec import WORKSPACE, Spec
from remit.sandbox.supervised import Supervised
from remit.sandbox.wasm.guest import SEALS, TRAPPED

INSTALL: Final = "Install the extra: `pip install 'remit[wasm]'`, or name a WASI module in sandbox.wasm."
_HELD: Final = {
    "wall_ms": "timer",
    "cpu_ms": "rlimit",
    "memory_bytes": "the machine's own memory limit",
    "pids": "there are no processes",
    "cpu_percent": "not enforced: one thread",
    "descriptors": "rlimit",
    "file_bytes": "rlimit",
    "tmp_bytes": "there is no /tmp",
    "workspace_bytes": "checked every 50 ms (soft)",
    "workspace_files": "checked every 50 ms (soft)",
    "stdout_bytes": "reader",
    "stderr_bytes": "reader",
    "artifact_bytes": "collector",
    "artifact_files": "collector",
}
_GUEST: Final = Path(__file__).with_name("guest.py")
_INHERITED: Final = ("cpu", "fsize", "core")
_SPARE_DESCRIPTORS: Final = 16


class _State(NamedTuple):
    """Tells a module from what replaces it."""

    module: str
    changed: int
    size: int


class WasmDriver(SupervisingDriver):
    """Runs WASI modules."""

    name = "wasm"

    def __init__(self, modules: Mapping[str, Path]) -> None:
        super().__init__()
        self._modules = modules
        self._version = ""
        self._compiled: dict[_State, int] = {}
        """Descriptors of modules that a run has compiled; that takes ten times as long as all the rest of a start."""

    async def look(self) -> ProbeReport:
        try:
            self._version = importlib.metadata.version("wasmtime")
        except importlib.metadata.PackageNotFoundError as error:
            raise FailedCheckError("wasmtime", "the package is not installed", INSTALL) from error
        if not self._modules:
            raise FailedCheckError("modules", "no interpreter is known", INSTALL)
        for name, module in self._modules.items():
            if not module.is_file():
                raise FailedCheckError("modules", f"{name}: {module} does not exist", "Correct sandbox.wasm.")
        module = next(iter(self._modules.values()))
        with scratch() as folder:
            spec = Spec(id="probe", argv=(str(module), "-c", "1"), workspace=folder, limits=Limits(wall_ms=30_000))
            execution = await self.run(spec, quiet)
        if execution.exit_code == TRAPPED or execution.limit:
            raise FailedCheckError("run", execution.stderr.data.decode(errors="replace").strip(), INSTALL)
        check = Check("run", ok=True, detail=", ".join(sorted(self._modules)))
        return ProbeReport(
            driver=self.name, version=self._version, level=Isolation.kernel, limits=_HELD, checks=(check,)
        )

    async def run(self, spec: Spec, listener: Listener) -> Execution:
        run = self.runs[spec.id] = Supervised(spec, listener)
        receipt = Receipt(driver=self.name, version=self._version, isolation=Isolation.kernel.name, limits=_HELD)
        state = _state_of(spec.argv[0])
        fd, compiled = os.memfd_create("remit-task", os.MFD_CLOEXEC), self._compilation(state)
        try:
            os.write(fd, msgspec.json.encode(_task(spec) | {"compiled": compiled}))
            os.lseek(fd, 0, os.SEEK_SET)
            env = {"PATH": "/usr/bin:/bin", "PYTHONSAFEPATH": "1"}
            # It becomes another user by itself: as that one it could not read the module, nor Python's own files.
            words = [sys.executable, str(_GUEST), str(fd), cleanup_process().mark]
            run.start(words, Identity(), env=env, pass_fds=(fd, compiled))
            return await run.ended(receipt)
        finally:
            os.close(fd)
            await asyncio.shield(run.close())
            self._keep(state, compiled)
            del self.runs[spec.id]

    async def close(self) -> None:
        await super().close()
        while self._compiled:
            os.close(self._compiled.popitem()[1])

    def _compilation(self, state: _State) -> int:
        """A descriptor of the compiled module, or of an empty file for it."""
        known = self._compiled.get(state)
        if known is None:
            return os.memfd_create("remit-module", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        return os.open(f"/proc/self/fd/{known}", os.O_RDWR | os.O_CLOEXEC)

    def _keep(self, state: _State, compiled: int) -> None:
        """Keep what a run compiled, if it came to its end with that."""
        if state in self._compiled or fcntl.fcntl(compiled, fcntl.F_GET_SEALS) != SEALS:
            os.close(compiled)
        else:
            self._compiled[state] = compiled


def _state_of(module: str) -> _State:
    info = os.stat(module)
    return _State(module, info.st_mtime_ns, info.st_size)


def _task(spec: Spec) -> dict[str, object]:
    limits = {name: pair for name, pair in limiting.inherited(spec.limits).items() if name in _INHERITED}
    mounts = [(str(mount.source), mount.target, mount.writable) for mount in spec.mounts if mount.source.is_dir()]
    return {
        "module": spec.argv[0],
        "argv": [Path(spec.argv[0]).stem, *spec.argv[1:]],
        "env": {"HOME": WORKSPACE, "LANG": "C.UTF-8", **spec.env},
        "folders": [(str(spec.workspace), WORKSPACE, True), (str(spec.workspace), ".", True), *mounts],
        "memory_bytes": spec.limits.memory_bytes,
        "limits": {**limits, "nofile": (spec.limits.descriptors + _SPARE_DESCRIPTORS,) * 2},
        "uid": identity().uid,
    }
