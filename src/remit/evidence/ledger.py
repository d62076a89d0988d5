"""The ledger: every call, what it was announced as, and how it ended; made from the events alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Any, NamedTuple

from remit.evidence.rejected import RejectedError
from remit.evidence.strict_json import canonical

_BEGINS = {"tool_invocation_started", "command_started"}
_FINISHES = {"tool_invocation_finished", "command_committed"}
_FACTS = (
    *("invocation_id", "step", "tool_name", "tool_version", "arguments_hash", "idempotency_key", "attempt"),
    *("principal", "rule_id", "policy_hash", "confirmation", "llm_provider", "llm_model", "prompt_hash"),
)


_HOW = ("outcome", "step_outcome", "uncertain")
_GAP = "\0"
"""Stands in a line for the members that are not facts of the announcement: ended, outcome, stream."""


class _Columns(NamedTuple):
    """The part of a line that announcements with the same members have in common."""

    values: Callable[[dict[str, Any]], tuple[Any, ...]]
    quoted: str
    """The line, with a place for each value, if all are texts without an escape."""
    bare: str
    """The same for values in canonical form."""


@lru_cache(maxsize=256)
def _columns_of(members: tuple[str, ...]) -> _Columns:
    names = sorted({*_FACTS} & {*members})
    values = itemgetter(*names) if len(names) > 1 else lambda payload: tuple([payload[name] for name in names])
    places = {"ended": _GAP, "outcome": _GAP, "stream": _GAP, **{name: f'"{name}":"%s"' for name in names}}
    quoted = ",".join([place for _, place in sorted(places.items())])
    return _Columns(values, quoted, quoted.replace('"%s"', "%s"))


class _Call:
    """A call that was announced: its line so far, and how it ended."""

    __slots__ = ("announced", "ended", "line", "outcome", "step")

    def __init__(self, event: Event) -> None:
        columns = _columns_of(tuple(event.payload))
        values = columns.values(event.payload)
        try:
            is_plain = event.plain and "".join(values) is not None
        except TypeError:
            is_plain = False
        self.line = columns.quoted % values if is_plain else columns.bare % tuple([_json(value) for value in values])
        self.step = event.payload.get("step", "")
        self.announced, self.ended, self.outcome = event.seq, 0, "unknown"

    def text(self, stream: str) -> str:
        """Return it as a line of ledger.ndjson, in canonical form."""
        before, between, after, last = self.line.split(_GAP)
        how = f'{before}"ended":{self.ended}{between}' if self.ended else f"{before}{between[1:]}"
        return f'{{"announced":{self.announced},{how}"outcome":{_json(self.outcome)}{after}"stream":{stream}{last}}}\n'


def _json(value: Any) -> str:
    return encode_basestring(value) if type(value) is str else canonical(value).decode()


class Event(NamedTuple):
    """A recorded event."""

    stream: str
    seq: int
    kind: str
    payload: dict[str, Any]
    plain: bool = False
    """Whether no text in it holds an escape."""
    refers: bool = True
    """Whether it may refer to values beside it."""
    at: int = 0
    """Microseconds since the Unix epoch."""


class Ledger:
    """Every call, what it was announced as, and how it ended; streams come one after the other."""

    KINDS = frozenset(("job_forked", *_BEGINS, *_FINISHES))
    """The kinds of events that it is made of."""
    FACTS = dict.fromkeys((*_BEGINS, *_FINISHES), frozenset((*_FACTS, *_HOW, "args", "args_blob")))
    """By kind, the members that count of the frequent ones, in it and for the values beside them."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        """Hand the lines of ledger.ndjson to `write`, stream by stream."""
        self.pending: list[str] = []
        """Calls without an outcome, of the streams that ended."""
        self.forks: dict[tuple[str, int], str] = {}
        """The chain values of the events after which forks begin, by stream and number."""
        self._write = write
        self._stream = ""
        self._begin("")

    def _begin(self, stream: str) -> None:
        self._stream = stream
        self._calls: dict[str, _Call] = {}
        """By invocation."""
        self._keys: dict[str, str] = {}
        """The idempotency key of the last attempt at each step."""
        self._earlier: dict[str, set[str]] = {}
        """Those of the attempts before it, where they differ: a later attempt keeps one of all."""
        self._taken_until: float = 0
        """The last event that was recorded by another job, or changed."""
        self._shares = False
        """Whether it continues the events of another job, which are in that job's stream."""

    def end(self) -> None:
        """Write what is known of the stream."""
        stream = _json(self._stream)
        self._write("".join([call.text(stream) for call in self._calls.values()]).encode())
        self.pending += [invocation for invocation, call in self._calls.items() if call.outcome == "unknown"]
        self._begin("")

    def take(self, event: Event) -> None:
        """Take in an event of one of KINDS. Raise RejectedError if it contradicts those before."""
        if event.stream != self._stream:
            self.end()
            self._begin(event.stream)
        if event.kind in _BEGINS:
            self._announce(event)
        elif event.kind in _FINISHES:
            self._finish(event)
        else:
            self._fork(event)

    def _finish(self, event: Event) -> None:
        payload = event.payload
        if invocation := payload.get("invocation_id", ""):
            call = self._calls.get(invocation)
            if call is None and self._shares:
                return
            if call is None or call.step != payload.get("step", ""):
                raise RejectedError(
                    "event_contradicted", f"{event.stream}: {invocation} ended, and was not announced there"
                )
            call.ended, call.outcome = event.seq, payload.get("outcome", "success")
            if payload.get("step_outcome") == "uncertain" or payload.get("uncertain"):
                call.outcome = "unknown"

    def _fork(self, event: Event) -> None:
        payload = event.payload
        if payload.get("shared"):
            self._taken_until = event.seq + payload.get("changes", 0)
            self._shares = True
            self.forks[f"job/{payload['job']}", payload["seq"]] = payload["hash"]
        else:
            self._taken_until = event.seq + (payload.get("taken") or float("inf"))

    def _announce(self, event: Event) -> None:
        payload = event.payload
        invocation = payload.get("invocation_id", "")
        if event.kind == "tool_invocation_started":
            self._check_key(event)
        if invocation in self._calls:
            raise RejectedError("event_contradicted", f"{event.stream}: {invocation} was announced twice")
        self._calls[invocation] = _Call(event)

    def _check_key(self, event: Event) -> None:
        """Check a key against stream, step, tool and arguments. Raise RejectedError."""
        call = event.payload
        step, key = call["step"], call.get("idempotency_key", "")
        text = "\0".join((event.stream, step, call["tool_name"], call.get("arguments_hash", "")))
        last = self._keys.get(step, "")
        if last and last != key:
            self._earlier.setdefault(step, set()).add(last)
        self._keys[step] = key
        if not key or key == last:
            return
        own = event.seq > self._taken_until and not (self._shares and call.get("attempt", 1) > 1)
        is_known = step in self._earlier and key in self._earlier[step]
        if own and not is_known and key != hashlib.sha256(text.encode()).hexdigest():
            why = f"{event.stream}: event {event.seq}: idempotency_key is not that of its call"
            raise RejectedError("event_contradicted", why)
