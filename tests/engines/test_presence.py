"""Processes that work are known, with their code; a job is left to one that has the code that recorded it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from remit import Remit, Run, recipe
from remit.engines.presence import KIND, Presence, present, with_code
from remit.jobs.routes import kept_for
from remit.jobs.state import stream_of
from remit.journal.event import HeadPatch, HeadQuery, Lease, LeaseClaim
from remit.journal.leases import Owner
from remit.settings import load
from remit.settings.file import SettingsFile
from tests.opened import OpenRemit, until

pytestmark = pytest.mark.slow


def code(number: int) -> Any:
    """One edition of a recipe that says which one it is."""

    @recipe("edited", version=str(number))
    async def edited(run: Run) -> int:
        await run.wait_signal("go")
        return number

    return edited


async def until_present(remit: Remit, count: int) -> list[str]:
    """Wait until so many processes work; their roles."""
    mark = 0
    while True:
        mark = await remit.runtime.journal.heads_changed(mark)
        found = await present(remit.runtime.journal)
        if len(found) == count:
            return sorted(one.started.role for one in found)


async def test_processes_are_known_while_they_work(remit_in: OpenRemit) -> None:
    async with remit_in(work=False) as looks:
        assert await present(looks.runtime.journal) == []
        async with remit_in(recipes=[code(1)], work=False) as one, remit_in(work=False) as other:
            one.engine.start(role="worker")
            other.engine.start(role="serve")
            assert await until_present(looks, 2) == ["serve", "worker"]
            journal, version = looks.runtime.journal, code(1).execution_version
            assert await with_code(journal, "edited", version, "") == one.engine.owner
            assert await with_code(journal, "edited", version, one.engine.owner) == ""
            assert await with_code(journal, "edited", "2+x", "") == ""
        assert await present(looks.runtime.journal) == []
        streams = {head.stream for head in await looks.runtime.journal.heads(HeadQuery(kind=KIND))}
        async with remit_in(work=False) as again:
            again.engine.start(role="worker")
            assert await until_present(looks, 1) == ["worker"]
        heads = await looks.runtime.journal.heads(HeadQuery(kind=KIND))
        assert {head.stream for head in heads} == streams, "streams of the gone are taken again"


@pytest.mark.parametrize("step", ["created", "claimed", "said"])
async def test_a_process_that_dies_between_two_steps_leaves_no_trace_of_working(remit_in: OpenRemit, step: str) -> None:
    async with remit_in(work=False) as remit:
        journal, dead = remit.runtime.journal, str(replace(Owner.this(), started="1"))
        presence = Presence(journal, dead, 30)
        if step == "said":
            await presence._taken("worker", {})
        else:
            await presence._taken("worker", {})
            await presence.leave()
        if step == "claimed":
            now = journal.clock.now()
            claim = LeaseClaim(kind=KIND, owner=dead, now=now, lease_until=now + 10**9, state="starting")
            assert len(await journal.claim(claim)) == 1
        assert await present(journal) == []


async def test_a_process_that_was_frozen_between_claim_and_word_takes_another_stream(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with remit_in(work=False) as remit:
        journal = remit.runtime.journal
        claim, streams = journal.claim, list[str]()

        async def claimed(terms: LeaseClaim) -> list[Lease]:
            leases = await claim(terms)
            if leases and not streams:
                streams.append(leases[0].head.stream)
                now = terms.lease_until + 1
                assert await claim(replace(terms, owner="another", now=now, lease_until=now + 10**9))
            return leases

        monkeypatch.setattr(journal, "claim", claimed)
        held = await Presence(journal, remit.engine.owner, 30)._taken("worker", {})
        assert held.stream not in streams
        assert [one.started.owner for one in await present(journal)] == [remit.engine.owner]


async def test_a_worker_with_other_code_leaves_a_job_to_one_that_has_its_code(remit_in: OpenRemit) -> None:
    old, new = code(1), code(2)
    async with remit_in(recipes=[old], work=False) as right, remit_in(recipes=[new], work=False) as wrong:
        job = await right.start(old())
        code_of_job = {"edited": (old.execution_version,)}
        await Presence(right.runtime.journal, right.engine.owner, 30)._taken("worker", code_of_job)
        wrong.engine.start(role="worker")
        head = await until_kept(right, job.id)
        assert head == kept_for("edited", right.engine.owner)
        assert (await wrong.service.jobs.row(job.id)).state == "pending"


async def until_kept(remit: Remit, job: str) -> str:
    """Wait until a job is kept for a process; its route."""
    mark = 0
    while True:
        mark = await remit.runtime.journal.heads_changed(mark)
        head = await remit.runtime.journal.head(stream_of(job))
        if head is not None and " for " in head.route:
            return head.route


async def test_other_code_goes_on_once_no_process_has_the_code_of_the_job(remit_in: OpenRemit) -> None:
    old, new = code(1), code(2)
    async with remit_in(recipes=[old], work=False) as right:
        job = await right.start(old())
        right.engine.start(role="worker")
        await until(right, job.id, lambda row: row.state == "waiting")
        await job.signal("go")
        await right.engine.stop()
    async with remit_in(recipes=[new], work=False) as other:
        other.engine.start(role="worker")
        ended = await other.ended(job.id)
    assert ended.state == "completed"


async def test_what_was_left_to_this_process_is_taken_by_it_alone(remit_in: OpenRemit) -> None:
    old = code(1)
    async with remit_in(recipes=[old], work=False) as right:
        job = await right.start(old())
        journal = right.runtime.journal
        head = await journal.head(stream_of(job.id))
        assert head is not None
        patch = HeadPatch(route=kept_for("edited", right.engine.owner))
        await journal.append(journal.writer(head.stream, head.kind, head), synced=True, patch=patch)
        right.engine.start(role="worker")
        await until(right, job.id, lambda row: row.state == "waiting")


async def test_a_program_that_works_is_known_and_one_that_works_on_some_streams_promises_no_code(
    remit_in: OpenRemit,
) -> None:
    async with remit_in(recipes=[code(1)]) as works, remit_in(work=False) as looks:
        assert await until_present(looks, 1) == ["python"]
        assert await with_code(looks.runtime.journal, "edited", code(1).execution_version, "") == works.engine.owner
        looks.engine.start(only=looks.awaited, role="tickets")
        assert await until_present(works, 2) == ["python", "tickets"]
        (tickets, _) = await works.service.workers.views()
        assert (tickets.role, tickets.recipes) == ("tickets", {})


async def test_a_process_whose_settings_were_changed_since_is_known(
    tmp_path: Path,
) -> None:
    file = tmp_path / "remit.toml"
    file.write_text("[jobs]\nconcurrency = 3\n", encoding="utf-8")
    async with Remit(settings=load(cwd=tmp_path, env={}), work=False) as remit:
        remit.engine.start(role="worker")
        assert await until_present(remit, 1) == ["worker"]
        assert [one.outdated for one in await remit.service.workers.views()] == [False]
        file.write_text("[jobs]\nconcurrency = 4\n", encoding="utf-8")
        assert [one.outdated for one in await remit.service.workers.views()] == [True]
        await remit.runtime.engine.reread(SettingsFile.of(file))
        assert [one.outdated for one in await remit.service.workers.views()] == [False]
        file.unlink()
        assert [one.outdated for one in await remit.service.workers.views()] == [True]
