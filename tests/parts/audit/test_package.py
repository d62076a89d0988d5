"""Evidence packages: everything that was recorded, the same bytes each time, and each value with what became of it."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from remit import Options, Remit, Run, recipe, tool
from remit.client import RemoteRemit
from remit.clock import SystemClock
from remit.errors import NotFoundError
from remit.evidence import verify
from remit.journal.erasure import erase
from remit.journal.event import HeadQuery
from remit.journal.journal import Journal
from remit.parts.audit.noun import scope_of
from remit.parts.audit.package import write_package
from remit.tools.provider import EvidenceCandidate, ToolResult
from tests.client.conftest import serving
from tests.jumping import JumpingClock
from tests.opened import OpenRemit
from tests.parts.audit.packages import GIVEN, bought, export
from tests.record.old.golden import NAMES, unpack
from tests.service import ticket_desk

PHOTO = b"photo" * 4_000


@tool("desk.photo", level="L0")
def photo() -> ToolResult:
    """Take a photo."""
    return ToolResult("taken", (EvidenceCandidate(kind="image", source="desk", retrieved_at=1, data=PHOTO),))


@recipe("photograph")
async def photograph(run: Run) -> None:
    """Take a photo."""
    await run.call("desk.photo", {})


def read(place: Path, name: str) -> Any:
    with zipfile.ZipFile(place) as package:
        data = package.read(name)
    return [json.loads(line) for line in data.splitlines()] if name.endswith(".ndjson") else json.loads(data)


async def test_a_job_is_exported_with_its_questions_and_values(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await bought(remit_in)
    verdict = await export(remit_in, job, tmp_path / "one.zip")
    assert (verdict.state, verdict.scope, verdict.pending) == ("whole", f"job/{job}", ())
    assert dict(verdict.values).keys() == {"kept"}
    assert [row["tool_name"] for row in read(tmp_path / "one.zip", "ledger.ndjson")] == ["desk.look", "desk.pay"]
    assert all(row["outcome"] == "success" for row in read(tmp_path / "one.zip", "ledger.ndjson"))
    assert {one["kind"] for one in read(tmp_path / "one.zip", "proof.json")["streams"]} == {"job", "confirmation"}
    assert read(tmp_path / "one.zip", "metadata.json")["state"] == "completed"


async def test_the_same_record_gives_the_same_bytes(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await bought(remit_in)
    for name in ("one.zip", "two.zip"):
        await export(remit_in, job, tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


async def test_each_value_is_read_once(remit_in: OpenRemit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, read_blob, digests = await bought(remit_in), Journal.blob, Counter[str]()

    async def blob(journal: Journal, digest: str) -> bytes | None:
        digests[digest] += 1
        return await read_blob(journal, digest)

    async with remit_in(work=False) as remit:
        monkeypatch.setattr(Journal, "blob", blob)
        await write_package(remit.runtime.journal, job, BytesIO())
    assert set(digests.values()) == {1}


async def test_what_has_not_ended_is_a_prefix_of_what_it_will_be(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await bought(remit_in, approved=False)
    assert (await export(remit_in, job, tmp_path / "one.zip")).state == "prefix"


async def test_erased_values_are_erased_on_record(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await bought(remit_in, note="about Zaphod", options=Options(subject="customer-7"))
    verdict = await export(remit_in, job, tmp_path / "before.zip")
    assert "kept" in dict(verdict.values)
    async with remit_in(**GIVEN, work=False) as remit:
        await erase(remit.runtime.journal, "customer-7", by="ann")
    verdict = await export(remit_in, job, tmp_path / "after.zip")
    assert verdict.state == "whole"
    assert "erased" in dict(verdict.values)
    assert b"Zaphod" not in (tmp_path / "after.zip").read_bytes()
    assert any(one["kind"] == "subject" for one in read(tmp_path / "after.zip", "proof.json")["streams"])


async def test_values_can_be_left_out(remit_in: OpenRemit, tmp_path: Path) -> None:
    verdict = await export(remit_in, await bought(remit_in), tmp_path / "one.zip", redacted=True)
    assert (verdict.state, [*dict(verdict.values)]) == ("whole", ["redacted"])


async def test_a_session_and_the_approval_that_it_used_are_exported(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with remit_in(**GIVEN) as remit:
        service = remit.service
        session = await service.sessions.open("mcp", principal="ann")
        await service.sessions.call(session, "desk.pay", {"cents": 1})
        (question,) = await service.confirmations.pending()
        await service.confirmations.decide(question.confirmation, "approve")
        await service.approvals.remember(question.confirmation, "everything", seconds=3_600, exact=False)
        again = await service.sessions.open("mcp", principal="ann")
        assert (await service.sessions.call(again, "desk.pay", {"cents": 2})).status == "ok"
    verdict = await export(remit_in, again, tmp_path / "one.zip")
    assert verdict.state == "prefix"
    assert any(one["kind"] == "approval" for one in read(tmp_path / "one.zip", "proof.json")["streams"])


async def test_what_was_never_recorded_cannot_be_exported(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with remit_in(work=False) as remit:
        with (tmp_path / "one.zip").open("w+b") as file, pytest.raises(NotFoundError):
            await write_package(remit.runtime.journal, "job_01m8b7hgjbe00826q3kv6k24zr", file)


@pytest.mark.slow
async def test_every_job_of_every_old_journal_verifies(tmp_path: Path) -> None:
    unpack(tmp_path)
    count = 0
    for name in NAMES:
        async with Remit(str(tmp_path / f"{name}.db"), work=False) as remit:
            journal = remit.runtime.journal
            for head in [*await journal.heads(HeadQuery(kind="job")), *await journal.heads(HeadQuery(kind="session"))]:
                with (tmp_path / "one.zip").open("w+b") as file:
                    await write_package(journal, head.stream, file)
                verdict = verify.check(str(tmp_path / "one.zip"))
                assert (verdict.problem, verdict.state == "whole") == ("", head.closed and head.kind == "job"), name
                count += 1
    assert count > len(NAMES)


async def test_a_server_gives_the_package_that_its_journal_gives(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await bought(remit_in)
    await export(remit_in, job, tmp_path / "here.zip")
    async with (
        remit_in(**GIVEN, work=False) as remit,
        serving(remit.service) as url,
        RemoteRemit(url, "") as far,
    ):
        file = BytesIO()
        await far.service.audit.package(job, file)
    assert file.getvalue() == (tmp_path / "here.zip").read_bytes()


async def test_a_ticket_is_exported_with_the_jobs_that_ran_it(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with remit_in(tools=ticket_desk.TOOLS) as remit:
        ticket = await ticket_desk.tool_ticket(remit, ticket_desk.step("desk_look", what="milk"))
        assert (await ticket_desk.worked(remit)).counters["ok"] == 1
    verdict = await export(remit_in, f"ticket/{ticket.id}", tmp_path / "one.zip")
    assert verdict.state == "whole"
    async with (
        remit_in(tools=ticket_desk.TOOLS, work=False) as remit,
        serving(remit.service) as url,
        RemoteRemit(url, "") as far,
    ):
        for name in (ticket.id, f"ticket/{ticket.id}"):
            assert await scope_of(remit.service, name) == f"ticket/{ticket.id}"
            file = BytesIO()
            await far.service.audit.package(name, file)
            assert file.getvalue() == (tmp_path / "one.zip").read_bytes()
        for other in ("journal", "ticket/journal/x", f"job/{ticket.id}", "tkt_none"):
            with pytest.raises(NotFoundError):
                await far.service.audit.package(other, BytesIO())
    assert {one["kind"] for one in read(tmp_path / "one.zip", "proof.json")["streams"]} >= {"ticket", "job"}
    assert [row["tool_name"] for row in read(tmp_path / "one.zip", "ledger.ndjson")] == ["desk.look"]


async def _looked(remit_in: OpenRemit, **options: Any) -> str:
    """A job whose tool brought evidence, which was kept for a day and is gone by now."""
    given: dict[str, Any] = {"tools": [photo], "recipes": [photograph], "flags": {"evidence.retention_days": 1}}
    async with remit_in(**given) as remit:
        job = await remit.start(photograph(), **options)
        await job
    async with remit_in(work=False, clock=JumpingClock(SystemClock(), ahead_s=2 * 86_400)) as remit:
        assert await remit.runtime.journal.prune() == 1
    return job.id


@pytest.mark.parametrize("form", [{}, {"redacted": True}])
@pytest.mark.parametrize("options", [{}, {"options": Options(subject="customer-7")}])
async def test_evidence_whose_time_is_over_has_expired(
    remit_in: OpenRemit, tmp_path: Path, options: dict[str, Any], form: dict[str, Any]
) -> None:
    job = await _looked(remit_in, **options)
    verdict = await export(remit_in, job, tmp_path / "one.zip", **form)
    assert (verdict.state, verdict.problem, dict(verdict.values)["expired"]) == ("whole", "", 1)
    assert sha256(PHOTO).hexdigest() not in str(read(tmp_path / "one.zip", "proof.json")) or not options
