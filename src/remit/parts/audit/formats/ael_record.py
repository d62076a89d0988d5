"""Records of AEL v0.1: what follows from an event, and how each stands on the one before it.

Nothing of a record is left to chance or to the moment of an export: the same events give the same bytes, so that the
hash of a record can be registered elsewhere while it is recorded.

Runs of AEL of calls over MCP: one a trace, which recorders on both sides of the boundary give the same name.

Its records follow from events and checkpoints alone. So they can be made while these are recorded, up to the newest
checkpoint, and again for an export.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from remit.canonical import canonical, sha256
from remit.clock import isoformat
from remit.journal import kinds as k
from remit.journal.kinds.people import Via
from remit.parts.audit.formats.account import AccountEntry, ExportAccount, is_salted
from remit.parts.audit.formats.table import DECISIONS, REMEMBERED, person_of
from remit.parts.audit.sessions import Beat, RecorderSession
from remit.policy.groups import may_decide
from remit.regex import regex

ZERO: Final = "0" * 64
"""The predecessor of a first record."""
_encode: Final = msgspec.json.Encoder(order="sorted").encode
"""Writes the canonical form of what a record is made of: names in ASCII, texts, whole numbers and booleans."""


def _rule(field: str, value: str | bool | int, verdict: str, op: str = "eq") -> dict[str, Any]:
    return {"when": {"field": field, "op": op, "value": value}, "verdict": verdict}


POLICY: Final[dict[str, Any]] = {
    "v": 1,
    "rules": [
        _rule("refused", value=True, verdict="block"),
        _rule("effect", "deny", "block"),
        _rule("digest_same", value=False, verdict="block"),
        _rule("may_decide", value=False, verdict="block"),
        _rule("in_time", value=False, verdict="block"),
        _rule("answer", "approve", "allow"),
        _rule("answer", "approve_in_part", "defer"),
        _rule("person", "approved", "allow"),
        _rule("person", "asked", "defer"),
        _rule("effect", "allow", "allow"),
    ],
    "default": "block",
}
"""AEL's policy: one field a rule. It says how Remit's verdict and a person's answer combine, and nothing more."""
POLICY_HASH: Final = sha256(canonical(POLICY)).removeprefix("sha256:")


class Records:
    """The records of one run by one recorder, each made as it comes: its bytes are what is signed."""

    def __init__(self, run: str, recorder: str, key: str) -> None:
        self.run, self.recorder, self._key = run, recorder, key
        self.count = 0
        self._prev, self._ts = ZERO, 0

    def open(self, at: int, session: RecorderSession | None = None) -> bytes:
        """Return the first record; without the session of a recorder it promises no heartbeats."""
        if session is None:
            return self._next("open", at, {"hmax": 0, "htol": 0})
        late = 2 * session.seconds  # after three times its interval, another process takes over
        return self._next("open", at, {"hmax": session.seconds, "htol": late, **_ext({"key": session.key})})

    def activity(self, at: int, members: dict[str, Any]) -> bytes:
        """Return the record of an event."""
        return self._next("activity", at, members)

    def heartbeat(self, beat: Beat) -> bytes:
        """Return the record of a checkpoint, with the signature that was made then."""
        return self._next("heartbeat", beat.at, _ext(beat.signed))

    def close(self, at: int) -> bytes:
        """Return the last record."""
        return self._next("close", at, {"count": self.count + 1, "head": self._prev})

    def _next(self, kind: str, at: int, members: dict[str, Any]) -> bytes:
        if at < self._ts:  # a clock went back, and times of a run must not: the record says what was recorded
            members |= _ext({**members.get("ext", {}).get("remit", {}), "at": isoformat(at)})
        self._ts = max(at, self._ts)
        record = {
            "v": 1, "type": kind, "run": self.run, "recorder": self.recorder, "key": self._key,
            "seq": self.count, "prev": self._prev, "ts": isoformat(self._ts), **members,
        }  # fmt: skip
        payload = _encode(record)
        self._prev, self.count = sha256(payload).removeprefix("sha256:"), self.count + 1
        return payload


def _ext(members: dict[str, Any]) -> dict[str, Any]:
    return {"ext": {"remit": members}}


def activity_of(account: ExportAccount, entry: AccountEntry) -> dict[str, Any]:
    """Return what the record of an event says of it, with its outcome if that is unknown."""
    payload, ext = entry.payload, place_of(entry)
    if isinstance(payload, k.ToolInvocationStarted | k.CommandStarted) and account.outcome(entry) is None:
        ext |= {"outcome": "unknown", **account.effect(entry).members}
    elif isinstance(payload, k.ToolInvocationFinished):
        ext |= account.effect(entry).members
    if isinstance(payload, k.ToolInvocationStarted | k.GateRefused):
        ext["arguments"] = account.state_of(payload.args, payload.args_blob)
    ident = getattr(payload, "invocation_id", "") or entry.place
    members = {"event": {"class": entry.row.name, "id": ident, "dir": entry.row.direction}, "ext": {"remit": ext}}
    if entry.row.run == DECISIONS:
        request = account.digest(entry) or getattr(payload, "digest", "") * (entry.root not in account.salted)
        members["decision"] = decided(decision_of(account, entry), request or entry.place)
    return members


def place_of(entry: AccountEntry) -> dict[str, Any]:
    """Return where an event stands, and what it says of itself for good."""
    payload = entry.payload
    ext: dict[str, Any] = {"stream": entry.stream, "seq": entry.seq, "kind": entry.kind, "chain": entry.chain}
    if isinstance(payload, k.ToolInvocationStarted | k.CommandStarted):
        ext |= {"attempt": payload.attempt, "idempotency_key": payload.idempotency_key}
    if policy := getattr(payload, "policy_hash", ""):
        ext["policy"] = policy
    return ext


