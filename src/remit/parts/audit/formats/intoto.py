"""in-toto's predicate AI Agent Action v0.1 (in-toto/attestation#588): a statement for each call, in DSSE envelopes.

A statement is a view of a record, and the records of a stream are a chain: `records.jsonl` holds them, in the order of
`attestations.intoto.jsonl`. `agent_action` checks both.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from remit.canonical import canonical, digest, sha256
from remit.clock import isoformat
from remit.journal import kinds as k
from remit.parts.audit.formats.account import AccountEntry, ExportAccount
from remit.parts.audit.formats.agent_action import PAYLOAD_TYPE, PREDICATE, chain_hash, envelope_message
from remit.parts.audit.formats.keys import OperatorSigner
from remit.version import __version__

ATTESTATIONS: Final = "attestations.intoto.jsonl"
RECORDS: Final = "records.jsonl"
_VERSION: Final = f"remit/{__version__}"
_TUPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "tool_call": (
        "id", "type", "timestamp", "method", "toolName", "namespace", "upstream", "principal", "durationMs", "success",
        "errorCode", "errorClass", "previousHash", "contentDigestRequest", "contentDigestResponse", "attestorVersion",
        "configHash",
    ),
    "checkpoint": ("id", "type", "timestamp", "sequence", "recordCount", "previousHash"),
    "chain_break": ("id", "type", "timestamp", "reason", "priorHead", "priorSequence", "priorRecordCount"),
}  # fmt: skip
"""The members that the attestor signs, in this order; `null` where one is not there."""
_MORE: Final = ("decisionContextDigest", "extensionsDigest", "aiInvocation", "parties")
"""Members that follow, where they are there."""
_MCP: Final = "mcp."
_ID_BYTES: Final = 128


def write(account: ExportAccount, signer: OperatorSigner) -> dict[str, bytes]:
    """Return the records and the statements of a package's calls."""
    records, envelopes = list[bytes](), list[bytes]()
    for stream in account.streams:
        chain = _Chain(account, signer, stream[0].stream)
        for entry in stream:
            chain.take(entry)
        chain.end(stream[-1])
        records += chain.records
        envelopes += chain.envelopes
    return {RECORDS: b"".join(records), ATTESTATIONS: b"".join(envelopes)}


class _Chain:
    """The records of one stream, and their statements."""

    def __init__(self, account: ExportAccount, signer: OperatorSigner, stream: str) -> None:
        self.records, self.envelopes = list[bytes](), list[bytes]()
        self._account, self._signer, self._stream = account, signer, stream
        self._root = self._head = ""
        self._since = 0
        """Records since the last break."""

    def take(self, entry: AccountEntry) -> None:
        """Add the record of an event, if it has one."""
        if entry.row.action == "tool_call":
            self._add(_call(self._account, entry, self._head or "genesis"), entry)
        elif entry.row.action == "chain_break" and self._head:
            prior = {"priorHead": self._head, "priorSequence": None, "priorRecordCount": self._since}
            self._add({**_common(entry, "chain_break"), "reason": "crash_recovery", **prior}, entry)
            self._since = 0

    def end(self, last: AccountEntry) -> None:
        """Add the checkpoint, by which records missing from the end are found out once it is kept elsewhere."""
        if self._head:
            state = {"sequence": 1, "recordCount": self._since, "previousHash": self._head}
            record = {**_common(last, "checkpoint"), "id": f"checkpoint:{self._head}", **state}
            self._add({**record, "parties": [_party(("sequence", "recordCount", "previousHash"))]}, None)

    def _add(self, record: dict[str, Any], entry: AccountEntry | None) -> None:
        record["attestation"] = self._signer.sign(_signing_form(record)).hex()
        line = canonical(record)
        self._head = chain_hash(line)
        self._root, self._since = self._root or self._head, self._since + 1
        statement = {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": self._stream, "digest": {"sha256": self._root}}],
            "predicateType": PREDICATE,
            "predicate": _predicate(record, entry),
        }
        body = canonical(statement)
        signature = base64.b64encode(self._signer.sign(envelope_message(body))).decode()
        envelope = {
            "payloadType": PAYLOAD_TYPE,
            "payload": base64.b64encode(body).decode(),
            "signatures": [{"keyid": self._signer.name, "sig": signature}],
        }
        self.records.append(line + b"\n")
        self.envelopes.append(canonical(envelope) + b"\n")


