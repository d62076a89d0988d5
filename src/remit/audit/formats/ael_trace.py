"""Runs of AEL of calls over MCP: one a trace, which recorders on both sides of the boundary give the same name.

Its records follow from events and checkpoints alone. So they can be made while these are recorded, up to the newest
checkpoint, and again for an export.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from remit.audit.formats.account import Entry, is_salted
from remit.audit.formats.ael_record import Records, decided, permission_of, place_of
from remit.audit.sessions import Beat, Session
from remit.journal import kinds as k

TRACE: Final = "trace/"
"""The names of runs of traces begin so."""
_MCP: Final = "mcp."
_PARENT: Final = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
STRANGE: Final = re.compile("[^A-Za-z0-9._-]")
"""Characters that the name of a recorder does not hold: files are named by it."""


class Span(NamedTuple):
    """The name of a call over MCP on both sides of the boundary (W3C Trace Context): the caller's trace and span."""

    trace: str
    id: str


class Stretch(NamedTuple):
    """A session of a recorder, and the calls that each of its checkpoints covers first."""

    session: Session
    beats: Sequence[tuple[Beat, Sequence[Entry]]]


def span_of(entry: Entry) -> Span | None:
    """Return the name of a call that came with a caller's trace, or left for an MCP server; None: it did neither."""
    call = entry.payload
    if not isinstance(call, k.ToolInvocationStarted):
        return None
    if parent := _PARENT.fullmatch(call.client.get("traceparent", "")):
        return Span(*parent.groups())
    return Span(call.trace_id, call.span_id) if call.tool_name.startswith(_MCP) and call.span_id else None


def begin(trace: str, origin: str, key: str) -> Records:
    """Return the records of a trace, none yet, by the recorder of a log; `key` is the fingerprint of its key."""
    return Records(f"{TRACE}{trace}", STRANGE.sub("-", f"trace-{trace}-{origin}"), key)


def write(records: Records, stretches: Sequence[Stretch]) -> Iterator[bytes]:
    """Write the records of a trace, from the checkpoint before its first call on; it is left open."""
    for stretch in stretches:
        at = stretch.session.began
        for beat, calls in stretch.beats:
            if not records.count and not calls:
                at = beat.at
                continue
            if not records.count:
                yield records.open(at, stretch.session)
            yield from write_calls(records, calls)
            yield records.heartbeat(beat)


def write_calls(records: Records, calls: Iterable[Entry]) -> Iterator[bytes]:
    """Write the records of calls that one checkpoint covers."""
    latest: dict[str, int] = {}
    times = list[tuple[int, str, int, Entry]]()
    for call in sorted(calls, key=lambda one: (one.stream, one.seq)):  # by time, but a stream stays in its order
        latest[call.stream] = max(call.at, latest.get(call.stream, 0))
        times.append((latest[call.stream], call.stream, call.seq, call))
    for _, _, _, call in sorted(times):
        yield records.activity(call.at, _members(call))


def _members(call: Entry) -> dict[str, Any]:
    """Return what the record of a call says: nothing that could be otherwise later."""
    span, payload = span_of(call), call.payload
    assert span is not None  # noqa: S101 - what has no span is in no trace
    assert isinstance(payload, k.ToolInvocationStarted)  # noqa: S101 - the same
    request = "" if is_salted(payload) else payload.arguments_hash
    return {
        "event": {"class": call.row.name, "id": span.id, "dir": call.row.direction},
        "ext": {"remit": {**place_of(call), "invocation": payload.invocation_id}},
        "decision": decided(permission_of(call, payload), request or call.place),
    }
