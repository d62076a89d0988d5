from __future__ import annotations

from typing import Any

import pytest

from remit import Run, recipe, tool
from remit.codes import Code
from remit.errors import JournalError
from remit.journal.erasure import erase
from remit.service.options import Options
from remit.tools.provider import CallContext
from tests.opened import OpenRemit

MAY = {"policy.rules": [{"effect": "allow", "tools": ["pad.*"]}]}


@tool("pad.draw")
async def draw(text: str, named: str, ctx: CallContext) -> dict[str, Any]:
    """Draw."""
    assert ctx.keeper is not None
    digest = await ctx.keeper.put(text.encode())
    file = {"path": named, "bytes": len(text), "sha256": digest, "media_type": "text/plain"}
    return {"artifacts": [file, "not a file"]}


@tool("pad.claim")
def claim(digest: str) -> dict[str, Any]:
    """Claim to have left what somebody else did."""
    return {"artifacts": [{"path": "x", "bytes": 1, "sha256": digest, "media_type": "text/plain"}]}


@recipe("draws")
async def draws(run: Run, text: str) -> Any:
    """Draw twice."""
    await run.call("pad.draw", {"text": text, "named": "one"})
    return (await run.call("pad.draw", {"text": f"{text}!", "named": "two"})).value["artifacts"][0]["sha256"]


@recipe("claims")
async def claims(run: Run, digest: str) -> None:
    """Claim."""
    await run.call("pad.claim", {"digest": digest})


async def test_each_step_has_its_own(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[draw], flags=MAY) as remit:
        job = await remit.start(draws("moon"))
        await job
        rows = await remit.service.artifacts.rows(job.id)
        assert [(row.step, row.path, row.bytes) for row in rows] == [("1", "one", 4), ("2", "two", 5)]
        assert [await remit.service.artifacts.read(job.id, row.sha256) for row in rows] == [b"moon", b"moon!"]


async def test_a_session_has_those_of_its_calls_that_have_streams_of_their_own(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[draw], flags=MAY) as remit:
        sessions, artifacts = remit.service.sessions, remit.service.artifacts
        session = await sessions.open("python")
        await sessions.call(session, "pad.draw", {"text": "moon", "named": "one"})
        await sessions.call(session, "pad.draw", {"text": "sun", "named": "two"}, key="k")
        rows = await artifacts.rows(session)
        assert [row.path for row in rows] == ["one", "two"]
        assert [await artifacts.read(session, row.sha256) for row in rows] == [b"moon", b"sun"]
        other = await sessions.open("python")
        assert await artifacts.rows(other) == []
        with pytest.raises(Exception, match="has no artifact"):
            await artifacts.read(other, rows[1].sha256)


async def test_a_tool_that_names_another_jobs_bytes_gets_nobody_to_them(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[draw, claim], flags=MAY) as remit:
        digest = await (await remit.start(draws("secret")))
        job = await remit.start(claims(digest))
        await job
        assert await remit.service.artifacts.rows(job.id) == []
        with pytest.raises(Exception, match="has no artifact") as refused:
            await remit.service.artifacts.read(job.id, digest)
        assert getattr(refused.value, "code", None) is Code.ARTIFACT_NOT_FOUND


async def test_what_is_about_a_subject_can_be_had_until_it_is_erased(remit_in: OpenRemit) -> None:
    async with remit_in(tools=[draw], flags=MAY) as remit:
        job = await remit.start(draws("moon"), Options(subject="customer-7"))
        await job
        row, _ = await remit.service.artifacts.rows(job.id)
        assert await remit.service.artifacts.read(job.id, row.sha256) == b"moon"
        await erase(remit.runtime.journal, "customer-7")
        assert await remit.service.artifacts.rows(job.id) == []
        with pytest.raises(JournalError) as refused:
            await remit.service.artifacts.read(job.id, row.sha256)
        assert refused.value.code in {Code.PAYLOAD_ERASED, Code.BLOB_MISSING}
