from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit import Recipe, Remit, Run, recipe
from remit.app import JobEndedError
from remit.codes import Code
from remit.errors import VersionError
from remit.gateway.budget import Budget
from remit.jobs.answers import ModelError
from remit.jobs.state import JobHistory
from remit.journal.event import Event
from remit.journal.kinds import CommandCommitted, CommandStarted, decode
from remit.models.message import user
from remit.models.prompt import Sampling
from remit.policy.overlay import parse_overlay
from remit.service.options import Options
from remit.settings import Settings, load
from remit_testing.models import ChatSpeech, ModelServer, Received, Scene, Streamed
from tests.jumping import clock_at_noon
from tests.opened import until, until_waiting
from tests.patience import PATIENCE_S

Scripted = Callable[..., Settings]


class Sum(msgspec.Struct):
    total: int
    note: str | None = None


@pytest.fixture
def scripted(tmp_path: Path) -> Scripted:
    """Settings whose default model is this script."""

    def make(script: str, **flags: Any) -> Settings:
        (tmp_path / "script.yaml").write_text(script)
        given = {"models.default": "scripted:script.yaml", "journal.url": str(tmp_path / "j.db")}
        found = load(cwd=tmp_path, file=None, env={}, flags=given)
        changes = {name.removeprefix("models_"): value for name, value in flags.items()}
        return msgspec.structs.replace(found, models=msgspec.structs.replace(found.models, **changes))

    return make


@recipe("ask")
async def ask(run: Run, question: str) -> str:
    return (await run.model(question)).text


@recipe("chat")
async def chat(run: Run, turns: int) -> list[str]:
    said, thread = [], (await run.model("start")).thread
    for turn in range(turns - 1):
        answer = await run.model(thread.add(user(f"go on {turn}")))
        said.append(answer.text)
        thread = answer.thread
    return said


@recipe("offered")
async def offered(run: Run) -> str:
    return (await run.model("x", tools=["fs.list", "fs.read"])).text


@recipe("add")
async def add(run: Run) -> Any:
    return (await run.model("2 + 2", output=Sum)).value


@recipe("names")
async def names(run: Run) -> Any:
    return (await run.model("who", output=list[str])).value


@recipe("frugal")
async def frugal(run: Run, tokens: int) -> str:
    for _ in range(9):
        try:
            await run.model("x", sampling=Sampling(max_output_tokens=10), budget=Budget(tokens=tokens))
        except ModelError as error:
            return f"{error.code}: {error.message}"
    return "all"


@recipe("patient")
async def patient(run: Run) -> list[str]:
    return [answer.text for answer in await run.gather(run.model("a"), run.model("b"))]


RECIPES: list[Recipe[..., Any]] = [ask, chat, offered, add, names, frugal, patient]


def _opened(settings: Settings, **more: Any) -> Remit:
    return Remit(settings=settings, recipes=RECIPES, **more)


async def _events(remit: Remit, job: str) -> list[Event]:
    return await remit.runtime.journal.read(f"job/{job}")


def _commands(events: list[Event]) -> list[Any]:
    kinds = {CommandStarted.KIND, CommandCommitted.KIND}
    return [decode(event.kind, event.data) for event in events if event.kind in kinds]


async def test_an_answer_is_announced_and_recorded_whole(scripted: Scripted) -> None:
    async with _opened(scripted("[{say: Hello there.}]")) as remit:
        job = await remit.start(ask(question="Hi?"))
        assert await job == "Hello there."
        started, committed = _commands(await _events(remit, job.id))
        assert (started.llm_provider, started.llm_model, started.api) == ("scripted", "script.yaml", "scripted/1")
        assert started.wire_hash.startswith("sha256:")
        assert [bytes(one.body) for one in started.added] == [
            b'{"blocks":[{"text":"Hi?","type":"text"}],"role":"user"}'
        ]
        assert committed.finish_reason == "answer"
        assert committed.prompt_hash == started.prompt_hash
        assert committed.token_count == committed.input_tokens + committed.output_tokens > 0
        report = await remit.service.jobs.replay(job.id)
        assert report.verdict == "same"


async def test_replay_asks_no_model(scripted: Scripted, tmp_path: Path) -> None:
    settings = scripted("[{say: one}, {say: two}, {say: three}]")
    async with _opened(settings) as remit:
        job = await remit.start(chat(turns=3))
        assert await job == ["two", "three"]
    (tmp_path / "script.yaml").unlink()
    async with _opened(settings, work=False) as remit:
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"
        assert remit.runtime.services.models is not None
        assert remit.runtime.services.models.opened == ()


async def test_a_prompt_is_references_so_that_a_hundredth_turn_is_as_small_as_the_third(scripted: Scripted) -> None:
    async with _opened(scripted(str([{"say": f"answer {n}"} for n in range(100)]))) as remit:
        job = await remit.start(chat(turns=100))
        await job
        events = await _events(remit, job.id)
    sizes = [len(event.data) for event in events if event.kind == CommandStarted.KIND]
    assert max(sizes[2:]) <= sizes[2] + 40
    third = _commands(events)[4]
    assert [one.body is msgspec.UNSET for one in third.added] == [True, False], "the answer before stands there already"


