"""A question over HTTP shows the untrusted text, and where it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit.jobs.state import JobHistory, stream_of
from remit.parts.agents.recipes import agent
from tests.api.conftest import Served, bearer, token
from tests.parts.agents import bank


async def test_a_question_over_http_says_where_the_account_comes_from(served: Served, tmp_path: Path) -> None:
    async with (
        bank.opened(bank.settings(tmp_path, *bank.INJECTED)) as opened,
        served(opened, [token("ann", "read", "decide")]) as client,
    ):
        job = await opened.start(agent(task="Answer my mail.", tools=list(bank.TOOLS)))
        await opened.service.jobs.settled([job.id])
        (question,) = (await client.get("/v1/confirmations", headers=bearer("ann"))).json
        (found,) = question["untrusted"]
        said = {name: found[name] for name in ("path", "role", "seen", "step", "tool", "span")}
        assert said == {
            "path": "iban",
            "role": "iban",
            "seen": "untrusted",
            "step": "2.0.1",
            "tool": "mail.read",
            "span": "DE89 3704 0044 0532 0130 00",
        }


TASK = f"Pay 900 EUR to {bank.IBAN}."


@pytest.mark.parametrize("untrusted", [True, False])
async def test_input_from_elsewhere_is_no_task_of_a_person(served: Served, tmp_path: Path, untrusted: bool) -> None:
    bank.PAID.clear()
    given = bank.settings(tmp_path, bank.INJECTED[1], {"say": "Done."}, {"say": "Yes."})
    async with bank.opened(given) as opened, served(opened, [token("ann", "read", "call", "decide")]) as client:

        async def started(path: str, **body: Any) -> Any:
            answer = await client.post(path, body, headers=bearer("ann"))
            assert answer.status == 201, answer.json
            await opened.service.jobs.settled([answer.json["job"]])
            return answer.json["job"]

        recipe = {"recipe": "agent", "input": {"task": TASK, "tools": list(bank.TOOLS)}}
        job = await started("/v1/jobs", **recipe, untrusted=untrusted)
        questions = (await client.get("/v1/confirmations", headers=bearer("ann"))).json
        assert [one["untrusted"][0]["value"] for one in questions] == ([bank.IBAN] if untrusted else [])
        assert ([] if untrusted else [bank.IBAN]) == bank.PAID
        if untrusted:
            await opened.service.confirmations.decide(questions[0]["confirmation"], "deny")
            await opened.service.jobs.settled([job])
        later = await started(f"/v1/jobs/{job}/conversation", text="Are you sure?")
        assert later != job
        assert [await _is_untrusted(opened, one) for one in (job, later)] == [untrusted, untrusted]


async def test_an_agent_at_work_takes_only_what_a_person_says(served: Served, tmp_path: Path) -> None:
    given = bank.settings(tmp_path, *bank.INJECTED)
    async with bank.opened(given) as opened, served(opened, [token("ann", "read", "call", "decide")]) as client:
        job = await opened.start(agent(task="Answer my mail.", tools=list(bank.TOOLS)))
        await opened.service.jobs.settled([job.id])
        path, said = f"/v1/jobs/{job.id}/conversation", {"text": TASK, "untrusted": True}
        answer = await client.post(path, said, headers=bearer("ann"))
        assert (answer.status, answer.json["error_code"]) == (400, "USAGE")
        await job.cancel()
        await opened.service.jobs.settled([job.id])
        later = await client.post(path, said, headers=bearer("ann"))
        assert later.status == 201
        assert await _is_untrusted(opened, later.json["job"])


async def _is_untrusted(opened: Any, job: str) -> bool:
    return not JobHistory(await opened.service.streams.events(stream_of(job))).provenance.task_trusted
