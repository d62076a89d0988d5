from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit import Remit, Run, recipe
from remit.app import JobEndedError
from remit.codes import Code
from remit.journal.kinds import CommandCommitted, CommandStarted, decode
from remit.settings import Settings, load
from remit.settings.sections.calls import LimitSettings
from remit_testing.models import Canned, ChatSpeech, ModelServer, Received, Scene, Streamed
from tests.opened import until
from tests.patience import PATIENCE_S

WHOLE = Streamed(events=ChatSpeech().events(Scene(text=("Hi.",))))
CUT = Streamed(events=ChatSpeech().events(Scene(text=("Hi.",)))[:1])
SILENT = Streamed(events=[], ends="never")


@recipe("ask")
async def ask(run: Run) -> str:
    return (await run.model("?")).text


def _settings(tmp_path: Path, url: str, **models: Any) -> Settings:
    flags = {"models.default": f"openai-compatible:{url}#m", "journal.url": str(tmp_path / "j.db")}
    flags |= {f"models.{name}": value for name, value in models.items()} | {"jobs.drain_seconds": 0}
    return load(cwd=tmp_path, file=None, env={}, flags=flags)


def _in_turn(responses: Iterable[Any], asked: asyncio.Event) -> Callable[[Received], Any]:
    left = iter(responses)

    def answer(_: Received) -> Any:
        asked.set()
        return next(left)

    return answer


async def _committed(remit: Remit, job: str) -> list[CommandCommitted]:
    events = [decode(event.kind, event.data) for event in await remit.runtime.journal.read(f"job/{job}")]
    return [event for event in events if isinstance(event, CommandCommitted)]


async def test_deaths_of_workers_cost_no_attempts(tmp_path: Path) -> None:
    asked = asyncio.Event()
    async with ModelServer(_in_turn([SILENT, SILENT, SILENT, CUT, WHOLE], asked)).listening() as server:
        settings = _settings(tmp_path, server.url, attempts=2, first_pause_ms=1)
        job = ""
        for _ in range(3):
            asked.clear()
            async with Remit(settings=settings, recipes=[ask]) as remit:
                job = job or (await remit.start(ask())).id
                await asyncio.wait_for(asked.wait(), PATIENCE_S)
        async with Remit(settings=settings, recipes=[ask]) as remit:
            assert await asyncio.wait_for(remit.job(job).result(), PATIENCE_S) == "Hi."
            committed = await _committed(remit, job)
            assert (await remit.service.jobs.replay(job)).verdict == "same"
    assert [one.lost for one in committed] == [True, True, True, False, False]
    assert [one.attempt for one in committed] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("away", ["error", "refused"])
async def test_a_provider_that_is_away_is_asked_as_often_as_the_settings_say_and_nothing_counts_as_used(
    tmp_path: Path, away: str
) -> None:
    async with ModelServer(lambda _: Canned(status=500, body=b"{}")).listening() as server:
        url = server.url if away == "error" else "http://127.0.0.1:9"
        settings = _settings(tmp_path, url, attempts=3, first_pause_ms=1)
        async with Remit(settings=settings, recipes=[ask]) as remit:
            job = await remit.start(ask())
            with pytest.raises(JobEndedError, match="asked 3 times") as caught:
                await job
            (row,) = await remit.service.usage.rows("model")
            assert len(server.received) == (3 if away == "error" else 0)
    assert caught.value.code is Code.MODEL_FAILED
    assert f"`remit retry {job.id}`" in (caught.value.remedy or "")
    assert (row.calls, row.tokens) == (3, 0)


async def test_pauses_grow_up_to_the_longest(tmp_path: Path) -> None:
    failing = [Canned(status=500, body=b"{}")] * 4
    async with ModelServer(_in_turn([*failing, WHOLE], asyncio.Event())).listening() as server:
        settings = _settings(tmp_path, server.url, first_pause_ms=1)
        settings = msgspec.structs.replace(
            settings, models=msgspec.structs.replace(settings.models, longest_pause_seconds=1)
        )
        async with Remit(settings=settings, recipes=[ask]) as remit:
            job = await remit.start(ask())
            assert await asyncio.wait_for(job.result(), PATIENCE_S) == "Hi."
            assert [one.again_ms for one in await _committed(remit, job.id)] == [1, 2, 4, 8, None]


async def test_a_question_names_the_rule_and_the_policy_that_decided_it(tmp_path: Path) -> None:
    async with ModelServer(_in_turn([WHOLE], asyncio.Event())).listening() as server:
        settings = _settings(tmp_path, server.url)
        rule = {"id": "models", "effect": "allow", "tools": ["model.*"]}
        async with Remit(settings=settings, recipes=[ask], policy=[rule]) as remit:
            job = await remit.start(ask())
            assert await job == "Hi."
            events = [decode(one.kind, one.data) for one in await remit.runtime.journal.read(f"job/{job.id}")]
            policy = remit.runtime.gateway.services.policy.hash
    started = [(one.rule_id, one.policy_hash) for one in events if isinstance(one, CommandStarted)]
    assert started == [("models", policy)]


async def test_the_longest_pause_is_the_one_of_the_settings(tmp_path: Path) -> None:
    settings = _settings(tmp_path, "http://127.0.0.1:9", longest_pause_seconds=5)
    async with Remit(settings=settings, work=False) as remit:
        retry = remit.runtime.gateway.services.fallbacks.retry
    assert [retry.delay_ms(failed) for failed in (1, 4, 11)] == [500, 4_000, 5_000]


async def test_the_settings_as_they_come_outlast_a_restart_of_a_server(tmp_path: Path) -> None:
    async with Remit(settings=_settings(tmp_path, "http://127.0.0.1:9"), work=False) as remit:
        retry = remit.runtime.gateway.services.fallbacks.retry
    assert sum(retry.delay_ms(failed) for failed in range(1, retry.attempts)) >= 240_000


async def test_a_provider_that_fails_is_left_alone_by_its_breaker(tmp_path: Path) -> None:
    async with ModelServer(lambda _: Canned(status=500, body=b"{}")).listening() as server:
        settings = _settings(tmp_path, server.url, attempts=5, first_pause_ms=1)
        tables = {"model.*": {"breaker": 2, "wait_seconds": 0}}
        settings = msgspec.structs.replace(settings, limits=LimitSettings(tools=tables))
        async with Remit(settings=settings, recipes=[ask]) as remit:
            job = await remit.start(ask())
            row = await until(remit, job.id, lambda row: "its turn" in row.waiting_for)
            assert "after 2 failures to reach it in a row" in row.waiting_for
            await job.cancel()
        assert len(server.received) == 2
