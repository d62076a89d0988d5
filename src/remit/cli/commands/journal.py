"""`remit journal`: the journal as a whole."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState, not_there
from remit.cli.group import LazyCommand, LazyGroup, entries_below, show_help
from remit.cli.options import json_option, pass_state
from remit.cli.output import clean, counted
from remit.errors import SettingsError, UsageError
from remit.wiring.capabilities import FIRST_PARTY

if TYPE_CHECKING:
    from remit.journal.copy import Copied, Progress, Resealed
    from remit.journal.retirement import CopyState
    from remit.journal.sharded.move import MovedShard
    from remit.journal.sharded.store import ShardRow
    from remit.settings import Settings


COMMANDS: Final[dict[str, LazyCommand]] = {
    "activate": LazyCommand("Commands", "Let a backup, or a journal that moved, run jobs from now on."),
    "copy": LazyCommand("Commands", "Move a journal to another place, and prove that nothing was lost."),
    "move": LazyCommand("Commands", "Move a shard to another server."),
    "shards": LazyCommand("Commands", "List the shards of the journal: place, state and size."),
    "seal": LazyCommand("Commands", "Seal the journal under a key that is kept elsewhere."),
    **entries_below("journal", FIRST_PARTY),
}


@click.group("journal", cls=LazyGroup, package="remit.cli.commands.journal", entries=COMMANDS)
@click.pass_context
def command(context: click.Context) -> None:
    """Move or back up the journal, prune records, or seal it."""
    show_help(context)


def _only_here(state: CommandState) -> None:
    """Raise UsageError (LOCAL_ONLY) beside a server: a journal here is not the one that was meant."""
    if state.server:
        raise not_there()


@command.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--backup", is_flag=True, help="Leave FROM as it is; TO runs no jobs until it is activated.")
@json_option("how much was copied")
@pass_state
def copy_command(state: CommandState, source: str, target: str, *, backup: bool) -> int:
    """Move a journal to another place, and prove that nothing was lost.

    FROM and TO are paths or URLs, as for --journal. Every event keeps its hash, and each stream of TO is checked
    against FROM. At the end FROM is retired, so that no job runs twice: whatever is written to it is refused with
    JOURNAL_MOVED. With --backup FROM stays as it is, and TO is a copy that runs no jobs (JOURNAL_BACKUP). Stop the
    workers and servers of FROM first. If the command is interrupted, run it again: it goes on where it stopped.
    """
    from remit.cli.runner import run_to_end
    from remit.settings.sections.process import shards_in

    _only_here(state)
    begin, end = (state.settings({"journal.url": url}) for url in (source, target))
    if begin.journal.url == end.journal.url:
        raise UsageError("FROM and TO are the same journal", remedy="Name another place for the copy.")
    if len(shards_in(begin.journal.url)) + len(shards_in(end.journal.url)) > 2:  # noqa: PLR2004 - one each
        raise UsageError("a journal with shards is not copied as one", remedy="Copy each shard by itself.")
    if begin.journal.file is not None and not begin.journal.file.exists():
        raise UsageError(f"there is no journal at {begin.journal.file}", remedy="Correct FROM.")
    copied, where = run_to_end(_copy(state, begin, end, backup=backup))
    held = f"{counted(copied.events, 'event')} in {counted(copied.streams, 'stream')}"
    state.done(copied, f"{held}, {counted(copied.blobs, 'value')} beside them: {where} holds the same")
    if backup:
        state.note(f"it runs no jobs until you run `remit --journal {where} journal activate`")
    else:
        used = f"use remit --journal {where}" if "://" not in where else f"set journal.url to {where}"
        state.note(f"{source} is retired: {used}")
    return exit_codes.OK


async def _copy(state: CommandState, begin: Settings, end: Settings, *, backup: bool) -> tuple[Copied, str]:
    from remit.clock import SystemClock
    from remit.journal.copy import back_up, move, refuse_busy
    from remit.journal.event import HeadQuery
    from remit.journal.journal import Journal
    from remit.wiring.journal import find_key, open_journal, open_store, refuse_open

    await refuse_open(begin)
    async with contextlib.AsyncExitStack() as stack:
        source = open_journal(begin, SystemClock())
        stack.push_async_callback(source.close)
        if not await source.heads(HeadQuery(limit=1)):
            raise UsageError(f"{source.url} is empty", remedy="Correct FROM.")
        await find_key(source, begin)
        if not backup:
            source.require_key()
        await refuse_busy(source)
        await refuse_open(end)
        # Not before: if FROM cannot be copied, nothing is made. Who copies vouches for nothing, and has no key there.
        target = Journal(open_store(end.journal.url, SystemClock()))
        stack.push_async_callback(target.close)
        with _progress(state) as progress:
            return await (back_up if backup else move)(source, target, progress), target.url


@contextlib.contextmanager
def _progress(state: CommandState) -> Iterator[Progress]:
    """A bar for each of the two passes, on a terminal."""
    if state.as_json or state.quiet or not state.output.err.is_terminal:
        yield lambda _what, _done, _all: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        tasks = {what: bars.add_task(what, total=None) for what in ("copy", "prove")}
        yield lambda what, done, all_: bars.update(tasks[what], completed=done, total=all_)


@command.command("activate")
@click.option("--unfinished", is_flag=True, help="Also a copy that was broken off: what is missing in it is lost.")
@json_option("what the journal was before")
@pass_state
def activate_command(state: CommandState, *, unfinished: bool) -> int:
    """Let a backup, or a journal that moved, run jobs from now on.

    The other journal must never run jobs again: both would do the same work, and a side effect could happen twice.
    """
    from remit.cli.runner import run_to_end

    _only_here(state)
    before, url = run_to_end(_activate(state, unfinished=unfinished))
    state.done(before, f"{url} runs jobs {'from now on' if before.place else 'already'}")
    if before.place:
        former = "the journal that stood in its place" if before.place == url else before.place
        state.note(f"never run the jobs of {former} again")
    return exit_codes.OK


async def _activate(state: CommandState, *, unfinished: bool) -> tuple[CopyState, str]:
    from remit.clock import SystemClock
    from remit.journal.copy import activate
    from remit.settings.principal import principal
    from remit.wiring.journal import find_key, open_journal

    settings = state.trusted()
    if settings.journal.file is not None and not settings.journal.file.exists():
        raise UsageError(f"there is no journal at {settings.journal.file}", remedy="Correct --journal.")
    journal = open_journal(settings, SystemClock())
    try:
        await find_key(journal, settings)
        return await activate(journal, principal(settings), unfinished=unfinished), journal.url
    finally:
        await journal.close()


@command.command("move")
@click.argument("shard", type=click.IntRange(min=0))
@click.argument("target", metavar="URL")
@json_option("the shard with its old and new place")
@pass_state
def move_command(state: CommandState, shard: int, target: str) -> int:
    """Move a shard to another server.

    SHARD is its number in `remit journal shards`, and URL an empty schema. The shard is frozen: its leases end, and
    nothing is written to it any more. Then it is copied, every stream is compared and verified, and the new place runs
    its jobs. Other shards go on meanwhile. Then put URL in the place of the old one in journal.url, and start workers
    and servers again. If the command is interrupted, run it again: it goes on where it stopped.
    """
    from remit.cli.runner import run_to_end

    _only_here(state)
    moved = run_to_end(_move(state, shard, target))
    state.done(moved, f"shard {moved.number} is at {moved.target}")
    state.note(f"put its URL in the place of number {moved.number} in journal.url, and start all processes again")
    return exit_codes.OK


async def _move(state: CommandState, number: int, target: str) -> MovedShard:
    from remit.clock import SystemClock
    from remit.journal.sharded.move import move_shard
    from remit.settings.sections.process import SERVERS, shards_in
    from remit.wiring.journal import open_shard, seals_of

    settings, clock = state.trusted(), SystemClock()
    urls = shards_in(settings.journal.url)
    if len(urls) == 1 or number >= len(urls):
        raise UsageError(f"this journal has no shard {number}", remedy="`remit journal shards` lists them.")
    if target.partition("://")[0] not in SERVERS or len(target.split()) > 1:
        raise UsageError("URL is the one place of a shard", remedy="Give postgresql://… with an empty schema.")
    end = state.settings({"journal.url": target})
    async with contextlib.AsyncExitStack() as stack:
        places = (urls.pop(number), end.journal.url, *urls)
        stores = [open_shard(url, clock) for url in places]
        for store in stores:
            stack.push_async_callback(store.close)
        source, new, *others = stores
        return await move_shard(source, new, clock, seals_of(settings), lambda what, _done: state.note(what), others)


@command.command("shards")
@json_option("each shard with its place, state and size")
@pass_state
def shards_command(state: CommandState) -> int:
    """List the shards of the journal: place, state and size.

    The status is 1 if a shard is down: its jobs wait until it is back, and lists leave them out.
    """
    from remit.cli.runner import run_to_end

    _only_here(state)
    shards = run_to_end(_shards(state))
    state.show(shards, _print_shards)
    return exit_codes.ERROR if any(shard.state == "down" for shard in shards) else exit_codes.OK


def _print_shards(state: CommandState, shards: list[ShardRow]) -> None:
    from remit.cli.tables import table

    rows = [
        (str(shard.number), shard.state, str(shard.streams), str(shard.bytes), clean(shard.place)) for shard in shards
    ]
    table(state.output.out, ("shard", "state", "streams", "bytes", "place"), rows)
    for shard in shards:
        if shard.why:
            state.note(clean(shard.why))


async def _shards(state: CommandState) -> list[ShardRow]:
    from remit.clock import SystemClock
    from remit.journal.sharded.store import ShardedStore
    from remit.settings.sections.process import shards_in
    from remit.wiring.journal import open_shard

    urls, clock = shards_in(state.trusted().journal.url), SystemClock()
    if len(urls) == 1:  # not opened: a journal that is not there is not made to say so
        raise UsageError("this journal has no shards", remedy="Give several URLs in journal.url for a new journal.")
    store = ShardedStore(urls, lambda url: open_shard(url, clock))
    try:
        return await store.rows()
    finally:
        await store.close()


_SHOWN: Final = 20


@command.command("seal")
@click.option("--new-key", is_flag=True, help="Seal under a new key, and drop the earlier keys.")
@click.option(
    "--vouch", "vouched", is_flag=True, help="Also what is sealed under a key that is not here; it is recorded who did."
)
@json_option("what was sealed and what could not be")
@pass_state
def seal_command(state: CommandState, *, new_key: bool, vouched: bool) -> int:
    """Seal the journal under a key that is kept elsewhere.

    `remit verify` then detects what someone without the key wrote. Creates the key if it does not exist, checks every
    stream, and seals the head of each stream that is intact. After that, a stream without a seal is not trusted. Stop
    the workers first. Read what `remit verify` reports before you seal again: a seal declares that the current record
    is right. What is sealed under a key that is not here cannot be checked, and stays as it is (KEY_MISSING): bring the
    key, or vouch for it with --vouch, which is recorded with your name (`journal_vouched`).
    """
    import msgspec

    from remit.cli.runner import run_to_end

    _only_here(state)
    done, place = run_to_end(_seal(state, new_key=new_key, vouched=vouched))
    state.show(
        {**msgspec.to_builtins(done), "key_file": str(place)}, lambda state, _: _print_seal(state, done, place, vouched)
    )
    return exit_codes.DAMAGED if done.problems else exit_codes.OK


async def _seal(state: CommandState, *, new_key: bool, vouched: bool) -> tuple[Resealed, Path]:
    import os

    from remit.clock import SystemClock
    from remit.journal.copy import seal_all, vouch
    from remit.journal.seals import KEY_BYTES, load, make, read, write
    from remit.settings.principal import principal
    from remit.wiring.journal import find_key, key_place, open_journal

    settings = state.trusted()
    place = key_place(settings)
    if place is None:
        raise UsageError("this journal has no key", remedy="Set journal.key_file to a file outside the project folder.")
    if settings.journal.file is not None and not settings.journal.file.exists():
        raise UsageError(f"there is no journal at {settings.journal.file}", remedy="Correct --journal.")
    try:
        if settings.journal.key_file:
            make(place)
        journal = open_journal(settings, SystemClock())
        try:
            place = await find_key(journal, settings) or place
            if not vouched:
                journal.require_key()
            make(place)
            if new_key:
                write(place, [os.urandom(KEY_BYTES), *read(place)])
            seals = load(place)
            if journal.missing_key and seals is not None:
                await vouch(journal, seals, principal(settings))
            journal.seals = seals
            done = await seal_all(journal, vouched=vouched)
        finally:
            await journal.close()
        if new_key and not done.problems:
            write(place, read(place)[:1])
    except OSError as error:
        reason = f"{place}: {error.strerror or error}"
        raise SettingsError(reason, remedy="Make that folder writable, or name another journal.key_file.") from error
    return done, place


def _print_seal(state: CommandState, done: Resealed, place: Path, vouched: bool) -> None:
    out = state.output.out
    for problem in done.problems:
        out.line(f"{out.style('damaged', 'fail')} {clean(problem)}")
    out.line(f"{out.style('ok', 'ok')} {done.sealed} of {done.streams} heads sealed now, under {clean(str(place))}")
    for stream in done.unsealed[:_SHOWN]:
        out.line(f"  {'vouched for' if vouched else 'had no seal'}: {clean(stream)}")
    if len(done.unsealed) > _SHOWN:
        out.line(f"  and {len(done.unsealed) - _SHOWN} more")
    state.note("keep a copy of the key file separate from backups of the journal")
