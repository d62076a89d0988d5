"""`remit work issue`: open an issue that is kept here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError
from remit.work.commands.asking import asking
from remit.work.commands.staged import show_staged, staged_option

if TYPE_CHECKING:
    from remit.cli.opened import Opened


@click.command("issue")
@click.argument("title")
@click.option("--spec", metavar="FILE", type=click.Path(path_type=Path), help="The specification, in Markdown.")
@click.option("--label", "labels", multiple=True, metavar="LABEL", help="Such as prio:p1; repeatable.")
@click.option("--parent", default="", metavar="ISSUE", help="The issue of which it is a part.")
@staged_option
@json_option("the reference")
@pass_state
def command(state: State, title: str, spec: Path | None, labels: tuple[str, ...], parent: str, staged: bool) -> int:
    """Open an issue, and print its reference, such as local#1."""
    try:
        body = spec.read_text(encoding="utf-8") if spec is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--spec {spec}: {error}", remedy="Name a text file.") from error

    if staged:
        return show_staged(state, "issue", {"title": title, "body": body, "labels": labels, "parent": parent})

    async def made(remit: Opened) -> str:
        reference: str = await remit.service.work.issue(title, body=body, labels=labels, parent=parent)
        return reference

    reference = state.ask(asking(state, made), writes=True, creates=True)
    if state.as_json:
        state.output.json({"issue_ref": reference})
    else:
        state.output.out.line(reference)
    return exit_codes.OK
