from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from remit.cli import exit_codes
from remit.cli.group import LazyGroup
from remit.cli.root import COMMANDS, root

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("cli.md", "cli-groups.md"))
CONTEXT = click.Context(root)
GROUPS = {name: found.entries for name in COMMANDS if isinstance(found := root.get_command(CONTEXT, name), LazyGroup)}
EVERY = [name for name in COMMANDS if name not in GROUPS]
EVERY += [f"{group} {name}" for group, commands in GROUPS.items() for name in commands]


def command_of(words: str) -> click.Command:
    found: click.Command | None = root
    for word in words.split():
        assert isinstance(found, click.Group)
        found = found.get_command(CONTEXT, word)
    assert found is not None
    return found


def row(option: click.Option) -> str:
    """The line of the page that an option has to have."""
    context = click.Context(click.Command("remit"))
    value = "" if option.is_flag or option.count else f" {option.make_metavar(context)}"
    cells = (", ".join(f"`{name}{value}`" for name in option.opts), str(option.help))
    # A bar would end the cell of a table.
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def usage(words: str) -> str:
    """How a command is called, as its help says."""
    command = command_of(words)
    pieces = command.collect_usage_pieces(click.Context(command))
    return " ".join(["remit", words, *pieces])


def options(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option)]


def section(title: str) -> str:
    found = re.search(rf"^##+ {re.escape(title)}$(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"the page has no section {title!r}"
    return found[1]


@pytest.mark.parametrize("words", EVERY)
def test_every_command_is_on_the_page_with_its_usage_and_all_its_options(words: str) -> None:
    text = section(f"remit {words}")
    assert f"`{usage(words)}`" in text
    rows = [line for line in text.splitlines() if line.startswith("| `-")]
    assert rows == [row(option) for option in options(command_of(words)) if option.name != "help_"]


@pytest.mark.parametrize("words", EVERY)
def test_every_command_begins_with_the_line_of_its_help(words: str) -> None:
    first = (command_of(words).help or "").strip().partition("\n")[0]
    assert section(f"remit {words}").strip().startswith(first)


def test_no_other_command_is_on_the_page() -> None:
    assert sorted(re.findall(r"^### remit (.*)$", PAGE, re.MULTILINE)) == sorted(EVERY)


def test_every_global_option_is_on_the_page() -> None:
    rows = [line for line in section("Options of every command").splitlines() if line.startswith("| `-")]
    assert rows == [row(option) for option in options(root)]


def test_every_exit_status_is_on_the_page() -> None:
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", section("Exit status"), re.MULTILINE)
    assert {int(status): meaning for status, meaning in rows} == exit_codes.MEANINGS
