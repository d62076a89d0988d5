"""A question over HTTP shows the untrusted text, and where it comes from."""

from __future__ import annotations

from pathlib import Path

from remit.recipes.agent import agent
from tests.agents import bank
from tests.api.conftest import Served, bearer, token


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
