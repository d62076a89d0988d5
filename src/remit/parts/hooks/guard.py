"""The guard: takes the calls of agents through the gate, and their reports into the record.

A call is open from the moment the gate lets it through, its intent on disk, until its agent says how it ended. Where
the agent says nothing by the end of its turn, the outcome is unknown; a report that comes later is taken all the same,
also by the guard of another process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.canonical import canonical, sha256
from remit.codes import Code
from remit.errors import NotCanonicalError, ProviderError, RemitError
from remit.gateway.outcome import Outcome, failed, in_doubt
from remit.gateway.result import CheckedResult, StepOutcome, events_of
from remit.journal.effects import COMMITTED, FAILED, READS, effect_reported
from remit.journal.event import NO_PATCH, HeadPatch, HeadQuery
from remit.journal.kinds import ToolInvocationFinished, ToolInvocationStarted, decode
from remit.parts.hooks.hook import CALLS, EVENTS, NONE, PROVIDER, Hook, HookVerdict, Mode, common_args, meta_of, step_of
from remit.parts.hooks.kinds import HooksCallUngated
from remit.record.heads import CALL as CALL_KIND
from remit.record.heads import SESSION
from remit.service.calls import LiveCaller
from remit.tools.provider import CallContext, ClientReport, ToolResult

if TYPE_CHECKING:
    from remit.app import Remit
    from remit.journal.journal import Journal
    from remit.record.outcome import OutcomeView
    from remit.tools.catalog import Tool
    from remit.tools.meta import ToolMeta

_ELSEWHERE: Final = "the agent itself makes this call"


class AgentCall:
    """A call of an agent on its way: asked about, begun, ended."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook
        self.name, self.kind = step_of(hook)
        self.args = common_args(hook, self.kind)
        self.invocation_id = ""
        self.passed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Whether the gate let it through: its intent is on disk."""
        self.ended: asyncio.Future[tuple[Hook | None, ClientReport]] = asyncio.get_running_loop().create_future()
        """The report of its agent; None in its place: there came none."""

    def settle(self, *, passed: bool) -> None:
        """Say whether it may run, once."""
        if not self.passed.done():
            self.passed.set_result(passed)

    def end(self, hook: Hook | None, *remarks: str) -> None:
        """Say how it ended, once."""
        if not self.ended.done():
            open_ = hook is not None and hook.background
            marks = (*remarks, "background") if open_ else remarks
            self.ended.set_result((hook, ClientReport(by=self.hook.agent, remarks=marks, open=open_)))


CALL: Final[ContextVar[AgentCall | None]] = ContextVar("remit_agent_call", default=None)
"""The call that the running task takes through the gate."""


class AgentTools:
    """The provider: each tool is known once an agent has used it."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._reports: dict[str, ClientReport] = {}
        self._changed: Callable[[], None] = lambda: None

    @property
    def provider_id(self) -> str:
        return PROVIDER

    def watch(self, changed: Callable[[], None]) -> None:
        self._changed = changed

    def learn(self, name: str, kind: str) -> None:
        """Offer a tool from now on, as an agent has it."""
        if self._kinds.get(name) != kind:
            self._kinds[name] = kind
            self._changed()

    async def list_tools(self) -> Sequence[ToolMeta]:
        return [meta_of(name, kind) for name, kind in self._kinds.items()]

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:  # noqa: ARG002 - the port's
        call = CALL.get()
        if call is None or call.name != name:
            raise ProviderError(_ELSEWHERE, code=Code.TOOL_UNAVAILABLE, cause=Code.InvalidInput)
        call.invocation_id = ctx.invocation_id
        call.settle(passed=True)
        hook, report = await call.ended
        if hook is None:
            raise ProviderError(f"{call.hook.agent} did not say how it ended", code=Code.OUTCOME_UNKNOWN)
        self._reports[ctx.invocation_id] = report
        if hook.moment == "failed":
            raise ProviderError(hook.error, cause=None)
        return ToolResult(hook.result)

    def report(self, invocation_id: str) -> ClientReport | None:
        return self._reports.pop(invocation_id, None)

    async def close(self) -> None:
        """Nothing is open: calls under way end with their agents."""


