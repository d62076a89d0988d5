"""Read-only calls of a job or session are made again through the gate, and no others."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from remit import Remit, Run, recipe, tool
from remit.errors import RemitError

ALLOWED = {"effect": "allow", "tools": ["v.write"]}
SEEN: dict[str, int] = {}


@pytest.fixture(autouse=True)
def seen() -> dict[str, int]:
    SEEN.clear()
    return SEEN


def count(word: str) -> int:
    """How often something was done."""
    SEEN[word] = SEEN.get(word, 0) + 1
    return SEEN[word]


@tool("v.same", level="L0")
def same(word: str) -> str:
    """Say the same."""
    count("same")
    return word.upper()


@tool("v.counts", level="L0")
def counts() -> int:
    """Count."""
    return count("counts")


@tool("v.breaks", level="L0")
def breaks() -> int:
    """Work once."""
    if count("breaks") > 1:
        raise LookupError("no more")
    return 1


@tool("v.write")
def write() -> int:
    """Write."""
    return count("write")


@recipe("looks")
async def looks(run: Run) -> None:
    """Look, and write."""
    await run.call("v.same", {"word": "a"})
    for name in ("v.counts", "v.breaks", "v.write"):
        await run.call(name, {})


@pytest.fixture
async def remit() -> AsyncIterator[Remit]:
    async with Remit(":memory:", tools=[same, counts, breaks, write], recipes=[looks], policy=[ALLOWED]) as remit:
        yield remit


async def test_only_calls_that_read_are_made_again(remit: Remit, seen: dict[str, int]) -> None:
    job = await remit.service.jobs.start_named("looks", {})
    await remit.ended(job)
    events = await remit.runtime.journal.read(f"job/{job}")
    found = await remit.service.sessions.again(job)
    assert [(call.step, call.verdict) for call in found.calls] == [
        ("1", "same"),
        ("2", "changed"),
        ("3", "failed"),
        ("4", "skipped"),
    ]
    assert (found.calls[1].recorded, found.calls[1].now, found.differs) == ("1", "2", True)
    assert seen == {"same": 2, "counts": 2, "breaks": 2, "write": 1}
    assert await remit.runtime.journal.read(f"job/{job}") == events
    recorded = await remit.service.streams.narrative(found.session)
    assert [step.name for step in recorded.steps] == ["tool.v.same", "tool.v.counts", "tool.v.breaks"]


async def test_a_session_is_made_again_as_well_as_a_job(remit: Remit) -> None:
    await remit.call("v.same", {"word": "b"})
    (session,) = await remit.service.sessions.rows()
    found = await remit.service.sessions.again(session.session)
    assert ([call.verdict for call in found.calls], found.differs) == (["same"], False)
    with pytest.raises(RemitError):
        await remit.service.sessions.again("job_00000000000000000000000000")
