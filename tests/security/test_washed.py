"""Untrusted values that an agent sends through a function of its own, so that they come out as trusted ones."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from remit import Remit, Run, recipe, tool
from remit.journal.kinds import ToolInvocationStarted
from remit.parts.agents.recipes import agent
from remit.tools.provider import ToolResult
from tests.gateway.stages.test_check_origins import Talk
from tests.gateway.world import meta, odd, opened
from tests.parts.agents.bank import IBAN, PAID, RULE, TOOLS, balance, call, pay, read, settings
from tests.security import suites

ALLOWED = {"effect": "allow", "id": "all", "tools": ["*"]}
CUSTOMERS = {"Miller": IBAN}


@tool("crm.find", level="L0", output_trusted="always")
async def find(name: str) -> str:
    """Find a customer's account."""
    return CUSTOMERS.get(name, name)


@tool("crm.guess", level="L0")
async def guess(name: str, day: str = "", exact: bool = False) -> str:
    """Find a customer's account, as far as anyone can tell."""
    return CUSTOMERS.get(name, "")


@tool("util.read", level="L0")
async def decoded(code: Any = None, kind: Literal["a", "b"] = "a") -> str:
    """Read an account from whatever it is written in."""
    return IBAN


TOOL_SET = (*suites.TOOLS, find, guess, decoded)


async def paid_after(*calls: tuple[str, dict[str, Any]], task: str = "Answer my mail.", **limits: Any) -> str:
    """How a payment to the account ends that an agent makes after these calls."""
    suites.READ["mail.newest"] = "An e-mail."
    async with opened(*TOOL_SET, rules=(ALLOWED,), **limits) as world:
        talk = Talk(world, task)
        for name, args in (("mail.newest", {}), *calls):
            assert (await talk.use(name, args)).ok
        return (await talk.use("bank.pay", {"iban": IBAN, "amount": 9})).status


@pytest.mark.parametrize(
    "calls",
    [
        [("util.join", {"parts": [IBAN[:10], IBAN[10:]]})],
        [("util.decode", {"text": base64.b64encode(IBAN.encode()).decode()})],
        [("util.reverse", {"text": IBAN[::-1]})],
        [("util.pick", {"text": f"to: {IBAN}", "after": "to:"})],
        [("util.reverse", {"text": IBAN}), ("util.reverse", {"text": IBAN[::-1]})],
        [("crm.guess", {"name": "Miller"})],
    ],
)
async def test_what_was_made_of_untrusted_values_is_untrusted(calls: list[tuple[str, dict[str, Any]]]) -> None:
    assert await paid_after(*calls) == "pending"


@pytest.mark.parametrize(
    ("calls", "task"),
    [
        ([("util.join", {"parts": [IBAN[:10], IBAN[10:]]})], f"Join {IBAN[:10]} and {IBAN[10:]}, and pay that."),
        ([("crm.find", {"name": "Miller"})], "Answer my mail."),
        ([("crm.guess", {"name": "Miller", "day": "2026-11-27", "exact": False})], "Pay Miller as of 2026-11-27."),
    ],
)
async def test_what_was_made_of_trusted_values_or_of_a_source_of_its_own_is_trusted(
    calls: list[tuple[str, dict[str, Any]]], task: str
) -> None:
    assert await paid_after(*calls, task=task) == "ok"


@pytest.mark.parametrize(
    "args",
    [
        {"code": "1999-12-31T23:59:59"},
        {"code": ["1999-12-31", "1999-12-30"]},
        {"kind": "b"},
        {"code": True},
        {"code": [True, False, False]},
        {"code": [None, None]},
        {"code": ["Answer"] * 47},
        {"code": [["Answer"]]},
        {"code": []},
        {"code": ""},
        {"code": "..-."},
        {"code": {"x": "Answer"}},
        {"code": 7.5},
        {"code": "ANSWER"},
    ],
    ids=str,
)
async def test_a_value_of_any_kind_and_any_structure_can_carry_something(args: dict[str, Any]) -> None:
    assert await paid_after(("util.read", args)) == "pending"


@pytest.mark.parametrize(
    "args", [{}, {"code": None}, {"kind": "a"}, {"code": "Answer my mail"}, {"code": ["Answer"]}], ids=str
)
async def test_a_default_and_a_trusted_value_carry_nothing(args: dict[str, Any]) -> None:
    assert await paid_after(("util.read", args)) == "ok"