_log: Final = logging.getLogger("remit.hooks")
MARKER: Final = ": remit-guard-status"
"""The command by which it is tried whether an agent asks; it does nothing."""
ASKED: Final = "remit guard status: the gate was asked"
"""The answer to it, which its model reads. Nothing is recorded of it."""
_APPROVE: Final = "A person has to approve this call: {remedy}. Then make the same call again."
_UNSAID: Final = "its agent did not say how the call ended"
_LOOK: Final = "Find out what happened before you repeat it."
_DEFERRED: Final = "A person has to approve this call: {remedy}. Then resume this session."
_DIALOG: Final = "Remit's rules ask a person. Elsewhere: {remedy}."
_BY: Final = "the dialog of {agent}"
"""The one who answers in an agent's own dialog: who sat there, it does not say."""
_TERMINAL: Final = "cli"
"""The surface of Claude in a terminal, whose dialog another answer closes."""
_HEADLESS: Final = "sdk-cli"
"""The surface of `claude -p`, the only one that can put a call off."""
_BATCH_S: Final = 0.2
"""Calls of one answer of a model are asked about within this time; of several, all but the last would be lost."""
_LAST: Final = 100
"""Sessions that a new guard looks through for calls that the one before left open."""


class _Session:
    """A session of an agent, and its calls that are open here or were left open before."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.open: list[tuple[AgentCall, asyncio.Task[OutcomeView]]] = []
        self.refused: set[str] = set()
        """Calls that the gate refused, by the agent's own ids."""
        self.dialogs: list[tuple[AgentCall, str]] = []
        """Calls that the agent asks about in its own dialog, and the question to a person of each."""
        self.came = 0
        """Calls that the gate was asked about."""
        self.last = 0.0
        """The moment of the last."""
        self.left: list[_Left] | None = None
        """None: the record was not looked at, for this guard opened the session."""


class _Left:
    """A call that was announced, and of which no report is recorded."""

    def __init__(self, stream: str, started: ToolInvocationStarted) -> None:
        self.stream = stream
        self.started = started
        self.doubted = False
        """Whether it is recorded that its outcome is unknown."""


