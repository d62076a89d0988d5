"""`remit journal erase`: every value about a subject erased."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.codes import Code
from remit.errors import NotFoundError

if TYPE_CHECKING:
    from remit.journal.erasing import Erased


@click.command("erase")
@click.argument("subject")
@click.option("--reason", default="", help="The reason; it is recorded.")
@json_option("what was erased, and what could not be")
@pass_state
def command(state: State, subject: str, reason: str) -> int:
    """Erase every value that was recorded about a subject.

    Events, hashes and times stay, so that the journal still verifies. A job of the subject that has not ended cannot go
    on: end it first. What an older Remit recorded inside events cannot be erased: the status is then 1, and the command
    says how many values are left.
    """
    from remit.cli.running import run_to_end

    erased = run_to_end(_erase(state, subject, reason))
    incomplete = Code.ERASURE_INCOMPLETE.name if erased.left else ""
    if state.as_json:
        import msgspec

        state.output.json({**msgspec.to_builtins(erased), "code": incomplete})
    else:
        from remit.cli.text import counted

        out = state.output.out
        done = f"{counted(erased.values, 'value')} in {counted(erased.streams, 'stream')} erased"
        out.line(f"{out.style('ok', 'ok')} {done}")
        if incomplete:
            out.line(f"{out.style('left', 'fail')} {incomplete}: {counted(erased.left, 'value')} could not be erased")
            state.note("an older Remit recorded them inside events; delete the journal's file to remove them")
    return exit_codes.ERROR if incomplete else exit_codes.OK


async def _erase(state: State, subject: str, reason: str) -> Erased:
    from remit.settings.principal import principal

    async with state.remit(code="unused", writes=True) as remit:
        erased = await remit.service.streams.erase(subject, by=principal(remit.settings), reason=reason)
    if not erased.streams:
        why = f"no stream is about the subject {subject!r}"
        raise NotFoundError(why, code=Code.STREAM_NOT_FOUND, remedy="Give the subject that the jobs were started with.")
    return erased
