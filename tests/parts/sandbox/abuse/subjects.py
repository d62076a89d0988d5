"""Who is tried: each driver that this machine offers, and a process without any sandbox to compare with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from remit.parts.sandbox.bwrap.driver import BwrapDriver
from remit.parts.sandbox.container import ContainerDriver
from remit.parts.sandbox.driver import Driver
from remit.parts.sandbox.identity import identity
from remit.process.enclosure import INPUTS, FolderMount, RunLimits, Spec
from remit_testing.sandbox import Trial
from tests.parts.sandbox.abuse.world import World

PYTHON: Final = "/usr/bin/python3"
HERE: Final = Path(__file__).parents[4]
INSIDE: Final = "tests/parts/sandbox/abuse/inside"
LIMITS: Final = RunLimits(wall_ms=60_000, memory_bytes=512 * 1024 * 1024)
CONTAINERS: Final = ("podman", "docker")
"""The programs of the driver `container`."""
TRIED: Final = tuple(os.environ.get("REMIT_TEST_CONTAINERS", "").split())
"""Those that are tried here; tests.parts.sandbox.image makes the image."""
IMAGE: Final = "remit-sandbox-test"
RUNTIME: Final = os.environ.get("REMIT_TEST_CONTAINER_RUNTIME", "")
NAMES: Final = ("bwrap", *CONTAINERS)


class Finding(NamedTuple):
    """The outcome of one probe."""

    group: str
    title: str
    verdict: str
    """`held`, `leaked` or `broken`."""
    detail: str = ""


def skip_untried(name: str) -> None:
    """Skip a test of podman or docker that nobody asked for."""
    if name in CONTAINERS and name not in TRIED:
        pytest.skip(f"REMIT_TEST_CONTAINERS does not name {name}")


def containers(program: str) -> ContainerDriver:
    """The driver `container` with podman or docker."""
    return ContainerDriver(program, IMAGE, RUNTIME)


def trial(name: str) -> Trial:
    """A driver, and how it runs Python."""
    if name in CONTAINERS:
        return Trial(containers(name), (PYTHON,))
    return Trial(BwrapDriver(), (PYTHON,))


async def probed(name: str, world: World) -> list[Finding]:
    """Every probe that a driver's programs can try."""
    tried = trial(name)
    try:
        _copied(world)
        argv = ("-m", INSIDE.replace("/", "."), json.dumps(world.facts))
        return await _run(tried.driver, (*tried.python, *argv), world)
    finally:
        await tried.driver.close()


async def _run(driver: Driver, argv: tuple[str, ...], world: World) -> list[Finding]:
    place = world.workspace
    spec = Spec(
        id="battery", argv=argv, workspace=place.work, mounts=(FolderMount(place.inputs, INPUTS),), limits=LIMITS
    )
    found = await driver.exec(spec, lambda _stream, _data: None)
    if found.status != "SUCCEEDED":
        raise AssertionError(f"the battery did not run: {found.limit} {found.stderr.data.decode(errors='replace')}")
    return _findings(found.stdout.data)


def without(world: World) -> list[Finding]:
    """Every probe in a process that nothing holds, but for the user that it runs as."""
    _copied(world)
    said = subprocess.run(
        [PYTHON, "-m", INSIDE.replace("/", "."), json.dumps(world.facts)],
        cwd=world.workspace.work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        close_fds=False,
        check=True,
    )
    return _findings(said.stdout)


def _copied(world: World) -> None:
    to = world.workspace.work / INSIDE
    if not to.exists():
        shutil.copytree(HERE / INSIDE, to, ignore=shutil.ignore_patterns("__pycache__"))
        to.chmod(0o755)
        for place in (to, *to.iterdir()):
            identity().own(place)


def _findings(said: bytes) -> list[Finding]:
    return [Finding(*json.loads(line)) for line in said.splitlines()]
