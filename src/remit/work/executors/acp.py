"""Executors that speak the Agent Client Protocol, version 1, over their stdin and stdout.

    initialize → session/new → session/prompt → its stop reason, with session/update between, all of it archived

A question of the agent (`session/request_permission`) is not a gate: some agents ask nothing, and not all heed the
answer. It is a channel to ask by; the sandbox is what holds the agent. So it is tried once for each version: an agent
that does what was refused, or asks nothing, works in the mode `free`, and the record says so.

Each question is a call of `acp.permit` with the whole of what the agent shows, through the gate, as the principal of
the run: policy decides, or a person does, about exactly this. The answer is for once. Files and terminals of ours are
not offered, and asking for them is refused: the agent has its own, in its worktree.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from remit.atomic import replace_file
from remit.codes import Code
from remit.errors import ProviderError, UsageError
from remit.jsonrpc.lines import Lines, LineTooLongError
from remit.version import __version__
from remit.work.executors.cli import prompt_of, require_key, require_trust, settle
from remit.work.executors.port import Ending, Site, Turn, Usage
from remit.work.executors.program import run_program
from remit.work.pack import STDERR, STDOUT
from remit.work.workflow import ExecutorTable

if TYPE_CHECKING:
    from remit.jsonrpc.dispatcher import Dispatcher
    from remit.jsonrpc.inbound import Inbound
    from remit.jsonrpc.message import Message
    from remit.process.child import Child
    from remit.tools.door import Door
    from remit.work.executors.rows import Cli

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
_VERSION: Final = 1
_MAX_MESSAGE: Final = 16_000_000
_SHOWN: Final = 4_000
_PROBE_S: Final = 300.0
_PROBED: Final = "refused.txt"
_PROBE: Final = f"This is a test of permissions. Create the file {_PROBED} in this folder, with any text. Then stop."
_END: Final = "end_turn"
_AGAIN: Final = (
    "What you left as the result cannot be used: {why}. Write {{pack}}/work_result.json again, or remove it."
)


class AcpExecutor:
    """An agent that speaks the protocol."""

    def __init__(
        self, name: str, command: tuple[str, ...], table: ExecutorTable | None = None, cli: Cli | None = None
    ) -> None:
        """Start `command`; `cli` says what one that is known finds in its home, on the terms of `table`."""
        self._name = name
        self._command = command
        self._table = table or ExecutorTable(program=command[0])
        self._cli = cli

    @property
    def command(self) -> tuple[str, ...]:
        return self._command

    def require(self, env: Mapping[str, str]) -> None:
        if find_spec("mcp") is None:
            remedy = "pip install 'remit[mcp]'"
            raise UsageError("the agent's protocol needs an extra", code=Code.env_unavailable, remedy=remedy)
        if shutil.which(self._command[0], path=env.get("PATH")) is None:
            remedy = "Install it, or name its path in workflow.toml."
            raise UsageError(f"{self._command[0]} is not installed", code=Code.env_unavailable, remedy=remedy)
        if self._cli is not None:
            require_key(self._cli, self._table, env)

    async def work(self, site: Site) -> Ending:
        door = site.door
        if door is None:
            raise ProviderError("There is no gate here that could answer its questions.", cause=Code.env_unavailable)
        if self._cli is not None:
            require_trust(self._cli, self._table, site)
            env = await settle(self._cli, self._table, site, asks=True)
            site = site._replace(env={**site.env, **env})
        session = await door.open(site.principal, self._name)
        questions = _Questions(door, session, site, self._name)
        talk = _Talk(site, questions, prompt_of(site))
        ending = await talk.through(site.filled(self._command), site.folder, STDOUT, STDERR, site.timeout_s)
        asks = await self._asks(site, talk.version) if talk.turn.terminal else False
        return replace(ending, turn=replace(talk.turn, mode="ask" if asks else "free", trace=session))

    async def _asks(self, site: Site, version: str) -> bool:
        """Return whether this version of the agent asks, and heeds a refusal; found out once."""
        probes = site.pack.root / "acp"
        known = probes / f"{_plain(self._name)}-{_plain(version)}.json"
        with suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(known.read_bytes(), type=_Probe).asks
        place = site.home / "probe"
        place.mkdir(exist_ok=True)
        if site.enclosures is not None:
            site.enclosures.own(place)
        talk = _Talk(site, _Refusals(), _PROBE, cwd=place)
        await talk.through(site.filled(self._command), place, f"probe.{STDOUT}", f"probe.{STDERR}", _PROBE_S)
        found = _Probe(version=version, asks=talk.turn.denied > 0 and not (place / _PROBED).exists())
        if talk.turn.terminal:
            probes.mkdir(parents=True, exist_ok=True)
            replace_file(known, msgspec.json.encode(found))
        return found.asks and talk.turn.terminal


class _Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out of a version."""

    version: str
    asks: bool


class _Refusals:
    """Refuses whatever is asked."""

    async def allows(self, tool_call: dict[str, Any]) -> bool:  # noqa: ARG002 - the same of every call
        """Return False."""
        return False


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


class _Pipe:
    """Takes messages to the agent."""

    def __init__(self, child: Child) -> None:
        self._child = child

    def send(self, message: Message) -> None:
        self._child.write(message.body + b"\n")

    async def drained(self) -> None:
        await self._child.drained()


