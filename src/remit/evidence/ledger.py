"""The ledger: every call, what it was announced as, and how it ended; made from the events alone."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from remit.evidence.rejected import RejectedError
from remit.evidence.strict_json import canonical

_BEGINS = {"tool_invocation_started", "command_started"}
_FINISHES = {"tool_invocation_finished", "command_committed"}
_FACTS = ("invocation_id", "step", "tool_name", "tool_version", "arguments_hash", "idempotency_key", "attempt")
_ALLOWED_BY = ("principal", "rule_id", "policy_hash", "confirmation", "llm_provider", "llm_model", "prompt_hash")


class Event(NamedTuple):
    """A recorded event."""

    stream: str
    seq: int
    kind: str
    payload: dict[str, Any]


class Ledger:
    """Every call, what it was announced as, and how it ended."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], dict[str, Any]] = {}
        self._keys: dict[tuple[str, str], set[str]] = {}
        """The idempotency keys of each step so far: a later attempt keeps one of them."""
        self._taken: dict[str, float] = {}
        """By stream, the events that follow and were recorded by another job, or changed."""
        self.forks: dict[tuple[str, int], str] = {}
        """The chain values of the events after which forks begin, by stream and number."""
        self._shares: set[str] = set()
        """Streams that continue the events of another job, which are in that job's stream."""

    def take(self, event: Event) -> None:
        """Take in an event."""
        payload = event.payload
        key = (event.stream, payload.get("invocation_id", ""))
        taken = self._taken.get(event.stream, 0)
        self._taken[event.stream] = max(0, taken - 1)
        if event.kind == "job_forked" and payload.get("shared"):
            self._taken[event.stream] = payload.get("changes", 0)
            self._shares.add(event.stream)
            self.forks[f"job/{payload['job']}", payload["seq"]] = payload["hash"]
        elif event.kind == "job_forked":
            self._taken[event.stream] = payload.get("taken") or float("inf")
        elif event.kind == "tool_invocation_started":
            self._check_key(event, taken=taken > 0)
        if event.kind in _BEGINS:
            if key in self._rows:
                raise RejectedError("event_contradicted", f"{event.stream}: {key[1]} was announced twice")
            facts = {name: payload[name] for name in (*_FACTS, *_ALLOWED_BY) if name in payload}
            self._rows[key] = {"stream": event.stream, "announced": event.seq, "outcome": "unknown", **facts}
        elif event.kind in _FINISHES and key[1]:
            row = self._rows.get(key)
            if row is None and event.stream in self._shares:
                return
            if row is None or row.get("step", "") != payload.get("step", ""):
                raise RejectedError(
                    "event_contradicted", f"{event.stream}: {key[1]} ended, and was not announced there"
                )
            row |= {"ended": event.seq, "outcome": payload.get("outcome", "success")}
            if payload.get("step_outcome") == "uncertain" or payload.get("uncertain"):
                row["outcome"] = "unknown"

    def _check_key(self, event: Event, *, taken: bool) -> None:
        """Check a key against stream, step, tool and arguments. Raise RejectedError."""
        call, earlier = event.payload, self._keys.setdefault((event.stream, event.payload["step"]), set())
        key, known = call.get("idempotency_key", ""), set(earlier)
        earlier.add(key)
        parts = "\0".join((event.stream, call["step"], call["tool_name"], call.get("arguments_hash", "")))
        continued = event.stream in self._shares and call.get("attempt", 1) > 1
        if (
            key
            and not taken
            and not continued
            and key not in known
            and key != hashlib.sha256(parts.encode()).hexdigest()
        ):
            why = f"{event.stream}: event {event.seq}: idempotency_key is not that of its call"
            raise RejectedError("event_contradicted", why)

    def text(self) -> bytes:
        """Return ledger.ndjson."""
        return b"".join(canonical(row) + b"\n" for row in self._rows.values())

    @property
    def pending(self) -> list[str]:
        """The calls without an outcome."""
        return [invocation for (_, invocation), row in self._rows.items() if row["outcome"] == "unknown"]
