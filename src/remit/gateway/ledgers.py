"""The ledgers of conversations under way: each grows with its conversation, so that a turn costs what is new in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from remit.models.message import Message, ToolResult
from remit.origins.ledger import Ledger, Source

if TYPE_CHECKING:
    from remit.gateway.conversation import Conversation, Provenance
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
