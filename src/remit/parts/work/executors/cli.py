"""A coding agent behind the port, by its command line: its output is read as events, and its word is not taken.

Governed, the agent has no tool but Remit's, so each of its calls passes the gate. What the repository would have it
start is looked for first, and needs trust where the agent's flags do not keep it from that.

The conversation of an agent's last run: the next run of the same agent continues it, in a home of its own.

Agents keep their conversations in their home, some by the folder that they worked in. The file of one conversation is
copied into the home of the new run, and nothing else: what the agent may have left there to be started stays behind.
"""

from __future__ import annotations

import asyncio
import glob
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from remit.atomic import replace_file
from remit.codes import Code
from remit.errors import ProviderError, UsageError
from remit.parts.work.executors.port import AgentConversation, AgentTurn, ExecutorOutput, ProgramEnding, Site
from remit.parts.work.executors.program import run_at, run_program
from remit.parts.work.executors.rows import LINE, RESUME, AgentModel, Cli, Home, WordTally
from remit.parts.work.pack import STDERR, STDOUT
from remit.parts.work.workflow import ExecutorTable, Mode
from remit.regex import regex

_ID: Final = regex(r"[A-Za-z0-9][\w-]{0,99}")
_MAX_FILE: Final = 64_000_000


def carry(cli: Cli, site: Site, mode: Mode, version: str) -> bool:
    """Copy the last conversation of a site's agent into its home; return whether it can continue there.

    It cannot in another mode or version, nor if its file is not there, is a link, or is long.
    """
    last = site.last
    if last is None or not (cli.conversation and version and (last.mode, last.version) == (mode, version)):
        return False
    if not _ID.fullmatch(last.session):
        return False
    before, after = cli.place(last.folder), cli.place(site.folder)
    pattern = cli.conversation.format(session=last.session, place=glob.escape(before))
    path = next(iter(last.home.glob(pattern)), None)
    if path is None or path.resolve() != last.home.resolve() / path.relative_to(last.home):
        return False
    if not path.is_file() or path.stat().st_size > _MAX_FILE:
        return False
    place = site.home.joinpath(*(after if part == before else part for part in path.relative_to(last.home).parts))
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, place)
    if site.enclosures is not None:
        site.enclosures.own(site.home)
    return True


_MAX_LINE: Final = 4_000_000
"""Bytes of an event; a longer one is shown to no one and counts for nothing."""
_MAX_PROMPT: Final = 100_000
"""Bytes of an argument; Linux takes 131,072."""
_VERSION: Final = regex(rb"\d+\.\d+\.\d+[\w.+-]*")
_PROBE_S: Final = 60.0
_READ: Final = 4_000


class CliExecutor:
    """One agent, on the terms of its table."""

    def __init__(self, cli: Cli, table: ExecutorTable) -> None:
        self._cli = cli
        self._table = table
        self.mode: Mode = table.mode or "governed"
        if self.mode not in cli.args:
            remedy = f'Its modes: {", ".join(cli.args)}. Say it in workflow.toml: [executors.{cli.name}] mode = "free"'
            raise UsageError(f"{cli.name} cannot be {self.mode}", code=Code.WORK_INVALID, remedy=remedy)

    @property
    def command(self) -> tuple[str, ...]:
        return self._words(())

    def require(self, env: Mapping[str, str]) -> None:
        cli, program = self._cli, self.command[0]
        if shutil.which(program, path=env.get("PATH")) is None and not self._table.setup:
            raise _unavailable(f"{program} is not installed", f"Install it: {cli.install}")
        require_key(cli, self._table, env)

    async def work(self, site: Site) -> ProgramEnding:
        starts = require_trust(self._cli, self._table, site)
        async with AsyncExitStack() as stack:
            tools = await stack.enter_async_context(site.tools(site)) if self.mode == "governed" else None
            env = await settle(self._cli, self._table, site, self.mode, tools.command if tools is not None else ())
            events = EventLines(self._cli, site.show)
            version = await version_of(site._replace(env={**site.env, **env}), self.command[0])
            if version not in {"", self._cli.version}:
                note = f"{self._cli.name} is {version}; Remit was tried with {self._cli.version}\n"
                site.show("stderr", note.encode())
            last = site.last if await asyncio.to_thread(carry, self._cli, site, self.mode, version) else None
            words = self._words(self._cli.resume if last is not None else ())
            session = last.session if last is not None else ""
            command = site.filled(words, prompt=prompt_of(site, last), session=session)
            ending = await run_at(site, command, events, env)
        turn = replace(events.turn(self.mode), starts=starts, version=version, tried=self._cli.version)
        turn = replace(turn, continues=last.run_id if last is not None else "")
        if tools is not None:
            turn = replace(turn, trace=tools.session, calls=tools.calls, denied=turn.denied + tools.denied)
        return replace(ending, turn=turn)

    def _words(self, resume: tuple[str, ...]) -> tuple[str, ...]:
        args = self._cli.args[self.mode]
        begun = (word for each in args for word in (resume if each == RESUME else (each,)))
        return (self._table.program or self._cli.name, *begun, *self._table.args)


