"""Without a sandbox nothing runs that should run in one (rule 9)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from remit.process.enclosure import Enclosures, NoEnclosures, Program, SandboxUnavailableError

PROGRAM = Program(command=("/usr/bin/env",), cwd=Path("/"))


async def test_what_should_be_enclosed_is_refused_and_never_run_without() -> None:
    enclosures: Enclosures = NoEnclosures()
    with pytest.raises(SandboxUnavailableError) as refused:
        await enclosures.run(PROGRAM, lambda _stream, _data: None)
    assert refused.value.remedy
    with pytest.raises(SandboxUnavailableError):
        await enclosures.start(PROGRAM, asyncio.SubprocessProtocol())
    await enclosures.close()
