"""Random rules, calls and faces: each decision that is recorded derives again from its own rules and facts."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import apsw
import pytest

from remit import Options, Remit, Run, recipe, tool
from remit.clock import SystemClock
from remit.errors import StateError
from remit.evidence.program import sources
from remit.evidence.verify import check
from remit.jobs.state import ENDED
from remit.journal.copy import back_up
from remit.journal.event import HeadQuery
from remit.journal.journal import Journal
from remit.journal.sqlite.store import SqliteStore
from remit.parts.audit.package import write_package
from remit.parts.drift.noun import DecisionsReport, Deriver
from remit.record.decisions import DecisionCollector, FactReader
from remit.record.walk import root_of
from remit.record.walk import walk as walk_over
from remit.service.approvals import scopes_of
from remit.settings import Settings, load
from tests.jumping import JumpingClock
from tests.opened import until, until_waiting
from tests.patience import PATIENCE_S

ROUNDS: Final = int(os.environ.get("REMIT_TEST_DERIVING_ROUNDS", "6"))
"""Random policies, each with jobs and three faces. Default: 6."""
FACES: Final = ("mcp", "http", "python")
NAMES: Final = ("x.read", "x.write", "x.run", "x.sure", "x.none")
CONDITIONS: Final[tuple[dict[str, Any], ...]] = (
    {"when": {"n": {"max": 5}}},
    {"where": "args.n < 4 or input.start > 2"},
    {"where": 'seen("x.read").n == args.n'},
    {"limit": {"per": "job", "calls": 2}},
    {"limit": {"per": "day", "sum": "n", "max": 20, "by": ["principal"]}},
    {"during": {"hours": "00:00-12:00"}},
    {"callers": ["job:walk", "mcp:*"]},
    {"callers": ["ann"]},
    {"levels": ["L1", "L2"]},
    {},
)


@tool("x.read", level="L0")
async def read(n: int) -> dict[str, int]:
    return {"n": n}


@tool("x.write", level="L1")
async def write(n: int) -> int:
    return n


@tool("x.run", level="L2", unprotected=True)
async def execute(n: int) -> int:
    return n


@tool("x.sure", level="L0", confirm=True)
async def sure(n: int) -> int:
    return n


@recipe("walk", version="1")
async def walk(run: Run, start: int, calls: list[list[Any]]) -> int:
    for name, n in calls:
        await run.attempt(name, {"n": n}, timeout=PATIENCE_S)
    return start


def rules(chance: random.Random) -> list[dict[str, Any]]:
    """Some rules that a person could write."""
    found = []
    for number in range(chance.randrange(5)):
        names = chance.sample(["x.*", *NAMES], chance.randrange(1, 3))
        effect = chance.choice(["allow", "allow", "ask", "deny"])
        found.append({"id": f"r{number}", "effect": effect, "tools": names, **chance.choice(CONDITIONS)})
    return found


def calls(chance: random.Random, most: int) -> list[list[Any]]:
    names = [form for name in NAMES for form in (name, name.replace(".", "_"), name.replace(".", "__"))]
    return [[chance.choice(names), chance.randrange(8)] for _ in range(chance.randrange(1, most))]


async def approve(remit: Remit, clock: JumpingClock, confirmation: str, chance: random.Random) -> None:
    """Approve a call, or another that is made of it, some time later; for later calls too, if chance wants it."""
    if chance.random() < 0.3:
        edited = await remit.service.confirmations.edit(confirmation, {"n": chance.randrange(8)}, by="carol")
        confirmation = edited.confirmation
    clock.jump(chance.choice([0, 0, 5 * 3600]))
    if chance.random() < 0.4:
        shown = await remit.service.confirmations.view(confirmation)
        scope = chance.choice([*scopes_of(shown).values()])
        exact = chance.random() < 0.5
        await remit.service.approvals.remember(
            confirmation, scope, seconds=86_400, exact=exact, digest=shown.digest, by="carol"
        )
    else:
        await remit.service.confirmations.decide(confirmation, "approve", by="carol")
    clock.jump(chance.choice([0, 0, 5 * 3600]))


async def act(folder: Path, chance: random.Random) -> None:
    """Calls of a job and of every face under random rules; people answer some of the questions."""
    flags = {
        "journal.url": str(folder / "journal.db"),
        "app.principal": chance.choice(["ann", "bob"]),
        "policy.rules": rules(chance),
        "jobs.drain_seconds": 0,
    }
    settings, clock = load(env={}, cwd=folder, flags=flags), JumpingClock(SystemClock())
    async with Remit(settings=settings, tools=[read, write, execute, sure], recipes=[walk], clock=clock) as remit:
        added = tuple(rule for rule in rules(chance) if rule["effect"] != "allow")
        job = await remit.start(walk(chance.randrange(5), calls(chance, 5)), Options(policy=added))
        for face in FACES:
            principal = chance.choice(["ann", "bob"])
            session = await remit.service.sessions.open(face, principal=principal)
            for name, n in calls(chance, 6):
                only = chance.choice([(), (), ("x.read", "x.w*")])
                said = await remit.service.sessions.call(session, name, {"n": n}, only=only)
                if said.status == "pending" and said.confirmation and chance.random() < 0.7:
                    if chance.random() < 0.3:
                        await remit.service.confirmations.decide(said.confirmation, "deny", by="carol")
                    else:
                        await approve(remit, clock, said.confirmation, chance)
                    if chance.random() < 0.5:  # it goes on in another one
                        session = await remit.service.sessions.open(chance.choice(FACES), principal=principal)
                    await remit.service.sessions.call(session, name, {"n": n}, only=only)
        mark = 0
        while (await job.row()).state not in ENDED:
            mark = await remit.runtime.journal.changed(mark)
            for question in await remit.service.confirmations.pending():
                with suppress(StateError):  # what was remembered meanwhile answers it
                    await approve(remit, clock, question.confirmation, chance)


async def derive_from_packages(journal: Journal, folder: Path) -> int:
    """Take the decisions of every job and session again, as verify.py does from packages; how many there were."""
    decisions, names = 0, {root_of(head.stream) for head in await journal.heads(HeadQuery(limit=10_000))}
    for name in sorted(name for name in names if name.startswith(("job/", "session/", "call/"))):
        with (folder / "one.zip").open("w+b") as file:
            await write_package(journal, name, file)
        verdict = check(str(folder / "one.zip"), sources())
        assert (verdict.problem, verdict.decisions and verdict.decisions.not_derived) == ("", ()), name
        decisions += verdict.decisions.decisions if verdict.decisions else 0
    return decisions


async def in_a_copy(journal: Journal) -> DecisionsReport:
    """Derive the decisions in a copy of a journal, which has its streams one after the other."""
    other = Journal(SqliteStore(":memory:", journal.clock), journal.clock)
    await back_up(journal, other)
    deriver = Deriver(other, FactReader(other))
    collector = DecisionCollector(deriver.judge, result_tools=None)
    await walk_over(other, [collector])
    await other.close()
    return deriver.report(collector.missing)


@pytest.mark.slow
async def test_every_decision_of_random_rules_calls_and_faces_derives_again() -> None:
    decisions = 0
    for seed in range(ROUNDS):
        with TemporaryDirectory() as own:
            folder, chance = Path(own), random.Random(seed)
            await act(folder, chance)
            async with Remit(
                str(folder / "journal.db"), settings=load(env={}, cwd=folder, flags={}), work=False
            ) as remit:
                report = await remit.service.drift.decisions()
                assert await in_a_copy(remit.runtime.journal) == report, seed
                packaged = await derive_from_packages(remit.runtime.journal, folder)
            assert (report.different, report.missing) == ((), {}), seed
            assert packaged >= report.decisions, seed  # a call is in the packages of all sessions that made it
            decisions += report.decisions
    assert decisions > 10 * ROUNDS


async def derived(remit: Remit, folder: Path) -> tuple[int, int]:
    """Decisions that derive again in the journal, and in packages; a difference fails."""
    report = await remit.service.drift.decisions()
    assert (report.different, report.missing) == ((), {})
    return report.same, await derive_from_packages(remit.runtime.journal, folder)


def ruled(folder: Path, model: str = "", **rule: Any) -> Settings:
    """Settings with one rule, for `x.write` unless it says otherwise."""
    rules = [{"id": "r", "tools": ["x.write"], **rule}]
    flags = {"journal.url": str(folder / "journal.db"), "policy.rules": rules, "models.default": model}
    return load(env={}, cwd=folder, flags=flags)


@pytest.mark.slow
async def test_a_call_is_decided_for_the_session_that_makes_it(tmp_path: Path) -> None:
    async with Remit(settings=ruled(tmp_path, effect="ask", callers=["mcp:*"]), tools=[write]) as remit:
        sessions = remit.service.sessions
        asked = await sessions.call(await sessions.open("mcp", principal="ann"), "x.write", {"n": 1})
        await remit.service.confirmations.decide(asked.confirmation or "", "approve", by="carol")
        again = await sessions.call(await sessions.open("http", principal="ann"), "x.write", {"n": 1})
        assert again.status == "ok"
        assert await derived(remit, tmp_path) == (2, 6)  # of the call, and of both sessions


async def test_a_call_that_was_asked_about_may_be_allowed_when_it_is_made(tmp_path: Path) -> None:
    clock = JumpingClock(SystemClock())
    later = datetime.fromtimestamp(clock.now() / 1e6 + 3_600, UTC).isoformat()
    settings = ruled(tmp_path, effect="allow", during={"since": later})
    async with Remit(settings=settings, tools=[write], recipes=[walk], clock=clock) as remit:
        job = await remit.start(walk(1, [["x.write", 1]]))
        await until_waiting(remit, job.id)
        clock.jump(2 * 3_600)
        (asked,) = await job.questions()
        await remit.service.confirmations.decide(asked.confirmation, "approve", by="carol")
        await job
        assert await derived(remit, tmp_path) == (2, 2)


async def test_a_question_that_a_person_made_is_not_one_of_the_gate(tmp_path: Path) -> None:
    settings = ruled(tmp_path, effect="allow", when={"n": {"max": 3}})
    async with Remit(settings=settings, tools=[write], recipes=[walk]) as remit:
        job = await remit.start(walk(1, [["x.write", 5]]))
        await until_waiting(remit, job.id)
        (asked,) = await job.questions()
        edited = await remit.service.confirmations.edit(asked.confirmation, {"n": 1}, by="carol")
        await remit.service.confirmations.decide(edited.confirmation, "approve", by="carol")
        await job
        assert await derived(remit, tmp_path) == (2, 2)  # the question of the gate, and the call


@pytest.mark.parametrize("revoked", [False, True])
async def test_a_remembered_approval_is_known_wherever_it_stands(tmp_path: Path, revoked: bool) -> None:
    async with Remit(settings=ruled(tmp_path, effect="ask"), tools=[write], recipes=[walk]) as remit:
        job = await remit.start(walk(1, [["x.write", 1], ["x.write", 2]]))
        await until_waiting(remit, job.id)
        (asked,) = await job.questions()
        shown = await remit.service.confirmations.view(asked.confirmation)
        scope = scopes_of(shown)["job"]
        rule = await remit.service.approvals.remember(
            asked.confirmation, scope, seconds=86_400, exact=False, digest=shown.digest, by="carol"
        )
        await job
        if revoked:
            await remit.service.approvals.revoke(rule.id if rule else "", by="carol")
    async with Remit(settings=ruled(tmp_path, effect="ask"), work=False) as remit:
        assert (await in_a_copy(remit.runtime.journal)).same == 3
        assert await derived(remit, tmp_path) == (3, 3)


@pytest.mark.parametrize("name", ["x.write", "x_write", "x__write"])
async def test_a_refused_call_derives_by_whichever_name_it_was_asked_for(tmp_path: Path, name: str) -> None:
    async with Remit(settings=ruled(tmp_path, effect="deny"), tools=[write], recipes=[walk]) as remit:
        session = await remit.service.sessions.open("mcp", principal="ann")
        assert (await remit.service.sessions.call(session, name, {"n": 1})).status == "blocked"
        job = await remit.start(walk(1, [[name, 1]]))
        await job
        assert await derived(remit, tmp_path) == (2, 2)
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
        found = await remit.service.audit.ask(what="refused", tool="x.write")
        assert [entry.name for entry in found.entries] == ["x.write", "x.write"]


@recipe("wonder", version="1")
async def wonder(run: Run) -> str:
    return (await run.model("hello")).text


@pytest.mark.parametrize(
    ("rule", "state", "decisions"),
    [
        ({"effect": "deny", "tools": ["model.scripted"], "when": {"model": {"glob": "*.json"}}}, "failed", 1),
        ({"effect": "ask", "tools": ["model.scripted"]}, "waiting", 1),
        ({"effect": "deny", "tools": ["*"], "when": {"path": {"glob": "secrets/**"}}}, "completed", 0),
        ({"effect": "deny", "tools": ["*"], "when": {"host": {"glob": "*.example"}}}, "completed", 0),
    ],
)
async def test_a_question_to_a_model_is_decided_by_what_rules_see_of_it(
    tmp_path: Path, rule: dict[str, Any], state: str, decisions: int
) -> None:
    (tmp_path / "script.json").write_text('[{"say": "hello"}]')
    settings = ruled(tmp_path, **rule, model=f"scripted:{tmp_path}/script.json")
    async with Remit(settings=settings, recipes=[wonder]) as remit:
        job = await remit.start(wonder())
        row = await until(remit, job.id, lambda row: row.state in {*ENDED, "waiting"})
        assert row.state == state
        assert await derived(remit, tmp_path) == (decisions, decisions)


async def test_a_decision_that_its_rules_do_not_lead_to_is_found(tmp_path: Path) -> None:
    flags = {
        "journal.url": str(tmp_path / "journal.db"),
        "policy.rules": [{"id": "no", "effect": "deny", "tools": ["x.write"]}],
    }
    async with Remit(settings=load(env={}, cwd=tmp_path, flags=flags), tools=[write], recipes=[walk]) as remit:
        await remit.run(walk(1, [["x.write", 1]]))
        assert (await remit.service.drift.decisions()).same == 1
    with apsw.Connection(str(tmp_path / "journal.db")) as db:
        rule = '"rule_id":"no"'
        db.execute(
            "UPDATE events SET data = CAST(replace(CAST(data AS TEXT), ?, ?) AS BLOB) WHERE kind = 'gate_refused'",
            (rule, '"rule_id":"on"'),
        )
    async with Remit(settings=load(env={}, cwd=tmp_path, flags=flags), tools=[write], work=False) as remit:
        (wrong,) = (await remit.service.drift.decisions()).different
        assert (wrong.recorded, wrong.derived) == ("deny by on", "deny by no")