def _common(entry: AccountEntry, kind: str) -> dict[str, Any]:
    ident = getattr(entry.payload, "invocation_id", "") or entry.place
    if len(ident.encode()) > _ID_BYTES:
        ident = sha256(ident.encode())
    return {"id": ident, "type": kind, "timestamp": isoformat(entry.at)}


def _call(account: ExportAccount, entry: AccountEntry, previous: str) -> dict[str, Any]:
    """Return the record of a call that ran, or that was refused."""
    payload = entry.payload
    if not isinstance(payload, k.ToolInvocationStarted | k.GateRefused):
        raise AssertionError(f"{entry.kind} stands among calls in the table")  # noqa: TRY004 - a fault of the table
    extensions = _extensions(account, entry, payload)
    ended = account.outcome(entry)
    model = account.model(entry)
    members: dict[str, Any] = {
        "method": "tools/call",
        "toolName": payload.tool_name,
        "upstream": payload.provider_id,
        "principal": account.principal(entry),
        "configHash": payload.policy_hash.removeprefix("sha256:"),
        "decisionContextDigest": _context(payload) if entry.root not in account.salted else "",
        "aiInvocation": {"model": model.llm_model, "sessionId": entry.root} if model is not None else {},
        **_ending(payload, ended),
        **_contents(account, entry, payload, ended),
    }
    filled = {name: value for name, value in members.items() if value not in ("", {}, None)}
    scope = [*_common(entry, "tool_call"), *(name for name in filled if name != "aiInvocation"), "previousHash"]
    parties = [_party(scope)] + [{"party": "client", "role": "asserter", "scope": ["aiInvocation"]}] * (
        model is not None
    )
    return {
        **_common(entry, "tool_call"),
        **filled,
        "attestorVersion": _VERSION,
        "previousHash": previous,
        "extensions": extensions,
        "extensionsDigest": sha256(canonical(_tagged(extensions))).removeprefix("sha256:"),
        "parties": parties,
    }


def _ending(payload: k.ToolInvocationStarted | k.GateRefused, ended: AccountEntry | None) -> dict[str, Any]:
    if isinstance(payload, k.GateRefused):
        return {"durationMs": 0, "success": False, "errorClass": payload.code}
    outcome = ended.payload if ended is not None else None
    if not isinstance(outcome, k.ToolInvocationFinished) or outcome.step_outcome == "uncertain":
        return {"durationMs": 0, "success": False, "errorClass": "OUTCOME_UNKNOWN"}
    code = outcome.error.code if outcome.error is not None else ""
    return {
        "durationMs": round(outcome.duration_us / 1_000),
        "success": outcome.outcome == "success",
        "errorClass": code,
    }


def _contents(
    account: ExportAccount,
    entry: AccountEntry,
    payload: k.ToolInvocationStarted | k.GateRefused,
    ended: AccountEntry | None,
) -> dict[str, str]:
    """Return digests of what a tool of Remit's own got and gave; what an MCP server got is not kept byte for byte."""
    arguments = account.arguments(entry)
    if arguments is None or payload.tool_name.startswith(_MCP):
        return {}
    request = {"name": payload.tool_name, "arguments": msgspec.json.decode(arguments)}
    digests = {"contentDigestRequest": digest(request).removeprefix("sha256:")}
    outcome = ended.payload if ended is not None else None
    if isinstance(outcome, k.ToolInvocationFinished) and outcome.outcome == "success":
        result = account.value(outcome.result, outcome.result_blob)
        if result is not msgspec.UNSET:
            digests["contentDigestResponse"] = digest(result).removeprefix("sha256:")
    return digests


def _context(payload: k.ToolInvocationStarted | k.GateRefused) -> str:
    """Return the digest of what was decided from, beside the rules."""
    names = (
        "tool_name",
        "tool_version",
        "arguments_hash",
        "request_schema_hash",
        "principal",
        "rule_id",
        "contract_hash",
    )
    return digest({name: getattr(payload, name) for name in names}).removeprefix("sha256:")


