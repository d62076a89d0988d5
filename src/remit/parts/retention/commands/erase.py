"""`remit erase`: erase everything that was recorded about a subject, after a look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.codes import Code
from remit.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.journal.erasure import Erased


@click.command("erase")
@click.option(
    "--subject",
    required=True,
    metavar="NAME",
    help="The subject that the jobs were started with, as by `remit run --about NAME`.",
)
@click.option("--reason", default="", help="The reason; it is recorded.")
@click.option("--dry-run", is_flag=True, help="Erase nothing, and say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option("what was erased or would be, and what cannot be")
@pass_state
def command(state: CommandState, subject: str, reason: str, *, dry_run: bool, yes: bool) -> int:
    """Erase every value that was recorded about a subject.

    Shows what would go, and asks at the terminal first. Events, hashes and times stay, so that the journal still
    verifies. A job of the subject that has not ended cannot go on: end it first. What an older Remit recorded inside
    events cannot be erased: the status is then 1. Packages, copies and backups that were made before keep the values.
    """
    done = state.ask_here(
        lambda remit: _erase(state, remit, subject, reason, dry_run=dry_run, yes=yes), code="unused", writes=True
    )
    incomplete = Code.ERASURE_INCOMPLETE.name if done.left else ""
    if state.as_json:
        import msgspec

        state.output.json({**msgspec.to_builtins(done), "dry_run": dry_run, "code": incomplete})
    else:
        _print(state, done, "would be erased" if dry_run else "erased")
        if incomplete:
            state.note(
                f"{incomplete}: an older Remit recorded values inside events; only deleting the journal removes them"
            )
    return exit_codes.ERROR if incomplete and not dry_run else exit_codes.OK


async def _erase(state: CommandState, remit: Remit, subject: str, reason: str, *, dry_run: bool, yes: bool) -> Erased:
    from remit.settings.principal import principal

    streams = remit.service.streams
    erasable = await streams.erasable(subject)
    if not erasable.streams:
        cause, remedy = (
            f"no stream is about the subject {subject!r}",
            "Give the subject that the jobs were started with.",
        )
        raise NotFoundError(cause, code=Code.STREAM_NOT_FOUND, remedy=remedy)
    if dry_run:
        return erasable
    if not yes:
        if state.as_json or not state.output.interactive:
            raise UsageError("there is no terminal to ask at", remedy="Look with --dry-run, then give --yes.")
        _print(state, erasable, "would be erased")
        click.confirm("Erase them for good?", err=True, abort=True)
    return await streams.erase(subject, by=principal(remit.settings), reason=reason)


def _print(state: CommandState, erased: Erased, verb: str) -> None:
    from remit.cli.output import counted, one_line

    out = state.output.out
    for stream in erased.unfinished:
        out.line(f"{one_line(stream)}  {out.style('not over', 'warn')}: what it still records stays")
    out.line(f"{counted(erased.values, 'value')} in {counted(erased.streams, 'stream')} {verb}")
    if erased.left:
        out.line(f"{out.style('left', 'fail')} {counted(erased.left, 'value')} cannot be erased")
