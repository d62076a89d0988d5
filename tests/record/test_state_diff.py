"""What a call changed, as far as its result says so: told by every face, wherever the result is kept."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from remit import Remit, Run, recipe, tool
from remit.record.step import StateDiff

BARE = StateDiff(side_effect="write", effect="committed", idempotency_key="key", effect_by="tool")


@pytest.mark.parametrize("result", [None, [], "before", 3, {"beforehand": 1}, {"before_": 1}, {"diff": 1}])
def test_other_results_say_nothing_of_it(result: Any) -> None:
    assert BARE.told_by(msgspec.json.encode(result)) == BARE


@pytest.mark.parametrize(
    ("result", "before", "after", "diff"),
    [
        ('{"before":[1]}', '{"state":[1]}', '{"state":"not recorded"}', ""),
        ('{"before":1,"after":null}', '{"state":1}', '{"state":null}', ""),
        ('{"n_before":1,"n":2,"m_before":3,"m_after":4}', '{"n":1,"m":3}', '{"n":2,"m":4}', ""),
        ('{"diff":"-a\\n+b"}', "", "", "-a\n+b"),
        ("{", "", "", ""),
    ],
)
def test_a_result_says_what_was_there_before_and_after(result: str, before: str, after: str, diff: str) -> None:
    told = BARE.told_by(result.encode())
    assert (told.before, told.after, told.diff) == (before, after, diff)


@tool("desk.edit", level="L1")
def edit(size: int) -> dict[str, Any]:
    """Change a state, and say more of it than fits its event."""
    return {"text": "x" * size, "before": {"password": "hunter2", "n": 1}, "after": {"n": 5}, "diff": "-1\n+5"}


@recipe("edits")
async def edits(run: Run) -> None:
    """Edit twice, and leave one result in its event."""
    for size in (1, 20_000):
        await run.call("desk.edit", {"size": size})


async def test_trace_and_step_tell_it_of_a_result_that_is_kept_beside_its_event_too() -> None:
    allowed = {"effect": "allow", "tools": ["desk.*"]}
    async with Remit(":memory:", tools=[edit], recipes=[edits], policy=[allowed]) as remit:
        job = await remit.service.jobs.start_named("edits", {})
        await remit.ended(job)
        told = [step.state_diff for step in (await remit.service.streams.narrative(job)).steps]
        view = (await remit.service.steps.view(job, "2")).narrative
    assert view is not None
    for diff in (*told, view.state_diff):
        assert diff is not None
        sides = (diff.before, diff.after, diff.diff)
        assert sides == ('{"state":{"password":"********","n":1}}', '{"state":{"n":5}}', "-1\n+5")
        assert diff.kept is None