async def test_an_answer_that_does_not_fit_is_asked_for_again_in_the_form_wanted(scripted: Scripted) -> None:
    script = """[{say: four}, {expect: "not JSON", say: '{"total": "4"}'}, {expect: "total", say: '{"total": 4}'}]"""
    async with _opened(scripted(script)) as remit:
        job = await remit.start(add())
        assert await job == {"total": 4, "note": None}
        steps = [one.step for one in _commands(await _events(remit, job.id)) if isinstance(one, CommandStarted)]
        assert steps == ["1", "1.0.1", "1.0.2"]
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_three_answers_that_do_not_fit_are_enough(scripted: Scripted) -> None:
    async with _opened(scripted("[{say: a}, {say: b}, {say: c}, {say: '{\"total\": 1}'}]")) as remit:
        with pytest.raises(JobEndedError) as caught:
            await (await remit.start(add()))
        assert caught.value.code is Code.MODEL_ANSWER_INVALID


async def test_a_form_that_is_no_object_is_wrapped_for_the_model_and_unwrapped_for_the_recipe(
    scripted: Scripted,
) -> None:
    async with _opened(scripted("""[{say: '{"value": ["ada", "bob"]}'}]""")) as remit:
        assert await (await remit.start(names())) == ["ada", "bob"]


async def test_a_fault_is_waited_for_without_asking_more_than_the_provider_wants(scripted: Scripted) -> None:
    script = "[{fault: busy, after: 0.01}, {say: At last.}]"
    async with _opened(scripted(script)) as remit:
        job = await remit.start(ask(question="?"))
        assert await job == "At last."
        commands = _commands(await _events(remit, job.id))
    assert [one.attempt for one in commands] == [1, 1, 2, 2]
    assert [one.error.code for one in commands[1::2] if one.error] == ["MODEL_BUSY"]
    assert commands[1].again_ms == 500


async def test_a_long_pause_is_a_timer_of_the_journal_and_holds_no_worker(scripted: Scripted) -> None:
    async with _opened(scripted("[{fault: busy, after: 3600}, {say: At last.}]")) as remit:
        job = await remit.start(ask(question="?"))
        await until_waiting(remit, job.id)
        (wait,) = (await remit.service.jobs.view(job.id)).waits
        head = await remit.runtime.journal.head(f"job/{job.id}")
        assert head is not None
        assert (wait.type, head.lease_owner) == ("timer", None)
        assert head.due_at is not None
        assert 3_590 < (head.due_at - head.updated_at) / 1_000_000 <= 3_600


async def test_an_answer_that_did_not_arrive_is_asked_for_again_and_stays_counted_as_reserved(
    scripted: Scripted,
) -> None:
    asked = asyncio.Event()

    def answers(_received: Received) -> Streamed:
        first = not asked.is_set()
        asked.set()
        return Streamed(
            events=[] if first else ChatSpeech().events(Scene(text=("Hi.",))), ends="never" if first else "well"
        )

    async with ModelServer(answers).listening() as server:
        settings = scripted("[]", models_default=f"openai-compatible:{server.url}#m")
        hasty = msgspec.structs.replace(settings, jobs=msgspec.structs.replace(settings.jobs, drain_seconds=0))
        async with _opened(hasty) as remit:
            job = await remit.start(ask(question="?"))
            await asked.wait()
        async with _opened(settings) as remit:
            assert await remit.job(job.id) == "Hi."
            events = await _events(remit, job.id)
            assert (await remit.service.jobs.replay(job.id)).verdict == "same"
    first, lost, second, answer = _commands(events)
    assert (lost.uncertain, lost.error.code, second.attempt) == (True, "OUTCOME_UNKNOWN", 2)
    spent = JobHistory(events).spending.spent
    assert spent.tokens == first.reserved_tokens + answer.token_count > answer.token_count > 0


async def test_the_tools_that_were_offered_are_recorded_as_they_were_sent(scripted: Scripted) -> None:
    async with _opened(scripted("[{say: ok}]")) as remit:
        job = await remit.start(offered())
        await job
        (started, _) = _commands(await _events(remit, job.id))
        prompt = msgspec.json.decode(bytes(started.prompt))
        kept = msgspec.json.decode(await remit.runtime.journal.blob(prompt["tools"]) or b"")
    names = [tool["name"] for tool in kept]
    assert names == ["fs__list", "fs__read"]
    assert all(tool["schema"]["type"] == "object" for tool in kept)


async def test_what_cannot_be_asked_is_refused_and_recorded(scripted: Scripted) -> None:
    async with _opened(scripted("[]")) as remit:
        job = await remit.start(ask(question="?"))
        with pytest.raises(JobEndedError) as caught:
            await job
        assert caught.value.code is Code.MODEL_REJECTED
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


@recipe("named")
async def named(run: Run) -> str:
    first = (await run.model("a", model=MODEL["name"])).text
    await run.wait_signal("go")
    return first


