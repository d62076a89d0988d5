"""Agent Evidence Level (AEL) v0.1: two runs, of decisions and of events, and one for each trace of calls over MCP.

Decisions stand in a run of their own because each record there says what it was decided from, so that all of the run
can be decided again. So do calls that leave for an MCP server, or came with a caller's trace: recorders on both sides
of that boundary name the run by the trace, and each call by the caller's span, without asking each other. A level is
what a checker grants, never what stands in here.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from remit.audit.formats.account import Account, Entry
from remit.audit.formats.keys import Signer
from remit.audit.formats.table import DECISIONS, EVENTS, REMEMBERED, person_of
from remit.audit.sessions import Beat, Session
from remit.canonical import canonical, sha256
from remit.clock import isoformat
from remit.journal import kinds as k

ZERO: Final = "0" * 64
"""The predecessor of a first record."""
_encode: Final = msgspec.json.Encoder(order="sorted").encode
"""Writes the canonical form of what a record is made of: names in ASCII, texts, whole numbers and booleans."""
TRACE: Final = "trace/"
"""The names of runs of traces begin so."""
_MCP: Final = "mcp."
_PARENT: Final = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_STRANGE: Final = re.compile("[^A-Za-z0-9._-]")
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")

_Beats = list[tuple[Beat, list[Entry]]]
"""Checkpoints, each with the events that it covers first."""
_Covered = tuple[Session, _Beats]


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
_POLICY_HASH: Final = sha256(canonical(POLICY)).removeprefix("sha256:")


def write(account: Account, signer: Signer) -> dict[str, bytes]:
    """Return the files of the artifact: two runs a session of a recorder, one a trace, and two for what none covers."""
    covered, rest = list[_Covered](), account.in_time()
    for session in account.sessions:
        beats, rest = _covered(session, rest)
        covered.append((session, beats))
    runs = list[_Run]()
    for one in covered:
        for kind in (DECISIONS, EVENTS) if any(entries for _, entries in one[1]) else ():
            run = _Run(f"{one[0].stream}:{kind}", f"{one[0].stream}-{kind}", signer, account)
            run.write_sessions([one], partial(_is_of, kind))
            runs.append(run)
    for trace, those in _traces(covered).items():
        run = _Run(f"{TRACE}{trace}", f"trace-{trace}-{those[0][0].origin}", signer, account)
        run.write_sessions(those, partial(_is_in, trace))
        runs.append(run)
    for kind in (DECISIONS, EVENTS) if rest or not runs else ():
        run = _Run(f"{account.scope}:{kind}", f"{account.scope}-{kind}", signer, account)
        run.write_unsigned([entry for entry in rest if entry.row.run == kind], rest)
        runs.append(run)
    manifest = {
        "ael_format": 1,
        "runs": [run.name for run in runs],
        "recorders": [
            {"id": run.recorder, "run": run.name, "key": signer.name, "file": f"recorders/{run.recorder}.jsonl"}
            for run in runs
        ],
        "coverage": "mediated-only",
        "custody": "same-process",
    }
    return {
        "manifest.json": canonical(manifest),
        f"policy/{_POLICY_HASH}.json": canonical(POLICY),
        **{f"recorders/{run.recorder}.jsonl": b"".join(run.lines) for run in runs},
    }


class Span(NamedTuple):
    """The name of a call over MCP on both sides of the boundary (W3C Trace Context): the caller's trace and span."""

    trace: str
    id: str


def span_of(entry: Entry) -> Span | None:
    """Return the name of a call that came with a caller's trace, or left for an MCP server; None: it did neither."""
    call = entry.payload
    if not isinstance(call, k.ToolInvocationStarted):
        return None
    if parent := _PARENT.fullmatch(call.client.get("traceparent", "")):
        return Span(*parent.groups())
    return Span(call.trace_id, call.span_id) if call.tool_name.startswith(_MCP) and call.span_id else None


def _is_of(kind: str, entry: Entry) -> bool:
    return entry.row.run == kind and span_of(entry) is None


def _is_in(trace: str, entry: Entry) -> bool:
    span = span_of(entry)
    return span is not None and span.trace == trace