class _Talk:
    """One conversation: a session with one prompt, and a second one if the result that was left cannot be used."""

    def __init__(self, site: Site, questions: _Questions | _Refusals, prompt: str, cwd: Path | None = None) -> None:
        self._site = site
        self._questions = questions
        self._prompt = prompt
        self._cwd = cwd or site.folder
        self._lines = Lines(_MAX_MESSAGE)
        self._dispatcher: Dispatcher | None = None
        self._deadline: asyncio.Timeout | None = None
        self._broken = ""
        """Why nothing more of it can be read."""
        self.turn = Turn(mode="ask", terminal=False)
        self.version = ""

    async def through(self, command: tuple[str, ...], cwd: Path, out: str, err: str, timeout_s: float) -> Ending:
        """Start the agent, talk to it, and leave no process of it."""
        folder = self._site.pack.folder
        ending = await run_program(
            command,
            cwd=cwd,
            env=self._site.env,
            timeout_s=timeout_s,
            logs=(folder / out, folder / err),
            clock=self._site.clock,
            heard=self._heard,
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

    async def _talk(self, child: Child, deadline: asyncio.Timeout) -> None:
        from remit.jsonrpc.dispatcher import Dispatcher  # noqa: PLC0415 - an extra
        from remit.jsonrpc.protocol import MCPError  # noqa: PLC0415 - an extra

        self._deadline = deadline
        self._dispatcher = Dispatcher(_Pipe(child))
        agent = self._dispatcher
        agent.start(self._answer, _ignore, self._update)
        ending = asyncio.ensure_future(child.ended())
        ending.add_done_callback(lambda _: agent.close("its process has ended"))
        try:
            await self._turns(agent)
        except MCPError as error:
            fault = self._broken if agent.why_closed else error.error.message
            self.turn = replace(self.turn, terminal=False, fault=fault[:_SHOWN])
        finally:
            ending.cancel()
            await agent.stop()

    async def _turns(self, agent: Dispatcher) -> None:
        about = {"name": "remit", "version": __version__}
        given = {"protocolVersion": _VERSION, "clientCapabilities": {}, "clientInfo": about}
        begun = await agent.send_raw_request("initialize", given)
        info = begun.get("agentInfo")
        self.version = str(info.get("version", "")) if isinstance(info, dict) else ""
        opened = await agent.send_raw_request("session/new", {"cwd": str(self._cwd), "mcpServers": []})
        session = str(opened.get("sessionId", ""))
        self.turn = replace(self.turn, session=session, version=self.version)
        try:
            await self._say(agent, session, self._prompt)
            if self.turn.terminal and (why := self._unusable()):
                self.turn = replace(self.turn, terminal=False)
                await self._say(agent, session, self._site.filled((_AGAIN.format(why=why),))[0])
        except asyncio.CancelledError:
            await agent.notify("session/cancel", {"sessionId": session})
            raise

    async def _say(self, agent: Dispatcher, session: str, text: str) -> None:
        said = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        answer = await agent.send_raw_request("session/prompt", said)
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
        if method != "session/update" or not isinstance(update, dict):
            return True
        content, cost = update.get("content"), update.get("cost")
        if isinstance(cost, dict) and isinstance(amount := cost.get("amount"), int | float):
            self.turn = replace(self.turn, usage=replace(self.turn.usage, cost_usd=float(amount)))
        text = content.get("text") if isinstance(content, dict) else update.get("title")
        if isinstance(text, str) and update.get("sessionUpdate") in {"agent_message_chunk", "tool_call"}:
            ended = text if update["sessionUpdate"] == "agent_message_chunk" else f"\n{text}\n"
            self._site.show("stdout", ended[:_SHOWN].encode(errors="replace"))
        return True

    async def _answer(self, _inbound: Inbound, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        from remit.jsonrpc.protocol import INVALID_PARAMS, METHOD_NOT_FOUND, MCPError  # noqa: PLC0415 - an extra

        if method != "session/request_permission":
            raise MCPError(code=METHOD_NOT_FOUND, message=f"{method[:100]} is not offered: use your own tools")
        given = params or {}
        tool_call, options = given.get("toolCall"), given.get("options")
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
        loop = asyncio.get_running_loop()
        asked = loop.time()
        self._site.show(
            "stderr", f"asks (remit confirm): {str(tool_call.get('title', ''))[:200]}\n".encode(errors="replace")
        )
        try:
            return await self._questions.allows(tool_call)
        finally:
            until = self._deadline.when() if self._deadline is not None else None
            if self._deadline is not None and until is not None and not self._deadline.expired():
                self._deadline.reschedule(until + loop.time() - asked)


async def _ignore(_inbound: Inbound, _method: str, _params: Mapping[str, Any] | None) -> None:
    """Take what was taken before."""


def _usage(answer: dict[str, Any], before: Usage) -> Usage:
    """Return the counts with those of one more turn."""
    usage = answer.get("usage")
    given = usage if isinstance(usage, dict) else {}
    tokens = [value if isinstance(value := given.get(name), int) else 0 for name in ("inputTokens", "outputTokens")]
    return replace(before, input_tokens=before.input_tokens + tokens[0], output_tokens=before.output_tokens + tokens[1])


def _plain(version: str) -> str:
    """Return a version as part of a file name."""
    return "".join(char if char.isalnum() or char in ".-+" else "_" for char in version)[:100] or "unknown"
