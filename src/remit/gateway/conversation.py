"""The knowledge of the model that wants a call, and what the journal says of the outputs that it was given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from remit.journal.blobs import Packed, pack
from remit.journal.kinds import (
    UNSET,
    GateRefused,
    OptionalRaw,
    OptionalRef,
    ToolInvocationFinished,
    ToolInvocationStarted,
    UntrustedArgument,
)

if TYPE_CHECKING:
    from remit.models.thread import Thread

Read = Callable[[OptionalRaw, OptionalRef], Awaitable[bytes | None]]
"""Reads a recorded value, such as `Journal.value` does. Raises JournalError."""
_decode: Final = msgspec.json.Decoder(tuple[UntrustedArgument, ...]).decode
_NOTHING: Final[Mapping[str, str]] = {}


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model's call comes from."""

    call: str
    """The call's identifier in the model's answer; empty if a recipe makes it for the model."""
    threads: tuple[Thread, ...]
    """Messages that the model was told: the conversation as it is now, after those that it was shortened from."""
    answers: Mapping[str, str] = _NOTHING
    """Calls that no tool answered: the call whose result the answer repeats, or nothing for words of our own."""
    foreign: frozenset[str] = frozenset()
    """Calls whose results came with a conversation from elsewhere."""
    known_values: set[str] | None = None
    """If a recipe makes the call for the model: the values that the model gave to the recipe, and what tools made of
    those that no trusted text holds; others are its own.
    """
    vouched: bool = False
    """Whether the recipe vouches for what the tool returns: a person has seen this very text."""
    shown: tuple[str, ...] = ()
    """Texts of others that the model was shown beside its messages: they are untrusted."""
    outer: Conversation | None = None
    """The conversation of the model that has this one work, if there is one."""


def family_of(provider: str, tool: str) -> str:
    """The tools that a listing may vouch to: those of its provider whose names differ in the last part alone."""
    return f"{provider} {tool.rpartition('.')[0]}"


class ToolOutput(NamedTuple):
    """Where a tool's result comes from."""

    step: str
    tool: str
    trusted: bool
    family: str = ""
    """The tools whose listing it may be (origins/ledger.py); empty if it is no listing."""


class Provenance:
    """The provenance of a stream's calls: which outputs are trusted, and which arguments people have approved."""

    def __init__(self) -> None:
        self.task_trusted = True
        """Whether the task is a person's, rather than one that a model with untrusted text in mind has written."""
        self.outputs: dict[str, ToolOutput | None] = {}
        """By the identifier of a model's call; None: it was refused, and the words are our own."""
        self.derived: set[str] = set()
        """Steps of calls into which values went that no trusted text holds."""
        self._running: dict[str, tuple[str, str]] = {}
        """By invocation, the call of a model whose result may be a listing, and of which tools."""
        self._long: list[tuple[ToolInvocationFinished, str, str]] = []
        """Results of such calls that lie beside their events."""
        self._approved: set[tuple[str, str, str]] = set()
        self._unread: list[ToolInvocationStarted] = []

    def started(self, event: ToolInvocationStarted) -> None:
        """Take the announcement of a call."""
        if event.call_id:
            self.outputs[event.call_id] = ToolOutput(event.step, event.tool_name, event.output_trusted)
            reads = event.side_effect == "read" and event.provider_id
            if reads and not event.output_trusted and not event.untrusted_input:
                self._running[event.invocation_id] = event.call_id, family_of(event.provider_id, event.tool_name)
        if event.untrusted_input:
            self.derived.add(event.step)
        if event.confirmation and (event.untrusted is not UNSET or event.untrusted_blob is not UNSET):
            self._unread.append(event)

    def finished(self, event: ToolInvocationFinished) -> None:
        """Take the end of a call."""
        call, family = self._running.pop(event.invocation_id, ("", ""))
        if call and isinstance(event.result, msgspec.Raw):
            self._list(call, family, bytes(event.result))
        elif call and event.result_blob is not UNSET:
            self._long.append((event, call, family))

    async def settle(self, read: Read) -> None:
        """Read what lies beside the events. Raises JournalError."""
        while self._long:
            event, call, family = self._long.pop()
            self._list(call, family, await read(event.result, event.result_blob) or b"")

    def _list(self, call: str, family: str, result: bytes) -> None:
        """Keep that a result is a table or a list; a text that looks like one is not."""
        output = self.outputs.get(call)
        if output is not None and result[:1] in {b"{", b"["}:
            self.outputs[call] = output._replace(family=family)

    def refused(self, event: GateRefused) -> None:
        """Take a refusal."""
        if event.call_id:
            self.outputs[event.call_id] = None

    async def approved(self, read: Read) -> set[tuple[str, str, str]]:
        """Tool, argument and value of everything untrusted that a person has seen and approved. Raises JournalError."""
        while self._unread:
            event = self._unread[-1]
            findings = await read_untrusted(event.untrusted, event.untrusted_blob, read)
            self._approved.update((event.tool_name, finding.path, finding.value) for finding in findings)
            if event in self._unread:
                self._unread.remove(event)
        return self._approved


async def read_untrusted(raw: OptionalRaw, ref: OptionalRef, read: Read) -> tuple[UntrustedArgument, ...]:
    """The untrusted arguments of an event. Raises JournalError if they cannot be read."""
    encoded = await read(raw, ref)
    return _decode(encoded) if encoded else ()


NOTHING: Final = Packed(UNSET, UNSET, ())


def packed_untrusted(arguments: tuple[UntrustedArgument, ...]) -> Packed:
    """Untrusted arguments as an event holds them; nothing if there are none."""
    return pack(msgspec.json.encode(arguments)) if arguments else NOTHING


def values_of(args: Any) -> set[str]:
    """Every single value among arguments, as text."""
    values: set[str] = set()
    rest = [args]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            rest += value.values()
        elif isinstance(value, list):
            rest += value
        else:
            values.add(str(value))
    return values