MODEL = {"name": "scripted:script.yaml"}


@pytest.mark.parametrize("policy", ["warn", "fail"])
async def test_another_model_than_recorded_is_drift(
    scripted: Scripted, policy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = scripted("[{say: hi}]")
    settings = msgspec.structs.replace(settings, jobs=msgspec.structs.replace(settings.jobs, mismatch=policy))
    async with Remit(settings=settings, recipes=[named]) as remit:
        job = await remit.start(named())
        await until_waiting(remit, job.id)
        monkeypatch.setitem(MODEL, "name", "openai:other")
        if policy == "fail":
            with pytest.raises(VersionError) as refused:
                await remit.service.jobs.replay(job.id)
            assert refused.value.code is Code.MODEL_DRIFT
        report = await remit.service.jobs.replay(job.id, anyway=True)
        assert [(one.subject, one.recorded, one.current) for one in report.drifts] == [
            ("step 1", "scripted/script.yaml", "openai/other")
        ]
        await job.signal("go")
        if policy == "warn":
            assert await job == "hi"
        else:
            await until(remit, job.id, lambda row: row.code == "MODEL_DRIFT")
        kinds = [event.kind for event in await _events(remit, job.id)]
        assert kinds.count("model_drift_recorded") == 1


async def test_a_rule_can_forbid_a_model(scripted: Scripted) -> None:
    rule = {"id": "no-models", "effect": "deny", "tools": ["model.scripted"]}
    settings = scripted("[{say: hi}]")
    settings = msgspec.structs.replace(settings, policy=msgspec.structs.replace(settings.policy, rules=(rule,)))
    async with _opened(settings) as remit:
        job = await remit.start(ask(question="?"))
        with pytest.raises(JobEndedError) as caught:
            await job
        assert caught.value.code is Code.POLICY_DENIED
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_a_rule_can_have_a_person_asked_who_sees_all_that_is_new(scripted: Scripted) -> None:
    rule = {"id": "ask-first", "effect": "ask", "tools": ["model.*"], "when": {"model": {"equals": "script.yaml"}}}
    settings = scripted("[{say: hi}]")
    settings = msgspec.structs.replace(settings, policy=msgspec.structs.replace(settings.policy, rules=(rule,)))
    async with _opened(settings) as remit:
        job = await remit.start(ask(question="May I?"))
        (question,) = [one async for one in _first(remit, job.id)]
        assert question.args["new"][0]["blocks"] == [{"type": "text", "text": "May I?"}]
        await remit.service.confirmations.decide(question.confirmation, "approve")
        assert await job == "hi"
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def _first(remit: Remit, job: str) -> Any:
    async for one in remit.questions(job):
        yield one
        return


async def test_a_budget_is_reserved_before_and_settled_after(scripted: Scripted) -> None:
    async with _opened(scripted("[{say: hi}]")) as remit:
        job = await remit.start(frugal(tokens=160))
        said = await job
        assert said.startswith("BUDGET_EXCEEDED: the job used ")
        asked = [one for one in _commands(await _events(remit, job.id)) if isinstance(one, CommandStarted)]
        assert 1 < len(asked) < 9
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_the_day_of_a_principal_has_a_limit_over_all_jobs_and_restarts(scripted: Scripted) -> None:
    settings, clock = scripted("[{say: hi}]", day_tokens=5_000), clock_at_noon()
    async with _opened(settings, clock=clock) as remit:
        assert await (await remit.start(ask(question="?"))) == "hi"
    async with _opened(settings, clock=clock) as remit:
        jobs = [await remit.start(ask(question="?" * 600)) for _ in range(20)]
        ended = await asyncio.gather(*jobs, return_exceptions=True)
    refused = [one for one in ended if isinstance(one, JobEndedError)]
    assert {one.code for one in refused} == {Code.BUDGET_EXCEEDED}
    assert 0 < len(refused) < 20


async def test_branches_ask_at_the_same_time(scripted: Scripted) -> None:
    async with _opened(scripted("[{say: hi}]")) as remit:
        job = await remit.start(patient())
        assert await asyncio.wait_for(job.result(), PATIENCE_S) == ["hi", "hi"]
        steps = [one.step for one in _commands(await _events(remit, job.id)) if isinstance(one, CommandStarted)]
        assert sorted(steps) == ["1.0.1", "1.1.1"]


async def test_a_question_to_a_model_names_the_policy_that_decided_it(scripted: Scripted) -> None:
    denies = ({"id": "no-notes", "effect": "deny", "tools": ["note.*"]},)
    async with _opened(scripted("[{say: Hello.}, {say: Hello.}]")) as remit:
        hashes = []
        for options in (Options(), Options(policy=denies)):
            job = await remit.start(ask(question="Hi?"), options)
            assert await job == "Hello."
            hashes.append(_commands(await _events(remit, job.id))[0].policy_hash)
        own = remit.runtime.services.policy
        assert hashes == [own.hash, own.under((parse_overlay("job", denies, None),)).hash]
        assert hashes[0] != hashes[1]
