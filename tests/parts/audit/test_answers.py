"""Questions of an auditor: the same answer from Python, HTTP and the command line, with the index and without."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from remit import Remit
from remit.cli.root import run
from remit.client import RemoteRemit
from remit.clock import SystemClock
from remit.errors import RecordPrunedError, UsageError
from remit.journal.copy import back_up
from remit.journal.event import JournalFold
from remit.journal.journal import Journal
from remit.journal.postgres.store import PostgresStore
from remit.journal.sqlite.store import SqliteStore
from remit.parts.audit import index
from remit.parts.audit.answers import AuditQuestion, answer
from remit.parts.audit.facts import AuditFacts, What
from remit.parts.retention.rule import RetentionRule, rule_for
from remit.settings import load
from remit_testing.clock import ManualClock
from tests.client.conftest import serving
from tests.journal.storages import PostgresStorage
from tests.opened import OpenRemit, until_waiting
from tests.parts.audit.asked import DIGEST, HOUR, JOBS, SCHEMA, record, record_in
from tests.parts.audit.packages import GIVEN, bought, buy
from tests.record.old.golden import NAMES, unpack

BOTH: Final = {"journal.url": "", "app.principal": "alice"}


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("asked") / "journal.db"
    asyncio.run(record(path))
    return path


def opened(path: Path) -> Remit:
    return Remit(settings=load(env={}, search=False, flags={**BOTH, "journal.url": str(path)}), work=False)


def picked(found: Any, what: str, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(one.get(name, "") for name in names) for one in found["entries"] if one["what"] == what]


def tools(found: Any) -> list[tuple[Any, ...]]:
    return sorted((one["tool"], one["version"], one["principal"], one["calls"]) for one in found["tools"])


CASES: Final[list[tuple[dict[str, Any], Any]]] = [
    # which model made this decision?
    ({"job": JOBS[0]}, lambda found: picked(found, "decided", "step", "name", "answered", "temperature")
        == [("1", "openai:gpt-5", "openai/gpt-5-2026-01-01", 0.5)]),
    ({"model": "gpt-5"}, lambda found: sorted((one["answered"], one["answers"], one["cost"]) for one in found["models"])
        == [("openai/gpt-5-2026-01-01", 1, 0.25), ("openai/gpt-5-2026-06-01", 1, 0.25)]),
    # which version and schema of a tool ran?
    ({"job": JOBS[0], "what": "called"}, lambda found: picked(found, "called", "name", "version", "outcome", "code")
        == [("shop.look", "1", "failed", "TOOL_TIMEOUT"), ("shop.pay", "1", "ok", "")]),
    ({"tool": "shop.pay"}, lambda found: tools(found) == [("shop.pay", "1", "ada", 1), ("shop.pay", "2", "bob", 1)]),
    ({"tool": "shop.*"}, lambda found: {one["request_schema_hash"] for one in found["tools"]} == {SCHEMA}),
    # who approved what, on what digest, with which proof?
    ({"what": "answered"}, lambda found: picked(found, "answered", "who", "outcome", "name", "digest", "asked_digest",
        "proof", "signed", "requester") == [("mia", "approve", "shop.pay", DIGEST, DIGEST, "signature", True, "ada")]),
    ({"principal": "mia"}, lambda found: found["acts"]
        == {"answered": 1, "remembered": 1, "revoked": 1, "resolved": 1, "stopped": 1}),
    # what was refused, and why?
    ({"what": "refused"}, lambda found: picked(found, "refused", "who", "name", "code", "rule_id", "step")
        == [("ada", "shop.drop", "POLICY_DENIED", "never", "4")]),
    ({"tool": "shop.drop"}, lambda found: found["entries"][0]["reason"].startswith("never ")),
    # what did this principal touch?
    ({"principal": "bob"}, lambda found: tools(found)
        == [("shop.mail", "1", "bob", 1), ("shop.pay", "2", "bob", 1), ("shop.send", "1", "bob", 1)]),
    # a retry counts what it did itself
    ({"principal": "ada"}, lambda found: tools(found) == [("shop.look", "1", "ada", 2), ("shop.pay", "1", "ada", 1)]),
    # which effects are uncertain?
    ({"what": "uncertain"}, lambda found: picked(found, "uncertain", "name", "outcome", "idempotency_key")
        == [("shop.send", "unknown", "key-3"), ("shop.pay", "unknown", "key-2")]),
    ({"job": JOBS[1], "what": "uncertain"}, lambda found: len(found["entries"]) == 2),
    # times, and nothing
    ({"since": HOUR // 2}, lambda found: "answered" not in found["acts"] and found["events"] > 0),
    ({"tool": "shop.nothing"}, lambda found: (found["tools"], found["entries"], found["acts"]) == ([], [], {})),
    ({"job": JOBS[0], "against": JOBS[2]}, lambda found: found["against"]["b"]["job"] == JOBS[2]),
]  # fmt: skip


@pytest.mark.parametrize(("question", "holds"), CASES, ids=[json.dumps(question) for question, _ in CASES])
def test_every_face_gives_the_same_answer(
    journal: Path, question: dict[str, Any], holds: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    if "since" in question:
        question = {"since": asyncio.run(_middle(journal))}
    here, far = asyncio.run(_here_and_far(journal, question))
    assert holds(here), here
    assert far == here
    if "since" in question:
        return  # the command takes an age
    words = [word for name, value in question.items() for word in ([value] if name == "job" else [f"--{name}", value])]
    assert run(["--journal", str(journal), "audit", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == here
    assert run(["--journal", str(journal), "audit", *words]) == 0
    assert capsys.readouterr().out


async def _middle(path: Path) -> int:
    async with opened(path) as remit:
        return (await remit.service.jobs.row(JOBS[0])).created_at + HOUR // 2


async def _here_and_far(path: Path, question: dict[str, Any]) -> tuple[Any, Any]:
    async with opened(path) as remit, serving(remit.service) as url, RemoteRemit(url, "") as far:
        found = [await one.service.audit.ask(**question) for one in (remit, far)]
    here, there = (json.loads(msgspec.json.encode(one)) for one in found)
    return here, there


async def test_the_newest_act_comes_first_in_a_copy_whose_positions_say_otherwise(
    remit_in: OpenRemit, tmp_path: Path
) -> None:
    async with remit_in(**GIVEN) as remit:
        jobs = []
        for _ in range(2):  # questions are copied in the order that they were asked in
            jobs.append(await remit.start(buy()))
            await until_waiting(remit, jobs[-1].id)
        for job in reversed(jobs):
            await remit.service.confirmations.decide((await job.questions())[0].confirmation, "approve")
            await job
    copy = Journal(SqliteStore(str(tmp_path / "copy.db"), SystemClock()), SystemClock())
    async with remit_in(**GIVEN, work=False) as remit:
        await back_up(remit.runtime.journal, copy)  # stream by stream
    page = await answer(copy, AuditQuestion(limit=1))
    later = await answer(copy, AuditQuestion(limit=1, before=page.next))
    (first,), (second,) = page.entries, later.entries
    await copy.close()
    assert (first.at > second.at, first.position < second.position) == (True, True)


async def test_pages_hold_every_act_once(journal: Path) -> None:
    async with opened(journal) as remit:
        whole = await remit.service.audit.ask(limit=1_000)
        pages, before = [], 0
        while True:
            page = await remit.service.audit.ask(before=before, limit=2)
            pages += page.entries
            before = page.next
            if not before:
                break
    assert tuple(pages) == whole.entries
    assert [entry.at for entry in pages] == sorted((entry.at for entry in pages), reverse=True)
    assert len(pages) == sum(whole.acts.values())


@pytest.mark.parametrize("stretch", [1, 3, 7, 1_000])
async def test_the_index_says_what_the_events_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stretch: int
) -> None:
    path = tmp_path / "journal.db"
    await record(path)
    monkeypatch.setattr(index, "STRETCH", stretch)
    monkeypatch.setattr(index, "_PAGE", stretch)
    async with opened(path) as remit:
        kept = remit.runtime.journal
        middle = (await remit.service.jobs.row(JOBS[0])).created_at + HOUR // 2
        questions = [
            AuditQuestion(),
            AuditQuestion(since=middle),
            AuditQuestion(until=middle),
            AuditQuestion(since=middle, until=middle),
        ]
        whole = [await answer(kept, one) for one in questions]
        assert [await answer(kept, one) for one in questions] == whole
        for question, known in zip(questions, whole, strict=True):
            again = await answer(kept, question, again=True)
            assert (again.index, again.events, again.acts, again.tools) == (
                "same",
                known.events,
                known.acts,
                known.tools,
            )
        assert whole[1].events + whole[2].events == whole[0].events


@pytest.mark.slow
async def test_a_journal_on_postgresql_answers_alike(
    tmp_path: Path, storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await record(tmp_path / "journal.db")
    monkeypatch.setattr(index, "STRETCH", 7)
    monkeypatch.setattr(index, "_PAGE", 7)
    answers = []
    for clock, url in ((ManualClock(), storage.url), (None, "")):
        store = (
            PostgresStore(url, clock) if clock is not None else SqliteStore(str(tmp_path / "journal.db"), SystemClock())
        )
        journal = Journal(store, clock or SystemClock())
        try:
            if clock is not None:
                await record_in(journal, clock)
            found = [await answer(journal, AuditQuestion(), again=again) for again in (False, True, False)]
        finally:
            await journal.close()
        assert [one.index for one in found] == ["", "same", ""]
        assert found[0] == found[2]
        answers.append([(one.tools, one.models, one.acts, len(one.entries), one.events) for one in found])
    assert answers[0] == answers[1]


async def test_an_index_that_was_changed_is_found_and_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.db"
    await record(path)
    monkeypatch.setattr(index, "STRETCH", 5)
    monkeypatch.setattr(index, "_PAGE", 5)
    async with opened(path) as remit:
        folds = remit.runtime.journal.folds
        before = await remit.service.audit.ask()
        (head,) = await folds.read("audit")
        (_, part) = await folds.read("audit", ["0"])
        forged = JournalFold(part.name, part.position, part.data.replace(b'"shop.pay"', b'"shop.bay"'))
        for data, index_says in ((forged, "differs"), (JournalFold(part.name, part.position, b"{"), "same")):
            assert await folds.keep([head, data], head.position)
            assert (await remit.service.audit.ask(again=True)).index == index_says
            found = await remit.service.audit.ask()
            assert (found.tools, found.acts) == (before.tools, before.acts)


async def test_only_one_job_is_compared(journal: Path) -> None:
    async with opened(journal) as remit:
        with pytest.raises(UsageError):
            await remit.service.audit.ask(today=True)


@pytest.mark.parametrize("what", ["called", "decided"])
async def test_acts_that_are_not_told_of_a_whole_journal_are_no_answer_of_nothing(journal: Path, what: What) -> None:
    async with opened(journal) as remit:
        with pytest.raises(UsageError, match="each is told of one job"):
            await remit.service.audit.ask(what=what)


def test_the_command_says_what_differs_and_that_there_is_nothing(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--journal", str(journal), "audit", JOBS[0], "--against", JOBS[2]]) == 0
    assert "    2 shop.pay  approval: approve by mia; there: none" in capsys.readouterr().out.splitlines()
    for words in (["--tool", "shop.nothing"], ["--what", "erased", JOBS[0]]):
        assert run(["--journal", str(journal), "audit", *words]) == 0
        assert capsys.readouterr().out.splitlines()[1:] == ["nothing of this is recorded"]
    assert run(["--journal", str(journal), "audit", "--what", "uncertain"]) == 0
    assert "Tools" not in capsys.readouterr().out
    assert run(["--journal", str(journal), "audit"]) == 0
    assert all(line.strip() for line in capsys.readouterr().out.splitlines() if line)


def test_the_command_says_whether_a_job_would_go_on(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--journal", str(journal), "audit", JOBS[1], "--today", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["resumes"], found["because"][0]) == ("no", "no recipe is named 'buy'")
    assert run(["--journal", str(journal), "audit", JOBS[0], "--today"]) == 0
    assert "it has ended" in capsys.readouterr().out
    assert run(["--journal", str(journal), "audit", "--today"]) == 2


@pytest.mark.slow
async def test_every_old_journal_answers(tmp_path: Path) -> None:
    unpack(tmp_path)
    for name in NAMES:
        async with opened(tmp_path / f"{name}.db") as remit:
            found = await remit.service.audit.ask(again=True)
            assert (found.index, bool(found.events)) == ("same", True), name
            for row in await remit.service.jobs.rows(limit=100):
                assert (await remit.service.audit.ask(row.job)).events


async def test_once_events_were_pruned_the_index_is_made_again_once(
    remit_in: OpenRemit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "STRETCH", 5)
    monkeypatch.setattr(index, "_PAGE", 5)
    job = await bought(remit_in)
    async with remit_in(**GIVEN, work=False) as remit:
        before = await remit.service.audit.ask()
        assert [entry.what for entry in before.entries] == ["answered"]
        year, rule = remit.clock.now() + 365 * 24 * HOUR, RetentionRule(keep="90d")
        await remit.service.retention.prune(lambda head: rule_for([rule], head, year))
        after = await remit.service.audit.ask()
        assert (after.tools, after.acts, after.entries, after.pruned) == ((), {}, (), 2)
        monkeypatch.setattr(AuditFacts, "take", _never)
        assert await remit.service.audit.ask() == after
        monkeypatch.undo()
        with pytest.raises(RecordPrunedError):
            await remit.service.audit.ask(job)
        again = await remit.service.audit.ask(again=True)
        assert (again.index, again.tools) == ("same", ())


def _never(*_: object) -> None:
    raise AssertionError("the index was made a moment ago")
