"""Agent Evidence Level (AEL) v0.1: two runs, of decisions and of events, and their check.

Decisions stand in a run of their own because each record there says what it was decided from, so that all of the run
can be decided again. A level is what a checker grants, never what stands in here.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

import msgspec

from remit.audit.formats.account import Account, Entry
from remit.audit.formats.bundle import Bundle
from remit.audit.formats.fault import canonical_of, invalid, strict, undecidable
from remit.audit.formats.keys import PublicKey, Signer, instant
from remit.audit.formats.table import DECISIONS, EVENTS, REMEMBERED, person_of
from remit.audit.sessions import Beat, Session
from remit.canonical import canonical, sha256
from remit.clock import isoformat
from remit.evidence.answer import Answer
from remit.evidence.verify import counted
from remit.journal import kinds as k

_ZERO: Final = "0" * 64
_encode: Final = msgspec.json.Encoder(order="sorted").encode
"""Writes the canonical form of what a record is made of: names in ASCII, texts, whole numbers and booleans."""
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_LINE: Final = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_COMMON: Final = frozenset({"v", "type", "run", "recorder", "key", "seq", "prev", "ts"})
_OWN: Final[dict[str, tuple[frozenset[str], frozenset[str]]]] = {
    "open": (frozenset({"hmax", "htol"}), frozenset({"cp_nonce"})),
    "activity": (frozenset({"event"}), frozenset({"decision"})),
    "heartbeat": (frozenset(), frozenset()),
    "close": (frozenset({"count", "head"}), frozenset()),
}
"""By type, the fields that a record must have beside the common ones, and those that it may have."""


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
    """Return the files of the artifact: two runs for each session of a recorder, and two for what none covers."""
    runs = list[_Run]()
    rest = account.in_time()
    for session in account.sessions:
        beats, rest = _covered(session, rest)
        if any(entries for _, entries in beats):
            runs += [_Run(session.stream, name, signer, account) for name in (DECISIONS, EVENTS)]
            for run in runs[-2:]:
                run.write_session(session, beats)
    if rest or not runs:
        runs += [_Run(account.scope, name, signer, account) for name in (DECISIONS, EVENTS)]
        for run in runs[-2:]:
            run.write_unsigned(rest)
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


def _covered(session: Session, entries: Sequence[Entry]) -> tuple[list[tuple[Beat, list[Entry]]], list[Entry]]:
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

    def __init__(self, subject: str, kind: str, signer: Signer, account: Account) -> None:
        self.name, self.recorder = f"{subject}:{kind}", f"{subject.replace('/', '-')}-{kind}"
        self.lines: list[bytes] = []
        self._kind, self._signer, self._account = kind, signer, account
        self._prev, self._ts = _ZERO, 0

    def write_session(self, session: Session, beats: Sequence[tuple[Beat, Sequence[Entry]]]) -> None:
        """Write a run in which each heartbeat is a checkpoint that was signed then; closed if the session was."""
        late = 2 * session.seconds  # after three times its interval, another process takes over
        self._add("open", session.began, {"hmax": session.seconds, "htol": late, **_ext({"key": session.key})})
        for beat, entries in beats:
            self._add_all(entries)
            self._add("heartbeat", beat.at, _ext(beat.signed))
        if session.closed is not None:
            self._close(session.closed)

    def write_unsigned(self, entries: Sequence[Entry]) -> None:
        """Write a run without heartbeats, for none was signed while it happened; closed if the job has ended."""
        begins, ended = (entries or self._account.entries)[0], self._account.endings.get(self._account.scope)
        self._add("open", begins.at, {"hmax": 0, "htol": 0})
        self._add_all(entries)
        if ended is not None:
            self._close(max(entry.at for entry in entries or [ended]))

    def _add_all(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.row.run == self._kind:
                self._add("activity", entry.at, _activity(self._account, entry))

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


def _activity(account: Account, entry: Entry) -> dict[str, Any]:
    payload, row = entry.payload, entry.row
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


# --- the check


def check(bundle: Bundle, keys: Mapping[str, PublicKey]) -> Answer:
    """Check each run: signatures, form, order, ends, heartbeats and decisions. It grants no level."""
    manifest = strict(bundle.read("manifest.json"), "manifest.json")
    if (
        bundle.has("anchors.json")
        or bundle.has("counterparty.jsonl")
        or len({*manifest["runs"]}) < len(manifest["runs"])
    ):
        raise undecidable("not_checked_here", "it has anchors or a counterparty: use the reference checker")
    count, runs = 0, [row["run"] for row in manifest["recorders"]]
    if len(set(runs)) != len(runs) or set(runs) != set(manifest["runs"]):
        raise undecidable("not_checked_here", "a run has several recorders, or none: use the reference checker")
    for row in manifest["recorders"]:
        records = _records(bundle.read(row["file"]), row, keys)
        _check_order(records, row)
        _check_liveness(records)
        _check_decisions(records, bundle)
        count += len(records)
    words = f"{counted(count, 'record')} in {counted(len(runs), 'run')}; a level is for AEL's own checker to grant"
    return Answer("valid", None, words, count)


def _records(data: bytes, row: Mapping[str, Any], keys: Mapping[str, PublicKey]) -> list[tuple[dict[str, Any], str]]:
    """Return the records of a recorder, each with the hash of its bytes."""
    records = []
    for line in data.decode("ascii", "replace").splitlines():
        parts = _LINE.fullmatch(line)
        if parts is None:
            raise invalid("a", "a line is not PAYLOAD.SIGNATURE")
        payload, signature = (base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in parts.groups())
        try:
            name = str(msgspec.json.decode(payload)["key"])
        except (msgspec.DecodeError, KeyError, TypeError):
            raise invalid("a", "a record cannot be read") from None
        key = keys.get(name)
        if key is None:
            raise undecidable("a", f"you named no key {name}: use --issuer-keys")
        if not key.verify(signature, payload):
            raise invalid("a", "a signature is not over its record")
        record = strict(payload, "a record", "b")
        if canonical_of(record, "b") != payload:
            raise invalid("b", "a record is not in canonical form")
        _check_fields(record)
        if row.get("key", record["key"]) != record["key"]:
            raise invalid("l", "the manifest names another key than the records")
        records.append((record, sha256(payload).removeprefix("sha256:")))
    if not records:
        raise invalid("a", "a recorder has no records")
    return records


def _check_fields(record: Mapping[str, Any]) -> None:
    needs, may = _OWN.get(str(record.get("type")), (frozenset({"type"}), frozenset()))
    wanted = _COMMON | needs
    if not wanted <= record.keys() or record.keys() - wanted - may - {"ext"}:
        raise invalid("w", "a record lacks a field, or has one more")


def _check_order(records: Sequence[tuple[dict[str, Any], str]], row: Mapping[str, Any]) -> None:
    prev, earlier = _ZERO, -1
    for number, (record, name) in enumerate(records):
        if record["run"] != row["run"] or record["recorder"] != row["id"] or record["seq"] <= earlier:
            raise invalid("d", "a record is of another run or recorder, or out of order")
        if record["prev"] != prev:
            raise invalid("e", "a record does not follow the one before it")
        if record["seq"] != number:
            raise invalid("g", "the numbers of records have a gap")
        prev, earlier = name, record["seq"]


def _check_liveness(records: Sequence[tuple[dict[str, Any], str]]) -> None:
    opened, last = records[0][0], records[-1][0]
    if opened["type"] != "open":
        raise invalid("f", "the first record does not open the run")
    if last["type"] == "close" and (last["count"] != len(records) or last["head"] != records[-2][1]):
        raise invalid("i", "the close names another number of records, or another head")
    limit = timedelta(seconds=opened["hmax"] + opened["htol"]) if opened["hmax"] else None
    times = [instant(record["ts"]) for record, _ in records]
    for earlier, later in pairwise(times):
        if earlier is None or later is None or later < earlier:
            raise invalid("h", "a time goes back, or is not a time")
        if limit is not None and later - earlier > limit:
            raise invalid("h", "more time lies between two records than the run says")
    if limit is not None and last["type"] != "close":
        raise invalid("j", "the run says that it ends with a close, and does not")
    if limit is not None and not any(record["type"] == "heartbeat" for record, _ in records):
        raise invalid("h", "no heartbeat is signed")


def _check_decisions(records: Sequence[tuple[dict[str, Any], str]], bundle: Bundle) -> None:
    for record, _ in records:
        decision = record.get("decision")
        if decision is None:
            continue
        place = f"policy/{decision['policy']}.json"
        if not bundle.has(place):
            raise undecidable("R", "a policy that a decision names is not in the artifact")
        text = bundle.read(place)
        if (
            sha256(text) != f"sha256:{decision['policy']}"
            or derive(strict(text, place), decision["inputs"]) != decision["verdict"]
        ):
            raise invalid("R", "a verdict does not follow from its inputs")
