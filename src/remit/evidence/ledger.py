"""The ledger: every call, what it was announced as, and how it ended; made from the events alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from remit.evidence.rejected import RejectedError
from remit.evidence.strict_json import canonical

_BEGINS = {"tool_invocation_started", "command_started"}
_ASKS = "confirmation_requested"
_FINISHES = {"tool_invocation_finished", "command_committed"}
_FACTS = (
    *("invocation_id", "step", "tool_name", "tool_version", "arguments_hash", "idempotency_key", "attempt"),
    *("principal", "rule_id", "policy_hash", "confirmation", "llm_provider", "llm_model", "prompt_hash"),
)


_COLUMNS = sorted(("stream", "announced", "ended", "outcome", "effect", "effect_by", "reported_by", *_FACTS))


def _line(row: dict[str, Any]) -> bytes:
    """Return a call as a line in canonical form; its members are few and known, which saves most of the time."""
    members = [
        f'"{name}":{encode_basestring(row[name]) if type(row[name]) is str else canonical(row[name]).decode()}'
        for name in _COLUMNS
        if name in row
    ]
    return f"{{{','.join(members)}}}\n".encode()


class LedgerEvent(NamedTuple):
    """A recorded event."""

    stream: str
    seq: int
    kind: str
    payload: dict[str, Any]
    text: str = ""
    """The payload as it was recorded."""
    at: int = 0
    """Microseconds since the Unix epoch."""


class CallLedger:
    """Every call, what it was announced as, and how it ended; streams come one after the other."""

    KINDS = frozenset(("job_forked", _ASKS, *_BEGINS, *_FINISHES))
    """The kinds of events that it is made of."""

    def __init__(self, write: Callable[[bytes], object], *, has_effects: bool = True) -> None:
        self.pending: list[str] = []
        """Calls without an outcome, of the streams that ended."""
        self.forks: dict[tuple[str, int], str] = {}
        """The chain values of the events after which forks begin, by stream and number."""
        self.questions: set[str] = set()
        """The streams of questions that callers say they wait for."""
        self._write = write
        self._has_effects = has_effects
        """Rows hold what is known of the effect of each call."""
        self._stream = ""
        self._begin("")

    def _begin(self, stream: str) -> None:
        self._stream = stream
        self._rows: dict[str, dict[str, Any]] = {}
        """The calls, by invocation."""
        self._keys: dict[str, set[str]] = {}
        """The idempotency keys of each step so far: a later attempt keeps one of them."""
        self._taken_until: float = 0
        """The last event that was recorded by another job, or changed."""
        self._shares = False
        """Whether it continues the events of another job, which are in that job's stream."""

    def end(self) -> None:
        """Write what is known of the stream."""
        self._write(b"".join([_line(row) for row in self._rows.values()]))
        self.pending += [invocation for invocation, row in self._rows.items() if row["outcome"] == "unknown"]
        self._begin("")

    def take(self, event: LedgerEvent) -> None:
        """Take in an event of one of KINDS. Raise RejectedError if it contradicts those before."""
        if event.stream != self._stream:
            self.end()
            self._begin(event.stream)
        payload = event.payload
        if event.kind == "job_forked":
            self._fork(event)
        elif event.kind in _BEGINS:
            self._announce(event)
        elif event.kind == _ASKS:
            if event.seq > self._taken_until and "/confirmation/" not in event.stream:
                self.questions.add(f"{event.stream}/confirmation/{payload['confirmation']}")
        elif invocation := payload.get("invocation_id", ""):
            row = self._rows.get(invocation)
            if row is None and self._shares:
                return
            if row is None or row.get("step", "") != payload.get("step", ""):
                raise RejectedError(
                    "event_contradicted", f"{event.stream}: {invocation} ended, and was not announced there"
                )
            reported = {name: payload[name] for name in ("reported_by",) if name in payload}
            row |= {"ended": event.seq, "outcome": payload.get("outcome", "success"), **reported}
            if payload.get("step_outcome") == "uncertain" or payload.get("uncertain"):
                row["outcome"] = "unknown"
            self._tell(row, payload.get("effect", ""), payload.get("effect_by", ""))

    def _fork(self, event: LedgerEvent) -> None:
        payload = event.payload
        if payload.get("shared"):
            self._taken_until = event.seq + payload.get("changes", 0)
            self._shares = True
            self.forks[f"job/{payload['job']}", payload["seq"]] = payload["hash"]
        else:
            self._taken_until = event.seq + (payload.get("taken") or float("inf"))

    def _announce(self, event: LedgerEvent) -> None:
        payload = event.payload
        invocation = payload.get("invocation_id", "")
        if event.kind == "tool_invocation_started":
            self._check_key(event)
        if invocation in self._rows:
            raise RejectedError("event_contradicted", f"{event.stream}: {invocation} was announced twice")
        facts = {name: payload[name] for name in _FACTS if name in payload}
        row = {"stream": event.stream, "announced": event.seq, "outcome": "unknown", **facts}
        self._rows[invocation] = row
        if payload.get("side_effect", "read") != "read":
            self._tell(row, "unknown", "remit")

    def _tell(self, row: dict[str, Any], effect: str, by: str) -> None:
        """Say what is known of an effect, as it is recorded; of a call without an end, that it is unknown (rule 3)."""
        for name in ("effect", "effect_by"):
            row.pop(name, None)
        if effect and self._has_effects:
            row |= {"effect": effect, "effect_by": by}

    def _check_key(self, event: LedgerEvent) -> None:
        """Check a key against stream, step, tool and arguments. Raise RejectedError."""
        call, earlier = event.payload, self._keys.setdefault(event.payload["step"], set())
        key = call.get("idempotency_key", "")
        parts = "\0".join((event.stream, call["step"], call["tool_name"], call.get("arguments_hash", "")))
        own = event.seq > self._taken_until and not (self._shares and call.get("attempt", 1) > 1)
        if key and own and key not in earlier and key != hashlib.sha256(parts.encode()).hexdigest():
            reason = f"{event.stream}: event {event.seq}: idempotency_key is not that of its call"
            raise RejectedError("event_contradicted", reason)
        earlier.add(key)
