"""Signed decision receipts in the envelope shape of draft-farley-acta-signed-receipts-03, and their check.

A receipt a line. The receipts of a stream are a chain: each but the first names the one before it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from remit.canonical import canonical, digest
from remit.clock import isoformat
from remit.evidence.answer import CheckAnswer
from remit.evidence.verify import counted
from remit.journal import kinds as k
from remit.parts.audit.formats.account import (
    AccountEntry,
    ExportAccount,
    FormError,
    canonical_of,
    invalid,
    strict,
    undecidable,
)
from remit.parts.audit.formats.keys import SIGNATURE_BYTES, OperatorSigner, PublicKey, instant
from remit.parts.audit.formats.table import DECISION, LIFECYCLE

CONTEXT: Final = "AEV_RECEIPT_CONTEXT"
"""The environment variable that names the chain before a receipt: of the contract for verifiers of its corpus."""
_SIGNATURE: Final = {"alg", "kid", "sig"}


def write(account: ExportAccount, signer: OperatorSigner) -> Iterator[bytes]:
    """Give the receipts of a package, a line each."""
    for stream in account.streams:
        previous = ""
        for entry in stream:
            if not entry.row.receipt:
                continue
            payload = {
                **_members(account, entry),
                "type": _type(entry),
                "issued_at": isoformat(entry.at),
                "issuer_id": signer.name,
                "session_id": entry.root,
                "remit": {"stream": entry.stream, "seq": entry.seq, "kind": entry.kind, "chain": entry.chain},
                **({"previousReceiptHash": previous} if previous else {}),
            }
            signature = {"alg": "EdDSA", "kid": signer.name, "sig": signer.sign(canonical(payload)).hex()}
            receipt = {"payload": payload, "signature": signature}
            previous = digest(receipt)
            yield canonical(receipt) + b"\n"


def policy_digest(policy_hash: str) -> str:
    """Return the digest that receipts have of a policy: over a manifest that names the policy's canonical text."""
    file = {"name": "policy.json", "sha256": policy_hash.removeprefix("sha256:")}
    return digest({"construction": "acta-policy-digest-v1", "engine": "remit", "files": [file]})


def _type(entry: AccountEntry) -> str:
    receipt = entry.row.receipt
    return "protectmcp:decision" if receipt in DECISION else "protectmcp:lifecycle" if receipt in LIFECYCLE else receipt


def _members(account: ExportAccount, entry: AccountEntry) -> dict[str, Any]:
    lifecycle, members = entry.row.receipt, dict[str, Any]()
    match entry.payload:
        case _ if lifecycle in LIFECYCLE:
            members = {"lifecycle_event": lifecycle}
        case k.ToolInvocationStarted() | k.GateRefused() | k.ConfirmationRequested() as decided if (
            lifecycle in DECISION
        ):
            members = _decision(account, entry, decided)
        case k.ToolInvocationFinished() as ended:
            outcome = "unknown" if entry.row.case == "uncertain" else ended.outcome
            members = {"invocation_id": ended.invocation_id, "outcome": outcome}
            members |= {"tool_duration_ms": round(ended.duration_us / 1_000), **account.effect(entry).members}
        case k.ConfirmationDecided() as answer:
            shown = answer.digest if entry.root not in account.salted else ""
            members = {"confirmation": answer.confirmation, "approver": answer.by, "answer": answer.decision}
            members |= {"shown_digest": shown, "proof": answer.proof or "none"}
        case k.CommandStarted() as request:
            members = {"decision": "allow", "model": request.name, "invocation_id": request.invocation_id}
        case k.GateRefused() as refused:
            members = {"decision": "deny", "model": refused.tool_name, "reason": refused.code}
        case k.ApprovalRemembered() | k.ApprovalRevoked() as grant:
            members = {
                "grant": entry.stream.rpartition("/")[2],
                "by": grant.by,
                "holds": entry.row.name == "grant.made",
            }
        case k.SubjectErased() as erased:
            members = {"subject": erased.subject, "values": erased.values}
        case _:
            pass
    return members


def _decision(
    account: ExportAccount,
    entry: AccountEntry,
    payload: k.ToolInvocationStarted | k.GateRefused | k.ConfirmationRequested,
) -> dict[str, Any]:
    refused = payload.code if isinstance(payload, k.GateRefused) else ""
    members = {"tool_name": payload.tool_name, "decision": entry.row.receipt, "reason": refused or payload.rule_id}
    arguments = account.arguments(entry)
    if arguments is not None and (payload_hash := account.digest(entry)):
        members["payload_digest"] = {"hash": payload_hash.removeprefix("sha256:"), "size": len(arguments)}  # type: ignore[assignment]
    if payload.policy_hash:
        members |= {"policy_digest": policy_digest(payload.policy_hash), "policy_hash": payload.policy_hash}
    if payload.confirmation:
        members["confirmation"] = payload.confirmation
    if isinstance(payload, k.ToolInvocationStarted):
        members["invocation_id"] = payload.invocation_id
    return {name: value for name, value in members.items() if value}


# --- the check


