"""Without a sandbox nothing runs that should run in one (rule 9)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from remit.process.enclosure import ConnectionAttempt, Enclosures, NoEnclosures, Program, SandboxUnavailableError

PROGRAM = Program(command=("/usr/bin/env",), cwd=Path("/"))


async def test_what_should_be_enclosed_is_refused_and_never_run_without() -> None:
    enclosures: Enclosures = NoEnclosures()
    with pytest.raises(SandboxUnavailableError) as refused:
        await enclosures.run(PROGRAM, lambda _stream, _data: None)
    assert refused.value.remedy
    with pytest.raises(SandboxUnavailableError):
        await enclosures.start(PROGRAM, asyncio.SubprocessProtocol())
    await enclosures.close()


def test_a_receipt_says_why_under_the_name_that_records_have() -> None:
    attempt = ConnectionAttempt(host="a.example", port=443, allowed=False, reason="no")
    assert msgspec.to_builtins(attempt)["why"] == "no"
    assert msgspec.convert({"host": "a.example", "port": 443, "why": "no"}, ConnectionAttempt).reason == "no"