def require_key(cli: Cli, table: ExecutorTable, env: Mapping[str, str]) -> None:
    """Raise UsageError (env_unavailable) unless the key of an agent's model is set."""
    key = table.key or cli.key
    if not env.get(key):
        remedy = f"export {key}=…, or name another in [executors.{cli.name}] key. A run has a home of its own."
        raise _unavailable(f"{key}, the key of {cli.name}'s model, is not set", remedy)


def require_trust(cli: Cli, table: ExecutorTable, site: Site) -> tuple[str, ...]:
    """Return the files by which a repository would have an agent start programs, each with its digest.

    Raise ProviderError (permission_denied) unless they are trusted, or the agent's flags keep it from them.
    """
    starts = tuple(sorted({*_starts(site.folder, cli.starts)}))
    if not cli.closed and (refused_starts := [each for each in starts if each not in table.starts]):
        trusted = ", ".join(f'"{each}"' for each in refused_starts[:20])
        reason = f"{cli.name} would start programs by files of the repository. If you trust them, write "
        raise ProviderError(f"{reason}[executors.{cli.name}] starts = [{trusted}]", cause=Code.permission_denied)
    return starts


async def settle(cli: Cli, table: ExecutorTable, site: Site, mode: Mode, tools: tuple[str, ...] = ()) -> dict[str, str]:
    """Write the files of an agent's home; return its variables. `tools` is the command of Remit's MCP server."""
    model = AgentModel(table.model, table.base_url, site.secrets.get(table.key or cli.key, ""))
    await asyncio.to_thread(_put, site.home, cli.files(Home(model, mode, tools)))
    if site.enclosures is not None:
        site.enclosures.own(site.home)
    return _environment(cli.env, site, model)


def prompt_of(site: Site, last: AgentConversation | None = None) -> str:
    """Return the words that an agent begins with: the issue, the rules, the specification as far as it fits.

    With `last` they also say the end of the run whose conversation goes on.
    """
    order = site.order
    rules = [
        *(f"- Do not change: {path}" for path in order.constraints.forbidden_paths),
        *(f"- This has to pass: {' '.join(command.args)}" for command in order.constraints.commands),
        *(f"- {note}" for note in order.constraints.notes),
        "- Work in the current folder alone. Ask nothing: no one answers. What you leave there is committed for you.",
    ]
    if last is not None:
        rules.insert(0, f"- Continue your work, in a new folder: {site.folder}. Your last run, {last.ending}.")
    head = "\n".join([f"Work on the issue {order.issue_ref}: {site.title}", "", *rules, "", ""])
    spec = order.spec_snapshot.encode()[: max(0, _MAX_PROMPT - len(head.encode()))].decode(errors="ignore")
    cut = "" if spec == order.spec_snapshot else f"\n\n[cut: the whole text is in {site.pack.folder}/spec_snapshot.md]"
    return f"{head}{spec}{cut}".replace("\0", "")


