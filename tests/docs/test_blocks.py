"""Blocks of code in the pages hold: commands and options exist, files can be read, programs compile and run.

Pages whose programs do more have a test of their own beside this one, or in tests/adapters.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from remit import CallContext, Level, Remit, Run, recipe, tool
from remit.cli.root import root
from remit.jobs.plans.source import read_text

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SCRIPTS = Path(sys.executable).parent
_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ASSIGNED = re.compile(r"(?:[A-Z_]+=\S*\s+)+")


class Block(NamedTuple):
    """A block of code and where it stands."""

    page: str
    line: int
    language: str
    text: str


def blocks_of(path: Path) -> list[Block]:
    source = path.read_text(encoding="utf-8")
    return [
        Block(path.name, source.count("\n", 0, found.start()) + 1, found[1].split(" ")[0], found[2])
        for found in _BLOCK.finditer(source)
    ]


BLOCKS = [block for path in PAGES for block in blocks_of(path)]


def commands_of(block: Block) -> list[str]:
    """The commands of a block of shell, each on one line, without what a shell would do before it."""
    text = block.text.replace("\\\n", " ")
    if block.language == "console":
        lines = re.findall(r"^\$ (.*)$", text, re.MULTILINE)
    else:
        lines = text.splitlines() if not block.language else []
    parts = [part.strip() for line in lines for part in re.split(r" && | \| ", re.sub(r"\s#\s.*$", "", line))]
    return [_ASSIGNED.sub("", part, count=1) if _ASSIGNED.match(part) else part for part in parts]


def words_of(command: str) -> list[str]:
    return shlex.split(command.partition(" > ")[0], comments=True)


def parse(words: list[str]) -> None:
    """Have click read a command line without running it. Raises click.UsageError."""
    context = root.make_context("remit", words)
    command: click.Command = root
    while isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        context = found.make_context(name, rest, parent=context)
        command = found


REMIT = [
    pytest.param(command, id=f"{block.page}:{block.line} {command[:60]}")
    for block in BLOCKS
    for command in commands_of(block)
    if command.startswith("remit ")
]


@pytest.mark.parametrize("command", REMIT)
def test_a_command_takes_the_options_that_a_page_gives_it(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parse(words_of(command)[1:])


def test_an_option_that_does_not_exist_would_be_found() -> None:
    with pytest.raises(click.UsageError, match="No such option"):
        parse(["jobs", "--newest"])


def test_make_targets_and_extras_of_the_pages_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    extras = {path.stem for path in (ROOT / "requirements").glob("*.in")}
    lines = [command for block in BLOCKS for command in commands_of(block)]
    assert {words_of(line)[1] for line in lines if line.startswith("make ")} <= targets
    named = {name for line in lines for name in re.findall(r"remit\[([\w,-]+)\]", line)}
    assert named
    assert {extra for name in named for extra in name.split(",")} <= extras


DATA = [block for block in BLOCKS if block.language in {"toml", "json", "yaml"}]


@pytest.mark.parametrize("block", DATA, ids=lambda block: f"{block.page}:{block.line}")
def test_a_file_of_a_page_can_be_read(block: Block) -> None:
    match block.language:
        case "toml":
            assert tomllib.loads(block.text)
        case "yaml":
            assert read_text(block.text, f"{block.page}.yaml").problems == []
        case _:
            found = [json.loads(line) for line in _documents(block.text)]
            assert found


def _documents(text: str) -> list[str]:
    """One document, or one a line."""
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return text.splitlines()
    return [text]


PROGRAMS = [block for block in BLOCKS if block.language == "python"]


@pytest.mark.parametrize("block", PROGRAMS, ids=lambda block: f"{block.page}:{block.line}")
def test_a_program_of_a_page_compiles_and_imports_what_there_is(block: Block) -> None:
    tree = compile(block.text, block.page, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    ours = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "remit"
    ]
    for node in ours:
        if not (node.module or "").startswith("remit.parts.adapters."):  # they need their framework
            exec(compile(ast.Module([node], []), block.page, "exec"), {})  # noqa: S102 - our own page


def first(page: str, language: str) -> str:
    return next(block.text for block in BLOCKS if (block.page, block.language) == (page, language))


async def test_tools_md_declares_a_tool_that_can_be_called() -> None:
    class Bank:
        async def post(self, path: str, *, key: str, customer: str, cents: int) -> str:
            return f"{path} {customer} {cents} {bool(key)}"

    space: dict[str, Any] = {"bank": Bank()}
    exec(first("tools.md", "python"), space)  # noqa: S102 - our own page

    @recipe("pay")
    async def pay(run: Run) -> Any:
        return (await run.call("billing.charge", {"customer": "ann", "cents": 5})).value

    rules = [{"id": "all", "effect": "allow", "tools": ["billing.*"]}]
    async with Remit(":memory:", tools=[space["charge"]], recipes=[pay], policy=rules) as remit:
        assert await (await remit.start(pay())) == "/charge ann 5 True"


def test_sandbox_md_declares_a_tool_with_roots_and_limits() -> None:
    space: dict[str, Any] = {"tool": tool, "CallContext": CallContext}
    exec(first("sandbox.md", "python"), space)  # noqa: S102 - our own page
    assert space["render"].meta.capability_level is Level.L2


async def test_recipes_md_undoes_what_was_done() -> None:
    undone: list[str] = []

    @tool("trip.book", level="L1")
    def book(what: str) -> dict[str, str]:
        """Book."""
        return {"booking": f"b-{what}"}

    @tool("trip.cancel", level="L1")
    def cancel(booking: str) -> None:
        """Cancel."""
        undone.append(booking)

    body = textwrap.indent(first("recipes.md", "python"), "    ")
    space: dict[str, Any] = {}
    source = f"async def trip(run):\n{body}    raise LookupError('no car')\n"
    exec(source, space)  # noqa: S102 - our own page

    @recipe("trip")
    async def trip(run: Run) -> None:
        await space["trip"](run)

    rules = [{"id": "all", "effect": "allow", "tools": ["trip.*"]}]
    async with Remit(":memory:", tools=[book, cancel], recipes=[trip], policy=rules) as remit:
        with pytest.raises(Exception, match="no car"):
            await (await remit.start(trip()))
    assert undone == ["b-flight", "b-hotel"]


@pytest.mark.slow
def test_the_first_five_minutes_of_the_readme(tmp_path: Path) -> None:
    [session, *_] = [block for block in blocks_of(ROOT / "README.md") if not block.language]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REMIT_")} | {
        "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}",
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    folder = tmp_path
    ended: dict[str, int] = {}
    for command in commands_of(session):
        if command.startswith("cd "):
            folder /= command.removeprefix("cd ")
            continue
        ran = subprocess.run(
            words_of(command), cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        ended[command] = ran.returncode
        assert b"Traceback" not in ran.stderr
    waits = "remit run triage --customer grace"  # no terminal to ask at
    assert ended.pop(waits) == 4
    assert set(ended.values()) == {0}
    shown = first("README.md", "python")
    written = (folder / "desk.py").read_text(encoding="utf-8")
    assert [line for line in shown.splitlines() if line and line not in written] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
