"""CheckOrigins: what an agent's call reaches was named by someone trusted, or policy asks or denies.

The ledgers of conversations under way: each grows with its conversation, so that a turn costs what is new in it.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code
from remit.gateway.call import Call, Proceed
from remit.gateway.conversation import Conversation, Provenance, family_of
from remit.gateway.outcome import Outcome, refused
from remit.journal.kinds import CommandCommitted, CommandStarted, ToolInvocationFinished, ToolInvocationStarted, decode
from remit.models.message import Message, ToolMessage
from remit.models.message import decode as message_of
from remit.origins.arguments import addresses_of, authority_of, carried_by
from remit.origins.ledger import OriginLedger, OriginSource
from remit.policy.decision import Decision
from remit.policy.levels import effective_level
from remit.policy.verdict import TAINT_IDS
from remit.regex import regex
from remit.tools.meta import Level

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.journal.journal import Journal
    from remit.journal.kinds import UntrustedArgument
    from remit.models.thread import Thread
    from remit.origins.arguments import AuthorityValue


_KEPT: Final = 64
"""Conversations of this process whose ledgers are kept; another one is read again."""
_JSON: Final = ("{", "[", '"')
_TASK: Final = OriginSource("", "the task")
_INSTRUCTIONS: Final = OriginSource("", "the instructions")
_SUMMARY: Final = OriginSource("", "a summary of earlier turns")
_SHOWN: Final = OriginSource("", "a description of what it may use")
_FROM_A_MODEL: Final = OriginSource("", "a task that a model wrote")


class _Open(msgspec.Struct, frozen=True):
    """A ledger, and what it takes to continue it."""

    ledger: OriginLedger
    arguments: dict[str, str]
    """Arguments that the model gave to each of its calls."""


class Ledgers:
    """Finds the ledger of a conversation, or writes it from the conversation's messages."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], _Open] = {}

    def of(self, stream: str, conversation: Conversation, provenance: Provenance) -> OriginLedger:
        """Everything that the model was given, in this stream: a pure function of what the stream holds."""
        outer = conversation.outer
        trusted = provenance.task_trusted and not (outer and self.of(stream, outer, provenance).tainted)
        tips = [thread.tip for thread in conversation.threads]
        whose = stream if trusted else f"{stream} for a model"
        same = self._open.get((whose, *tips))
        if same is not None:
            return same.ledger
        ledger, fresh = self._kept(whose, conversation.threads)
        if ledger is None:
            ledger = _Open(OriginLedger(), {})
            for text in conversation.shown:
                ledger.ledger.distrust(text, _SHOWN)
        for number, message in fresh:
            _take(ledger, message, conversation, provenance, trusted=trusted, shortened=number > 0)
        self._open[(whose, *tips)] = ledger
        if len(self._open) > _KEPT:
            del self._open[next(iter(self._open))]
        return ledger.ledger

    def _kept(self, whose: str, threads: tuple[Thread, ...]) -> tuple[_Open | None, list[tuple[int, Message]]]:
        """Take the ledger that goes furthest, and the messages after it, each with the number of its thread."""
        tips, fresh = [thread.tip for thread in threads], list[tuple[int, Message]]()
        for number in reversed(range(len(threads))):
            node = threads[number]
            while node.before is not None:
                ledger = self._open.pop((whose, *tips[:number], node.tip), None)
                if ledger is not None:
                    return ledger, fresh[::-1]
                if node.message is not None:
                    fresh.append((number, node.message))
                node = node.before
        return None, fresh[::-1]


class SessionLedgers:
    """Finds the ledger of a session: what tools gave its client, and what the client's models were told, if known.

    Without that, what people told is unknown, so no task is. `told_in` is the stream of questions to those models;
    empty: it is not known.
    """

    def __init__(self, told_in: str = "") -> None:
        self._told_in = told_in
        self._open: dict[str, _Session] = {}

    async def of(self, stream: str, journal: Journal) -> OriginLedger:
        """Everything that the session's stream says its client was given. Raises JournalError."""
        known = self._open.pop(stream, None) or _Session()
        if self._told_in:
            await known.results.read(self._told_in, journal, known.ledger)
        for event in await journal.left(stream, known.seq):
            known.seq = event.seq
            payload = decode(event.kind, event.data)
            if isinstance(payload, ToolInvocationStarted):
                known.calls[payload.invocation_id] = payload
            elif isinstance(payload, ToolInvocationFinished) and payload.invocation_id in known.calls:
                value = await journal.value(payload.result, payload.result_blob)
                known.take(payload, (value or b"").decode())
        self._open[stream] = known
        if len(self._open) > _KEPT:
            del self._open[next(iter(self._open))]
        return known.ledger


