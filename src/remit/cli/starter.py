"""The files that `remit init` writes: a project that works as it stands, to be changed from there."""

from __future__ import annotations

import json
from typing import Final

import msgspec

EXAMPLE: Final = "desk.py"
TEST: Final = "test_desk.py"
SETTINGS: Final = "remit.toml"
IGNORE: Final = ".remit/.gitignore"


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What the project is for."""

    tool: bool
    """An agent tool and a recipe in Python, with a test."""
    approvals: bool
    """Rules that say which calls run and which ask, with tests."""
    server: tuple[str, ...] = ()
    """The command of an MCP server to guard; empty: none."""


def files_of(wishes: Wishes) -> dict[str, str]:
    """The files of a project, by path: the settings come last, so that they never name what is not there."""
    found = {IGNORE: "*\n"}
    if wishes.tool:
        found |= {EXAMPLE: _EXAMPLE, TEST: _TEST}
    return {**found, SETTINGS: _settings(wishes)}


def _settings(wishes: Wishes) -> str:
    parts = ["# Settings of Remit. `remit config` shows every setting and where it came from.\n"]
    if wishes.tool:
        parts.append(f'[app]\n# Files whose tools and recipes `remit run` finds.\nmodules = ["{EXAMPLE}"]\n')
    if wishes.server:
        parts.append(_SERVER.replace("COMMAND", json.dumps(list(wishes.server), ensure_ascii=False)))
    if wishes.approvals:
        parts.append(_RULES_OF_TOOL if wishes.tool else _RULES_OF_SERVER if wishes.server else _RULES_OF_FILES)
    return "\n".join(parts)


_EXAMPLE: Final = '''\
"""A tool that reads, a tool that writes, and a recipe that uses both."""

from pathlib import Path

from remit import Run, recipe, tool

REFUNDS = Path(__file__).with_name("refunds.txt")
ORDERS = {"ada": [1200, 700], "grace": [45000]}


@tool("desk.orders", level="L0")
def orders(customer: str) -> list[int]:
    """Return what a customer's orders cost, in cents."""
    return ORDERS.get(customer, [])


@tool("desk.refund", level="L1")
def refund(customer: str, cents: int) -> str:
    """Refund a customer. It is recorded before it runs, and it does not run twice."""
    with REFUNDS.open("a", encoding="utf-8") as file:
        file.write(f"{customer} {cents}\\n")
    return f"refunded {cents} cents to {customer}"


@recipe("triage")
async def triage(run: Run, customer: str) -> str:
    """Look a customer's orders up, and refund the last one."""
    costs = await run.call(orders, customer)
    if not costs:
        return f"{customer} has no orders"
    return await run.call(refund, customer=customer, cents=costs[-1])
'''

_TEST: Final = '''\
"""Runs the recipe as Remit does, with a person who says yes. Run it with `python test_desk.py` or pytest."""

import asyncio
import tempfile
from pathlib import Path

import desk
from remit import Remit


async def refunded(customer: str) -> tuple[str, str]:
    """Run the recipe and approve what it asks; its result, and whether a replay goes the same way."""
    async with Remit(":memory:", tools=[desk.orders, desk.refund], recipes=[desk.triage], policy=[]) as remit:
        job = await remit.start(desk.triage(customer))
        async for question in remit.questions(job.id):
            await remit.service.confirmations.decide(
                question.confirmation, "approve", digest=question.digest, by="the test"
            )
        result = await job
        return result, (await remit.replay(job.id)).verdict


def test_the_last_order_is_refunded_once_it_is_approved() -> None:
    with tempfile.TemporaryDirectory() as folder:
        desk.REFUNDS = Path(folder, "refunds.txt")
        assert asyncio.run(refunded("ada")) == ("refunded 700 cents to ada", "same")
        assert desk.REFUNDS.read_text(encoding="utf-8") == "ada 700\\n"


if __name__ == "__main__":
    test_the_last_order_is_refunded_once_it_is_approved()
    print("ok")
'''

_SERVER: Final = """\
# An MCP server, whose tools are called as mcp.guarded.NAME. `remit mcp show guarded` lists them, and
# `remit mcp pin guarded` accepts them as they are worded now; until then they are withheld.
[[mcp.servers]]
name = "guarded"
command = COMMAND
level = "L2"
# What only reads may be called without asking:
# tools = { "read_*" = "L0", "list_*" = "L0" }
# Run it in the sandbox, where it can read these folders and nothing else of yours:
# sandbox = { roots = ["."] }
"""

_RULES_OF_TOOL: Final = """\
# Rules: deny wins over ask, and ask over allow. Without a rule, tools that write ask a person.
# Every answer is recorded: `remit trace JOB` shows it, `remit verify` checks the record.
[[policy.rules]]
id = "small-refunds-run"
effect = "allow"
tools = ["desk.refund"]
when.cents = { min = 1, max = 1000 }

[[policy.rules]]
id = "no-huge-refunds"
effect = "deny"
tools = ["desk.refund"]
when.cents = { min = 100000 }

# What the rules are meant to say: `remit policy test` checks it.
[[policy.tests]]
tool = "desk.refund"
args = { customer = "ada", cents = 700 }
expect = "allow"
rule = "small-refunds-run"

[[policy.tests]]
tool = "desk.refund"
args = { customer = "grace", cents = 45000 }
expect = "ask"

[[policy.tests]]
tool = "desk.refund"
args = { customer = "grace", cents = 100000 }
expect = "deny"
rule = "no-huge-refunds"
"""

_RULES_OF_FILES: Final = """\
# Rules: deny wins over ask, and ask over allow. Without a rule, tools that write ask a person.
# Every answer is recorded: `remit trace JOB` shows it, `remit verify` checks the record.
[[policy.rules]]
id = "notes-may-be-written"
effect = "allow"
tools = ["fs.write"]
when.path = { glob = "notes/**" }

# What the rules are meant to say: `remit policy test` checks it.
[[policy.tests]]
tool = "fs.write"
args = { path = "notes/a.md", content = "tea" }
expect = "allow"
rule = "notes-may-be-written"

[[policy.tests]]
tool = "fs.write"
args = { path = "main.py", content = "tea" }
expect = "ask"
"""

_RULES_OF_SERVER: Final = """\
# Rules: deny wins over ask, and ask over allow. Without a rule, tools that write ask a person.
# Every answer is recorded: `remit trace JOB` shows it, `remit verify` checks the record.
[[policy.rules]]
id = "guarded-asks"
effect = "ask"
tools = ["mcp.guarded.*"]
reason = "Name the tools that may run, and let a rule allow them."
"""