class HookGuard:
    """Answers hooks. The catalog of the open Remit holds `tools`."""

    def __init__(self, remit: Remit, tools: AgentTools, *, mode: Mode, hold_s: int, defer: bool = False) -> None:
        self._service = remit.service
        self._journal: Journal = remit.runtime.journal
        self._catalog = remit.runtime.catalog
        self._tools = tools
        self._mode = mode
        self._hold_s = hold_s
        self._defer = defer
        self._clock = remit.clock
        self._sessions: dict[str, _Session] = {}
        self._opening = asyncio.Lock()

    @property
    def busy(self) -> bool:
        """Return whether a call is open."""
        return any(session.open for session in self._sessions.values())

    async def settle_left(self) -> None:
        """Record of the calls that a guard before this one left open that their outcomes are unknown (rule 3)."""
        heads = await self._journal.heads(HeadQuery(kind=SESSION, labels={"face": "hook"}, limit=_LAST))
        for head in heads:
            session = _Session(head.stream.partition("/")[2])
            session.left = await self._left_in(session.name)
            self._sessions[head.labels["client_session"]] = session
            await self._doubt_left(session)

    async def answer(self, hook: Hook, gone: asyncio.Future[Any]) -> HookVerdict:
        """Return the verdict on a hook; `gone` ends when its agent no longer waits. Never raises for a call."""
        if hook.moment == "before" and MARKER in {hook.args.get("command"), hook.args.get("cmd")}:
            return HookVerdict("deny", ASKED)
        session = await self._session(hook)
        match hook.moment:
            case "before":
                return await self._before(session, hook, gone)
            case "permit":
                return await self._permit(session, hook, gone)
            case "after" | "failed":
                await self._after(session, hook)
            case "stop" | "end":
                await self._stop(session, hook)
            case _:
                pass
        return NONE

    # --- sessions

    async def _session(self, hook: Hook) -> _Session:
        name = f"{hook.agent}/{hook.session}"
        if name not in self._sessions:
            async with self._opening:
                if name not in self._sessions:
                    self._sessions[name] = await self._opened(name, hook)
        return self._sessions[name]

    async def _opened(self, name: str, hook: Hook) -> _Session:
        query = HeadQuery(kind=SESSION, labels={"face": "hook", "client_session": name}, limit=1)
        for head in await self._journal.heads(query):
            session = _Session(head.stream.partition("/")[2])
            session.left = await self._left_in(session.name)
            return session
        unseen = hook.moment in CALLS and "begin" in EVENTS.get(hook.agent, {}).values()
        return _Session(
            await self._service.sessions.open(
                "hook", client=hook.agent, via=self._mode, client_session=name, begin_unseen=unseen
            )
        )

    # --- before a call

    async def _before(self, session: _Session, hook: Hook, gone: asyncio.Future[Any]) -> HookVerdict:
        call, before = AgentCall(hook), session.last
        session.came, session.last = session.came + 1, self._clock.monotonic()
        number, alone = session.came, not session.open and session.last - before > _BATCH_S
        self._tools.learn(call.name, call.kind)
        task = asyncio.create_task(self._made(session, call, gone))
        task.add_done_callback(lambda _: call.settle(passed=False))
        if await call.passed:
            session.open.append((call, task))
            return NONE if self._mode != "gate" else HookVerdict("allow", "Remit's rules allow it.")
        if hook.call:
            session.refused.add(hook.call)
        if self._mode == "observe":
            return NONE
        if self._defer and hook.surface == _HEADLESS and alone and (remedy := _question(task)):
            await self._clock.sleep(_BATCH_S)
            if session.came == number:
                return HookVerdict("defer", _DEFERRED.format(remedy=remedy))
        if hook.surface == _TERMINAL and await self._may_ask(session, call, task):
            return HookVerdict("ask", _DIALOG.format(remedy=_question(task)))
        return _refusal(task)

    async def _may_ask(self, session: _Session, call: AgentCall, task: asyncio.Task[OutcomeView]) -> bool:
        """Return whether the agent may ask in its own dialog: who sits there may answer, and alone."""
        if not _question(task):
            return False
        question = await self._service.confirmations.view(task.result().confirmation)
        alone = question.approvals <= 1 and not question.approvers
        if alone:
            session.dialogs.append((call, question.confirmation))
        return alone

    async def _permit(self, session: _Session, hook: Hook, gone: asyncio.Future[Any]) -> HookVerdict:
        """Answer an agent's dialog once its question is answered elsewhere; what is answered first counts."""
        dialog = next((each for each in session.dialogs if _same(each[0].hook, hook)), None)
        if dialog is None:
            return NONE
        decided = asyncio.ensure_future(self._service.confirmations.decided(dialog[1]))
        try:
            await asyncio.wait({decided, gone}, return_when=asyncio.FIRST_COMPLETED)
            answered = decided.done() and not gone.done() and dialog in session.dialogs
        finally:
            decided.cancel()
        if not answered:
            return NONE
        session.dialogs.remove(dialog)
        first = dialog[0].hook
        verdict = await self._before(session, msgspec.structs.replace(first, surface=""), gone)
        return verdict if verdict.effect == "deny" else HookVerdict("allow")

    async def _close_dialog(self, session: _Session, dialog: tuple[AgentCall, str], *, yes: bool) -> None:
        """Record how an agent's own dialog was answered, and take its call through the gate if it said yes."""
        session.dialogs.remove(dialog)
        call, question = dialog
        by = _BY.format(agent=call.hook.agent)
        try:
            await self._service.confirmations.decide(question, "approve" if yes else "deny", by=by)
        except RemitError as error:
            _log.warning("an answer in %s does not count: %s", by, error.message)
            return
        if yes:
            never = asyncio.get_running_loop().create_future()
            await self._before(session, msgspec.structs.replace(call.hook, surface=""), never)

    async def _made(self, session: _Session, call: AgentCall, gone: asyncio.Future[Any]) -> OutcomeView:
        CALL.set(call)

        async def ask(confirmation: str) -> bool:
            decided = asyncio.ensure_future(self._service.confirmations.decided(confirmation))
            try:
                await asyncio.wait({decided, gone}, timeout=self._hold_s, return_when=asyncio.FIRST_COMPLETED)
                return decided.done() and not gone.done()
            finally:
                decided.cancel()

        live = LiveCaller(ask=ask if self._hold_s and self._mode != "observe" else None)
        return await self._service.sessions.call(session.name, call.name, call.args, client=call.hook.words, live=live)

    # --- after a call

    async def _after(self, session: _Session, hook: Hook) -> None:
        dialog = next((each for each in session.dialogs if each[0].hook.call == hook.call != ""), None)
        if dialog is not None:
            await self._close_dialog(session, dialog, yes=True)
        opened = self._matching(session, hook)
        if opened is None:
            await self._late(session, hook)
            return
        (call, task), remarks = opened
        session.open.remove((call, task))
        call.end(hook, *remarks)
        await asyncio.shield(task)

    def _matching(
        self, session: _Session, hook: Hook
    ) -> tuple[tuple[AgentCall, asyncio.Task[OutcomeView]], tuple[str, ...]] | None:
        """Return the open call that a report is about, and what does not fit; without an id the oldest alike."""
        if hook.call:
            matches = [each for each in session.open if each[0].hook.call == hook.call]
            changed = bool(matches) and matches[0][0].hook.args != hook.args
            return (matches[0], ("arguments_changed",) if changed else ()) if matches else None
        tool = [each for each in session.open if each[0].hook.tool == hook.tool]
        alike = [each for each in tool if each[0].hook.args == hook.args]
        if alike:
            return alike[0], ("joined_by_order",) if len(alike) > 1 else ()
        return (tool[0], ("arguments_changed", "joined_by_order")) if tool else None

    async def _stop(self, session: _Session, hook: Hook) -> None:
        """Leave no call of a turn that has ended open; a subagent's end says nothing of the others'."""
        ended = [each for each in session.open if each[0].hook.subagent == hook.subagent or hook.moment == "end"]
        for call, task in ended:
            session.open.remove((call, task))
            call.end(None)
            await asyncio.shield(task)
        for dialog in [each for each in session.dialogs if each[0].hook.subagent == hook.subagent]:
            await self._close_dialog(session, dialog, yes=False)
        await self._doubt_left(session)
        if ended:
            session.left = await self._left_in(session.name)  # their reports may still come

    # --- what another guard left

    async def _left_in(self, session: str) -> list[_Left]:
        """Return the calls of a session of which no report is recorded."""
        stream = f"{SESSION}/{session}"
        parts = await self._journal.heads(HeadQuery(prefix=f"{stream}/part/"))
        calls = await self._journal.heads(HeadQuery(kind=CALL_KIND, labels={"session": session}))
        left: dict[str, _Left] = {}
        for name in (stream, *(head.stream for head in (*parts, *calls))):
            for event in await self._journal.read(name):
                payload = decode(event.kind, event.data)
                if isinstance(payload, ToolInvocationStarted):
                    left[payload.invocation_id] = _Left(name, payload)
                elif isinstance(payload, ToolInvocationFinished) and payload.invocation_id in left:
                    left[payload.invocation_id].doubted = True
                    if payload.reported_by:
                        del left[payload.invocation_id]
        return list(left.values())

    async def _doubt_left(self, session: _Session) -> None:
        for left in session.left or ():
            if not left.doubted:
                left.doubted = True
                await self._record(left, in_doubt(_UNSAID, _LOOK), CheckedResult(), None)

    async def _late(self, session: _Session, hook: Hook) -> None:
        """Record a report of a call that is not open here: one that was left open, or one that had no leave."""
        name, kind = step_of(hook)
        left = next((each for each in session.left or () if _is_about(each.started, hook, name)), None)
        if left is None or session.left is None:
            reason: Any = "refused" if hook.call and hook.call in session.refused else "not_asked"
            arguments = sha256(_encoded(common_args(hook, kind)))
            ungated = HooksCallUngated(
                agent=hook.agent, tool_name=name, why=reason, call_id=hook.call, arguments_hash=arguments
            )
            await self._service.sessions.record(session.name, ungated)
            _log.warning("%s made a call without leave: %s (%s)", hook.agent, name, reason)
            return
        session.left.remove(left)
        remarks = () if hook.call else ("joined_by_order",)
        report = ClientReport(by=hook.agent, remarks=(*remarks, "background") if hook.background else remarks)
        if hook.moment == "failed":
            outcome = failed(Code.TOOL_EXEC_FAILED, hook.error, "See the reason.")
        else:
            outcome = Outcome(status="ok", value=hook.result)
        await self._record(left, outcome, CheckedResult(encoded=_encoded(hook.result)), report)

    async def _record(self, left: _Left, outcome: Outcome, checked: CheckedResult, report: ClientReport | None) -> None:
        """Record the end of a call that another guard announced, in its stream."""
        started = left.started
        tool = await self._tool(started)
        if tool is None:
            return
        effect = outcome.effect
        if started.side_effect == "read":
            effect = READS
        elif report is not None:
            effect = effect_reported(COMMITTED if outcome.ok else FAILED, open_="background" in report.remarks)
        outcome = msgspec.structs.replace(outcome, effect=effect, invocation_id=started.invocation_id)
        done: StepOutcome = "side_effect_committed" if effect.known == "committed" else "pure"
        events, blobs = events_of(
            outcome,
            checked,
            invocation_id=started.invocation_id,
            step=started.step,
            step_outcome="uncertain" if outcome.uncertain else "permanent_failure" if not outcome.ok else done,
            tool=tool,
            report=report,
        )
        head = await self._journal.head(left.stream)
        kind = head.kind if head is not None else SESSION
        # A lease of the guard before may still run: it is gone, for this one has the lock.
        patch = HeadPatch(state="done", closed=True, due_at=None, release=True) if kind == CALL_KIND else NO_PATCH
        writer = self._journal.writer(left.stream, kind, head)
        await self._journal.append(writer, *events, synced=True, patch=patch, blobs=blobs)

    async def _tool(self, started: ToolInvocationStarted) -> Tool | None:
        self._tools.learn(started.tool_name, started.alias.removeprefix("agent."))
        return await self._catalog.find(started.tool_name)