class _Told:
    """Messages that a program of another maker sent to its models, and how far they were read.

    What it says before the first result of a tool is the task. Later it may repeat results in any role, such as in a
    summary, so that is neither trusted nor a place where a value comes from.
    """

    def __init__(self) -> None:
        self._seq = 0
        self._answered = False
        self._tools: dict[str, str] = {}
        """The tools of calls, by the identifiers of provider and program."""

    async def read(self, stream: str, journal: Journal, ledger: OriginLedger) -> None:
        """Take what is new in a stream into a ledger. Raises JournalError."""
        for event in await journal.left(stream, self._seq):
            self._seq = event.seq
            payload = decode(event.kind, event.data)
            if isinstance(payload, CommandCommitted) and payload.error is None:
                answer = await journal.value(payload.result, payload.result_blob)
                self._name(message_of(answer) if answer else Message("assistant", ()))
            for message in payload.added if isinstance(payload, CommandStarted) else ():
                body = await journal.value(message.body, message.body_blob)
                if body is not None:  # an answer that is recorded has none here
                    self._take(message_of(body), ledger)

    def _name(self, message: Message) -> None:
        self._tools.update((call.wire_id or call.id, call.name) for call in message.calls)

    def _take(self, message: Message, ledger: OriginLedger) -> None:
        """Take a message in. Results of Remit's own tools are those of the session, which knows their trust."""
        self._name(message)
        if message.role in {"system", "user"} and not self._answered:
            ledger.trust(message.text, _INSTRUCTIONS if message.role == "system" else _TASK)
        for block in message.blocks:
            if isinstance(block, ToolMessage):
                self._answered = True
                name = self._tools.get(block.id, block.name)
                if not _OWN_TOOL.search(name):
                    ledger.distrust(block.text, OriginSource("", name))


class _Session:
    """A ledger, and how far its stream was read."""

    def __init__(self) -> None:
        self.ledger = OriginLedger()
        self.results = _Told()
        self.seq = 0
        self.calls: dict[str, ToolInvocationStarted] = {}

    def take(self, finished: ToolInvocationFinished, result: str) -> None:
        """Take what a call gave. Once there is untrusted text, only what had no arguments is made of none of it."""
        call = self.calls.pop(finished.invocation_id)
        source = OriginSource(call.step, call.tool_name)
        bare = isinstance(call.args, msgspec.Raw) and bytes(call.args) == b"{}"
        if call.output_trusted and (bare or not self.ledger.tainted):
            self.ledger.trust(result, source, is_json=True)
        else:
            words = f" {finished.error.message}" if finished.error is not None else ""
            self.ledger.distrust(f"{result}{words}", source)


def _take(
    open_: _Open,
    message: Message,
    conversation: Conversation,
    provenance: Provenance,
    *,
    trusted: bool,
    shortened: bool,
) -> None:
    ledger = open_.ledger
    match message.role:
        case "system":
            ledger.trust(message.text, _INSTRUCTIONS)
        case "user" if message.replaces:
            if not shortened:  # of the conversation itself, what it sums up is in the ledger already
                ledger.distrust(message.text, _SUMMARY)
        case "user" if trusted:
            ledger.trust(message.text, _TASK)
        case "user":
            ledger.distrust(message.text, _FROM_A_MODEL)
        case "assistant":
            open_.arguments.update({call.id: call.arguments for call in message.calls})
        case _:
            for block in message.blocks:
                if isinstance(block, ToolMessage):
                    _result(open_, block, conversation, provenance)


def _result(open_: _Open, result: ToolMessage, conversation: Conversation, provenance: Provenance) -> None:
    call = conversation.answers.get(result.id, result.id)
    if not call:
        return
    if not conversation.foreign.isdisjoint((result.id, call)) or call not in provenance.outputs:
        open_.ledger.distrust(result.text, OriginSource("", result.name.replace("__", ".")))
        return
    output = provenance.outputs[call]
    if output is None:
        return
    source = OriginSource(output.step, output.tool, open_.arguments.get(call, ""), output.family)
    if output.trusted:
        open_.ledger.trust(result.text, source, is_json=result.text.startswith(_JSON))
    else:
        open_.ledger.distrust(result.text, source)


_SESSION: Final = "session/"
_OWN_TOOL: Final = regex(r"^(?:mcp__remit__|mcp_remit_|remit[_.])")
"""Beginnings of names of tools of Remit's MCP server, as the governed agents tell them to models."""
_TELLING: Final = 4
"""Characters from which on a part of a value is taken to come from where it stands."""