def check(data: bytes, keys: Mapping[str, PublicKey]) -> CheckAnswer:
    """Check one receipt, or the receipts of a file with the chains that they are in."""
    lines = [data] if _is_one(data) else data.splitlines()
    receipts = [_envelope(line) for line in lines]
    for receipt in receipts:
        _check_one(receipt, keys)
    if len(receipts) == 1:
        _check_context(receipts[0], keys)
    _check_chains(receipts)
    if len(receipts) > 1:  # one alone is judged by itself, as other verifiers do
        _check_ends([receipt["payload"] for receipt in receipts if "remit" in receipt["payload"]])
    words = f"{counted(len(receipts), 'receipt')}, each signed by a key that you named"
    return CheckAnswer("valid", None, words, len(receipts))


def _is_one(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _envelope(data: bytes) -> dict[str, Any]:
    """Return a receipt that has the envelope's shape."""
    try:
        receipt = strict(data, "the receipt")
    except FormError as error:
        code = "payload_not_canonicalizable" if error.answer.code == "duplicate_member" else "not_envelope_shape"
        raise undecidable(code, error.answer.words) from None
    if not isinstance(receipt, dict) or receipt.keys() != {"payload", "signature"}:
        raise undecidable("not_envelope_shape", "it is not an object of payload and signature")
    signature = receipt["signature"]
    whole = isinstance(signature, dict) and signature.keys() == _SIGNATURE
    if not whole or not all(isinstance(value, str) and value for value in signature.values()):
        raise undecidable("bad_signature_object", "its signature is not an object of alg, kid and sig")
    if not isinstance(receipt["payload"], dict):
        raise undecidable("payload_not_an_object", "its payload is not an object")
    return receipt


def _check_one(receipt: dict[str, Any], keys: Mapping[str, PublicKey]) -> None:
    """Check a receipt by itself: its key comes from outside, never from the receipt."""
    payload, signature = receipt["payload"], receipt["signature"]
    if "signature" in payload:
        raise invalid("signature_in_signing_input", "its payload has a signature member")
    if not all(isinstance(payload.get(name), str) for name in ("type", "issued_at", "issuer_id")):
        raise undecidable("missing_member", "its payload lacks type, issued_at or issuer_id")
    if signature["alg"] != "EdDSA":
        raise undecidable("unsupported_alg", f"it is signed by {signature['alg']}")
    if payload["issuer_id"] != signature["kid"]:
        raise invalid("issuer_kid_mismatch", "its issuer is not whose key it names")
    key = keys.get(signature["kid"])
    if key is None or not key.point:
        reason = "bad_key" if key is not None else "unknown_kid"
        raise undecidable(reason, f"you named no Ed25519 key {signature['kid']}: use --issuer-keys")
    message = canonical_of(payload, "payload_not_canonicalizable")
    try:
        signed = bytes.fromhex(signature["sig"])
    except ValueError:
        signed = b""
    if len(signed) != SIGNATURE_BYTES or signature["sig"] != signed.hex():
        raise invalid("bad_signature_encoding", "its signature is not 64 bytes in hexadecimal")
    if not key.verify(signed, message):
        raise invalid("signature_invalid", "its signature is not over this payload")
    _check_window(payload["issued_at"], key)


def _check_window(issued: str, key: PublicKey) -> None:
    """Check the key's window: its start is in it, its end is not."""
    begins, at, ends = instant(key.begins), instant(issued), instant(key.ends)
    if at is None or (key.begins is not None and begins is None) or (key.ends is not None and ends is None):
        raise undecidable("window_not_applicable", "a time of it or of its key is no RFC 3339 time with a zone")
    if (begins is not None and at < begins) or (ends is not None and at >= ends):
        raise invalid("key_outside_validity_window", "it was issued when its key did not hold")


def _check_context(receipt: dict[str, Any], keys: Mapping[str, PublicKey]) -> None:
    """Check a receipt's place in the chain that the environment names."""
    if CONTEXT not in os.environ:
        return
    context = strict(Path(os.environ[CONTEXT]).read_bytes(), CONTEXT)
    chain = [_envelope(Path(place).read_bytes()) for place in context["chain"]]
    for element in chain:
        try:
            _check_one(element, keys)
        except FormError as error:
            raise undecidable("chain_element_not_valid", f"a receipt before it: {error}") from None
    for earlier, later in pairwise([*chain, receipt]):
        if later["payload"].get("previousReceiptHash") != digest(earlier):
            raise invalid("chain_link_mismatch", "it does not follow the receipt before it")


def _check_chains(receipts: Sequence[dict[str, Any]]) -> None:
    """Check that the receipts of each stream of a file follow one another."""
    last: dict[str, str] = {}
    for receipt in receipts if len(receipts) > 1 else ():
        stream = str((receipt["payload"].get("remit") or {}).get("stream", ""))
        if receipt["payload"].get("previousReceiptHash") != last.get(stream):
            raise invalid("chain_link_mismatch", f"a receipt of {stream} does not follow the one before it")
        last[stream] = digest(receipt)


def _check_ends(payloads: Sequence[dict[str, Any]]) -> None:
    """Check that what began has ended: receipts that are gone from the end leave no other trace."""
    events = {payload["remit"]["stream"]: payload.get("lifecycle_event") for payload in payloads}
    begun = {payload["remit"]["stream"] for payload in payloads if payload.get("lifecycle_event") == "session_start"}
    named = {payload["confirmation"] for payload in payloads if payload.get("confirmation")}
    answered = {payload.get("confirmation") for payload in payloads if payload["type"] == "dev.remit:approval"}
    if named - answered or any(events[stream] != "session_end" for stream in begun):
        raise undecidable("open-tail", "a job, a session or a question has no end here: receipts may be missing")
