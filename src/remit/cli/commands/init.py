"""`remit init`: the files of a new project."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Final

import click
import msgspec

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError


@click.command("init")
@click.argument("folder", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option("--tool/--no-tool", "tool", default=None, help="Write a tool, a recipe that uses it, and a test.")
@click.option("--mcp", "server", metavar="COMMAND", help="Guard the MCP server that this command starts.")
@click.option(
    "--approvals/--no-approvals", "approvals", default=None, help="Write rules that say what runs without asking."
)
@json_option("the files and what to do next")
@pass_state
def command(state: CommandState, folder: Path, tool: bool | None, server: str | None, approvals: bool | None) -> int:
    """Start a project: settings, a working example and a test.

    At a terminal, asks about what the options leave open. Otherwise the project gets a tool and rules, and no server.
    Existing files are kept. The new settings are trusted (`remit trust`), and so are later edits of them.
    """
    if (folder / ".remit").is_symlink():
        raise UsageError(
            f"{folder / '.remit'} is a link", remedy="Remove the link: the journal has to be in the folder itself."
        )
    wishes = _wishes(state, tool, server, approvals)
    files = files_of(wishes)
    taken = [name for name in files if os.path.lexists(folder / name) and not name.startswith(".remit/")]
    if taken:
        is_are = "is" if len(taken) == 1 else "are"
        reason = f"{', '.join(str(folder / name) for name in taken)} {is_are} already there"
        raise UsageError(reason, remedy="Nothing was written. Choose another folder: remit init FOLDER.")
    written = [name for name, text in files.items() if _write(folder / name, text)]
    _trust(folder / SETTINGS)
    following = _next(folder, wishes)

    def told(state: CommandState, _: object) -> None:
        for name in written:
            state.output.out.line(str(folder / name))
        for line in ("Next:", *(f"  {line}" for line in following)):
            state.note(line)

    return state.show({"folder": str(folder.resolve()), "files": written, "next": following}, told)


def _wishes(state: CommandState, tool: bool | None, server: str | None, approvals: bool | None) -> ProjectWishes:

    asks = state.output.interactive and not state.as_json
    if tool is None:
        tool = _yes(state, "Write an example: a tool, a recipe that uses it, and a test?") if asks else True
    if server is None:
        server = _line(state, "MCP server to guard (its command; Enter for none): ") if asks else ""
    if approvals is None:
        approvals = _yes(state, "Write rules that let some calls run without approval?") if asks else True
    return ProjectWishes(tool=tool, approvals=approvals, server=_words(server))


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--mcp: {error}", remedy="Write the command as you would in a shell.") from error


def _yes(state: CommandState, question: str) -> bool:
    while True:
        answer = _line(state, f"{question} [Y/n] ").lower()
        if answer in {"", "y", "yes", "n", "no"}:
            return answer not in {"n", "no"}


def _line(state: CommandState, question: str) -> str:
    err = state.output.err
    err.stream.write(err.style(question, "bold"))
    err.flush()
    typed = sys.stdin.readline()
    if not typed:  # the end of the input, such as Ctrl-D: no answer, and nothing was written
        raise click.exceptions.Exit(exit_codes.INTERRUPTED)
    return typed.strip()


def _write(path: Path, text: str) -> bool:
    """Write a file that is not there yet; whether it was written."""
    try:
        path.parent.mkdir(mode=0o700 if path.parent.name == ".remit" else 0o777, parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        if path.parent.name == ".remit":
            return False  # the journal was there first
        raise UsageError(f"{path} is already there", remedy="Choose another folder: remit init FOLDER.") from None
    except OSError as error:
        reason = f"{path} cannot be written: {error.strerror or error}"
        raise UsageError(reason, remedy="Choose a folder that you can write to.") from error
    return True


def _trust(file: Path) -> None:
    """Trust the settings that were just written, and what they name."""
    import msgspec

    import remit.wiring.sections  # noqa: F401 - declares the settings of the parts that ship
    from remit.cli.trust_question import register, standing_of
    from remit.clock import SystemClock
    from remit.settings import load
    from remit.trust.state import trust

    trust_state = standing_of(load(cwd=Path.cwd(), file=file.resolve(), env=os.environ), trusted=False)
    trust(msgspec.structs.replace(trust_state, journal=None), register(), edits=True, now=SystemClock().now())


def _next(folder: Path, wishes: ProjectWishes) -> list[str]:
    """Return what to try."""
    lines = [] if folder == Path() else [f"cd {shlex.quote(str(folder))}"]
    if wishes.tool:
        lines += [
            "remit run triage --customer ada",
            "remit run triage --customer grace    # 450 dollars: Remit asks you first",
            "remit trace last",
            "python test_desk.py",
        ]
    if wishes.server:
        lines += ["remit mcp test guarded", "remit mcp pin guarded"]
    if wishes.approvals:
        lines.append("remit policy test --live" if wishes.tool or not wishes.server else "remit policy rules")
    return lines or ["remit run research_report --query 'what is this about' --folder ."]


EXAMPLE: Final = "desk.py"
TEST: Final = "test_desk.py"
SETTINGS: Final = "remit.toml"
IGNORE: Final = ".remit/.gitignore"
SCHEMA: Final = ".remit/remit.schema.json"


class ProjectWishes(msgspec.Struct, frozen=True, kw_only=True):
    """What the project is for."""

    tool: bool
    """An agent tool and a recipe in Python, with a test."""
    approvals: bool
    """Rules that say which calls run and which ask, with tests."""
    server: tuple[str, ...] = ()
    """The command of an MCP server to guard; empty: none."""


def files_of(wishes: ProjectWishes) -> dict[str, str]:
    """The files of a project, by path: the settings come last, so that they never name what is not there."""
    from remit.wiring.schemas import REMIT_TOML, schema_text

    texts = {IGNORE: "*\n!*.schema.json\n", SCHEMA: schema_text(REMIT_TOML)}
    if wishes.tool:
        texts |= {EXAMPLE: _EXAMPLE, TEST: _TEST}
    return {**texts, SETTINGS: _settings(wishes)}


def _settings(wishes: ProjectWishes) -> str:
    head = "# Settings of Remit. `remit config` shows every setting and where it came from.\n"
    parts = [f"#:schema ./{SCHEMA}\n{head}"]
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
only = ["customer", "cents"]  # any customer; and no argument that is added later

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