class CheckOrigins:
    """Finds the arguments of authority that only untrusted text holds, or none at all; policy says what then."""

    def __init__(self, services: Services) -> None:
        self._knows_task = bool(services.told_in)
        self._ledgers, self._sessions = Ledgers(), SessionLedgers(services.told_in)
        self._remembered = services.remembered

    def __call__(self, call: Call, proceed: Proceed) -> Awaitable[Outcome]:
        """Set `tainted`, `untrusted`, and a `decision` that may be stricter. Refuse with UNTRUSTED_ARGUMENT."""
        call.stage = "check_origins"
        conversation = call.request.conversation
        if conversation is not None:
            return self._judge(conversation, call, proceed)
        if not call.writer.stream.startswith(_SESSION):
            return proceed(call)
        matters = self._knows_task or call.policy.taints(call.query) - {"allow"}
        return self._in_session(call, proceed) if matters else proceed(call)

    async def _in_session(self, call: Call, proceed: Proceed) -> Outcome:
        """Judge a call of an agent elsewhere: what Remit gave it is known, and what a person told it often is not.

        Then a value that none of it holds may be the person's, unless the rule is strict.
        """
        ledger = await self._sessions.of(call.writer.stream, call.journal)
        if not ledger.tainted:
            return await proceed(call)
        strict = call.policy.is_strict(call.query)
        findings = [ledger.judge(finding) for finding in _arguments(call, every=strict)]
        every = strict or self._knows_task
        call.untrusted = tuple(
            finding for finding in findings if finding is not None and (every or finding.seen == "untrusted")
        )
        return await self._stricter(call, proceed) if call.untrusted else await proceed(call)

    async def _judge(self, conversation: Conversation, call: Call, proceed: Proceed) -> Outcome:
        provenance = call.request.provenance or Provenance()
        await provenance.settle(call.journal.value)
        ledger = self._ledgers.of(call.writer.stream, conversation, provenance)
        if not ledger.tainted:
            return await proceed(call)
        call.tainted, call.untrusted_input = True, _is_untrusted(call, conversation, ledger)
        call.untrusted = await self._untrusted(call, conversation, provenance, ledger)
        if not call.untrusted:
            self._ask_on(call)
            return await proceed(call)
        return await self._stricter(call, proceed)

    async def _stricter(self, call: Call, proceed: Proceed) -> Outcome:
        """Have policy say what becomes of a call with untrusted arguments."""
        decision = call.policy.tainted(call.query, call.decision, {finding.path for finding in call.untrusted})
        if decision.effect == "ask":
            decision = await self._remembered_for(call, decision)
        call.decision, call.rule_id = decision, decision.rule_id
        if decision.effect == "deny":
            text = "; ".join(finding.words for finding in call.untrusted)
            remedy = "Give it in the task, or let a rule's taint allow it."
            return refused(Code.UNTRUSTED_ARGUMENT, f"{call.tool.meta.name}: {text}", remedy)
        return await proceed(call)

    async def _untrusted(
        self, call: Call, conversation: Conversation, provenance: Provenance, ledger: OriginLedger
    ) -> tuple[UntrustedArgument, ...]:
        meta, every = call.tool.meta, call.policy.is_strict(call.query)
        arguments = _arguments(call, every=every)
        if not arguments:
            return ()
        approved = await provenance.approved(call.journal.value) - _in_question(call)
        if call.confirmation is not None and call.confirmation.request.edited_from:
            own = set(authority_of(meta, call.request.args, every=every))  # any other a person has put there
            arguments = [argument for argument in arguments if argument in own]
        if conversation.known_values is not None:
            arguments = [argument for argument in arguments if _is_among(argument.value, conversation.known_values)]
        family = "" if every else family_of(meta.provider_id, meta.name)
        findings = [ledger.judge(argument, family) for argument in arguments]
        return tuple(
            argument
            for argument in findings
            if argument is not None and (meta.name, argument.path, argument.value) not in approved
        )

    def _ask_on(self, call: Call) -> None:
        """Give what a person has put in the place of untrusted arguments is approved as they see it, like any edit."""
        request = call.confirmation.request if call.confirmation is not None else None
        asked_by = request.rule_id if request is not None and request.edited_from else ""
        if request is not None and call.decision.effect == "allow" and asked_by.startswith(TAINT_IDS):
            call.decision = Decision(effect="ask", rule_id=asked_by, reason=request.question)
            call.rule_id = asked_by

    async def _remembered_for(self, call: Call, decision: Decision) -> Decision:
        """The decision, or an approval of these very arguments that a person wanted remembered."""
        remembered = await self._remembered.active(call.tool.meta.name)
        exact = (rule for rule in remembered if rule.args_digest is not None and rule.answers(call.query, decision))
        return next((rule.decision for rule in exact), decision)


def _arguments(call: Call, *, every: bool) -> list[AuthorityValue]:
    """Return the arguments that are looked at; with `every`, all of a call that does more than read."""
    meta = call.tool.meta
    reads = effective_level(meta) is Level.L0
    return addresses_of(meta, call.args) if reads else authority_of(meta, call.args, every=every)


def _in_question(call: Call) -> set[tuple[str, str, str]]:
    """Return what a person is asked about for this very call: to approve another one does not answer that."""
    shown = call.confirmation.untrusted if call.confirmation is not None else ()
    return {(call.tool.meta.name, finding.path, finding.value) for finding in shown}


def _is_untrusted(call: Call, conversation: Conversation, ledger: OriginLedger) -> bool:
    """Return whether values go in that no trusted text holds, so that what comes out may be made of them."""
    inputs = conversation.known_values
    values = carried_by(call.tool.meta, call.args)
    return not all(ledger.trusts(value) for value in values if inputs is None or _is_among(value.value, inputs))


def _is_among(value: str, texts: set[str]) -> bool:
    """Return whether a value, or a part of it that says something, is one of those that a model gave."""
    return value in texts or any(len(text) >= _TELLING and (text in value or value in text) for text in texts)
