from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from remit import Remit
from remit.agents.openai_messages import from_openai, to_openai
from remit.errors import NotFoundError, UsageError
from remit.recipes.agent import agent
from remit.settings import load


async def test_a_conversation_is_shown_exported_and_gone_on_with(tmp_path: Path) -> None:
    script = [
        {"say": "Let me look.", "call": [{"tool": "fs.read", "args": {"path": "script.yaml"}}]},
        {"say": "A script."},
        {"expect": "Sure", "say": "Yes."},
    ]
    (tmp_path / "script.yaml").write_bytes(msgspec.json.encode(script))
    flags = {"models.default": "scripted:script.yaml", "journal.url": str(tmp_path / "j.db")}
    settings = load(cwd=tmp_path, file=None, env={}, flags=flags)
    async with Remit(settings=settings) as remit:
        job = await remit.start(agent(task="What is it?", tools=["fs.*"], instructions="Be brief."))
        assert (await job).answer == "A script."
        found = await remit.service.conversations.in_openai_format(job.id)
        assert [message["role"] for message in found] == ["system", "user", "assistant", "tool", "assistant"]
        assert found[2]["tool_calls"][0]["id"] == found[3]["tool_call_id"]
        assert to_openai(from_openai(found))[3]["content"] == found[3]["content"]
        given = await remit.service.conversations.continuation(job.id, "Sure?")
        later = await remit.service.jobs.start_named("agent", given)
        assert (await remit.job(later))["answer"] == "Yes."
        assert len(await remit.service.conversations.messages(later)) == 7
        assert (await remit.service.jobs.replay(later)).verdict == "same"
        with pytest.raises(NotFoundError):
            await remit.service.conversations.messages("job_none")


@pytest.mark.parametrize(
    "given",
    [
        "hello",
        [{"role": "wizard", "content": "x"}],
        [{"role": "user"}, {"role": "system", "content": "late"}],
        [{"role": "tool", "tool_call_id": "x", "content": "orphan"}],
        [{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "t", "arguments": "{}"}}]}],
        [{}],
    ],
)
def test_what_is_no_conversation_is_refused(given: object) -> None:
    with pytest.raises(UsageError):
        from_openai(given)
