"""`remit mcp logs`: the words of a server on stderr, and when it was connected and lost.

`remit mcp restart`: start a server again in every process that uses it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from remit.cli import exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state
from remit.cli.output import one_line
from remit.cli.servers import all_servers, complete_servers
from remit.codes import Code
from remit.errors import NotFoundError, UsageError

_LOOK_S: Final = 0.25
"""Seconds between two looks at a log that is followed."""


@click.command("logs")
@click.argument("name", shell_complete=complete_servers)
@click.option("-n", "--lines", type=click.IntRange(min=0), default=100, metavar="N", help="How many of the last lines.")
@click.option("-f", "--follow", is_flag=True, help="Keep showing what is written from now on.")
@json_option("the lines")
@pass_state
def logs(state: CommandState, name: str, lines: int, follow: bool) -> int:
    """Show what a server wrote to stderr, and when it was connected and lost.

    The log is of all processes on this machine that use a server of this name: `serve`, `worker`, `wrap` and others.
    Each line has the time, the process and the text, with secrets masked.
    """
    from remit.cli.context import not_there
    from remit.cli.runner import run_to_end
    from remit.settings.mcp_servers import NAME
    from remit.settings.places import server_log

    if state.server:
        raise not_there("log of the MCP server")
    if follow and state.as_json:
        raise UsageError("--follow has no end, so there is no JSON of it", remedy="Leave one of them out.")
    log = Log(server_log(os.environ, name))
    if not NAME.fullmatch(name) or not (follow or log.exists):
        remedy = "It begins when the server is started."
        raise NotFoundError(f"there is no log of an MCP server {name!r}", code=Code.UNKNOWN_TOOL, remedy=remedy)
    shown = log.read()[-lines or None :] if lines else []
    state.show(shown, _print)
    if follow:
        run_to_end(_follow(state, log))
    return exit_codes.OK


class Log:
    """The two files of a log, read as one that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode, self._read = 0, 0

    @property
    def exists(self) -> bool:
        """Return whether anything was ever kept."""
        from remit.settings.places import former

        return self._path.exists() or former(self._path).exists()

    def read(self) -> list[str]:
        """The whole lines that were added since it was read last; at first, all."""
        return [line for path in self._files() for line in self._added(path)]

    def _files(self) -> Iterator[Path]:
        """The files that may hold more: the former one until it is read, then the one of today."""
        from remit.settings.places import former

        before = former(self._path)
        try:
            if not self._inode or before.stat().st_ino == self._inode:
                yield before
        except FileNotFoundError:
            pass  # it was never full
        yield self._path

    def _added(self, path: Path) -> list[str]:
        try:
            with path.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                if inode != self._inode:
                    self._inode, self._read = inode, 0
                file.seek(self._read)
                data = file.read()
        except FileNotFoundError:
            return []
        data = data[: data.rfind(b"\n") + 1]
        self._read += len(data)
        return data.decode(errors="replace").splitlines()


async def _follow(state: CommandState, log: Log) -> None:
    from remit.clock import SystemClock

    clock = SystemClock()
    while True:
        await clock.sleep(_LOOK_S)
        _print(state, log.read())


def _print(state: CommandState, lines: list[str]) -> None:

    for line in lines:
        state.output.out.line(one_line(line))
    state.output.out.flush()


@click.command("restart")
@click.argument("name", shell_complete=complete_servers)
@json_option("the server's answer, or that it was asked for")
@pass_state
def restart(state: CommandState, name: str) -> int:
    """Start a server again in every process that uses it.

    Reaches `serve`, `worker`, `mcp serve` and `mcp wrap` on the same journal. Calls under way end first, for up to 30
    seconds; calls made meanwhile wait. A server that was given up is tried again at once. With --server, waits for the
    server of that process and says who answers.
    """
    from remit.cli.runner import run_to_end

    if not state.server:
        run_to_end(_ask(state, name))
        words = f"every process of this journal that uses {name} starts it again"
        return state.done({"server": name, "asked": True}, words)
    status = state.ask(lambda remit: remit.service.servers.restart(name), code="unused", servers=True)
    return state.done(status, f"restarted {name}: {one_line(f'{status.name} {status.version}'.strip())}")


async def _ask(state: CommandState, name: str) -> None:
    """Ask the processes that are up. Raises NotFoundError for a server that neither settings nor journal know."""
    from remit.settings.principal import principal

    async with state.remit(code="unused", writes=True) as remit:
        servers = remit.service.servers
        settings = state.settings()
        if name not in {server.name for server in all_servers(settings).servers} and not await servers.pin_of(name):
            remedy = "`remit mcp list` lists them."
            raise NotFoundError(f"there is no MCP server {name!r}", code=Code.UNKNOWN_TOOL, remedy=remedy)
        await servers.restarts.ask(name, principal(settings), here=False)
