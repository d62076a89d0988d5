"""An agent in the sandbox, where nothing that it starts can change the settings by which it asks the guard.

It sees its own installation, its project, its state and no other file of its user's. Where it would look for settings
and there are none, an empty folder or file is made first, so that it cannot be made inside. What stands in front of a
settings file is a mount of its own too: it cannot be renamed. The guard runs outside, and is started again if it ends.
"""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from remit.codes import Code
from remit.errors import StateError, UsageError
from remit.parts.hooks.daemon import GuardFolder, start
from remit.parts.hooks.places import folder_of
from remit.process.child import ChildProcess
from remit.process.enclosure import (
    CommandMissingError,
    Enclosures,
    LooserError,
    Program,
    SandboxTerms,
    SandboxUnavailableError,
    python,
)
from remit.tasks import first

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.parts.hooks.hook import AgentName


class Ground(NamedTuple):
    """Facts of an agent on a machine. A name with a suffix is that of a file."""

    hosts: tuple[str, ...]
    """Where its maker serves its model."""
    settings: tuple[str, ...]
    """Names in its folder of settings that decide about hooks."""
    project: tuple[str, ...]
    """The folders in a project that say what it starts."""
    state: tuple[str, ...] = ()
    """Places in a home beside that, which it writes."""


_GROUNDS: Final[Mapping[AgentName, Ground]] = {
    "claude": Ground(
        ("api.anthropic.com",), ("settings.json", "remote-settings.json"), (".claude",), (".claude.json",)
    ),
    "codex": Ground(("api.openai.com", "chatgpt.com"), ("config.toml", "hooks.json"), (".codex",)),
    "gemini": Ground(
        ("generativelanguage.googleapis.com",), ("settings.json", "trustedFolders.json", "extensions"), (".gemini",)
    ),
    "opencode": Ground(
        ("opencode.ai", "models.dev"),
        ("plugin", "plugins", "opencode.json"),
        (".opencode/plugin", ".opencode/plugins"),
        (".local/share/opencode", ".local/state/opencode", ".cache/opencode"),
    ),
    "qwen": Ground(("dashscope.aliyuncs.com",), ("settings.json", "extensions"), (".qwen",)),
    "copilot": Ground(
        ("api.githubcopilot.com", "api.github.com"),
        ("hooks", "settings.json"),
        (".github/copilot", ".github/hooks"),
    ),
}
_MACHINE: Final = Path("/etc/claude-code")
"""Claude's managed settings."""
_GIT: Final = (".git/hooks", ".git/config")
"""Places by which git starts programs outside, once an agent has written there."""
_MOVED: Final = {
    ".local/share": "XDG_DATA_HOME",
    ".local/state": "XDG_STATE_HOME",
    ".cache": "XDG_CACHE_HOME",
}
_IN_TERMINAL: Final = (
    *("-c", "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"),
    *("sh", "-c", 'stty rows "$0" cols "$1"; shift; exec "$@"'),
)
"""Words for Python that give a program a terminal of its own, of so many rows and columns."""


class AgentNeeds(NamedTuple):
    """Things that its user lets an agent have beside."""

    hosts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


def fenced(
    agent: AgentName, command: Sequence[str], env: Mapping[str, str], guard: Path, wishes: AgentNeeds
) -> Program:
    """Return an agent as the program that it is in the sandbox, and make what keeps its settings. Raises OSError."""
    ground, own, project = _GROUNDS[agent], folder_of(agent, env), _project(Path.cwd())
    inside = [*ground.project, *(_GIT if (project / ".git").is_dir() else ())]
    kept = [*(own / name for name in ground.settings), *(project / name for name in inside)]
    reads = [guard, *map(_made, kept)]
    writes = [project, *(path.parent for path in kept), *(_made(_state(name, env)) for name in ground.state)]
    if _MACHINE.exists():
        reads.append(_MACHINE)
    urls = [urlsplit(value) for name, value in env.items() if name.endswith("_BASE_URL")]
    named = tuple(url.netloc.rpartition("@")[2] for url in urls if url.hostname)
    return Program(
        command=tuple(command),
        cwd=Path.cwd(),
        env=env,
        terms=SandboxTerms(
            roots=(*map(str, reads), *wishes.reads),
            writable=(*dict.fromkeys(map(str, writes)), *wishes.writes),
            network=(*ground.hosts, *named, *wishes.hosts),
        ),
        private=(*named, *wishes.hosts),
        refused=_refuse,
    )


