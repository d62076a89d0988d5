"""`remit init`: the files of a new project."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.cli.starter import Wishes


@click.command("init")
@click.argument("folder", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option("--tool/--no-tool", "tool", default=None, help="Write a tool, a recipe that uses it, and a test.")
@click.option("--mcp", "server", metavar="COMMAND", help="Guard the MCP server that this command starts.")
@click.option(
    "--approvals/--no-approvals", "approvals", default=None, help="Write rules that say what runs without asking."
)
@json_option("the files and what to do next")
@pass_state
def command(state: State, folder: Path, tool: bool | None, server: str | None, approvals: bool | None) -> int:
    """Start a project: settings, a working example and a test.

    At a terminal, asks about what the options leave open. Otherwise the project gets a tool and rules, and no server.
    Existing files are kept. The new settings are trusted (`remit trust`), and so are later edits of them.
    """
    from remit.cli.starter import SETTINGS, files_of

    if (folder / ".remit").is_symlink():
        raise UsageError(
            f"{folder / '.remit'} is a link", remedy="Remove the link: the journal has to be in the folder itself."
        )
    wishes = _wishes(state, tool, server, approvals)
    files = files_of(wishes)
    taken = [name for name in files if os.path.lexists(folder / name) and not name.startswith(".remit/")]
    if taken:
        is_are = "is" if len(taken) == 1 else "are"
        why = f"{', '.join(str(folder / name) for name in taken)} {is_are} already there"
        raise UsageError(why, remedy="Nothing was written. Choose another folder: remit init FOLDER.")
    written = [name for name, text in files.items() if _write(folder / name, text)]
    _trust(folder / SETTINGS)
    following = _next(folder, wishes)
    if state.as_json:
        state.output.json({"folder": str(folder.resolve()), "files": written, "next": following})
        return exit_codes.OK
    for name in written:
        state.output.out.line(str(folder / name))
    state.note("Next:")
    for line in following:
        state.note(f"  {line}")
    return exit_codes.OK


def _wishes(state: State, tool: bool | None, server: str | None, approvals: bool | None) -> Wishes:
    from remit.cli.starter import Wishes

    asks = state.output.interactive and not state.as_json
    if tool is None:
        tool = _yes(state, "Write an example: a tool, a recipe that uses it, and a test?") if asks else True
    if server is None:
        server = _line(state, "MCP server to guard (its command; Enter for none): ") if asks else ""
    if approvals is None:
        approvals = _yes(state, "Write rules that let some calls run without approval?") if asks else True
    return Wishes(tool=tool, approvals=approvals, server=_words(server))


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--mcp: {error}", remedy="Write the command as you would in a shell.") from error


def _yes(state: State, question: str) -> bool:
    while True:
        answer = _line(state, f"{question} [Y/n] ").lower()
        if answer in {"", "y", "yes", "n", "no"}:
            return answer not in {"n", "no"}


def _line(state: State, question: str) -> str:
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
        why = f"{path} cannot be written: {error.strerror or error}"
        raise UsageError(why, remedy="Choose a folder that you can write to.") from error
    return True


def _trust(file: Path) -> None:
    """Trust the settings that were just written, and what they name."""
    import msgspec

    from remit.cli.trusting import register, standing_of
    from remit.clock import SystemClock
    from remit.settings import load
    from remit.trust.standing import trust

    found = standing_of(load(cwd=Path.cwd(), file=file.resolve(), env=os.environ), trusted=False)
    trust(msgspec.structs.replace(found, journal=None), register(), edits=True, now=SystemClock().now())


def _next(folder: Path, wishes: Wishes) -> list[str]:
    """What to try."""
    said = [] if folder == Path() else [f"cd {shlex.quote(str(folder))}"]
    if wishes.tool:
        said += [
            "remit run triage --customer ada",
            "remit run triage --customer grace    # 450 dollars: Remit asks you first",
            "remit trace last",
            "python test_desk.py",
        ]
    if wishes.server:
        said += ["remit mcp test guarded", "remit mcp pin guarded"]
    if wishes.approvals:
        said.append("remit policy test --live" if wishes.tool or not wishes.server else "remit policy rules")
    return said or ["remit run research_report --query 'what is this about' --folder ."]
