"""`remit journal seal`: the heads of the journal sealed under its key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.errors import SettingsError, UsageError

if TYPE_CHECKING:
    from remit.journal.resealing import Resealed

_SHOWN: Final = 20


@click.command("seal")
@click.option("--new-key", is_flag=True, help="Seal under a new key, and drop the earlier keys.")
@json_option("what was sealed and what could not be")
@pass_state
def command(state: State, new_key: bool) -> int:
    """Seal the journal under a key that is kept elsewhere.

    `remit verify` then detects what someone without the key wrote. Creates the key if it does not exist, checks every
    stream, and seals the head of each stream that is intact. After that, a stream without a seal is not trusted. Stop
    the workers first. Read what `remit verify` reports before you seal again: a seal declares that the current record
    is right.
    """
    from remit.cli.running import run_to_end

    done, place = run_to_end(_seal(state, new_key=new_key))
    if state.as_json:
        import msgspec

        state.output.json({**msgspec.to_builtins(done), "key_file": str(place)})
    else:
        _print(state, done, place)
    return exit_codes.DAMAGED if done.problems else exit_codes.OK


async def _seal(state: State, *, new_key: bool) -> tuple[Resealed, Path]:
    import os

    from remit.journal.keys import make, read, write
    from remit.journal.seals import KEY_BYTES
    from remit.wiring.journal import key_place

    opened = state.remit(code="unused", writes=True)
    place = key_place(opened.settings)
    if place is None:
        raise UsageError("this journal has no key", remedy="Set journal.key_file to a file outside the project folder.")
    try:
        make(place)
        if new_key:
            write(place, [os.urandom(KEY_BYTES), *read(place)])
        async with opened as remit:
            done = await remit.service.streams.seal()
        if new_key and not done.problems:
            write(place, read(place)[:1])
    except OSError as error:
        why = f"{place}: {error.strerror or error}"
        raise SettingsError(why, remedy="Make that folder writable, or name another journal.key_file.") from error
    return done, place


def _print(state: State, done: Resealed, place: Path) -> None:
    from remit.cli.text import clean

    out = state.output.out
    for problem in done.problems:
        out.line(f"{out.style('damaged', 'fail')} {clean(problem)}")
    out.line(f"{out.style('ok', 'ok')} {done.sealed} of {done.streams} heads sealed now, under {clean(str(place))}")
    for stream in done.unsealed[:_SHOWN]:
        out.line(f"  had no seal: {clean(stream)}")
    if len(done.unsealed) > _SHOWN:
        out.line(f"  and {len(done.unsealed) - _SHOWN} more")
    state.note("keep a copy of the key file separate from backups of the journal")
