"""`remit journal backup`: the journal in a file of its own, while others work in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.file_writer import require_free
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.parts.retention.backup import Backup


@click.command("backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--verify", "verified", is_flag=True, help="Check every stream of the backup before it gets its name.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option("the file, its size, and what was checked")
@pass_state
def command(state: CommandState, file: Path, *, verified: bool, force: bool) -> int:
    """Back up a journal that is a file, while workers and servers go on.

    FILE holds the journal as of one moment. It runs no jobs (JOURNAL_BACKUP): if the journal is lost, put FILE in its
    place and run `remit trust`, then `remit journal activate`. The key of its seals is not in FILE. A journal in
    PostgreSQL is backed up with the server's own tools, or with `remit journal copy --backup` while no process works.
    """
    import msgspec

    require_free(file, force=force)

    backup: Backup = state.ask_here(
        lambda remit: remit.service.retention.back_up(file.absolute(), verify=verified), code="unused", writes=True
    )

    state.show({**msgspec.structs.asdict(backup), "ok": backup.ok}, lambda state, _: _print(state, backup))
    return exit_codes.OK if backup.ok else exit_codes.DAMAGED


def _print(state: CommandState, backup: Backup) -> None:
    from remit.cli.output import clean, counted

    out = state.output.out
    for problem in backup.problems:
        out.line(f"{out.style('damaged', 'fail')} {clean(problem)}")
    if not backup.ok:
        state.note("the journal has this damage too; the backup was not kept")
        return
    checked = (
        f", {counted(backup.events, 'event')} in {counted(backup.streams, 'stream')} verified"
        if backup.verified
        else ""
    )
    out.line(f"{out.style('ok', 'ok')} {clean(backup.file)}  {backup.bytes} bytes{checked}")
    if backup.key_file:
        state.note(f"the journal's key is not in it: keep a copy of {clean(backup.key_file)} elsewhere")
    state.note(
        "it runs no jobs until it takes the journal's place, and you run `remit trust` and `remit journal activate`"
    )
