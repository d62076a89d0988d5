"""The driver `wasm`, beside what every driver promises: a module is compiled once."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from remit.sandbox.execution import Execution, quiet
from remit.sandbox.spec import Spec
from remit.sandbox.wasm.driver import WasmDriver
from remit.sandbox.wasm.guest import SEALS
from tests.sandbox.abuse.subjects import module

pytestmark = pytest.mark.slow


async def ran(driver: WasmDriver, program: Path, code: str, work: Path) -> Execution:
    return await driver.exec(Spec(id="x", argv=(str(program), "-c", code), workspace=work), quiet)


def held() -> list[int]:
    """Descriptors of compiled modules."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            if str(link.readlink()).startswith("/memfd:remit-module"):
                found.append(int(link.name))
        except OSError:
            continue
    return found


async def test_a_module_is_compiled_once_and_nobody_changes_what_came_of_it(tmp_path: Path) -> None:
    before, driver = held(), WasmDriver({"python": module()})
    first = await ran(driver, module(), "print(1)", tmp_path)
    [compiled] = set(held()) - set(before)
    assert fcntl.fcntl(compiled, fcntl.F_GET_SEALS) == SEALS
    with pytest.raises(PermissionError):
        os.write(compiled, b"x")
    again = await ran(driver, module(), "print(2)", tmp_path)
    assert (first.stdout.data, again.stdout.data) == (b"1\n", b"2\n")
    assert sorted(held()) == sorted([*before, compiled])
    await driver.close()
    assert held() == before


async def test_a_module_that_is_replaced_is_compiled_anew(tmp_path: Path) -> None:
    program, work = tmp_path / "python.wasm", tmp_path / "work"
    work.mkdir()
    shutil.copy(module(), program)
    before, driver = held(), WasmDriver({"python": program})
    assert (await ran(driver, program, "print(1)", work)).stdout.data == b"1\n"
    program.write_bytes(b"this is no module")
    failed = await ran(driver, program, "print(2)", work)
    assert failed.status == "FAILED"
    assert failed.stdout.data == b""
    assert len(held()) == len(before) + 1
    await driver.close()
