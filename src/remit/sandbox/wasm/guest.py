"""Runs one WASI module. A program of its own, started by the driver with the task behind its first argument."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from wasmtime import Engine, Module

TRAPPED: Final = 134
"""Exit code of a module that the machine ended, as of a program that aborts."""
SEALS: Final = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
"""On a compiled module that is whole: it was written before the module ran, and cannot change any more."""


def run(task: dict[str, Any]) -> int:
    """Run the module to its end; its exit code."""
    from wasmtime import Engine, ExitTrap, Func, Linker, Store, WasiConfig  # noqa: PLC0415 - an extra

    engine = Engine()
    module = _module(engine, task["module"], task["compiled"])
    store = Store(engine)
    store.set_limits(memory_size=task["memory_bytes"])
    wasi = WasiConfig()
    wasi.argv = task["argv"]
    wasi.env = list(task["env"].items())
    wasi.inherit_stdin()
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    for source, target, writable in task["folders"]:
        wasi.preopen_dir(source, target, writable)
    store.set_wasi(wasi)
    linker = Linker(engine)
    linker.define_wasi()
    linker.define_unknown_imports_as_traps(module)
    _give_up(task)
    try:
        start = linker.instantiate(store, module).exports(store)["_start"]
        if isinstance(start, Func):
            start(store)
    except ExitTrap as ended:
        return int(ended.code)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the module's
        os.write(2, f"{str(error).splitlines()[0]}\n".encode())
        return TRAPPED
    return 0


def _module(engine: Engine, path: str, compiled: int) -> Module:
    """The module as an earlier run compiled it, else compiled now, and kept behind the descriptor for the next run."""
    from wasmtime import Module  # noqa: PLC0415 - an extra

    with open(compiled, "r+b") as file:
        if data := file.read():
            return Module.deserialize(engine, data)
        module = Module.from_file(engine, path)
        file.write(module.serialize())
        file.flush()
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALS)
    return module


def _give_up(task: dict[str, Any]) -> None:
    """Become the user that sandboxes run as, and take the limits; the compiled module is all that is needed."""
    if task["uid"] is not None:
        os.setgroups([])
        os.setgid(task["uid"])
        os.setuid(task["uid"])
    for name, pair in task["limits"].items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), tuple(pair))


if __name__ == "__main__":
    with open(int(sys.argv[1]), encoding="utf-8") as file:
        given = json.load(file)
    os._exit(run(given))
