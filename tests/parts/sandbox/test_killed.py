"""Nothing is left of a runtime that is killed, whenever that is: no process, mount, cgroup or folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from tests.parts.sandbox.abuse.plain import NOBODY, plain_python
from tests.parts.sandbox.abuse.subjects import CONTAINERS, HERE, skip_untried
from tests.parts.sandbox.killed import RUNTIMES

ROUNDS = int(os.environ.get("REMIT_TEST_SANDBOX_KILLS", "3"))
"""Runtimes that are killed, of each sort; `REMIT_TEST_SANDBOX_KILLS=500` takes some minutes."""

_KEPT: Final = (
    "PATH",
    "DOCKER_HOST",
    "REMIT_TEST_CONTAINER_RUNTIME",
)


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for temporary files that nobody else uses."""
    with TemporaryDirectory() as place:
        Path(place).chmod(0o711)
        yield Path(place)


def kill(python: str, name: str, temporary: Path, user: int | None = None) -> None:
    """Kill runtimes, and look what is left."""
    seed = int.from_bytes(os.urandom(4), "big")
    done = subprocess.run(
        [python, "-m", "tests.parts.sandbox.killed", name, str(ROUNDS), str(seed)],
        cwd=HERE,
        env={"TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
        | {variable: os.environ[variable] for variable in _KEPT if variable in os.environ}
        | {"REMIT_TEST_CONTAINERS": name if name in CONTAINERS else ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        user=user,
        group=user,
        extra_groups=None if user is None else (),
    )
    assert done.stderr == ""
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"rounds": ROUNDS}], f"seed {seed}"


@pytest.mark.slow
@pytest.mark.timeout(60 + ROUNDS * 3)
@pytest.mark.parametrize("name", RUNTIMES)
def test_nothing_is_left_of_a_runtime_that_is_killed(name: str, temporary: Path) -> None:
    skip_untried(name)
    kill(sys.executable, name, temporary)


@pytest.mark.slow
@pytest.mark.timeout(60 + ROUNDS * 3)
@pytest.mark.skipif(os.geteuid() != 0, reason="the same as without root")
@pytest.mark.parametrize("name", ["bwrap", "warm"])
def test_nor_of_one_of_a_plain_user(name: str, temporary: Path) -> None:
    with plain_python() as python:
        if python is None:
            pytest.skip("no Python here that a plain user could run")
        os.chown(temporary, NOBODY, NOBODY)
        kill(python, name, temporary, NOBODY)