def decided(inputs: Mapping[str, str | bool | int], request: str) -> dict[str, Any]:
    """Return the decision about a request, which follows from these inputs by `POLICY`."""
    return {"policy": POLICY_HASH, "request_fp": request, "inputs": inputs, "verdict": derive(POLICY, inputs)}


def decision_of(account: ExportAccount, entry: AccountEntry) -> dict[str, str | bool | int]:
    """Return what a decision follows from by `POLICY`."""
    inputs: dict[str, str | bool | int]
    match entry.payload:
        case k.ToolInvocationStarted() | k.CommandStarted() as call:
            inputs = permission_of(entry, call)
        case k.GateRefused() as refused:
            inputs = {"refused": True, "code": refused.code, "rule": refused.rule_id}
            if person := person_of(refused):
                inputs |= {"effect": "ask", "person": person}
            elif entry.row.case in {"policy", "limit"}:
                inputs["effect"] = "deny"
            else:
                inputs["stage"] = refused.stage
        case k.ConfirmationRequested() as question:
            inputs = {"effect": "ask", "person": "asked", "rule": question.rule_id}
        case k.ConfirmationDecided() as answer:
            inputs = _answer(account, entry, answer)
        case _:
            raise AssertionError(f"{entry.kind} stands among decisions in the table")
    return inputs


def permission_of(entry: AccountEntry, call: k.ToolInvocationStarted | k.CommandStarted) -> dict[str, str | bool | int]:
    """Return what the permission of a call follows from by `POLICY`."""
    if call.confirmation:
        return {"effect": "ask", "rule": call.rule_id, "person": "approved", "confirmation": call.confirmation}
    if entry.row.case == "remembered":
        approval = call.rule_id.removeprefix(REMEMBERED)
        return {"effect": "ask", "rule": call.rule_id, "person": "approved", "remembered": approval}
    return {"effect": "allow", "rule": call.rule_id}


def _answer(account: ExportAccount, entry: AccountEntry, answer: k.ConfirmationDecided) -> dict[str, str | bool | int]:
    inputs: dict[str, str | bool | int] = {"answer": answer.decision, "by": answer.by, "proof": answer.proof or "none"}
    request = account.questions.get(answer.confirmation)
    if request is None or not isinstance(request.payload, k.ConfirmationRequested):
        return inputs
    question, via = request.payload, answer.via or Via()
    if answer.decision == "approve":
        approvers = [
            answer_entry.payload.by
            for answer_entry in account.answers[answer.confirmation]
            if isinstance(answer_entry.payload, k.ConfirmationDecided)
            and answer_entry.payload.decision == "approve"
            and answer_entry.seq <= entry.seq
        ]
        inputs |= {
            "answer": "approve" if len(set(approvers)) >= question.approvals else "approve_in_part",
            "digest_same": answer.digest == question.digest,
            "may_decide": may_decide(question.approvers, via.instead_of or answer.by, via.groups),
            "in_time": question.expires_at is None or entry.at < question.expires_at,
        }
    return inputs


def derive(policy: Mapping[str, Any], inputs: Mapping[str, Any]) -> str:
    """Return the verdict of an AEL policy: the first rule that matches, else the default."""
    for rule in policy["rules"]:
        when = rule["when"]
        fact, value = inputs.get(when["field"]), when["value"]
        if fact is not None and _matches(when["op"], fact, value):
            return str(rule["verdict"])
    return str(policy["default"])


def _matches(op: str, argument: Any, value: Any) -> bool:
    if op == "in":
        return any(type(argument) is type(candidate) and argument == candidate for candidate in value)
    if type(argument) is not type(value):
        return False
    return bool(argument == value if op == "eq" else argument >= value if op == "gte" else argument < value)


TRACE: Final = "trace/"
"""The names of runs of traces begin so."""
_MCP: Final = "mcp."
_PARENT: Final = regex("00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
STRANGE: Final = regex("[^A-Za-z0-9._-]")
"""Characters that the name of a recorder does not hold: files are named by it."""


class CallSpan(NamedTuple):
    """The name of a call over MCP on both sides of the boundary (W3C Trace Context): the caller's trace and span."""

    trace: str
    id: str


class Stretch(NamedTuple):
    """A session of a recorder, and the calls that each of its checkpoints covers first."""

    session: RecorderSession
    beats: Sequence[tuple[Beat, Sequence[AccountEntry]]]


def span_of(entry: AccountEntry) -> CallSpan | None:
    """Return the name of a call that came with a caller's trace, or left for an MCP server; None: it did neither."""
    call = entry.payload
    if not isinstance(call, k.ToolInvocationStarted):
        return None
    if parent := _PARENT.fullmatch(call.client.get("traceparent", "")):
        return CallSpan(*parent.groups())
    return CallSpan(call.trace_id, call.span_id) if call.tool_name.startswith(_MCP) and call.span_id else None


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


def write_calls(records: Records, calls: Iterable[AccountEntry]) -> Iterator[bytes]:
    """Write the records of calls that one checkpoint covers."""
    latest: dict[str, int] = {}
    times = list[tuple[int, str, int, AccountEntry]]()
    for call in sorted(calls, key=lambda each: (each.stream, each.seq)):  # by time, but a stream stays in its order
        latest[call.stream] = max(call.at, latest.get(call.stream, 0))
        times.append((latest[call.stream], call.stream, call.seq, call))
    for _, _, _, call in sorted(times):
        yield records.activity(call.at, _members(call))


def _members(call: AccountEntry) -> dict[str, Any]:
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
