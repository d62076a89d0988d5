"""The guard takes calls of agents through the gate, and what they report into the record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from remit import Remit
from remit.journal.kinds import (
    ConfirmationDecided,
    SessionOpened,
    ToolInvocationFinished,
    ToolInvocationStarted,
    decode,
)
from remit.parts.hooks.checks import sessions_unseen
from remit.parts.hooks.guard import AgentTools, HookGuard
from remit.parts.hooks.hook import HookVerdict, Mode, read_hook
from remit.parts.hooks.kinds import HooksCallUngated
from remit.settings import load
from remit_testing.clock import ManualClock

RULES = [
    {
        "id": "no-rm",
        "effect": "deny",
        "tools": "agent.shell",
        "where": '"rm" in args.programs',
        "reason": "no deleting",
    },
    {"id": "push", "effect": "ask", "tools": "agent.shell", "where": '"git push" in args.programs'},
    {"id": "rest", "effect": "allow", "tools": "agent.*"},
]


class Agent:
    """An agent in words: its hooks, one after the other."""

    def __init__(self, remit: Remit, guard: HookGuard) -> None:
        self.remit = remit
        self.guard = guard
        self.gone: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def hook(self, moment: str, call: str = "", command: str = "echo hi", **more: Any) -> HookVerdict:
        agent, surface = more.pop("agent", "claude"), more.pop("surface", "")
        message = {"session_id": "s", "tool_use_id": call, "tool_name": "Bash", "tool_input": {"command": command}}
        return await self.guard.answer(
            read_hook(f"{agent}.{moment}:{surface}", json.dumps(message | more).encode()), self.gone
        )

    async def payloads(self, kind: type[Any]) -> list[Any]:
        scanned = await self.remit.runtime.journal.scan()
        found = [decode(placed.event.kind, placed.event.data) for placed in scanned.events]
        return [payload for payload in found if isinstance(payload, kind)]

    async def ends(self) -> list[tuple[str, str, str, tuple[str, ...]]]:
        """Return outcome, known effect, who says so and remarks of each recorded end."""
        ends = await self.payloads(ToolInvocationFinished)
        return [(end.outcome, f"{end.effect} {end.effect_by}", end.reported_by, end.remarks) for end in ends]

    async def steps(self) -> list[str]:
        rows = await self.remit.service.sessions.rows()
        told = [await self.remit.service.streams.narrative(row.session) for row in rows]
        return [step.state for each in told for step in each.steps]


@asynccontextmanager
async def opened(
    journal: str = ":memory:",
    mode: Mode = "narrow",
    hold_s: int = 0,
    rules: list[dict[str, Any]] = RULES,
    clock: ManualClock | None = None,
) -> AsyncIterator[Agent]:
    tools = AgentTools()
    settings = load(env={}, flags={"policy.rules": rules, "app.principal": "alice"})
    async with Remit(journal, settings=settings, providers=[tools], work=False, clock=clock) as remit:
        yield Agent(remit, HookGuard(remit, tools, mode=mode, hold_s=hold_s, defer=clock is not None))


@pytest.fixture
async def agent() -> AsyncIterator[Agent]:
    async with opened() as made:
        yield made


@pytest.mark.parametrize(
    ("mode", "command", "effect"),
    [
        ("observe", "echo hi", "none"),
        ("narrow", "echo hi", "none"),
        ("gate", "echo hi", "allow"),
        ("observe", "rm x", "none"),
        ("narrow", "rm x", "deny"),
        ("gate", "rm x", "deny"),
        ("narrow", "git push", "deny"),
        ("gate", "git push", "deny"),
    ],
)
async def test_a_mode_says_what_is_answered(mode: Mode, command: str, effect: str) -> None:
    async with opened(mode=mode) as agent:
        assert (await agent.hook("before", "c", command)).effect == effect


@pytest.mark.parametrize(
    ("name", "moments", "unseen"),
    [
        ("claude", ("before",), True),
        ("gemini", ("after",), True),
        ("copilot", ("begin", "before"), False),
        ("qwen", ("stop", "before"), False),
        ("opencode", ("before",), False),
    ],
)
async def test_a_session_whose_first_word_is_a_call_is_said_to_be_so(
    agent: Agent, name: str, moments: tuple[str, ...], unseen: bool
) -> None:
    for moment in moments:
        await agent.hook(moment, "c", agent=name)
    [session] = await agent.payloads(SessionOpened)
    [row] = await agent.remit.service.sessions.rows()
    told = await sessions_unseen(agent.remit.runtime.journal, ["claude", "gemini"])
    assert (session.begin_unseen, row.title) == (unseen, f"{name} as alice" + ", begin not seen" * unseen)
    assert told == [(name, row.session)] * unseen


async def test_the_intent_is_on_record_before_the_answer_and_the_report_after_it(agent: Agent) -> None:
    await agent.hook("before", "c")
    [started] = await agent.payloads(ToolInvocationStarted)
    assert (started.tool_name, started.alias, started.rule_id) == ("claude.bash", "agent.shell", "rest")
    assert started.client["call_id"] == "c"
    assert not await agent.ends()
    await agent.hook("after", "c", tool_response={"stdout": "hi"})
    assert await agent.ends() == [("success", "committed client", "claude", ())]


async def test_a_failure_that_is_reported_leaves_its_effect_unknown(agent: Agent) -> None:
    await agent.hook("before", "c")
    await agent.hook("failed", "c", error="Exit code 3")
    assert await agent.ends() == [("failure", "unknown client", "claude", ())]


async def test_a_refusal_names_its_rule(agent: Agent) -> None:
    verdict = await agent.hook("before", "c", "rm x")
    assert "POLICY_DENIED" in verdict.reason
    assert "no-rm" in verdict.reason
    assert await agent.steps() == ["blocked"]


async def test_one_rule_covers_all_agents(agent: Agent) -> None:
    verdicts = [
        await agent.hook("before", "c", "rm x", agent=name, tool_name=tool)
        for name, tool in (("codex", "Bash"), ("gemini", "run_shell_command"), ("opencode", "bash"), ("qwen", "shell"))
    ]
    assert [verdict.effect for verdict in verdicts] == ["deny"] * 4


async def _approve(agent: Agent) -> None:
    [question] = await agent.remit.service.confirmations.pending()
    await agent.remit.service.confirmations.decide(question.confirmation, "approve", digest=question.digest, by="bob")


async def test_an_approved_call_runs_once_under_another_id(agent: Agent) -> None:
    asked = await agent.hook("before", "c1", "git push")
    assert "remit confirm c_" in asked.reason
    await _approve(agent)
    assert (await agent.hook("before", "c2", "git push")).effect == "none"
    await agent.hook("after", "c2", "git push", tool_response="pushed")
    assert (await agent.hook("before", "c3", "git push")).effect == "deny"
    assert await agent.ends() == [("success", "committed client", "claude", ())]


async def test_a_call_that_is_held_runs_once_it_is_approved() -> None:
    async with opened(hold_s=60) as agent:
        asked = asyncio.create_task(agent.hook("before", "c", "git push"))
        mark = await agent.remit.runtime.journal.heads_changed(0)
        while not await agent.remit.service.confirmations.pending():
            mark = await agent.remit.runtime.journal.heads_changed(mark)
        assert not asked.done()
        await _approve(agent)
        assert (await asked).effect == "none"


async def _answered(hook: asyncio.Task[HookVerdict], clock: ManualClock) -> HookVerdict:
    while not hook.done():
        clock.advance(0.1)
        await clock.sleep(0)
    return await hook


async def _decide(agent: Agent, decision: Literal["approve", "deny"]) -> None:
    [question] = await agent.remit.service.confirmations.pending()
    await agent.remit.service.confirmations.decide(question.confirmation, decision, digest=question.digest, by="bob")


@pytest.mark.parametrize(("decision", "effect"), [("approve", "allow"), ("deny", "deny")])
async def test_an_answer_elsewhere_closes_the_dialog(
    agent: Agent, decision: Literal["approve", "deny"], effect: str
) -> None:
    assert (await agent.hook("before", "c", "git push", surface="cli")).effect == "ask"
    dialog = asyncio.create_task(agent.hook("permit", command="git push"))
    await _decide(agent, decision)
    assert (await dialog).effect == effect
    if decision == "approve":
        await agent.hook("after", "c", "git push")
    ends = [("success", "committed client", "claude", ())] if decision == "approve" else []
    assert await agent.ends() == ends
    assert not await agent.payloads(HooksCallUngated)


async def test_a_yes_in_the_dialog_answers_the_question_for_all(agent: Agent) -> None:
    await agent.hook("before", "c", "git push", surface="cli")
    dialog = asyncio.create_task(agent.hook("permit", command="git push"))
    await agent.hook("after", "c", "git push")
    assert (await dialog).effect == "none"
    assert await agent.ends() == [("success", "committed client", "claude", ())]
    assert [answer.by for answer in await agent.payloads(ConfirmationDecided)] == ["the dialog of claude"]
    assert not await agent.remit.service.confirmations.pending()
    assert (await agent.hook("before", "d", "git push")).effect == "deny", "it is asked about again"


async def test_a_dialog_that_led_to_no_call_by_the_end_of_the_turn_was_a_no(agent: Agent) -> None:
    await agent.hook("before", "c", "git push", surface="cli")
    await agent.hook("stop")
    [answer] = await agent.payloads(ConfirmationDecided)
    assert (answer.decision, answer.by) == ("deny", "the dialog of claude")
    assert not await agent.payloads(ToolInvocationStarted)


async def test_a_question_that_others_have_to_answer_is_no_dialog() -> None:
    async with opened(rules=[{"effect": "ask", "tools": "agent.*", "approvers": ["bob"]}]) as agent:
        assert (await agent.hook("before", "c", "git push", surface="cli")).effect == "deny"


async def test_a_dialog_that_the_guard_did_not_ask_for_is_the_agents_own(agent: Agent) -> None:
    assert (await agent.hook("permit", command="echo hi")).effect == "none"


@pytest.mark.parametrize(
    ("surface", "others", "effect"),
    [("sdk-cli", [], "defer"), ("sdk-cli", ["rm x"], "deny"), ("sdk-cli", ["echo hi"], "deny"), ("cli", [], "ask")],
)
async def test_a_call_alone_in_its_turn_is_put_off_without_a_terminal(
    surface: str, others: list[str], effect: str
) -> None:
    clock = ManualClock()
    async with opened(mode="gate", clock=clock) as agent:
        clock.advance(1)
        asked = asyncio.create_task(agent.hook("before", "c", "git push", surface=surface))
        rest = [asyncio.create_task(agent.hook("before", other, other, surface=surface)) for other in others]
        await asyncio.gather(*rest)
        assert (await _answered(asked, clock)).effect == effect
        assert "git push" not in str(await agent.payloads(ToolInvocationStarted))


async def test_a_call_that_was_put_off_runs_once_it_is_approved_and_resumed() -> None:
    clock = ManualClock()
    async with opened(mode="gate", clock=clock) as agent:
        clock.advance(1)
        asked = asyncio.create_task(agent.hook("before", "c", "git push", surface="sdk-cli"))
        await _answered(asked, clock)
        await _approve(agent)
        assert (await agent.hook("before", "c", "git push", surface="sdk-cli")).effect == "allow"
        await agent.hook("after", "c", "git push")
        assert await agent.ends() == [("success", "committed client", "claude", ())]


async def test_a_call_whose_agent_no_longer_waits_is_not_begun() -> None:
    async with opened(hold_s=60) as agent:
        agent.gone.set_result(b"")
        assert (await agent.hook("before", "c", "git push")).effect == "deny"
        assert not await agent.payloads(ToolInvocationStarted)


async def test_arguments_that_changed_after_the_gate_was_asked_are_told(agent: Agent) -> None:
    await agent.hook("before", "c", "echo hi")
    await agent.hook("after", "c", "echo other")
    assert await agent.ends() == [("success", "committed client", "claude", ("arguments_changed",))]


async def test_what_goes_on_in_the_background_is_open(agent: Agent) -> None:
    args = {"command": "sleep 9", "run_in_background": True}
    await agent.hook("before", "c", tool_input=args)
    await agent.hook("after", "c", tool_input=args)
    assert await agent.ends() == [("success", "unknown client", "claude", ("background",))]


async def test_two_equal_calls_at_once_without_ids_are_joined_by_their_order(agent: Agent) -> None:
    await asyncio.gather(*(agent.hook("before", agent="gemini") for _ in range(2)))
    for _ in range(2):
        await agent.hook("after", agent="gemini")
    assert [remarks for *_, remarks in await agent.ends()] == [("joined_by_order",), ()]
    assert await agent.steps() == ["ok", "ok"]


async def test_a_call_that_was_not_reported_by_the_end_of_its_turn_is_in_doubt(agent: Agent) -> None:
    await agent.hook("before", "c")
    await agent.hook("stop")
    assert await agent.ends() == [("failure", "unknown remit", "", ())]
    assert await agent.steps() == ["unknown"]


@pytest.mark.parametrize("command", ["echo hi", "git push"])
async def test_a_report_after_the_end_of_the_turn_is_taken(agent: Agent, command: str) -> None:
    if command == "git push":
        await agent.hook("before", "c", command)
        await _approve(agent)
    await agent.hook("before", "c", command)
    await agent.hook("stop")
    await agent.hook("after", "c", command)
    assert [end[:3] for end in await agent.ends()] == [
        ("failure", "unknown remit", ""),
        ("success", "committed client", "claude"),
    ]
    assert not await agent.payloads(HooksCallUngated)


async def test_the_end_of_a_subagent_ends_no_call_of_another(agent: Agent) -> None:
    await agent.hook("before", "c")
    await agent.hook("stop", agent_id="sub")
    assert not await agent.ends()


@pytest.mark.parametrize(("command", "why"), [("rm x", "refused"), ("echo hi", "not_asked")])
async def test_a_call_that_was_made_without_leave_is_a_finding(agent: Agent, command: str, why: str) -> None:
    if why == "refused":
        await agent.hook("before", "c", command)
    await agent.hook("after", "c", command)
    [ungated] = await agent.payloads(HooksCallUngated)
    assert (ungated.agent, ungated.tool_name, ungated.why, ungated.call_id) == ("claude", "claude.bash", why, "c")


async def test_in_mode_observe_every_call_is_recorded() -> None:
    async with opened(mode="observe", rules=[{"id": "observe", "effect": "allow"}]) as agent:
        for call in ("a", "b"):
            await agent.hook("before", call, "rm x")
            await agent.hook("after", call, "rm x")
        assert await agent.steps() == ["ok", "ok"]
        assert (await agent.payloads(ToolInvocationStarted))[0].rule_id == "observe"


@pytest.mark.parametrize("asks", [False, True])
async def test_a_report_after_a_restart_is_taken(asks: bool, tmp_path: Path) -> None:
    journal, command = str(tmp_path / "journal.db"), "git push" if asks else "echo hi"
    async with opened(journal) as first:
        if asks:
            await first.hook("before", "c", command)
            await _approve(first)
        await first.hook("before", "c", command)
    async with opened(journal) as second:
        await second.guard.settle_left()
        assert await second.ends() == [("failure", "unknown remit", "", ())]
        await second.hook("after", "c", command, tool_response="hi")
        ends = await second.ends()
        assert ends[-1] == ("success", "committed client", "claude", ())
        assert [state for state in await second.steps() if state != "waiting"] == ["ok"]
        await second.hook("before", "d")
        await second.hook("after", "d")
        report = await second.remit.service.streams.verify()
        assert (report.problems, report.reported) == ((), 2)
        assert len(await second.remit.service.sessions.rows()) == 1, "the agent's session goes on"


async def test_what_verifies_says_how_many_ends_are_reports(agent: Agent) -> None:
    await agent.hook("before", "c")
    await agent.hook("after", "c")
    report = await agent.remit.service.streams.verify()
    assert (report.problems, report.reported) == ((), 1)
