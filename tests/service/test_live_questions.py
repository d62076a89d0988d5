"""A job's questions are put to their models again: what that may cost comes first, and what answered is compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit import Remit, Run, recipe
from remit.errors import NotFoundError, PayloadErasedError
from remit.gateway.budget import Budget
from remit.journal.kinds import ModelDriftRecorded
from remit.journal.kinds import decode as payload_of
from remit.service.options import Options
from remit.settings import load
from remit_testing.models import Canned, ChatSpeech, ModelServer, Received, Scene, Streamed

ASKED: dict[str, Any] = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}


@recipe("asks")
async def asks(run: Run, question: str) -> str:
    """Ask with tools, with a form, and go on with the conversation."""
    first = await run.model(question, tools=["fs.read"])
    await run.model("Are you sure?", output=ASKED, budget=Budget(tokens=1_000_000))
    return first.text


class Answers:
    """Answers of a server in turn: each is a text, a text and the model that gives it, or a failure."""

    def __init__(self, *answers: str | tuple[str, str] | int) -> None:
        self._answers: Iterator[str | tuple[str, str] | int] = iter(answers)

    def __call__(self, _received: Received) -> Streamed | Canned:
        answer = next(self._answers)
        if isinstance(answer, int):
            return Canned(status=answer, body=b"{}")
        text, model = answer if isinstance(answer, tuple) else (answer, "m-1")
        return Streamed(events=ChatSpeech().events(Scene(text=(text,), model=model)))


def opened(folder: Path, server: ModelServer, **flags: Any) -> Remit:
    """A Remit that asks this server."""
    given: dict[str, Any] = {"models.default": f"openai-compatible:{server.url}#m", "journal.url": str(folder / "j.db")}
    given |= {"models.prices": [{"model": "openai-compatible:*", "input": 1.0, "output": 2.0}]}
    settings = load(cwd=folder, file=None, env={}, flags=given | flags)
    return Remit(settings=settings, recipes=[asks])


async def test_each_question_is_put_again_as_it_was_asked(tmp_path: Path) -> None:
    given = ("Yes.", '{"sure":true}', "Yes.", '{"sure":false}', ("No.", "m-2"), 400)
    async with ModelServer(Answers(*given)).listening() as server, opened(tmp_path, server) as remit:
        job = (await remit.start(asks(question="Shall we?"))).id
        await remit.ended(job)
        before, sessions = await remit.runtime.journal.read(f"job/{job}"), remit.service.sessions

        cost = await sessions.asking_cost(job)
        assert (cost.questions, len(cost.models), cost.unpriced, len(server.received)) == (2, 1, 0, 2)
        assert 0 < cost.tokens < cost.most_tokens
        assert 0 < cost.cost < cost.most_cost

        first = await sessions.asked_again(job)
        assert [(call.step, call.verdict, call.drift) for call in first.calls] == [
            ("1", "same", ""),
            ("2", "changed", "output"),
        ]
        assert (first.calls[1].recorded, first.calls[1].now) == ('{"sure":true}', '{"sure":false}')
        assert [one.body for one in server.received[2:4]] == [one.body for one in server.received[:2]]

        second = await sessions.asked_again(job)
        assert [(call.step, call.verdict, call.drift) for call in second.calls] == [
            ("1", "changed", "model"),
            ("2", "failed", ""),
        ]
        assert second.calls[0].now == "openai-compatible/m-2: No."
        assert await remit.runtime.journal.read(f"job/{job}") == before

        events = await remit.runtime.journal.read(f"session/{first.session}")
        drifts = [payload_of(event.kind, event.data) for event in events if event.kind == ModelDriftRecorded.KIND]
        assert [(drift.subject, drift.step) for drift in drifts if isinstance(drift, ModelDriftRecorded)] == [
            ("output", "2")
        ]
        assert not any(b"Shall we?" in event.data for event in events)  # the messages stand in the job
        assert (await remit.service.streams.verify(first.session)).ok
        (prompt,) = (await remit.service.drift.report(since=0)).outputs[:1]
        assert (prompt.different, {answer.job for answer in prompt.examples} >= {job}) == (2, True)


async def test_policy_decides_on_a_question_that_is_put_again(tmp_path: Path) -> None:
    async with ModelServer(Answers("Yes.", '{"sure":true}')).listening() as server:
        async with opened(tmp_path, server) as remit:
            job = (await remit.start(asks(question="Shall we?"))).id
            await remit.ended(job)
        rules = [{"effect": "ask", "tools": ["model.*"]}]
        async with opened(tmp_path, server, **{"policy.rules": rules}) as remit:
            report = await remit.service.sessions.asked_again(job)
            assert {(call.verdict, call.now.partition(":")[0]) for call in report.calls} == {
                ("failed", "CONFIRMATION_REQUIRED")
            }
            assert await remit.service.confirmations.pending() == []
        assert len(server.received) == 2


async def test_what_is_about_a_subject_is_erased_from_the_answers_too(tmp_path: Path) -> None:
    given = ("Yes.", '{"sure":true}', "No, Eve.", '{"sure":true}')
    async with ModelServer(Answers(*given)).listening() as server, opened(tmp_path, server) as remit:
        job = (await remit.start(asks(question="Shall we, Eve?"), Options(subject="eve"))).id
        await remit.ended(job)
        report = await remit.service.sessions.asked_again(job)
        assert report.differs
        await remit.service.streams.erase("eve")
        told = await remit.service.streams.narrative(report.session)
        assert b"No, Eve." not in msgspec.json.encode(told)
        for look in (remit.service.sessions.asking_cost, remit.service.sessions.asked_again):
            with pytest.raises(PayloadErasedError):
                await look(job)
            with pytest.raises(NotFoundError):
                await look("job_00000000000000000000000000")
