"""`remit journal activate`: a backup, or a journal that moved, runs jobs again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.journal.standing import Standing


@click.command("activate")
@click.option("--unfinished", is_flag=True, help="Also a copy that was broken off: what is missing in it is lost.")
@json_option("what the journal was before")
@pass_state
def command(state: State, *, unfinished: bool) -> int:
    """Let a backup, or a journal that moved, run jobs from now on.

    The other journal must never run jobs again: both would do the same work, and a side effect could happen twice.
    """
    from remit.cli.running import run_to_end

    before, url = run_to_end(_activate(state, unfinished=unfinished))
    if state.as_json:
        import msgspec

        state.output.json(msgspec.to_builtins(before))
        return exit_codes.OK
    out = state.output.out
    if not before.place:
        out.line(f"{out.style('ok', 'ok')} {url} runs jobs already")
    else:
        out.line(f"{out.style('ok', 'ok')} {url} runs jobs from now on")
        state.note(f"never run the jobs of {before.place} again")
    return exit_codes.OK


async def _activate(state: State, *, unfinished: bool) -> tuple[Standing, str]:
    from remit.clock import SystemClock
    from remit.journal.moving import activate
    from remit.settings.principal import principal
    from remit.wiring.journal import open_journal

    settings = state.trusted()
    if settings.journal.file is not None and not settings.journal.file.exists():
        raise UsageError(f"there is no journal at {settings.journal.file}", remedy="Correct --journal.")
    journal = open_journal(settings, SystemClock())
    try:
        return await activate(journal, principal(settings), unfinished=unfinished), journal.url
    finally:
        await journal.close()