def _project(folder: Path) -> Path:
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)


def _state(name: str, env: Mapping[str, str]) -> Path:
    base, _, rest = name.rpartition("/")
    moved = env.get(_MOVED.get(base, ""))
    return Path(moved) / rest if moved else Path(env["HOME"]) / name


def _made(path: Path) -> Path:
    """Return a path, empty where there was none."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix:
            path.write_text("" if path.suffix == ".toml" else "{}\n")
        else:
            path.mkdir()
    return path


def _refuse(place: str, why: str) -> None:
    sys.stderr.write(f"remit guard: the sandbox refused {place}: {why}\n")


class _Passed(ChildProcess):
    """A program whose output is ours."""

    def heard(self, data: bytes) -> None:
        _write(1, data)

    def erred(self, data: bytes) -> None:
        _write(2, data)


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


async def run_fenced(
    program: Program, enclosures: Enclosures, folder: GuardFolder, serve: Sequence[str], clock: Clock
) -> int:
    """Run an agent to its end, with our stdin and output, and the guard beside it. Return its status.

    Raises OSError, and StateError: SANDBOX_UNAVAILABLE or POLICY_DENIED. It is never started without the sandbox.
    """
    child, loop = _Passed(), asyncio.get_running_loop()

    async def launch(protocol: asyncio.SubprocessProtocol, *_: object) -> asyncio.SubprocessTransport:
        return await enclosures.start(msgspec.structs.replace(program, before=before), protocol)

    await start(folder, serve, clock)
    with _terminal() as before:
        try:
            await child.start(program.command, env=program.env, launch=launch)
            Thread(target=_feed, args=(loop, child), daemon=True).start()
            status, _ = await first(child.ended(), _keep(folder, serve, clock))
        except (SandboxUnavailableError, CommandMissingError) as error:
            remedy = getattr(error, "remedy", "") or "`remit sandbox probe` shows what is missing."
            raise StateError(str(error), remedy=remedy, code=Code.SANDBOX_UNAVAILABLE) from error
        except LooserError as error:
            raise StateError(f"its sandbox: {error}", remedy="Leave it out.", code=Code.POLICY_DENIED) from error
        finally:
            await child.close()
            await enclosures.close()
    return 128 - int(status) if status < 0 else int(status)


async def _keep(folder: GuardFolder, serve: Sequence[str], clock: Clock) -> None:
    """Have a guard outside for as long as this is awaited: it cannot be started from within. Raises OSError."""
    while True:
        await start(folder, serve, clock)
        reader, writer = await asyncio.open_unix_connection(folder.socket)
        try:
            await reader.read()  # a guard with a connection does not end
        except ConnectionError:
            pass
        finally:
            writer.close()


def _feed(loop: asyncio.AbstractEventLoop, child: ChildProcess) -> None:
    """Pass our stdin on, in a thread: not every file can be waited for."""
    with suppress(OSError, RuntimeError):  # the terminal is gone, or the agent has ended
        while data := os.read(0, 65_536):
            loop.call_soon_threadsafe(child.write, data)
        loop.call_soon_threadsafe(child.close_stdin)


@contextmanager
def _terminal() -> Iterator[tuple[str, ...]]:
    """Yield the words that give a program a terminal, if we have one, which then passes on each key as it is."""
    if not (os.isatty(0) and os.isatty(1)):
        yield ()
        return
    if not python():
        raise UsageError("an agent with a terminal needs /usr/bin/python3 here", remedy="Install it, or give a prompt.")
    size, before = os.get_terminal_size(0), termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield (python(), *_IN_TERMINAL, str(size.lines), str(size.columns))
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