class EventLines:
    """Reads events, a JSON object a line, and shows them as text."""

    def __init__(self, cli: Cli, show: ExecutorOutput) -> None:
        self._cli = cli
        self._show = show
        self._tally = WordTally()
        self._line = bytearray()
        self._over = False

    def __call__(self, stream: Literal["stdout", "stderr"], data: bytes) -> None:
        if stream == "stderr":
            self._show(stream, data)
            return
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._hold(line)
            if not self._over:
                self._read(bytes(self._line))
            self._line.clear()
            self._over = False
        self._hold(rest)

    def turn(self, mode: Mode) -> AgentTurn:
        """Return what was said, once the program has ended."""
        self("stdout", b"\n")
        tally = self._tally
        return AgentTurn(
            mode=mode,
            terminal=tally.ended,
            fault=tally.fault,
            denied=tally.denied,
            session=tally.session,
            usage=tally.usage,
        )

    def _hold(self, piece: bytes) -> None:
        self._over = self._over or len(self._line) + len(piece) > _MAX_LINE
        if not self._over:
            self._line += piece

    def _read(self, line: bytes) -> None:
        try:
            event: Any = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            event = None
        if isinstance(event, dict):
            shown = self._cli.read(self._tally, event).encode(errors="replace")
        else:
            self._cli.read(self._tally, {LINE: line.decode(errors="replace")})
            shown = line
        if shown.strip():
            self._show("stdout", shown + b"\n")


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    version: str


async def version_of(site: Site, program: str) -> str:
    """Return the version that a program says it is, asked once for each file; empty if it does not say."""
    path = await asyncio.to_thread(shutil.which, program, path=site.env.get("PATH"))
    if path is None:
        return ""  # the run says so
    state = await asyncio.to_thread(Path(path).stat)
    mark = hashlib.sha256(f"{path} {state.st_ino} {state.st_size} {state.st_mtime_ns}".encode()).hexdigest()[:32]
    known = site.pack.root / "versions" / f"{mark}.json"
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(known.read_bytes(), type=_Found).version
    names = (f"version.{STDOUT}", f"version.{STDERR}")
    ending = await run_program(
        (path, "--version"),
        cwd=site.home,
        env=site.env,
        timeout_s=_PROBE_S,
        logs=(site.pack.folder / names[0], site.pack.folder / names[1]),
        clock=site.clock,
        launch=site.launch,
    )
    log = site.pack.open_log(names[0])
    if log is None or not ending.passed:
        return ""
    with log:
        match = _VERSION.search(log.read(_READ))
    version_read = _Found(version=match[0].decode() if match is not None else "")
    known.parent.mkdir(parents=True, exist_ok=True)
    replace_file(known, msgspec.json.encode(version_read))
    return version_read.version


def _unavailable(reason: str, remedy: str) -> UsageError:
    return UsageError(reason, code=Code.env_unavailable, remedy=remedy)


def _environment(env: Mapping[str, str], site: Site, model: AgentModel) -> dict[str, str]:
    words = {"url": model.url, "model": model.name, "key": model.key}
    filled = {name: site.filled((value,), **words)[0] for name, value in env.items()}
    return {name: value for name, value in filled.items() if value}


def _put(home: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        place = home / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


def _starts(folder: Path, patterns: tuple[str, ...]) -> Iterator[str]:
    """Return the files below a folder that patterns name, each with its digest; that of a link is of where it leads."""
    for path in (path for pattern in patterns for path in folder.glob(pattern)):
        if path.is_symlink():
            digest = hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
        elif path.is_file():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        else:
            continue
        yield f"sha256:{digest} {path.relative_to(folder).as_posix()}"
