from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from remit import Remit, Run, recipe, tool
from remit.codes import Code
from remit.errors import ProviderError
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.provider import CallContext, Preview, ToolResult
from tests.opened import OpenRemit, until, until_waiting

MADE = "(made by moment as the tool runs)"


class Desk:
    """A provider with a preview, of some version."""

    def __init__(self, found: Preview | Exception, provider_id: str = "desk") -> None:
        self.provider_id = provider_id
        self.found = found

    async def list_tools(self) -> Sequence[ToolMeta]:
        return [
            ToolMeta(
                name="desk.write", provider_id=self.provider_id, description="Write.", input_schema={"type": "object"},
                output_schema=None, capability_level=Level.L1, risk_level=Risk.WRITE, side_effects=True,
                idempotent=False, requires_confirm=True, version="1",
            )
        ]  # fmt: skip

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        return ToolResult({"name": name, "args": args, "step": ctx.step})

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        if isinstance(self.found, Exception):
            raise self.found
        return Preview(what=f"{self.found.what} {name} {args}")

    async def close(self) -> None:
        """Nothing is open."""


@recipe("writes")
async def writes(run: Run) -> Any:
    """Write, then ask."""
    await run.attempt("desk.write", {"at": 1})
    return await run.confirm("well?")


async def asked(remit: Remit) -> str:
    job = await remit.start(writes())
    await until_waiting(remit, job.id)
    (question,) = await job.questions()
    return question.confirmation


async def test_the_provider_of_the_call_shows_what_it_would_change(remit_in: OpenRemit) -> None:
    async with remit_in(providers=[Desk(Preview(what="Writes"))], recipes=[writes]) as remit:
        found = await remit.service.confirmations.preview(await asked(remit))
        assert found == Preview(what="Writes desk.write {'at': 1}")


async def test_why_it_cannot_be_told_is_shown(remit_in: OpenRemit) -> None:
    broken = ProviderError("no such place", code=Code.FILE_NOT_FOUND)
    async with remit_in(providers=[Desk(broken)], recipes=[writes]) as remit:
        found = await remit.service.confirmations.preview(await asked(remit))
        assert found is not None
        assert found.what == "What the call would change is unknown."
        assert "no such place" in found.problem


async def test_a_tool_of_another_provider_shows_nothing(remit_in: OpenRemit) -> None:
    async with remit_in(providers=[Desk(Preview(what="Writes"))], recipes=[writes]) as remit:
        question = await asked(remit)
    async with remit_in(providers=[Desk(Preview(what="Lies"), "other")], work=False) as remit:
        assert await remit.service.confirmations.preview(question) is None


async def test_a_question_of_a_recipe_changes_nothing(remit_in: OpenRemit) -> None:
    async with remit_in(providers=[Desk(Preview(what="Writes"))], recipes=[writes]) as remit:
        question = await asked(remit)
        await remit.service.confirmations.decide(question, "approve")
        (row,) = await remit.service.jobs.rows()
        await until(remit, row.job, lambda one: one.state == "waiting" and question not in one.waiting_for)
        (later,) = await remit.service.confirmations.pending()
        assert await remit.service.confirmations.preview(later.confirmation) is None


def moment() -> float:
    return 1.0


class When(msgspec.Struct):
    """A moment, which is the clock's where none is given."""

    zone: str = "UTC"
    at: float = msgspec.field(default_factory=moment)


@tool("desk.note", level="L1")
def note(text: str, when: When, more: list[When], until: When | None = None) -> str:
    """Write something down."""
    return f"{text} {when.at} {more} {until}"


@pytest.mark.parametrize(
    ("args", "left_out"),
    [
        ({"when": {}, "more": []}, {"/when/zone": "UTC", "/when/at": MADE, "/until": None}),
        ({"when": {"at": 1.0, "zone": ""}, "more": [{"at": 1.0, "zone": ""}, {"zone": ""}]}, {"/more/at": MADE}),
        ({"when": {"at": 1.0, "zone": ""}, "more": [], "until": {"zone": ""}}, {"/until/at": MADE}),
    ],
)
async def test_a_question_shows_what_a_clock_makes_as_the_call_runs(
    remit_in: OpenRemit, args: dict[str, Any], left_out: dict[str, Any]
) -> None:
    async with remit_in(tools=[note]) as remit:
        outcome = await remit.call("desk.note", {"text": "tide", **args})
        (question,) = await remit.service.confirmations.pending(described=True)
        assert question.confirmation == outcome.confirmation
        assert question.defaults is not None
        assert left_out.items() <= question.defaults.items()
        assert {place for place, how in question.defaults.items() if how == MADE} == {
            place for place, how in left_out.items() if how == MADE
        }
