"""Executors that speak the Agent Client Protocol: what they are handed, and who answers what they ask.

A question of the agent (`session/request_permission`) is not a gate: some agents ask nothing, and not all heed the
answer. It is a channel to ask by; the sandbox is what holds the agent. So it is tried once for each version: an agent
that does what was refused, or asks nothing, works in the mode `free`, and the record says so.

Each question is a call of `acp.permit` with the whole of what the agent shows, through the gate, as the principal of
the run: policy decides, or a person does, about exactly this. The answer is for once.

Governed, the agent is handed Remit's MCP server as its only one, and its own tools are switched off. That is tried
once for each version too, before it begins: one that asks for a tool of its own, or uses it, does not begin. If it
reports more calls than passed the gate, the run has failed.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec.structs import replace

from remit.atomic import replace_file
from remit.codes import Code
from remit.errors import ProviderError, UsageError
from remit.work.executors.cli import prompt_of, require_key, require_trust, settle
from remit.work.executors.conversation import carry
from remit.work.executors.port import Ending, Site, Tools, Turn
from remit.work.executors.row import SERVER
from remit.work.executors.talk import Talk, Words
from remit.work.pack import STDERR, STDOUT
from remit.work.workflow import ExecutorTable

if TYPE_CHECKING:
    from remit.tools.door import Door
    from remit.work.executors.row import Cli

PERMIT: Final = "acp.permit"
PREFIX: Final = "acp:"
KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "claude": ("claude-agent-acp",),
    "codex": ("codex-acp",),
    "copilot": ("copilot", "--acp"),
    "gemini": ("gemini", "--acp"),
    "opencode": ("opencode", "acp"),
    "qwen": ("qwen", "--acp"),
}
"""Commands of agents that speak the protocol."""
UNGOVERNED: Final[Mapping[str, str]] = {
    "codex": "its own tools have no switch there",
    "gemini": "it takes no server in a folder that it does not trust, and would trust the repository's files too",
}
"""Known agents that can be governed by their command line alone, and why."""
_PROBE_S: Final = 300.0
_PROBED: Final = "refused.txt"
_PROBE: Final = f"This is a test of permissions. Create the file {_PROBED} in this folder, with any text. Then stop."
_OWN_SETTINGS: Final[dict[str, Any]] = {"settingSources": ["user"]}
_NO_TOOLS: Final[dict[str, Any]] = {"tools": [], "allowedTools": [f"mcp__{SERVER}"], "strictMcpConfig": True}


class AcpExecutor:
    """An agent that speaks the protocol."""

    def __init__(
        self, name: str, command: tuple[str, ...], table: ExecutorTable | None = None, cli: Cli | None = None
    ) -> None:
        self._name = name
        self._command = command
        self._table = table or ExecutorTable(program=command[0])
        self._cli = cli
        self._mode: Literal["governed", "ask"] = "governed" if self._table.mode == "governed" else "ask"

    @property
    def command(self) -> tuple[str, ...]:
        return self._command

    def require(self, env: Mapping[str, str]) -> None:
        if shutil.which(self._command[0], path=env.get("PATH")) is None:
            remedy = "Install it, or name its path in workflow.toml."
            raise UsageError(f"{self._command[0]} is not installed", code=Code.env_unavailable, remedy=remedy)
        if self._cli is not None:
            require_key(self._cli, self._table, env)
            if self._mode == "governed" and (why := UNGOVERNED.get(self._cli.name)):
                remedy = f"Have it work by its command line: --executor {self._cli.name}."
                raise UsageError(f"{self._name} cannot be governed: {why}", code=Code.WORK_INVALID, remedy=remedy)

    async def work(self, site: Site) -> Ending:
        door = site.door
        if door is None:
            raise ProviderError("There is no gate here that could answer its questions.", cause=Code.env_unavailable)
        async with AsyncExitStack() as stack:
            governed = self._mode == "governed"
            tools = await stack.enter_async_context(site.tools(site)) if governed else None
            site = await self._settled(site)
            session = await door.open(site.principal, self._name)

            async def alone(version: str) -> str:
                return _unfit(await self._probe(site, version)) if governed else ""

            words = self._words(prompt_of(site), site.folder, tools)
            words = words._replace(last=site.last, again=prompt_of(site, site.last))

            async def goes_on(version: str) -> bool:
                return self._cli is not None and await asyncio.to_thread(carry, self._cli, site, self._mode, version)

            talk = Talk(site, _Questions(door, session, site, self._name), words, alone, goes_on)
            ending = await talk.through(site.filled(self._command), STDOUT, STDERR, site.timeout_s)
        if tools is not None:
            return replace(ending, turn=_governed(talk, tools, session))
        asks = (await self._probe(site, talk.version)).asks if talk.turn.terminal else False
        return replace(ending, turn=replace(talk.turn, mode="ask" if asks else "free", trace=session))

    async def _settled(self, site: Site) -> Site:
        """Return the site with what a known agent needs of variables, once its home is written."""
        if self._cli is not None:
            require_trust(self._cli, self._table, site)
            env = await settle(self._cli, self._table, site, self._mode)
            return site._replace(env={**site.env, **env})
        if site.enclosures is not None:
            site.enclosures.own(site.home)
        return site

    def _words(self, prompt: str, cwd: Path, tools: Tools | None = None) -> Words:
        """Return what the agent is told; claude reads the last of it: no settings of the repository, no own tools."""
        servers = (_server(tools),) if tools is not None else ()
        options = {**_OWN_SETTINGS, **(_NO_TOOLS if self._mode == "governed" else {})}
        return Words(prompt, cwd, servers, {"claudeCode": {"options": options}})

    async def _probe(self, site: Site, version: str) -> _Probe:
        """Return what this version of the agent does when it is refused what it asks; found out once."""
        probes = site.pack.root / "acp"
        ending = "-governed" if self._mode == "governed" else ""
        known = probes / f"{_plain(self._name)}-{_plain(version)}{ending}.json"
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(known.read_bytes(), type=_Probe)
        place = site.home / "probe"
        place.mkdir(exist_ok=True)
        if site.enclosures is not None:
            site.enclosures.own(place)
        talk = Talk(site, _Refusals(), self._words(_PROBE, place))
        await talk.through(site.filled(self._command), f"probe.{STDOUT}", f"probe.{STDERR}", _PROBE_S)
        if not talk.turn.terminal:
            return _Probe(version=version, asks=False, fault=talk.turn.fault or "its turn did not end")
        denied, wrote = talk.turn.denied > 0, (place / _PROBED).exists()
        probe = _Probe(version=version, asks=denied and not wrote, alone=not (denied or wrote or talk.done))
        probes.mkdir(parents=True, exist_ok=True)
        replace_file(known, msgspec.json.encode(probe))
        return probe


class _Probe(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was found out of a version."""

    version: str
    asks: bool
    alone: bool = False
    """Whether it had no tool of its own that it could have used, or asked for."""
    fault: str = ""
    """Why nothing was found out; this is never kept."""