def _is_about(started: ToolInvocationStarted, hook: Hook, name: str) -> bool:
    call_id = started.client.get("call_id", "")
    return call_id == hook.call if hook.call else not call_id and started.tool_name == name


def _encoded(value: Any) -> bytes:
    try:
        return canonical(value)
    except NotCanonicalError:
        return canonical(str(value))


def _same(hook: Hook, other: Hook) -> bool:
    return (hook.tool, hook.args) == (other.tool, other.args)


def _question(task: asyncio.Task[OutcomeView]) -> str:
    """Return how the question is answered that a call waits for; empty: it waits for none."""
    waits = not task.exception() and task.result().status == "pending"
    return task.result().remedy.removeprefix("Decide with: ") if waits else ""


def _refusal(task: asyncio.Task[OutcomeView]) -> HookVerdict:
    try:
        outcome = task.result()
    except Exception as error:  # noqa: BLE001 - whatever it is, the call must not be made
        _log.exception("a call could not be taken through the gate")
        reason = error.message if isinstance(error, RemitError) else type(error).__name__
        return HookVerdict("deny", f"Remit could not decide about it: {reason}")
    if remedy := _question(task):
        return HookVerdict("deny", _APPROVE.format(remedy=remedy))
    return HookVerdict("deny", f"{outcome.code}: {outcome.reason}. {outcome.remedy}".replace("..", "."))