async def test_a_function_of_an_own_source_gives_no_trust_to_what_it_repeats() -> None:
    assert await paid_after(("crm.find", {"name": IBAN})) == "pending"


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        ({"always_trusted_output": ("crm.*",)}, "ok"),
        ({"trusted_output": ("crm.*",)}, "pending"),
        ({"always_trusted_output": ("crm.*",), "untrusted_output": ("crm.guess",)}, "pending"),
    ],
)
async def test_settings_say_which_results_depend_on_their_own_source(limits: dict[str, Any], status: str) -> None:
    assert await paid_after(("crm.guess", {"name": "Miller"}), **limits) == status


@pytest.mark.parametrize(
    ("trusted", "args", "status"),
    [
        (("mcp.*",), {"parts": [IBAN[:10], IBAN[10:]]}, "pending"),
        (("mcp.*",), {"values": {IBAN[:10]: True, IBAN[10:]: True}}, "pending"),
        (("mcp.*",), {}, "ok"),
        ((), {}, "pending"),
    ],
)
async def test_a_server_washes_nothing_either(trusted: tuple[str, ...], args: dict[str, Any], status: str) -> None:
    server = odd(lambda _args, _ctx: ToolResult(IBAN))
    server.metas = [meta("mcp.util.join", provider_id="mcp_util")]
    server.provider_id = "mcp_util"
    suites.READ["mail.newest"] = "An e-mail."
    async with opened(*suites.TOOLS, server, rules=(ALLOWED,), trusted_output=trusted) as world:
        talk = Talk(world)
        await talk.use("mail.newest")
        assert (await talk.use("mcp.util.join", args)).ok
        assert (await talk.use("bank.pay", {"iban": IBAN, "amount": 9})).status == status


async def test_the_record_says_so() -> None:
    suites.READ["mail.newest"] = "An e-mail."
    async with opened(*suites.TOOLS, rules=(ALLOWED,)) as world:
        talk = Talk(world)
        await talk.use("util.join", {"parts": ["a1", "b2"]})
        before = await world.last(ToolInvocationStarted)
        await talk.use("mail.newest")
        await talk.use("util.join", {"parts": ["a1", "b2"]})
        after = await world.last(ToolInvocationStarted)
    assert (before.output_trusted, before.untrusted_input) == (True, False)  # there was nothing to distrust yet
    assert (after.output_trusted, after.untrusted_input) == (False, True)


@recipe("turned")
async def turned(run: Run, text: str) -> str:
    """Pay to an account that is written backwards."""
    account = (await run.call_named("util.reverse", {"text": text})).value
    outcome = await run.attempt("bank.pay", {"iban": account, "amount": 1})
    return outcome.code.name if outcome.code else "paid"


@recipe("outer")
async def outer(run: Run, text: str) -> Any:
    """Have another recipe do so."""
    return await run.child(turned(text=text))


@pytest.mark.parametrize("name", ["turned", "outer"])
@pytest.mark.parametrize("task", ["Answer my mail.", f"Turn {IBAN[::-1]} round and pay."])
async def test_nor_does_a_function_that_a_recipe_calls_for_the_model(tmp_path: Path, name: str, task: str) -> None:
    PAID.clear()
    steps = (call(("mail.read", {})), call((f"run.{name}", {"text": IBAN[::-1]})), {"say": "Done."})
    given = settings(tmp_path, *steps, rules=(RULE | {"taint": "deny"},))
    tools: list[Any] = [read, balance, pay, suites.reverse]
    async with Remit(settings=given, tools=tools, recipes=[turned, outer]) as remit:
        job = await remit.start(agent(task=task, tools=list(TOOLS), recipes=[name]))
        assert (await job.result()).answer == "Done."
        assert ([] if task.startswith("Answer") else [IBAN]) == PAID
        assert (await remit.service.jobs.replay(job.id)).verdict == "same"


async def test_a_recipe_that_goes_on_in_another_process_knows_it_still(tmp_path: Path) -> None:
    PAID.clear()
    steps = (call(("mail.read", {})), call(("run.turned", {"text": IBAN[::-1]})), {"say": "Done."})
    given = settings(tmp_path, *steps)
    for _ in range(2):
        async with Remit(settings=given, tools=[read, balance, pay, suites.reverse], recipes=[turned]) as remit:
            jobs = await remit.service.jobs.rows()
            job = jobs[0].job if jobs else (await remit.start(_agent())).id
            async for question in remit.questions(job):
                assert [one.value for one in question.untrusted] == [IBAN]
                break
    assert PAID == []


def _agent() -> Any:
    return agent(task="Answer my mail.", tools=list(TOOLS), recipes=["turned"])


async def test_a_journal_from_before_keeps_its_verdicts() -> None:
    recorded = msgspec.json.encode({"invocation_id": "inv_1", "step": "1", "tool_name": "util.join"})
    assert not msgspec.json.decode(recorded, type=ToolInvocationStarted).untrusted_input