def _traces(covered: Sequence[_Covered]) -> dict[str, Sequence[_Covered]]:
    """Return by trace the sessions from the first to the last that cover a call of it."""
    places: dict[str, list[int]] = {}
    for place, (_, beats) in enumerate(covered):
        for span in filter(None, (span_of(entry) for _, entries in beats for entry in entries)):
            places.setdefault(span.trace, []).append(place)
    return {trace: covered[found[0] : found[-1] + 1] for trace, found in places.items()}


def _covered(session: Session, entries: Sequence[Entry]) -> tuple[_Beats, list[Entry]]:
    """Divide events into those that each checkpoint was the first to cover while they were made, and the rest."""
    beats, rest = list[tuple[Beat, list[Entry]]](), list(entries)
    for beat in session.beats:
        live, ends = (rest if beat.ends else ()), {stream: end.seq for stream, end in beat.ends.items()}
        taken = [one for one in live if session.began <= one.at and one.seq <= ends.get(one.stream, 0)]
        if taken:
            places = {one.place for one in taken}
            rest = [one for one in rest if one.place not in places]
        beats.append((beat, taken))
    return beats, rest


class _Run:
    """One run, by one recorder: lines that follow one another."""

    def __init__(self, name: str, recorder: str, signer: Signer, account: Account) -> None:
        self.name, self.recorder = name, _STRANGE.sub("-", recorder)
        self.lines: list[bytes] = []
        self._signer, self._account = signer, account
        self._prev, self._ts = ZERO, 0

    def write_sessions(self, covered: Sequence[_Covered], takes: Callable[[Entry], bool]) -> None:
        """Write a run in which each heartbeat is a checkpoint that was signed then; closed if the last session was."""
        first, last = covered[0][0], covered[-1][0]
        late = 2 * first.seconds  # after three times its interval, another process takes over
        self._add("open", first.began, {"hmax": first.seconds, "htol": late, **_ext({"key": first.key})})
        for _, beats in covered:
            for beat, entries in beats:
                self._add_all(filter(takes, entries))
                self._add("heartbeat", beat.at, _ext(beat.signed))
        if last.closed is not None:
            self._close(last.closed)

    def write_unsigned(self, entries: Sequence[Entry], rest: Sequence[Entry]) -> None:
        """Write a run without heartbeats, for none was signed while `rest` happened; closed if the job has ended."""
        begins, ended = (rest or self._account.entries)[0], self._account.endings.get(self._account.scope)
        self._add("open", begins.at, {"hmax": 0, "htol": 0})
        self._add_all(entries)
        if ended is not None:
            self._close(max(entry.at for entry in rest or [ended]))

    def _add_all(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._add("activity", entry.at, _activity(self._account, entry, self.name))

    def _close(self, at: int) -> None:
        self._add("close", at, {"count": len(self.lines) + 1, "head": self._prev})

    def _add(self, kind: str, at: int, members: dict[str, Any]) -> None:
        if at < self._ts:  # a clock went back, and times of a run must not: the record says what was recorded
            members |= _ext({**members.get("ext", {}).get("remit", {}), "at": isoformat(at)})
        self._ts = max(at, self._ts)
        record = {
            "v": 1, "type": kind, "run": self.name, "recorder": self.recorder, "key": self._signer.name,
            "seq": len(self.lines), "prev": self._prev, "ts": isoformat(self._ts), **members,
        }  # fmt: skip
        payload = _encode(record)
        self._prev = sha256(payload).removeprefix("sha256:")
        self.lines.append(b".".join((_b64(payload), _b64(self._signer.sign(payload)))) + b"\n")


def _ext(members: dict[str, Any]) -> dict[str, Any]:
    return {"ext": {"remit": members}}


def _b64(data: bytes) -> bytes:
    return binascii.b2a_base64(data, newline=False).translate(_URL_SAFE, b"=")


def _activity(account: Account, entry: Entry, run: str) -> dict[str, Any]:
    payload, row, span = entry.payload, entry.row, span_of(entry) if run.startswith(TRACE) else None
    ext: dict[str, Any] = {"stream": entry.stream, "seq": entry.seq, "kind": entry.kind, "chain": entry.chain}
    if isinstance(payload, k.ToolInvocationStarted | k.CommandStarted):
        ext |= {"attempt": payload.attempt, "idempotency_key": payload.idempotency_key}
        if account.outcome(entry) is None:
            ext["outcome"] = "unknown"
    if isinstance(payload, k.ToolInvocationStarted | k.GateRefused):
        ext["arguments"] = account.state_of(payload.args, payload.args_blob)
    if policy := getattr(payload, "policy_hash", ""):
        ext["policy"] = policy
    ident = getattr(payload, "invocation_id", "") or entry.place
    if span is not None:
        ident, ext["invocation"] = span.id, ident
    members = {"event": {"class": row.name, "id": ident, "dir": row.direction}, "ext": {"remit": ext}}
    if row.run == DECISIONS:
        verdict, inputs = decision_of(account, entry)
        request = account.digest(entry) or getattr(payload, "digest", "") * (entry.root not in account.salted)
        members["decision"] = {
            "policy": _POLICY_HASH, "request_fp": request or entry.place, "inputs": inputs, "verdict": verdict,
        }  # fmt: skip
    return members


def decision_of(account: Account, entry: Entry) -> tuple[str, dict[str, str | bool | int]]:
    """Return the verdict of a decision in AEL's words, and what it follows from by `POLICY`."""
    inputs: dict[str, str | bool | int]
    match entry.payload:
        case k.ToolInvocationStarted() | k.CommandStarted() as call:
            inputs = {"effect": "allow", "rule": call.rule_id}
            if call.confirmation:
                inputs |= {"effect": "ask", "person": "approved", "confirmation": call.confirmation}
            elif entry.row.case == "remembered":
                inputs |= {"effect": "ask", "person": "approved", "remembered": call.rule_id.removeprefix(REMEMBERED)}
        case k.GateRefused() as refused:
            inputs = {"refused": True, "code": refused.code, "rule": refused.rule_id}
            if person := person_of(refused):
                inputs |= {"effect": "ask", "person": person}
            elif entry.row.case in {"policy", "limit"}:
                inputs["effect"] = "deny"
            else:
                inputs["stage"] = refused.stage
        case k.ConfirmationRequested() as asked:
            inputs = {"effect": "ask", "person": "asked", "rule": asked.rule_id}
        case k.ConfirmationDecided() as answer:
            inputs = _answer(account, entry, answer)
        case _:
            raise AssertionError(f"{entry.kind} stands among decisions in the table")
    return derive(POLICY, inputs), inputs


def _answer(account: Account, entry: Entry, answer: k.ConfirmationDecided) -> dict[str, str | bool | int]:
    inputs: dict[str, str | bool | int] = {"answer": answer.decision, "by": answer.by, "proof": answer.proof or "none"}
    asked = account.questions.get(answer.confirmation)
    if asked is None or not isinstance(asked.payload, k.ConfirmationRequested):
        return inputs
    question = asked.payload
    if answer.decision == "approve":
        approvers = [
            given.payload.by
            for given in account.answers[answer.confirmation]
            if isinstance(given.payload, k.ConfirmationDecided)
            and given.payload.decision == "approve"
            and given.seq <= entry.seq
        ]
        inputs |= {
            "answer": "approve" if len(set(approvers)) >= question.approvals else "approve_in_part",
            "digest_same": answer.digest == question.digest,
            "may_decide": not question.approvers or answer.by in question.approvers,
            "in_time": question.expires_at is None or entry.at < question.expires_at,
        }
    return inputs


def derive(policy: Mapping[str, Any], inputs: Mapping[str, Any]) -> str:
    """Return the verdict of an AEL policy: the first rule that matches, else the default."""
    for rule in policy["rules"]:
        when = rule["when"]
        given, value = inputs.get(when["field"]), when["value"]
        if given is not None and _matches(when["op"], given, value):
            return str(rule["verdict"])
    return str(policy["default"])


def _matches(op: str, given: Any, value: Any) -> bool:
    if op == "in":
        return any(type(given) is type(one) and given == one for one in value)
    if type(given) is not type(value):
        return False
    return bool(given == value if op == "eq" else given >= value if op == "gte" else given < value)
