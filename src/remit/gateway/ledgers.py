"""The ledgers of conversations under way: each grows with its conversation, so that a turn costs what is new in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from remit.journal.kinds import ToolInvocationFinished, ToolInvocationStarted, decode
from remit.models.message import Message, ToolResult
from remit.origins.ledger import Ledger, Source

if TYPE_CHECKING:
    from remit.gateway.conversation import Conversation, Provenance
    from remit.journal.journal import Journal
    from remit.models.thread import Thread

_KEPT: Final = 64
"""Conversations of this process whose ledgers are kept; another one is read again."""
_JSON: Final = ("{", "[", '"')
_TASK: Final = Source("", "the task")
_INSTRUCTIONS: Final = Source("", "the instructions")
_SUMMARY: Final = Source("", "a summary of earlier turns")
_SHOWN: Final = Source("", "a description of what it may use")
_FROM_A_MODEL: Final = Source("", "a task that a model wrote")


class _Open(NamedTuple):
    """A ledger, and what it takes to continue it."""

    ledger: Ledger
    arguments: dict[str, str]
    """Arguments that the model gave to each of its calls."""


class Ledgers:
    """Finds the ledger of a conversation, or writes it from the conversation's messages."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], _Open] = {}

    def of(self, stream: str, conversation: Conversation, provenance: Provenance) -> Ledger:
        """Everything that the model was given, in this stream: a pure function of what the stream holds."""
        outer = conversation.outer
        trusted = provenance.task_trusted and not (outer and self.of(stream, outer, provenance).tainted)
        tips = [thread.tip for thread in conversation.threads]
        whose = stream if trusted else f"{stream} for a model"
        same = self._open.get((whose, *tips))
        if same is not None:
            return same.ledger
        nodes = [(number, node) for number, thread in enumerate(conversation.threads) for node in _nodes(thread)]
        found, done = _Open(Ledger(), {}), 0
        for count in range(len(nodes), 0, -1):
            number, node = nodes[count - 1]
            kept = self._open.pop((whose, *tips[:number], node.tip), None)
            if kept is not None:
                found, done = kept, count
                break
        for text in conversation.shown if not done else ():
            found.ledger.distrust(text, _SHOWN)
        for number, node in nodes[done:]:
            if node.message is not None:
                _take(found, node.message, conversation, provenance, trusted=trusted, shortened=number > 0)
        self._open[(whose, *tips)] = found
        if len(self._open) > _KEPT:
            del self._open[next(iter(self._open))]
        return found.ledger


class SessionLedgers:
    """Finds the ledger of a session: what tools gave its client. What people told that is unknown, so no task is."""

    def __init__(self) -> None:
        self._open: dict[str, _Session] = {}

    async def of(self, stream: str, journal: Journal) -> Ledger:
        """Everything that the session's stream says its client was given. Raises JournalError."""
        known = self._open.pop(stream, None) or _Session()
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


class _Session:
    """A ledger, and how far its stream was read."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.seq = 0
        self.calls: dict[str, ToolInvocationStarted] = {}

    def take(self, finished: ToolInvocationFinished, result: str) -> None:
        """Take what a call gave. Once there is untrusted text, only what had no arguments is made of none of it."""
        call = self.calls.pop(finished.invocation_id)
        source = Source(call.step, call.tool_name)
        bare = isinstance(call.args, msgspec.Raw) and bytes(call.args) == b"{}"
        if call.output_trusted and (bare or not self.ledger.tainted):
            self.ledger.trust(result, source, is_json=True)
        else:
            words = f" {finished.error.message}" if finished.error is not None else ""
            self.ledger.distrust(f"{result}{words}", source)


def _nodes(thread: Thread) -> list[Thread]:
    return thread.since(lambda _: False)


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
                if isinstance(block, ToolResult):
                    _result(open_, block, conversation, provenance)


def _result(open_: _Open, result: ToolResult, conversation: Conversation, provenance: Provenance) -> None:
    call = conversation.answers.get(result.id, result.id)
    if not call:
        return
    if not conversation.foreign.isdisjoint((result.id, call)) or call not in provenance.outputs:
        open_.ledger.distrust(result.text, Source("", result.name.replace("__", ".")))
        return
    output = provenance.outputs[call]
    if output is None:
        return
    source = Source(output.step, output.tool, open_.arguments.get(call, ""), output.family)
    if output.trusted:
        open_.ledger.trust(result.text, source, is_json=result.text.startswith(_JSON))
    else:
        open_.ledger.distrust(result.text, source)