class _Refusals:
    """Refuses whatever is asked."""

    async def allows(self, tool_call: dict[str, Any]) -> bool:  # noqa: ARG002 - the same of every call
        """Return False."""
        return False

    async def refuse(self, method: str, params: Mapping[str, Any]) -> None:
        """Record nothing: it is only tried."""


class _Questions:
    """Has the gate answer what an agent asks."""

    def __init__(self, door: Door, session: str, site: Site, agent: str) -> None:
        self._door = door
        self._session = session
        self._site = site
        self._agent = agent

    async def allows(self, tool_call: dict[str, Any]) -> bool:
        """Return whether policy, or a person, lets the agent do this once."""
        order = self._site.order
        asked = {"issue_ref": order.issue_ref, "run_id": order.run_id, "agent": self._agent, "tool_call": tool_call}
        passage = await self._door.call(self._session, PERMIT, asked)
        return passage.ok

    async def refuse(self, method: str, params: Mapping[str, Any]) -> None:
        """Have the gate refuse, and record, a name that no tool has."""
        await self._door.call(self._session, method, dict(params))


def _server(tools: Tools) -> dict[str, Any]:
    program, *args = tools.command
    return {"name": SERVER, "command": program, "args": args, "env": []}


def _unfit(probe: _Probe) -> str:
    """Return why an agent is not governed; empty: it has no tools but Remit's."""
    if probe.fault:
        return f"it could not be tried whether its own tools are off: {probe.fault}"
    return "" if probe.alone else 'its own tools cannot be switched off, so it is not governed: use mode = "ask"'


def _governed(talk: Talk, tools: Tools, session: str) -> Turn:
    """Return the turn of an agent that was to have Remit's tools alone; that it did is seen, not said."""
    turn = talk.turn
    beside = talk.done - tools.calls
    if beside > 0:
        turn = replace(turn, fault=turn.fault or f"{beside} of the calls that it reported did not pass the gate")
    held = beside <= 0 and bool(turn.session)
    return replace(
        turn,
        mode="governed" if held else "free",
        trace=tools.session or session,
        asked=session if turn.calls and tools.session else "",
        calls=tools.calls,
        denied=turn.denied + tools.denied,
    )


def _plain(version: str) -> str:
    """Return a version as part of a file name."""
    return "".join(char if char.isalnum() or char in ".-+" else "_" for char in version)[:100] or "unknown"
