"""The files by which an agent is told to ask the guard, and what stands there: put in, and taken out byte for byte."""

from __future__ import annotations

import json
import platform
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from remit.atomic import replace_file
from remit.errors import SettingsError, UsageError
from remit.mcp_config.agent_ground import folder_of
from remit.mcp_config.connection_record import digest_of
from remit.mcp_config.connections import FileConnection, ServerChange
from remit.mcp_config.foreign import plain
from remit.mcp_config.json_members import JsonText
from remit.parts.hooks.daemon import DEADLINE_S, GuardFolder, program
from remit.parts.hooks.hook import CALLS, EVENTS

if TYPE_CHECKING:
    from remit.parts.hooks.hook import AgentName, Moment

_MORE_S: Final = 20
"""Seconds that an agent waits longer than its client: most agents make the call once their own limit has passed."""
_MACHINES: Final = frozenset(("x86_64", "aarch64"))
"""Machines for which a program without a libc ships: it starts in a third of the time of one with it."""
_MANAGED: Final = Path("/etc/claude-code/managed-settings.d/50-remit.json")
_HOOK_TYPES: Final = frozenset(("command", "prompt", "agent", "http", "mcp_tool"))
_TYPES: Final[Mapping[str, type]] = {
    "model": str,
    "env": dict,
    "permissions": dict,
    "apiKeyHelper": str,
    "cleanupPeriodDays": int,
    "includeCoAuthoredBy": bool,
    "outputStyle": str,
    "language": str,
}
"""Types of Claude's settings of which a wrong one makes it drop the whole file; `status` finds the others."""


class HookClient(NamedTuple):
    """The program that an agent starts for a hook."""

    command: tuple[str, ...]
    """It, and what it asks."""
    starter: tuple[str, ...]
    """Starts the guard if it does not run, and asks it."""
    deadline_s: int

    def words(self, agent: AgentName, moment: Moment) -> str:
        """Return the command line of one hook. A program that is missing must not let a call run."""
        tag = f"{agent}.{moment}"
        if (agent, moment) == ("claude", "before"):
            tag = f'"{tag}:$CLAUDE_CODE_ENTRYPOINT"'  # a repository can set it: it stays one word
        *words, seconds = self.command
        if moment == "permit":  # the agent's own limit leaves its dialog open; our failure would close it
            seconds = str(self.deadline_s + 2 * _MORE_S)
        line = f"{shlex.join([*words, seconds])} {tag} {shlex.join(self.starter)} {tag}"
        return f"{line} || exit 2" if moment == "before" else line


def make_client(folder: GuardFolder, config: Path | None, deadline_s: int = DEADLINE_S) -> HookClient:
    """Make the client: a program that ships, or on other machines Python's. Raises OSError."""
    folder.make()
    machine, here = platform.machine(), Path(__file__).parent
    words: tuple[str, ...] = (str(folder.client),)
    if sys.platform == "linux" and machine in _MACHINES:
        replace_file(folder.client, (here / f"client-{machine}").read_bytes(), mode=0o700)
    else:
        words = (sys.executable, "-I", "-S", str(folder.client.with_suffix(".py")))
        shutil.copyfile(here / "client.py", words[-1])
    settings = ["--config", str(config.absolute())] if config is not None else []
    command = (*words, str(folder.socket), str(deadline_s))
    return HookClient(command, (*program(), *settings, "guard", "ask"), deadline_s)


def file_of(agent: AgentName, env: Mapping[str, str], *, managed: bool = False) -> Path:
    """Return the file in which an agent looks for its user's hooks. Raises UsageError."""
    if managed:
        if agent != "claude":
            raise UsageError(
                f"{agent} has no folder of managed settings that Remit knows", remedy="Leave --managed out."
            )
        return _MANAGED
    return folder_of(agent, env) / {
        "codex": "hooks.json",
        "opencode": "plugin/remit.js",
        "copilot": "hooks/remit.json",
    }.get(agent, "settings.json")