def _extensions(
    account: ExportAccount, entry: AccountEntry, payload: k.ToolInvocationStarted | k.GateRefused
) -> dict[str, Any]:
    """Return what the predicate has no place for: the event, the transport in truth, and the approval."""
    own: dict[str, Any] = {"stream": entry.stream, "seq": entry.seq, "kind": entry.kind, "chain": entry.chain}
    own["protocol"] = "mcp" if payload.tool_name.startswith(_MCP) else "local"
    own["arguments"] = account.state_of(payload.args, payload.args_blob)
    if isinstance(payload, k.ToolInvocationStarted):
        own |= {"attempt": payload.attempt, "idempotencyKey": payload.idempotency_key}
        own |= account.effect(entry).members
    if payload.rule_id:
        own["rule"] = payload.rule_id
    if payload.confirmation:
        own["confirmation"] = payload.confirmation
        own["approvers"] = [
            answer.payload.by
            for answer in account.answers[payload.confirmation]
            if isinstance(answer.payload, k.ConfirmationDecided) and answer.payload.decision == "approve"
        ]
    return {"dev.remit": own}


def _party(scope: Any) -> dict[str, Any]:
    return {"party": "remit", "role": "witness", "scope": list(scope)}


def _predicate(record: Mapping[str, Any], entry: AccountEntry | None) -> dict[str, Any]:
    """Return the view of a record that its statement shows."""
    kind = record["type"]
    predicate: dict[str, Any] = {"action": {"type": kind, "timestamp": record["timestamp"]}}
    predicate["metadata"] = {"attestorVersion": _VERSION}
    if "parties" in record:
        predicate["parties"] = record["parties"]
    if kind == "chain_break":
        names = ("reason", "priorHead", "priorSequence", "priorRecordCount")
        predicate |= {
            "chain": {"previousHash": record["priorHead"]},
            "chainBreak": {name: record[name] for name in names},
        }
        return predicate
    predicate["chain"] = {"previousHash": record["previousHash"]}
    if kind == "checkpoint":
        predicate["checkpoint"] = {name: record[name] for name in ("sequence", "recordCount", "previousHash")}
        return predicate
    shown = ("method", "toolName", "durationMs", "success", "errorClass")
    predicate["action"] |= {"protocol": "mcp", **{name: record[name] for name in shown if name in record}}
    agent = {**record.get("aiInvocation", {}), "principal": record.get("principal")}
    predicate["agent"] = {"sessionId": entry.root if entry is not None else None, **agent}
    predicate["extensions"] = record["extensions"]
    if "upstream" in record:
        predicate["upstream"] = {"name": record["upstream"]}
    if "configHash" in record:
        predicate["metadata"]["configHash"] = record["configHash"]
    digests = {"request": record.get("contentDigestRequest"), "response": record.get("contentDigestResponse")}
    if contents := {name: {"sha256": value} for name, value in digests.items() if value}:
        predicate["contentDigest"] = contents
    return predicate


def _signing_form(record: Mapping[str, Any]) -> bytes:
    """Return the bytes that the attestor signs: an array of names and values in the order of the text."""
    pairs: list[Any] = [[name, record.get(name)] for name in _TUPLES[record["type"]]]
    for name in _MORE:
        if name in record:
            value = record[name]
            pairs.append([name, _tagged(value) if name == "aiInvocation" else value])
    return b"[%s]" % b",".join(_pair(name, value) for name, value in pairs)


def _pair(name: str, value: Any) -> bytes:
    if name == "parties":  # these members in this order, whatever their names sort to
        rows = (
            b'{"party":%s,"role":%s,"scope":%s}' % tuple(canonical(row[part]) for part in ("party", "role", "scope"))
            for row in value
        )
        return b"[%s,[%s]]" % (canonical(name), b",".join(rows))
    return canonical([name, value])


def _tagged(value: Any) -> Any:
    """Return a value with its objects and arrays tagged, so that no two values have one form."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return ["M", [[name, _tagged(value[name])] for name in names]]
    if isinstance(value, list):
        return ["L", [_tagged(item) for item in value]]
    return value
