"""A driver, and a workspace that the user of sandboxes can reach."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from remit.parts.sandbox.bwrap.driver import BwrapDriver
from remit.parts.sandbox.scratch import scratch
from remit.process.enclosure import FolderMount, Listener, ProgramRun, RunLimits, Spec, quiet

PYTHON = "/usr/bin/python3"


class Box:
    """Runs commands in one workspace."""

    def __init__(self, driver: BwrapDriver, work: Path) -> None:
        self.driver = driver
        self.work = work
        self.count = 0

    async def __call__(
        self,
        *argv: str,
        listener: Listener = quiet,
        stdin: bytes = b"",
        env: dict[str, str] | None = None,
        mounts: tuple[FolderMount, ...] = (),
        **limits: int,
    ) -> ProgramRun:
        """Run a command."""
        self.count += 1
        spec = Spec(
            id=f"run{self.count}",
            argv=argv,
            workspace=self.work,
            env=env or {},
            stdin=stdin,
            mounts=mounts,
            limits=RunLimits(**limits),
        )
        return await self.driver.exec(spec, listener)

    async def python(self, code: str, listener: Listener = quiet, **limits: int) -> ProgramRun:
        """Run Python code."""
        return await self(PYTHON, "-c", code, listener=listener, stdin=b"", env=None, mounts=(), **limits)


@pytest.fixture
async def box() -> AsyncIterator[Box]:
    """The default driver on an empty workspace."""
    driver = BwrapDriver()
    with scratch() as work:
        yield Box(driver, work)
        await driver.close()


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that the user of sandboxes can reach, which those of pytest are not."""
    with scratch() as work:
        work.chmod(0o755)
        yield work