def connected(
    agent: AgentName, text: str | None, file: Path, client: HookClient
) -> tuple[str, tuple[ServerChange, ...]]:
    """Return a file's text with our hooks, and what was put in. Raises SettingsError if the agent would not read it."""
    if agent == "opencode":
        source = Path(__file__).with_name("opencode.js").read_text("utf-8")
        socket, seconds, starter = client.command[-2], client.command[-1], json.dumps(client.starter)
        return source.replace("SOCKET", json.dumps(socket)).replace("SECONDS", seconds).replace("STARTER", starter), ()
    if agent == "claude":
        check_claude(text or "{}", str(file))
    document = JsonText(text or "", str(file))
    if agent == "copilot" and document.at(("version",)) is None:
        document = document.with_value(("version",), 1)
    changes = []
    for event, moment in EVENTS[agent].items():
        entry = _entry(agent, moment, client)
        document = _with_entry(document, event, entry)
        changes.append(ServerChange(event, entry))
    return document.text, tuple(changes)


def taken_out(connection: FileConnection, text: str) -> str | None:
    """Return a file's text without our hooks; None: there was no file. Raises SettingsError."""
    if digest_of(text) == connection.digest or text == (connection.original or ""):
        return connection.original
    if not connection.changes:
        raise SettingsError(
            f"{connection.file}: was changed since it was connected", remedy="Remove it there yourself."
        )
    document = JsonText(text, connection.file)
    for change in connection.changes:
        document = _without_entry(document, change)
    return document.text


def _entry(agent: AgentName, moment: Moment, client: HookClient) -> dict[str, Any]:
    words, limit = client.words(agent, moment), client.deadline_s + _MORE_S
    if agent == "copilot":
        return {"type": "command", "bash": words, "timeoutSec": limit}
    limit *= 1_000 if agent in {"gemini", "qwen"} else 1
    hook: dict[str, Any] = {"type": "command", "command": words, "timeout": limit}
    if agent == "claude" and moment != "before":  # without a shell, which takes most of the time
        program, *args = shlex.split(words)
        hook |= {"command": program, "args": args}
    if agent in {"gemini", "qwen"}:
        hook = {"name": f"remit-{moment}", **hook}
    return {"matcher": "*", "hooks": [hook]} if moment in CALLS else {"hooks": [hook]}


def _with_entry(document: JsonText, event: str, entry: dict[str, Any]) -> JsonText:
    path = ("hooks", event)
    entries = document.at(path)
    if entries is None:
        return document.with_value(path, [entry])
    if not isinstance(entries, list):
        raise SettingsError(f"{document.where}: hooks.{event} is not a list", remedy="Correct it there.")
    source = document.source(path)
    end = len(plain(source)[:-1].rstrip())
    comma = ", " if entries else ""
    return document.with_value(path, [*entries, entry], f"{source[:end]}{comma}{json.dumps(entry)}{source[end:]}")


def _without_entry(document: JsonText, change: ServerChange) -> JsonText:
    path = ("hooks", change.name)
    entries = document.at(path) or []
    if change.entry not in entries:
        raise SettingsError(
            f"{document.where}: hooks.{change.name} was changed since it was connected",
            remedy="Take Remit's hook out there yourself.",
        )
    number = entries.index(change.entry)
    rest = [*entries[:number], *entries[number + 1 :]]
    if not rest:
        document = document.without(path)
        return document.without(path[:1]) if document.at(path[:1]) == {} else document
    source, spans = document.source(path), list(_spans(document.source(path)))
    start = spans[number - 1][1] if number else spans[0][0]
    end = spans[number][1] if number else spans[1][0]
    return document.with_value(path, rest, source[:start] + source[end:])


def _spans(source: str) -> Iterator[tuple[int, int]]:
    """Yield where the items of a list stand in its text."""
    text, decoder, at = plain(source), json.JSONDecoder(), 1
    while True:
        while text[at] in " \t\r\n,":
            at += 1
        if text[at] == "]":
            return
        _, end = decoder.raw_decode(text, at)
        yield at, end
        at = end


def check_claude(text: str, where: str) -> None:
    """Raise SettingsError for a value for which Claude would drop the whole file, and our hooks with it."""
    try:
        settings = json.loads(text)
    except ValueError as error:
        raise SettingsError(
            f"{where}: {error}", remedy="Correct it: Claude drops a file that is not plain JSON."
        ) from error
    for path, reason in _faults(settings):
        raise SettingsError(f"{where}: {path} {reason}", remedy="Correct it: Claude drops the whole file for it.")


