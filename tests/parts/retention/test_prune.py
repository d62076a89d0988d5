"""Records whose time is over go, with their packages written first; what is needed stays, and everything verifies."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from remit import Options, Remit
from remit.clock import SECOND, SystemClock
from remit.codes import Code
from remit.errors import RecordPrunedError
from remit.evidence import verify
from remit.journal.copy import back_up
from remit.journal.event import HeadQuery, JournalFold
from remit.journal.journal import Journal
from remit.journal.leases import LeaseProof
from remit.journal.sqlite.store import SqliteStore
from remit.journal.values import is_pruned
from remit.parts.login.provider import Person
from remit.parts.retention.prune import Pruning
from remit.parts.retention.rule import RetentionRule, rule_for
from tests.opened import OpenRemit, until_waiting
from tests.parts.audit.packages import GIVEN, bought
from tests.parts.login.conftest import Idp, people_of
from tests.parts.notify.test_push import told
from tests.parts.notify.test_slack import codes, world
from tests.parts.schedules.clockwork import DAY, HOUR, clockwork, micros
from tests.service.ticket_desk import EVENT

YEAR = 365 * 86_400_000_000


async def prune(remit: Remit, *, archive: Path | None = None, dry_run: bool = False, **rule: Any) -> Pruning:
    """Prune by one rule, a year from now."""
    wanted = RetentionRule(keep="90d", archive=str(archive or ""), **rule)
    now = remit.clock.now() + YEAR
    done: Pruning = await remit.service.retention.prune(lambda head: rule_for([wanted], head, now), dry_run=dry_run)
    return done


async def test_a_job_goes_with_its_questions_and_values_and_its_package_stays(
    remit_in: OpenRemit, tmp_path: Path
) -> None:
    job = await bought(remit_in)
    async with remit_in(**GIVEN, work=False) as remit:
        journal = remit.runtime.journal
        before = {head.stream: head for head in await journal.heads(HeadQuery(prefix="job/"))}
        (unit,) = (await prune(remit, archive=tmp_path / "kept", dry_run=True)).pruned
        assert not (tmp_path / "kept").exists()
        assert (await remit.service.jobs.view(job)).state == "completed"
        (unit,) = (await prune(remit, archive=tmp_path / "kept")).pruned
        verdict = verify.check(unit.file)
        assert (unit.stream, verdict.state, verdict.hash) == (f"job/{job}", "whole", unit.package)
        assert unit.values > 0
        report = await remit.service.streams.verify()
        assert (report.problems, report.pruned, report.removed) == ((), unit.streams, unit.events)
        for head in before.values():
            (stub,) = await journal.left(head.stream)
            said = json.loads(stub.data)
            assert (said["events"], said["hash"], said["state"]) == (head.seq, head.hash.hex(), head.state)
            assert said.get("package") == unit.package
        assert not [blob for blob in await journal.blobs() if len(blob.data) > 10_000]
        assert (await prune(remit)).pruned == []


READS: dict[str, Callable[[Remit, str], Awaitable[object]]] = {
    "show": lambda remit, job: remit.service.jobs.view(job),
    "story": lambda remit, job: remit.service.jobs.story(job),
    "history": lambda remit, job: remit.service.jobs.history(job),
    "result": lambda remit, job: remit.service.jobs.result(job),
    "retry": lambda remit, job: remit.service.jobs.retry(job, repeat=True),
    "replay": lambda remit, job: remit.replay(job),
    "trace": lambda remit, job: remit.service.streams.narrative(job),
    "artifacts": lambda remit, job: remit.service.artifacts.rows(job),
    "usage": lambda remit, job: remit.service.usage.of(job),
    "fork": lambda remit, job: remit.service.forks.make(job, "2", repeat=True),
    "diff": lambda remit, job: remit.service.forks.diff(job, job),
    "export": lambda remit, job: remit.service.audit.package(job, BytesIO()),
}


async def test_readers_of_a_pruned_job_are_told_so_and_lists_go_on(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await bought(remit_in, options=Options(labels={"team": "a"}))
    async with remit_in(**GIVEN, work=False) as remit:
        await prune(remit, archive=tmp_path)
        service = remit.service
        for name, read in READS.items():
            with pytest.raises(RecordPrunedError) as refused:
                assert not [name, await read(remit, job)]
            assert refused.value.code is Code.RECORD_PRUNED, name
        (row,) = await service.jobs.rows(labels={"team": "a"})
        assert (row.job, row.state, row.code, row.title, row.labels) == (
            job, "completed", "RECORD_PRUNED", "", {"team": "a"},
        )  # fmt: skip
        assert await service.confirmations.answered() == []
        assert await service.confirmations.pending() == []
        assert (await service.streams.verify(job)).ok


async def test_what_runs_or_waits_or_has_an_open_question_stays(remit_in: OpenRemit) -> None:
    job = await bought(remit_in, approved=False)
    async with remit_in(**GIVEN) as remit:
        session = await remit.service.sessions.open("mcp", principal="ann")
        await remit.service.sessions.call(session, "desk.pay", {"cents": 1})
        done = await prune(remit)
        assert done.pruned == []
        assert {kept.stream: kept.why.partition(":")[0] for kept in done.kept} == {
            f"job/{job}": "it is waiting",
            f"session/{session}": "a question is open",
        }
        for question in await remit.service.confirmations.pending():
            await remit.service.confirmations.decide(question.confirmation, "deny")
        await remit.service.jobs.settled([job])
        assert {unit.stream for unit in (await prune(remit)).pruned} == {f"job/{job}", f"session/{session}"}
        assert (await remit.service.streams.verify()).ok


async def test_rules_choose_by_age_kind_state_recipe_and_label(remit_in: OpenRemit) -> None:
    job = await bought(remit_in, note="x", options=Options(labels={"team": "a"}))
    async with remit_in(**GIVEN, work=False) as remit:
        for other in (
            {"kinds": ("session",)}, {"states": ("failed",)}, {"recipes": ("sell*",)}, {"labels": {"team": "b"}},
        ):  # fmt: skip
            assert (await prune(remit, **other)).pruned == [], other
        fits: dict[str, Any] = {
            "kinds": ("job",),
            "states": ("completed",),
            "recipes": ("b*",),
            "labels": {"team": "a"},
        }
        (unit,) = (await prune(remit, dry_run=True, **fits)).pruned
        assert unit.stream == f"job/{job}"
        head = await remit.runtime.journal.head(f"job/{job}")
        assert head is not None
        now = remit.clock.now() + YEAR
        both = [RetentionRule(keep="30d"), RetentionRule(keep="1000d", labels={"team": "a"})]
        assert rule_for(both, head, now) is None, "the longest rule that fits holds"
        assert rule_for(both[:1], head, now) is both[0]


async def test_a_job_whose_events_are_needed_goes_after_those_that_need_them(remit_in: OpenRemit) -> None:
    job = await bought(remit_in)
    async with remit_in(**GIVEN) as remit:
        made = await remit.service.forks.make(job, "2", repeat=True)
        await until_waiting(remit, made.job)
        (kept, needed) = (await prune(remit)).kept
        assert (kept.stream, needed.why) == (f"job/{made.job}", f"{made.job} shares its events")
        (question,) = await remit.service.confirmations.pending()
        await remit.service.confirmations.decide(question.confirmation, "approve")
        await remit.service.jobs.settled([made.job])
        assert [unit.stream for unit in (await prune(remit)).pruned] == [f"job/{made.job}", f"job/{job}"]
        assert (await remit.service.streams.verify()).ok


async def test_values_that_another_record_names_stay(remit_in: OpenRemit) -> None:
    first = await bought(remit_in, options=Options(labels={"which": "first"}))
    second = await bought(remit_in)
    async with remit_in(**GIVEN, work=False) as remit:
        (unit,) = (await prune(remit, labels={"which": "first"})).pruned
        assert (unit.stream, unit.values) == (f"job/{first}", 0)
        assert (await remit.service.jobs.view(second)).input == {"note": "x" * 20_000}
        (unit,) = (await prune(remit)).pruned
        assert unit.values > 0


async def test_a_damaged_record_is_not_covered_up(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await bought(remit_in)
    with closing(sqlite3.connect(tmp_path / "journal.db")) as db:
        db.execute("UPDATE events SET at = at + 1 WHERE seq = 2")
        db.commit()
    async with remit_in(**GIVEN, work=False) as remit:
        (kept,) = (await prune(remit)).kept
        assert (kept.stream, kept.code) == (f"job/{job}", "CHAIN_BROKEN")


async def test_a_copy_takes_stubs_over_also_one_that_was_made_before(remit_in: OpenRemit, tmp_path: Path) -> None:
    job = await bought(remit_in)
    async with remit_in(**GIVEN, work=False) as remit:
        source = remit.runtime.journal
        earlier, fresh = (Journal(SqliteStore(str(tmp_path / name), SystemClock())) for name in ("a.db", "b.db"))
        await back_up(source, earlier)
        await prune(remit)
        for target in (earlier, fresh):
            await back_up(source, target)
            head = await target.head(f"job/{job}")
            assert head is not None
            assert is_pruned(head)
            assert len(await target.left(f"job/{job}")) == 1
            assert await target.integrity() == []
            await target.close()


async def test_tickets_that_failed_or_are_blocked_go_as_the_done_ones_and_open_ones_stay(remit_in: OpenRemit) -> None:
    async with remit_in(work=False) as remit:
        tickets = remit.service.tickets
        names = [(await tickets.create({"type": "TRIAGE", "event": EVENT})).id for _ in range(4)]
        failed, blocked, leased, pending = names
        for name in (failed, leased):
            lease = await tickets.lease_by_id(name, owner="desk")
            proof = LeaseProof(owner=lease.lease_owner, token=lease.lease_token)
            if name == failed:
                await tickets.fail(name, proof, code="RUN_TIMEOUT", reason="it took too long")
        await tickets.block(blocked, code="MCP_REQUIRED_UNAVAILABLE", reason="down", source="desk")
        done = await prune(remit)
        assert {unit.stream: unit.state for unit in done.pruned} == {
            f"ticket/{failed}": "failed",
            f"ticket/{blocked}": "blocked",
        }
        assert {unit.stream for unit in done.kept} == {f"ticket/{leased}", f"ticket/{pending}"}
        for name in (failed, blocked):
            with pytest.raises(RecordPrunedError):
                await tickets.retry(name)
        assert (await prune(remit)).pruned == []
        assert (await remit.service.streams.verify()).problems == ()


@pytest.mark.slow
async def test_days_of_a_schedule_go_and_the_schedule_goes_on(tmp_path: Path) -> None:
    async with clockwork(url=str(tmp_path / "journal.db")) as work:
        await work.add(overlap="allow")
        await work.run_for(3 * DAY)
        rule = RetentionRule(keep="1d", kinds=("schedule_day",), archive=str(tmp_path / "archive"))
        pruning = await work.remit.service.retention.prune(
            lambda head: rule_for((rule,), head, work.clock.now()), rule.kinds
        )
        assert [unit.stream for unit in pruning.pruned] == ["schedule/hourly/2026-11-03", "schedule/hourly/2026-11-02"]
        assert [Path(unit.file).is_file() for unit in pruning.pruned] == [True, True]
        await work.run_for(HOUR)
        view = await work.schedules.view("hourly")
        assert (view.last[0].what, view.last[0].recorded_at) == ("fired", work.clock.now() - 1_800 * SECOND)
        for unit in pruning.pruned:
            assert await work.journal.verify(unit.stream)
        day = micros("2026-11-02T00:00:00+00:00")
        with pytest.raises(RecordPrunedError):  # else a time might get a second job, under another revision
            await work.schedules.run("hourly", since=day, until=day + DAY * SECOND)


async def test_messages_and_logins_that_are_over_go_and_nothing_is_told_or_let_in_again() -> None:
    async with world() as at, Idp() as idp:
        sessions = people_of(at.remit, idp)
        over, goes_on = [await sessions.begin(Person("idp:ann", "ann", "", ("payments",), ""), "cli") for _ in range(2)]
        await sessions.end(over)
        job = await at.ask()
        mark = at.slack.buttons()["approve"]
        for user in ("U1", "U2"):
            await at.slack.press("approve", user)
            await at.teller.round()
        assert (await at.remit.ended(job)).state == "completed"
        await at.teller.round()
        assert len((await prune(at.remit, kinds=("job",))).pruned) == 1
        await at.slack.send(at.slack.pressed("approve", mark, "U1"), nonce="later")
        await at.teller.round()
        assert sorted(await codes(at)) == ["", "", "MESSAGE_MISMATCH"]
        kinds = {unit.stream.partition("/")[0] for unit in (await prune(at.remit)).pruned}
        assert kinds >= {"notify", "login"}
        logins = await at.remit.runtime.journal.heads(HeadQuery(kind="login"))
        assert {head.state: "principal" in head.labels for head in logins} == {"open": True, "ended": False}
        assert await sessions.session(over) is None
        assert await sessions.session(goes_on) is not None
        assert [row.state for row in await at.teller.rows()] == ["sent"]
        folds = at.remit.runtime.journal.folds
        (fold,) = await folds.read("notify-oncall")
        assert await folds.keep([JournalFold(name=fold.name, position=0, data=b"")], fold.position)
        at.work()
        await at.slack.send(at.slack.pressed("approve", mark, "U1"))
        await at.teller.round()
        assert (len(at.slack.posts()), len(at.slack.said("chat.update"))) == (1, 1)
        assert (await at.remit.service.streams.verify()).problems == ()


async def test_a_device_that_came_back_stays_when_its_first_subscription_goes() -> None:
    async with told() as (remit, service):
        devices = remit.service.devices
        await devices.add(service.asked())
        (device,) = await devices.of("ann")
        await devices.end(device, "its browser forgot it")
        await devices.add(service.asked())
        (again,) = await devices.of("ann")
        pruning = await prune(remit, kinds=("push_subscription",))
        assert [unit.stream for unit in pruning.pruned] == [device.head.stream]
        assert [row.head.stream for row in await devices.of("ann")] == [again.head.stream]
        assert (await remit.service.streams.verify()).problems == ()


async def test_a_message_whose_question_waits_stays_and_its_buttons_count() -> None:
    async with world() as at:
        job = await at.ask()
        pruning = await prune(at.remit, kinds=("notification",))
        assert pruning.pruned == []
        assert [kept.why.partition(":")[0] for kept in pruning.kept if "/n_" in kept.stream] == ["a question is open"]
        for user in ("U1", "U2"):
            await at.slack.press("approve", user)
            await at.teller.round()
        assert (await at.remit.ended(job)).state == "completed"
