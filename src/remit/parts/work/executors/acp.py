"""Executors that speak the Agent Client Protocol: what they are handed, and who answers what they ask.

A question of the agent (`session/request_permission`) is not a gate: some agents ask nothing, and not all heed the
answer. It is a channel to ask by; the sandbox is what holds the agent. So it is tried once for each version: an agent
that does what was refused, or asks nothing, works in the mode `free`, and the record says so.

Each question is a call of `acp.permit` with the whole of what the agent shows, through the gate, as the principal of
the run: policy decides, or a person does, about exactly this. The answer is for once.

Governed, the agent is handed Remit's MCP server as its only one, and its own tools are switched off. That is tried
once for each version too, before it begins: one that asks for a tool of its own, or uses it, does not begin. If it
reports more calls than passed the gate, the run has failed.

One conversation in the Agent Client Protocol, version 1, over the stdin and stdout of an agent.

    initialize → session/new → session/prompt → its stop reason, with session/update between, all of it archived

Files and terminals of ours are not offered, and asking for them is refused: the agent has its own, or Remit's tools.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from remit.atomic import replace_file
from remit.codes import Code
from remit.errors import ProviderError, UsageError
from remit.jsonrpc.stream import LineReader, LineTooLongError
from remit.mcp_config.own_tools import SERVER
from remit.parts.work.executors.cli import carry, prompt_of, require_key, require_trust, settle
from remit.parts.work.executors.port import AgentConversation, AgentTurn, ProgramEnding, RunTools, Site, TurnUsage
from remit.parts.work.executors.program import run_program
from remit.parts.work.pack import STDERR, STDOUT
from remit.parts.work.workflow import ExecutorTable
from remit.version import __version__

if TYPE_CHECKING:
    from remit.jsonrpc.dispatcher import Dispatcher
    from remit.jsonrpc.inbound import Inbound
    from remit.jsonrpc.message import RpcMessage
    from remit.parts.work.executors.rows import Cli
    from remit.process.child import ChildProcess
    from remit.tools.door import ToolDoor


_VERSION: Final = 1
_MAX_MESSAGE: Final = 16_000_000
_MAX_CALLS: Final = 100_000
"""Calls whose ids are held."""
_SHOWN: Final = 4_000
_BARRED: Final = ("fs/", "terminal/")
"""Beginnings of requests for files and terminals of ours; no tool has such a name."""
_MOST_WAITING: Final = 20
"""Questions of one run that wait at once; more are refused, and a person need not look through them."""
_END: Final = "end_turn"
_AGAIN: Final = (
    "What you left as the result cannot be used: {why}. Write {{pack}}/work_result.json again, or remove it."
)


class Permits(Protocol):
    """Answers what an agent asks."""

    async def allows(self, tool_call: dict[str, Any]) -> bool:
        """Return whether the agent may do this once."""
        ...

    async def refuse(self, method: str, params: Mapping[str, Any]) -> None:
        """Have it recorded that the agent asked for what no client of it offers here."""
        ...


class Words(NamedTuple):
    """Words that an agent is told, and the place where it works."""

    prompt: str
    cwd: Path
    servers: tuple[dict[str, Any], ...] = ()
    """The MCP servers that it is handed."""
    meta: Mapping[str, Any] = {}
    """Options that the protocol leaves to agents."""
    last: AgentConversation | None = None
    """The conversation that it may continue."""
    again: str = ""
    """The prompt if it does."""


async def _ready(_version: str) -> str:
    """Return that there is nothing against the turn."""
    return ""


async def _anew(_version: str) -> bool:
    """Return that the conversation is a new one."""
    return False


class _Pipe:
    """Takes messages to the agent."""

    def __init__(self, child: ChildProcess) -> None:
        self._child = child

    def send(self, message: RpcMessage) -> None:
        self._child.write(message.body + b"\n")

    async def drained(self) -> None:
        await self._child.drained()


class AcpConversation:
    """One conversation: a session with one prompt, and a second one if the result that was left cannot be used.

    `ready` returns what speaks against a turn of the version that the agent says it is; empty: nothing. `goes_on`
    returns whether that version can continue the last conversation, and makes it ready.
    """

    def __init__(
        self,
        site: Site,
        permits: Permits,
        words: Words,
        ready: Callable[[str], Awaitable[str]] = _ready,
        goes_on: Callable[[str], Awaitable[bool]] = _anew,
    ) -> None:
        self._site = site
        self._permits = permits
        self._words = words
        self._ready = ready
        self._goes_on = goes_on
        self._replays = False
        """Whether the agent tells what was said before."""
        self._done: set[str] = set()
        self._waiting = 0
        """Questions that wait for an answer."""
        self._lines = LineReader(_MAX_MESSAGE)
        self._dispatcher: Dispatcher | None = None
        self._deadline: asyncio.Timeout | None = None
        self._broken = ""
        """Why nothing more of it can be read."""
        self.turn = AgentTurn(mode="ask", terminal=False)
        self.version = ""

    @property
    def done(self) -> int:
        """Return how many calls it reported as carried out."""
        return len(self._done)

    async def through(self, command: tuple[str, ...], out: str, err: str, timeout_s: float) -> ProgramEnding:
        """Start the agent, talk to it, and leave no process of it."""
        folder = self._site.pack.folder
        ending = await run_program(
            command,
            cwd=self._words.cwd,
            env=self._site.env,
            timeout_s=timeout_s,
            logs=(folder / out, folder / err),
            clock=self._site.clock,
            listener=self._heard,
            launch=self._site.launch,
            talk=self._talk,
        )
        return replace(ending, exit_code=0) if self.turn.terminal else ending

    def _heard(self, stream: str, data: bytes) -> None:
        if stream == "stderr":
            self._site.show("stderr", data)
        elif self._dispatcher is not None:
            try:
                for line in self._lines.feed(data):
                    self._dispatcher.received(line)
            except LineTooLongError as error:
                self._broken = str(error)
                self._dispatcher.close(self._broken)

    async def _talk(self, child: ChildProcess, deadline: asyncio.Timeout) -> None:
        from remit.jsonrpc.dispatcher import Dispatcher  # noqa: PLC0415 - where an agent speaks it
        from remit.jsonrpc.protocol import MCPError  # noqa: PLC0415 - where an agent speaks it

        self._deadline = deadline
        self._dispatcher = Dispatcher(_Pipe(child))
        agent = self._dispatcher
        agent.start(self._answer, _ignore, self._update)
        ending = asyncio.ensure_future(child.ended())
        ending.add_done_callback(lambda _: agent.close("its process has ended"))
        try:
            await self._turns(agent)
        except MCPError as error:
            fault = self._broken if agent.why_closed else error.message
            self.turn = replace(self.turn, terminal=False, fault=fault[:_SHOWN])
        finally:
            ending.cancel()
            self.turn = replace(self.turn, denied=self.turn.denied + self._waiting)  # of what it ended without
            await agent.stop()

    async def _turns(self, agent: Dispatcher) -> None:
        about = {"name": "remit", "version": __version__}
        params = {"protocolVersion": _VERSION, "clientCapabilities": {}, "clientInfo": about}
        begun = await agent.send_raw_request("initialize", params)
        info = begun.get("agentInfo")
        self.version = str(info.get("version", "")) if isinstance(info, dict) else ""
        with self._put_off():
            reason = await self._ready(self.version)
        if reason:
            self.turn = replace(self.turn, fault=reason[:_SHOWN], version=self.version)
            return
        abilities = begun.get("agentCapabilities")
        loads = isinstance(abilities, dict) and abilities.get("loadSession") is True
        session, last = await self._open(agent, loads=loads)
        self.turn = replace(self.turn, session=session, version=self.version)
        if last is not None:
            self.turn = replace(self.turn, continues=last.run_id)
        try:
            await self._say(agent, session, self._words.again if last is not None else self._words.prompt)
            if self.turn.terminal and (reason := self._unusable()):
                self.turn = replace(self.turn, terminal=False)
                await self._say(agent, session, self._site.filled((_AGAIN.format(why=reason),))[0])
        except asyncio.CancelledError:
            await agent.notify("session/cancel", {"sessionId": session})
            raise

    async def _open(self, agent: Dispatcher, *, loads: bool) -> tuple[str, AgentConversation | None]:
        """Begin a session, or continue the last one; return its id, and the conversation that goes on."""
        from remit.jsonrpc.protocol import MCPError  # noqa: PLC0415 - where an agent speaks it

        words, last = self._words, self._words.last
        params = {"cwd": str(words.cwd), "mcpServers": list(words.servers), "_meta": words.meta}
        if loads and last is not None and await self._goes_on(self.version):
            self._replays = True
            try:
                await agent.send_raw_request("session/load", {**params, "sessionId": last.session})
            except MCPError as error:
                self._site.show("stderr", f"begins again: {error.message[:200]}\n".encode(errors="replace"))
            else:
                return last.session, last
            finally:
                self._replays = False
        return str((await agent.send_raw_request("session/new", params)).get("sessionId", "")), None

    async def _say(self, agent: Dispatcher, session: str, text: str) -> None:
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        answer = await agent.send_raw_request("session/prompt", params)
        reason = answer.get("stopReason")
        fault = "" if reason == _END else f"its turn ended with {str(reason)[:100]}"
        self.turn = replace(self.turn, terminal=not fault, fault=fault, usage=_usage(answer, self.turn.usage))

    def _unusable(self) -> str:
        """Return why the result that was left cannot be used; empty: it can, or none was left."""
        try:
            claim = self._site.pack.claim()
            if claim is not None:
                claim.require_echo(self._site.order.issue_ref, self._site.order.run_id)
        except UsageError as error:
            return error.message[:_SHOWN]
        return ""

    # --- what the agent says and asks

    def _update(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Take a notification at once, and so in order; return that it needs no more."""
        update = (params or {}).get("update")
        if method != "session/update" or not isinstance(update, dict) or self._replays:
            return True
        if update.get("status") == "completed" and self.done < _MAX_CALLS:
            self._done.add(str(update.get("toolCallId"))[:200])
        content, cost = update.get("content"), update.get("cost")
        if isinstance(cost, dict) and isinstance(amount := cost.get("amount"), int | float):
            self.turn = replace(self.turn, usage=replace(self.turn.usage, cost_usd=float(amount)))
        text = content.get("text") if isinstance(content, dict) else update.get("title")
        if isinstance(text, str) and update.get("sessionUpdate") in {"agent_message_chunk", "tool_call"}:
            ended = text if update["sessionUpdate"] == "agent_message_chunk" else f"\n{text}\n"
            self._site.show("stdout", ended[:_SHOWN].encode(errors="replace"))
        return True

    async def _answer(self, _inbound: Inbound, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        from remit.jsonrpc.protocol import INVALID_PARAMS, METHOD_NOT_FOUND, MCPError  # noqa: PLC0415 - where an agent speaks it

        if method != "session/request_permission":
            if method.startswith(_BARRED):
                await self._permits.refuse(method, params or {})
            raise MCPError(code=METHOD_NOT_FOUND, message=f"{method[:100]} is not offered: use your own tools")
        fields = params or {}
        tool_call, options = fields.get("toolCall"), fields.get("options")
        if not isinstance(tool_call, dict) or not isinstance(options, list):
            raise MCPError(code=INVALID_PARAMS, message="a question shows the call, and options")
        choices = {option.get("kind"): option.get("optionId") for option in options if isinstance(option, dict)}
        allowed = "allow_once" in choices and await self._ask(tool_call)
        self.turn = replace(self.turn, denied=self.turn.denied + (not allowed), calls=self.turn.calls + 1)
        chosen = choices.get("allow_once" if allowed else "reject_once")
        if chosen is None:
            return {"outcome": {"outcome": "cancelled"}}
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    async def _ask(self, tool_call: dict[str, Any]) -> bool:
        """Ask; the time that a person takes is not the agent's."""
        if self._waiting >= _MOST_WAITING:
            return False
        note = f"asks (remit confirm): {str(tool_call.get('title', ''))[:200]}\n"
        self._site.show("stderr", note.encode(errors="replace"))
        self._waiting += 1
        with self._put_off():
            allowed = await self._permits.allows(tool_call)
        self._waiting -= 1  # one that the end of the talk cut short was counted there
        return allowed

    @contextmanager
    def _put_off(self) -> Iterator[None]:
        """Put the deadline off by the time that the block takes."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            yield
        finally:
            until = self._deadline.when() if self._deadline is not None else None
            if self._deadline is not None and until is not None and not self._deadline.expired():
                self._deadline.reschedule(until + loop.time() - began)


async def _ignore(_inbound: Inbound, _method: str, _params: Mapping[str, Any] | None) -> None:
    """Take what was taken before."""


def _usage(answer: dict[str, Any], before: TurnUsage) -> TurnUsage:
    """Return the counts with those of one more turn."""
    usage = answer.get("usage")
    fields = usage if isinstance(usage, dict) else {}
    tokens = [value if isinstance(value := fields.get(name), int) else 0 for name in ("inputTokens", "outputTokens")]
    return replace(before, input_tokens=before.input_tokens + tokens[0], output_tokens=before.output_tokens + tokens[1])


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
            if self._mode == "governed" and (reason := UNGOVERNED.get(self._cli.name)):
                remedy = f"Have it work by its command line: --executor {self._cli.name}."
                raise UsageError(f"{self._name} cannot be governed: {reason}", code=Code.WORK_INVALID, remedy=remedy)

    async def work(self, site: Site) -> ProgramEnding:
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

            talk = AcpConversation(site, _Questions(door, session, site, self._name), words, alone, goes_on)
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

    def _words(self, prompt: str, cwd: Path, tools: RunTools | None = None) -> Words:
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
        talk = AcpConversation(site, _Refusals(), self._words(_PROBE, place))
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

    def __init__(self, door: ToolDoor, session: str, site: Site, agent: str) -> None:
        self._door = door
        self._session = session
        self._site = site
        self._agent = agent

    async def allows(self, tool_call: dict[str, Any]) -> bool:
        """Return whether policy, or a person, lets the agent do this once."""
        order = self._site.order
        facts = {"issue_ref": order.issue_ref, "run_id": order.run_id, "agent": self._agent, "tool_call": tool_call}
        passage = await self._door.call(self._session, PERMIT, facts)
        return passage.ok

    async def refuse(self, method: str, params: Mapping[str, Any]) -> None:
        """Have the gate refuse, and record, a name that no tool has."""
        await self._door.call(self._session, method, dict(params))


def _server(tools: RunTools) -> dict[str, Any]:
    program, *args = tools.command
    return {"name": SERVER, "command": program, "args": args, "env": []}


def _unfit(probe: _Probe) -> str:
    """Return why an agent is not governed; empty: it has no tools but Remit's."""
    if probe.fault:
        return f"it could not be tried whether its own tools are off: {probe.fault}"
    return "" if probe.alone else 'its own tools cannot be switched off, so it is not governed: use mode = "ask"'


def _governed(talk: AcpConversation, tools: RunTools, session: str) -> AgentTurn:
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
