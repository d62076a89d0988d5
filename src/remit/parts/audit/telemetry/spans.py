"""Spans of what a journal tells of in the order of its commits: each end is linked to the event that it ends.

What began is remembered up to a bound; what is not, because another process read it or the bound was reached, is read
again from its stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from remit.errors import ChainBrokenError
from remit.journal import kinds as k
from remit.journal.blobs import BlobRef
from remit.parts.audit.formats.account import AccountEntry, Links, entry_of
from remit.parts.audit.formats.otlp import as_attributes, span_of
from remit.redact import mask

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal

Span = dict[str, Any]
_BEGINS: Final = (k.ToolInvocationStarted, k.CommandStarted, k.ConfirmationRequested)
_ENDS: Final = (k.ToolInvocationFinished, k.CommandCommitted, k.ConfirmationDecided)
_WHOLE: Final = (k.GateRefused, k.SessionOpened)
"""Events that are a span of their own: no event says that a session is over."""
_JOB_ENDS: Final = (k.JobCompleted, k.JobFailed, k.JobCancelled)
KINDS: Final = tuple(kind.KIND for kind in (*_BEGINS, *_ENDS, *_WHOLE, *_JOB_ENDS))
"""The kinds of events to show to `Spans`."""
_REMEMBERED: Final = 2_000
"""Events that began something, and roots, that are remembered at most."""
_ROOT: Final = 8
"""Events of a stream among which the first ones of a job, a session or a call are."""
_PAGE: Final = 500
_LONGEST: Final = 16 * 1024
"""Bytes of a value that is sent at most."""
K = TypeVar("K")
V = TypeVar("V")


class Spans:
    """The spans of one journal, for a reader that goes through its events in their order."""

    def __init__(self, journal: Journal, *, values: bool) -> None:
        self._journal = journal
        self._values = values
        self._begun: dict[tuple[str, str], AccountEntry] = {}
        """By stream, and by invocation or question."""
        self._roots: dict[str, tuple[AccountEntry, ...]] = {}

    async def of(self, event: Event) -> list[Span]:
        """Return the spans that end with an event of KINDS; a stream that is damaged has none. Raise JournalError."""
        try:
            return await self._of(_entry(event))
        except ChainBrokenError:  # `remit verify` tells it; others go on
            return []

    async def _of(self, entry: AccountEntry) -> list[Span]:
        if entry.row.case == "wait":  # of a question, which is told by its own stream
            return []
        if isinstance(entry.payload, _BEGINS):
            _remember(self._begun, _key(entry), entry)
            return []
        if isinstance(entry.payload, _ENDS):
            begin = self._begun.pop(_key(entry), None) or await self._begin_of(entry)
            return [await self._span(begin, entry)] if begin is not None else []
        if isinstance(entry.payload, _WHOLE):
            return [await self._span(entry, entry)]
        root = [
            entry_found
            for entry_found in await self._root(entry.stream)
            if isinstance(entry_found.payload, k.JobCreated)
        ]
        lost = [key for key in self._begun if key[0] == entry.stream]
        return [await self._span(begin, entry) for begin in (*root, *(self._begun.pop(key) for key in lost))]

    async def _span(self, begin: AccountEntry, end: AccountEntry) -> Span:
        links = Links()
        links.salted.add(begin.root)  # digests of values are not sent: a small value can be guessed from one
        for entry in {each.place: each for each in (*await self._root(begin.root), begin, end)}.values():
            links.take(entry)
        span = span_of(links, begin)
        if self._values and isinstance(begin.payload, k.ToolInvocationStarted):
            span["attributes"] += as_attributes(await self._values_of(begin.payload, end))
        return span

    async def _values_of(self, call: k.ToolInvocationStarted, end: AccountEntry) -> dict[str, str]:
        values = {"gen_ai.tool.call.arguments": await self._value(call.args, call.args_blob)}
        if isinstance(end.payload, k.ToolInvocationFinished):
            values["gen_ai.tool.call.result"] = await self._value(end.payload.result, end.payload.result_blob)
        return {name: text for name, text in values.items() if text}

    async def _value(self, inline: Any, ref: Any) -> str:
        """Return a value as masked JSON; empty: there is none, it is too long, or about a subject."""
        if isinstance(ref, BlobRef) and (ref.key or ref.bytes > _LONGEST):
            return ""
        text = await self._journal.value(inline, ref)
        return mask(text.decode()) if text is not None and len(text) <= _LONGEST else ""

    async def _root(self, stream: str) -> tuple[AccountEntry, ...]:
        """Return the first events of the job or session that a stream belongs to."""
        known = self._roots.get(stream)
        if known is None:
            known = tuple([_entry(event) for event in await self._journal.page(stream, 0, _ROOT)])
            sessions = [
                f"session/{entry.payload.session}" for entry in known if isinstance(entry.payload, k.CallOpened)
            ]
            known += tuple([entry for session in sessions for entry in await self._root(session)])
            known = tuple(
                entry for entry in known if isinstance(entry.payload, k.JobCreated | k.SessionOpened | k.CallOpened)
            )
            _remember(self._roots, stream, known)
        return known

    async def _begin_of(self, end: AccountEntry) -> AccountEntry | None:
        """Look for what an end ends, backwards in its stream."""
        last = end.seq - 1
        while last > 0:
            after = max(0, last - _PAGE)
            for event in reversed(await self._journal.page(end.stream, after, last - after)):
                entry = _entry(event)
                if isinstance(entry.payload, _BEGINS) and _key(entry) == _key(end):
                    return entry
            last = after
        return None


def _entry(event: Event) -> AccountEntry:
    return entry_of(event.stream, event.seq, event.kind, event.at, event.hash.hex(), event.data)


def _key(entry: AccountEntry) -> tuple[str, str]:
    name = getattr(entry.payload, "invocation_id", "") or getattr(entry.payload, "confirmation", "")
    return entry.stream, str(name)


def _remember(known: dict[K, V], key: K, value: V) -> None:
    known[key] = value
    if len(known) > _REMEMBERED:
        del known[next(iter(known))]