def _faults(settings: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(settings, dict):
        yield "it", "is not an object"
        return
    for name, kind in _TYPES.items():
        if name in settings and not isinstance(settings[name], kind):
            yield name, f"is not of the type {kind.__name__}"
    hooks = settings.get("hooks", {})
    for event, matchers in hooks.items() if isinstance(hooks, dict) else [("hooks", None)]:
        for number, matcher in enumerate(matchers if isinstance(matchers, list) else [None]):
            place = f"hooks.{event}[{number}]"
            inner = matcher.get("hooks") if isinstance(matcher, dict) else None
            if not isinstance(matcher, dict) or not isinstance(matcher.get("matcher", ""), str):
                yield place, "has no text as its matcher"
            elif not isinstance(inner, list) or not all(_is_hook(hook) for hook in inner):
                yield place, "has a hook of a type that Claude does not know"


def _is_hook(hook: object) -> bool:
    return isinstance(hook, dict) and hook.get("type") in _HOOK_TYPES


_ON: Final[Mapping[str, tuple[str, ...]]] = {
    "claude": ("--settings", '{"disableAllHooks": false}'),
    "codex": ("-c", "features.hooks=true"),
}
"""Arguments that win over a repository's files."""
_OFF: Final = frozenset(("--bare", "--safe-mode", "--setting-sources", "--settings", "--pure", "--disable"))
_OFF_ENV: Final = ("CLAUDE_CODE_SIMPLE", "OPENCODE_PURE")


def with_hooks_on(words: Sequence[str], agents: Sequence[AgentName], env: Mapping[str, str]) -> list[str]:
    """Return the command of an agent, with its hooks on. Raises UsageError if they would be off."""
    name = Path(words[0]).name
    if name not in agents:
        raise UsageError(f"{name} is not connected", remedy=f"Connect it: remit guard connect {name}.")
    off = [word for word in words[1:] if word.partition("=")[0] in _OFF or "features.hooks" in word]
    off += [variable for variable in _OFF_ENV if env.get(variable)]
    if off:
        raise UsageError(f"{off[0]} may switch the hooks of {name} off", remedy="Leave it out.")
    return [words[0], *_ON.get(name, ()), *words[1:]]


def off_lines(agent: AgentName, project: Path, env: Mapping[str, str]) -> list[str]:
    """Return each thing that keeps an agent's hooks from being called, such as `FILE:NUMBER: TEXT`."""
    ours = (file_of(agent, env), *((_MANAGED,) if agent == "claude" else ()))
    stands = any(file.is_file() and "guard" in file.read_text("utf-8", "replace") for file in ours)
    return [
        *(f"the variable {name} is set" for name in _OFF_ENV if env.get(name) and name.lower().startswith(agent)),
        *([] if stands else [f"{ours[0]}: Remit's hooks are not there"]),
        *(_dropped(ours[0]) if agent == "claude" and ours[0].is_file() else ()),
        *(f"{file}:{number}: {text}" for file, number, text in off_switches(agent, project, env)),
    ]


def _dropped(file: Path) -> Iterator[str]:
    """Yield why Claude drops a file of settings."""
    try:
        check_claude(file.read_text("utf-8", "replace"), str(file))
    except SettingsError as error:
        yield f"{error.message}; Claude drops the whole file"


def off_switches(agent: AgentName, project: Path, env: Mapping[str, str]) -> Iterator[tuple[Path, int, str]]:
    """Yield the lines of a project's or user's files that switch an agent's hooks off: file, number, text."""
    own = folder_of(agent, env)
    for file in (*(project / name for name in _PROJECT.get(agent, ())), *(own / name for name in _USER.get(agent, ()))):
        lines = file.read_text("utf-8", "replace").splitlines() if file.is_file() else []
        for number, line in enumerate(lines, 1):
            if _OFF_LINE.search(line):
                yield file, number, line.strip()


_OFF_LINE: Final = re.compile(r'"disableAllHooks"\s*:\s*true|\b(?:codex_)?hooks\s*=\s*false|"enabled"\s*:\s*false')
_PROJECT: Final[Mapping[AgentName, tuple[str, ...]]] = {
    "claude": (".claude/settings.json", ".claude/settings.local.json"),
    "codex": (".codex/config.toml",),
    "qwen": (".qwen/settings.json",),
}
"""Files of a project that can switch a user's hooks off."""
_USER: Final[Mapping[AgentName, tuple[str, ...]]] = {
    "claude": ("settings.json",),
    "codex": ("config.toml",),
    "gemini": ("settings.json",),
    "qwen": ("settings.json",),
}
"""Files of its user that can."""
