"""Every command in a folder that has no journal yet: who only looks makes none, and nobody writes to one in memory."""

from __future__ import annotations

from typing import Final

import click
import pytest

from remit.codes import Code
from remit.journal.signing_key import make_key
from tests.cli.conftest import Project
from tests.security.test_planted import commands

pytestmark = pytest.mark.slow
WORKFLOW: Final = '[executors.shell]\nprogram = "true"\nisolation = "none"\n'
MAKES: Final = {
    "record": ("no-such-program",),
    "schedule add": ("nightly", "report", "--every", "1h"),
    "run": ("report",),
    "mcp approve": ("nothing",),
    "mcp call": ("nothing.x",),
    "skills disable": ("nothing",),
    "skills enable": ("nothing",),
    "tickets create": ("--thread", "t1", "--content", "hello"),
    "work issue": ("Mend the clock",),
    "work run": ("octo/hello#1", "--executor", "shell"),
    "work serve": ("--once",),
}
"""Commands that make a journal where none is, and what they are given."""
LASTING: Final = {
    "serve",
    "worker",
    "mcp serve",
    "mcp wrap",
    "tickets work",
    "witness",
    "init",
    "mcp login",
    "login",
    "guard ask",
    "guard serve",
    "model-gateway",
}
"""They run until they are ended or end as a hook's client does, or begin a folder of their own."""


def words_for(command: click.Command) -> tuple[str, ...]:
    """Return the least that a command wants to be told."""
    words: list[str] = []
    for parameter in command.params:
        if parameter.required:
            kind = parameter.type
            value = kind.choices[0] if isinstance(kind, click.Choice) else "1" if kind.name == "integer" else "x"
            words += [value] if isinstance(parameter, click.Argument) else [parameter.opts[0], value]
    return tuple(words)


@pytest.mark.parametrize("name", sorted(set(commands()) - LASTING))
def test_a_journal_is_made_by_the_commands_that_record_and_by_no_other(project: Project, name: str) -> None:
    (project.folder / "workflow.toml").write_text(WORKFLOW, encoding="utf-8")
    key = project.folder.parent / "recorder.pem"
    make_key(key)
    project.configure(f'[recorder]\norigin = "example.com/log"\nkey = "{key}"\n')
    done = project.here(*name.split(), *MAKES.get(name, words_for(commands()[name])))
    assert Code.UNHANDLED_EXCEPTION.name not in done.err
    assert (project.folder / ".remit" / "journal.db").exists() is (name in MAKES), done
