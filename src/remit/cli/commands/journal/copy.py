"""`remit journal copy`: from one place to another, whatever keeps it there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from remit.cli import exit_codes
from remit.cli.context import State
from remit.cli.options import json_option, pass_state
from remit.errors import UsageError

if TYPE_CHECKING:
    from remit.journal.copy import Copied, Progress
    from remit.settings import Settings


@click.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--backup", is_flag=True, help="Leave FROM as it is; TO runs no jobs until it is activated.")
@json_option("how much was copied")
@pass_state
def command(state: State, source: str, target: str, *, backup: bool) -> int:
    """Move a journal to another place, and prove that nothing was lost.

    FROM and TO are paths or URLs, as for --journal. Every event keeps its hash, and each stream of TO is checked
    against FROM. At the end FROM is retired, so that no job runs twice: whatever is written to it is refused with
    JOURNAL_MOVED. With --backup FROM stays as it is, and TO is a copy that runs no jobs (JOURNAL_BACKUP). Stop the
    workers and servers of FROM first. If the command is interrupted, run it again: it goes on where it stopped.
    """
    from remit.cli.running import run_to_end

    begin, end = (state.settings({"journal.url": url}) for url in (source, target))
    if begin.journal.url == end.journal.url:
        raise UsageError("FROM and TO are the same journal", remedy="Name another place for the copy.")
    if begin.journal.file is not None and not begin.journal.file.exists():
        raise UsageError(f"there is no journal at {begin.journal.file}", remedy="Correct FROM.")
    copied, where = run_to_end(_copy(state, begin, end, backup=backup))
    if state.as_json:
        import msgspec

        state.output.json(msgspec.to_builtins(copied))
    else:
        from remit.cli.text import counted

        out = state.output.out
        held = f"{counted(copied.events, 'event')} in {counted(copied.streams, 'stream')}"
        counts = f"{held}, {counted(copied.blobs, 'value')} beside them"
        out.line(f"{out.style('ok', 'ok')} {counts}: {where} holds the same")
        if backup:
            state.note(f"it runs no jobs until you run `remit --journal {where} journal activate`")
        else:
            used = f"use remit --journal {where}" if "://" not in where else f"set journal.url to {where}"
            state.note(f"{source} is retired: {used}")
    return exit_codes.OK


async def _copy(state: State, begin: Settings, end: Settings, *, backup: bool) -> tuple[Copied, str]:
    from remit.clock import SystemClock
    from remit.journal.copy import refuse_busy
    from remit.journal.event import HeadQuery
    from remit.journal.journal import Journal
    from remit.journal.moving import back_up, move
    from remit.wiring.journal import open_journal, open_store, refuse_open

    await refuse_open(begin)
    async with contextlib.AsyncExitStack() as stack:
        source = open_journal(begin, SystemClock())
        stack.push_async_callback(source.close)
        if not await source.heads(HeadQuery(limit=1)):
            raise UsageError(f"{source.url} is empty", remedy="Correct FROM.")
        await refuse_busy(source)
        await refuse_open(end)
        # Not before: if FROM cannot be copied, nothing is made. Who copies vouches for nothing, and has no key there.
        target = Journal(open_store(end.journal.url, SystemClock()))
        stack.push_async_callback(target.close)
        with _progress(state) as progress:
            return await (back_up if backup else move)(source, target, progress), target.url


@contextlib.contextmanager
def _progress(state: State) -> Iterator[Progress]:
    """A bar for each of the two passes, on a terminal."""
    if state.as_json or state.quiet or not state.output.err.is_terminal:
        yield lambda _what, _done, _all: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        tasks = {what: bars.add_task(what, total=None) for what in ("copy", "prove")}
        yield lambda what, done, all_: bars.update(tasks[what], completed=done, total=all_)
