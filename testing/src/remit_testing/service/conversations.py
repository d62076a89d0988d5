"""Checks on conversations of agents."""

from __future__ import annotations

from typing import Final

from remit.codes import Code
from remit.errors import NotFoundError, StateError, UsageError
from remit.service.options import Options
from remit_testing.service.world import Check, Reach, refused, world
from remit_testing.suite import checks_in

_TOOLS: Final = ["desk.*"]
_MAY: Final = ("desk.*", "model.*")


async def check_a_conversation_is_shown_in_openais_format(reach: Reach) -> None:
    """Every message, with calls and their results."""
    async with world(reach) as place:
        job = await place.ran("agent", task="What is it?", tools=_TOOLS)
        messages = await place.service.conversations.in_openai_format(job)
        assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
        assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"]
        assert (messages[2]["content"], messages[3]["content"]) == ("MOON", "It is the moon.")
        with refused(Code.JOB_NOT_FOUND, NotFoundError):
            await place.service.conversations.in_openai_format("job_none")


async def check_an_agent_that_has_answered_goes_on_in_a_new_job(reach: Reach) -> None:
    """With the same tools and limits, never with more; and what it waits for holds nothing that is said meanwhile."""
    async with world(reach) as place:
        first = await place.service.jobs.start_named(
            "agent", {"task": "What is it?", "tools": _TOOLS}, Options(tools=_MAY, budget={"max_steps": 9})
        )
        await place.at_rest(first)
        later = await place.service.conversations.say(first, "Are you sure?", Options(title="later"))
        assert later != first
        row = await place.at_rest(later)
        assert (row.state, row.title) == ("waiting", "later")
        created = (await place.local.jobs.history(later)).created
        assert created is not None
        assert (created.overlay, created.budget) == ({"tools": list(_MAY)}, {"max_steps": 9})

        assert await place.service.conversations.say(later, "Please hurry") == later
        (question,) = await place.service.confirmations.pending(later)
        await place.service.confirmations.decide(question.confirmation, "approve")
        async for _ in place.local.streams.follow(f"job/{later}"):
            pass
        assert (await place.service.jobs.result(later))["answer"] == "Yes."
        texts = [each["content"] for each in await place.service.conversations.in_openai_format(later)]
        assert texts[4:] == ["Are you sure?", "", "sure", "Please hurry", "Yes."]


async def check_what_is_no_conversation_is_refused(reach: Reach) -> None:
    """A job that runs no agent, and what says nothing."""
    async with world(reach) as place:
        job = await place.ran("looks", at="x")
        with refused(Code.JOB_NOT_CONVERSATION, StateError):
            await place.service.conversations.say(job, "hello")
        with refused(Code.USAGE, UsageError):
            await place.service.conversations.say(job, " ")


CONVERSATION_CHECKS: Final[tuple[Check, ...]] = checks_in(globals())
