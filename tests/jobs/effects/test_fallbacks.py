"""Jobs whose model fails, and another is asked in its place."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remit import Remit, Run, recipe
from remit.app import JobEndedError
from remit.codes import Code
from remit.journal.kinds import CommandCommitted, CommandStarted, decode
from remit.settings import Settings, load
from remit_testing.models import Canned, ChatSpeech, ModelServer, Received, Scene, Streamed
from tests.opened import until_waiting
from tests.patience import PATIENCE_S

HI = Streamed(events=ChatSpeech().events(Scene(text=("Hi.",))))
DOWN = Canned(status=500, body=b"{}")


@recipe("ask")
async def ask(run: Run) -> str:
    return (await run.model("?")).text


def _answer(replies: dict[str, Any], asked: list[str], second: asyncio.Event | None = None) -> Any:
    def answer(request: Received) -> Any:
        asked.append(request.body["model"])
        if second is not None and len(asked) > 1:
            second.set()
        return replies[request.body["model"]]

    return answer


def _settings(tmp_path: Path, url: str, default: str = "a", **rule: Any) -> Settings:
    fallback = {"to": [f"openai-compatible:{url}#{name}" for name in ("b", "c")], "after": 1, **rule}
    flags = {
        "models.default": default if ":" in default else f"openai-compatible:{url}#{default}",
        "models.fallbacks": [fallback],
        "models.first_pause_ms": 1,
        "models.attempts": 2,
        "journal.url": str(tmp_path / "j.db"),
        "jobs.drain_seconds": 0,
    }
    return load(cwd=tmp_path, file=None, env={}, flags=flags)


async def _models(remit: Remit, job: str) -> list[tuple[str, str, str, str]]:
    """The models of each attempt: the one that was asked, in whose place, why it was left, and for which one."""
    started: dict[str, CommandStarted] = {}
    rows = []
    for event in await remit.runtime.journal.read(f"job/{job}"):
        payload = decode(event.kind, event.data)
        if isinstance(payload, CommandStarted):
            started[payload.invocation_id] = payload
        elif isinstance(payload, CommandCommitted):
            begun = started[payload.invocation_id]
            code = payload.error.code if payload.error else ""
            rows.append((begun.llm_model, begun.asked[-1:], code, payload.next_model[-1:]))
    return rows


async def test_the_next_model_answers_and_the_record_says_who_was_asked_and_why_it_was_left(tmp_path: Path) -> None:
    asked: list[str] = []
    async with ModelServer(_answer({"a": DOWN, "b": DOWN, "c": HI}, asked)).listening() as server:
        async with Remit(settings=_settings(tmp_path, server.url), recipes=[ask]) as remit:
            job = await remit.start(ask())
            assert await asyncio.wait_for(job.result(), PATIENCE_S) == "Hi."
            assert await _models(remit, job.id) == [
                ("a", "", "MODEL_FAILED", "b"),
                ("b", "a", "MODEL_FAILED", "c"),
                ("c", "a", "", ""),
            ]
            story = await remit.service.jobs.story(job.id)
            step = story.story.told(story.steps[0].step)
            report = await remit.service.jobs.replay(job.id)
        # With another default the record still says which model the question named.
        async with Remit(settings=_settings(tmp_path, server.url, default="c"), recipes=[ask], work=False) as remit:
            drifted = await remit.service.jobs.replay(job.id)
    assert asked == ["a", "b", "c"]
    assert step is not None
    assert [attempt.next_model[-1:] for attempt in step.attempts] == ["b", "c", ""]
    assert step.name.endswith("#c")
    assert (report.verdict, report.drifts) == ("same", ())
    assert [(drift.recorded[-1], drift.current[-1]) for drift in drifted.drifts] == [("a", "c")]


async def test_each_model_has_its_own_attempts_and_the_last_fault_ends_the_job(tmp_path: Path) -> None:
    asked: list[str] = []
    async with (
        ModelServer(_answer({"a": DOWN, "b": DOWN, "c": DOWN}, asked)).listening() as server,
        Remit(settings=_settings(tmp_path, server.url, after=2), recipes=[ask]) as remit,
    ):
        job = await remit.start(ask())
        with pytest.raises(JobEndedError, match="asked 6 times"):
            await asyncio.wait_for(job.result(), PATIENCE_S)
    assert "".join(asked) == "aabbcc"


async def test_a_worker_that_ends_goes_on_at_the_model_of_the_chain(tmp_path: Path) -> None:
    asked: list[str] = []
    replies: dict[str, Any] = {"a": DOWN, "b": Streamed(events=[], ends="never")}
    second = asyncio.Event()
    async with ModelServer(_answer(replies, asked, second)).listening() as server:
        settings = _settings(tmp_path, server.url)
        async with Remit(settings=settings, recipes=[ask]) as remit:
            job = await remit.start(ask())
            await asyncio.wait_for(second.wait(), PATIENCE_S)
        replies["b"] = HI
        async with Remit(settings=settings, recipes=[ask]) as remit:
            assert await asyncio.wait_for(remit.job(job.id).result(), PATIENCE_S) == "Hi."
            rows = await _models(remit, job.id)
            assert (await remit.service.jobs.replay(job.id)).verdict == "same"
    assert [(model, place) for model, place, _, _ in rows] == [("a", ""), ("b", "a"), ("b", "a")]


@pytest.mark.parametrize("effect", ["deny", "ask"])
async def test_a_model_of_the_chain_is_held_to_the_rules(tmp_path: Path, effect: str) -> None:
    asked: list[str] = []
    rule = {"id": "no-b", "effect": effect, "tools": ["model.*"], "when": {"model": {"equals": "b"}}}
    async with (
        ModelServer(_answer({"a": DOWN, "b": HI}, asked)).listening() as server,
        Remit(settings=_settings(tmp_path, server.url), recipes=[ask], policy=[rule]) as remit,
    ):
        job = await remit.start(ask())
        if effect == "ask":
            await until_waiting(remit, job.id)
            assert asked == ["a"]
            (question,) = await remit.service.confirmations.pending()
            await remit.service.confirmations.decide(question.confirmation, "approve", by="ann")
            assert await asyncio.wait_for(job.result(), PATIENCE_S) == "Hi."
        else:
            with pytest.raises(JobEndedError) as refused:
                await asyncio.wait_for(job.result(), PATIENCE_S)
            assert refused.value.code is Code.POLICY_DENIED
    assert asked == (["a"] if effect == "deny" else ["a", "b"])


KEYLESS = "anthropic:claude"


@pytest.mark.parametrize(
    ("default", "first", "asked_for"),
    [(KEYLESS, {}, KEYLESS), ("a", {"a": DOWN}, "a")],
    ids=["the first", "one between"],
)
async def test_a_model_whose_key_is_missing_is_passed_over_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, default: str, first: dict[str, Any], asked_for: str
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    models: list[str] = []
    async with ModelServer(_answer({**first, "b": HI}, models)).listening() as server:
        b = f"openai-compatible:{server.url}#b"
        named = default if ":" in default else f"openai-compatible:{server.url}#{default}"
        settings = _settings(tmp_path, server.url, named, to=[KEYLESS, b])
        async with Remit(settings=settings, recipes=[ask]) as remit:
            job = await remit.start(ask())
            assert await asyncio.wait_for(job.result(), PATIENCE_S) == "Hi."
            events = await remit.runtime.journal.read(f"job/{job.id}")
            starts = [decode(event.kind, event.data) for event in events if event.kind == CommandStarted.KIND]
            assert isinstance(starts[-1], CommandStarted)
            assert (starts[-1].name, starts[-1].asked[-len(asked_for) :]) == (b, asked_for)
            assert starts[-1].passed == {KEYLESS: f"{KEYLESS} needs an API key"}
            step = (await remit.service.jobs.story(job.id)).story.told("1")
            assert step is not None
            assert step.attempts[-1].by == f" by {b} ({KEYLESS} needs an API key)"
            assert (await remit.service.jobs.replay(job.id)).verdict == "same"
    assert models == [*first, "b"]


@pytest.mark.parametrize("rule", [{"on": ["server"]}, {"to": ["google:gemini"]}])
async def test_where_no_model_of_the_chain_can_be_asked_the_refusal_names_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: dict[str, Any]
) -> None:
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    async with Remit(settings=_settings(tmp_path, "http://127.0.0.1:9", KEYLESS, **rule), recipes=[ask]) as remit:
        job = await remit.start(ask())
        with pytest.raises(JobEndedError, match=f"{KEYLESS} needs an API key") as refused:
            await asyncio.wait_for(job.result(), PATIENCE_S)
    assert refused.value.code is Code.MODEL_UNAVAILABLE
    assert ("google:gemini needs an API key" in str(refused.value)) is ("to" in rule)
