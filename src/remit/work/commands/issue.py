"""`remit work issue`: open an issue that is kept here."""

from __future__ import annotations

from pathlib import Path

import click

from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError
from remit.work.commands.asking import asking
from remit.work.commands.staged import show_staged, staged_option


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

    reference: str = state.ask(
        asking(state, lambda remit: remit.service.work.issue(title, body=body, labels=labels, parent=parent)),
        writes=True,
        creates=True,
    )
    return state.show({"issue_ref": reference}, lambda state, _: state.output.out.line(reference))
