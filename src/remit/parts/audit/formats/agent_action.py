"""The check of AI Agent Action v0.1: statements, their envelopes, and the chains of their records."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from remit.canonical import MAX_INT
from remit.evidence.answer import CheckAnswer
from remit.evidence.verify import counted
from remit.parts.audit.formats.account import FormError, canonical_of, invalid, strict, undecidable
from remit.parts.audit.formats.keys import PublicKey
from remit.regex import regex

PREDICATE: Final = "https://in-toto.io/attestation/ai-agent-action/v0.1"
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
Profile = Literal["default", "compromised-attestor-resistant"]
_DEPTH: Final = 128
_HASH: Final = regex(r"[0-9a-f]{64}")
_STRING: Final = regex(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NONCHARACTERS: Final = range(0xFDD0, 0xFDF0)
_LAST_TWO: Final = 0xFFFE
_SURROGATES: Final = range(0xD800, 0xE000)


def chain_hash(line: bytes) -> str:
    """Return the chain hash of a record: of its line, which is its canonical form."""
    return hashlib.sha256(line).hexdigest()


def envelope_message(body: bytes) -> bytes:
    """Return what a DSSE envelope signs: the type and the body, each after its length."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(body), body)


def check(envelopes: bytes, records: bytes, keys: Mapping[str, PublicKey]) -> CheckAnswer:
    """Check statements with the records that they are views of."""
    lines, statements = records.splitlines(), [opened(line, keys) for line in envelopes.splitlines()]
    if not lines and not statements:
        raise undecidable("empty", "there are no records: no tool was called")
    if len(lines) != len(statements):
        raise invalid("record-missing", "there is not one statement for each record")
    rows = [_strict(line, "a record") for line in lines]
    starts = [number for number, row in enumerate(rows) if number == 0 or _link(row) == "genesis"]
    for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
        root = _walk(lines[start:end], rows[start:end])
        for body, row in zip(statements[start:end], rows[start:end], strict=True):
            statement = _alone(body)
            _compare(statement, row, root, foreign=_is_root(rows[start]))
            _check_view(statement["predicate"]["action"], row)
        if rows[end - 1].get("type") != "checkpoint":
            raise undecidable("open-tail", "a chain has no checkpoint at its end: records may be missing")
    words = f"{counted(len(lines), 'record')}, each with its statement and signed by a key that you named"
    return CheckAnswer("valid", None, words, len(lines))


def judge(body: bytes, records: Sequence[bytes] = (), profile: Profile = "default") -> None:
    """Check a statement, of the last of `records` where there are any. Raise FormError."""
    predicate = _alone(body)
    rows = [_strict(line, "a record") for line in records]
    if not rows:
        return
    root = _walk(records, rows)
    if profile != "default" and any(map(_is_root, rows)):
        raise invalid("null-priorhead-forbidden", "a break does not say what came before it")
    _compare(predicate, rows[-1], root, foreign=_is_root(rows[0]))


def _alone(body: bytes) -> dict[str, Any]:
    """Return a statement that holds by itself."""
    statement = _strict(body, "the statement")
    action = statement.get("predicate", {}).get("action", {})
    if statement.get("predicateType") != PREDICATE or action.get("type") not in _LINKS:
        raise invalid("unknown-type", "it is no statement of AI Agent Action v0.1")
    _check_link(statement["predicate"])
    return statement


def _compare(statement: Mapping[str, Any], record: Mapping[str, Any], root: str, *, foreign: bool) -> None:
    """Check that a statement is the view of its record; `foreign`: of a chain whose beginning is lost."""
    predicate = statement["predicate"]
    if predicate.get("chain", {}).get("previousHash") != _link(record):
        raise invalid("chain-hash-mismatch", "the statement links to another record than its own does")
    if statement["subject"][0]["digest"]["sha256"] != root:
        code = "break-rooted-foreign-identifier" if foreign else "subject-not-chain-root"
        raise invalid(code, "the subject is not the first record of the chain")


def _check_view(action: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    for name in ("type", "toolName", "success", "errorClass", "timestamp"):
        if action.get(name) != record.get(name):
            raise invalid("record-mismatch", f"the statement shows another {name} than its record")


def _walk(lines: Sequence[bytes], records: Sequence[Mapping[str, Any]]) -> str:
    """Walk a chain from its root; return the root's hash. Raise FormError where it forks, or breaks."""
    links = [_link(record) for record in records]
    if links.count("genesis") > 1:
        raise invalid("duplicate-genesis", "the chain begins twice")
    if len({*links}) != len(links):
        raise invalid("chain-fork", "two records follow the same one")
    if len({record.get("id") for record in records}) != len(records):
        raise invalid("duplicate-id", "two records have the same id")
    previous = ""
    for line, record, link in zip(lines, records, links, strict=True):
        if previous and link != previous:
            raise invalid("chain-hash-mismatch", "a record does not follow the one before it")
        if canonical_of(record, "noncanonical-bytes") != line:
            raise invalid("noncanonical-bytes", "a record is not in canonical form")
        previous = chain_hash(line)
    return chain_hash(lines[0])


_LINKS: Final = {"tool_call": "previousHash", "checkpoint": "previousHash", "chain_break": "priorHead"}


def _link(record: Mapping[str, Any]) -> str | None:
    link: str | None = record.get(_LINKS.get(str(record.get("type")), "previousHash"))
    return link


def _is_root(record: Mapping[str, Any]) -> bool:
    return record.get("type") == "chain_break" and record.get("priorHead") is None


def _check_link(predicate: Mapping[str, Any]) -> None:
    kind, chain = predicate["action"]["type"], predicate.get("chain")
    if chain is None:
        if kind == "chain_break" and predicate.get("chainBreak", {}).get("priorHead") is None:
            return
        raise invalid("chain-missing", "the statement has no chain")
    link = chain.get("previousHash")
    if not isinstance(link, str) or (link != "genesis" and not _HASH.fullmatch(link)):
        raise invalid("previoushash-not-canonical", "previousHash is neither 64 hexadecimal digits nor genesis")
    for part, name in (("checkpoint", "previousHash"), ("chainBreak", "priorHead")):
        if part in predicate and predicate[part].get(name) != link:
            raise invalid("chain-hash-mismatch", f"{part} restates another head than the chain")


def opened(line: bytes, keys: Mapping[str, PublicKey]) -> bytes:
    """Return the statement in an envelope that a known key signed."""
    envelope = strict(line, "an envelope")
    try:
        body, (signature,) = base64.b64decode(envelope["payload"], validate=True), envelope["signatures"]
        signed, name = base64.b64decode(signature["sig"], validate=True), signature["keyid"]
    except (KeyError, TypeError, ValueError):
        raise undecidable("not_envelope_shape", "a line is no DSSE envelope with one signature") from None
    if envelope.get("payloadType") != PAYLOAD_TYPE:
        raise undecidable("not_envelope_shape", "an envelope holds something else than a statement")
    key = keys.get(name)
    if key is None:
        raise undecidable("unknown_kid", f"you named no key {name}: use --issuer-keys")
    if not key.verify(signed, envelope_message(body)):
        raise invalid("signature_invalid", "a signature is not over its statement")
    return body


def _strict(data: bytes, where: str) -> dict[str, Any]:
    """Return a record or a statement read as strictly as the text demands."""
    if _too_deep(data):
        raise invalid("depth-exceeded", f"{where} has more than {_DEPTH} levels")
    try:
        value = strict(data, where)
    except FormError as error:
        code = "duplicate-member" if error.answer.code == "duplicate_member" else "ill-formed-string"
        raise invalid(code, error.answer.words) from None
    if not isinstance(value, dict):
        raise invalid("not-an-object", f"{where} is not an object")
    for item in _items(value):
        _check_item(item)
    return value


def _too_deep(data: bytes) -> bool:
    if data.count(b"{") + data.count(b"[") <= _DEPTH:
        return False
    depth = deepest = 0
    for char in re.findall(rb"[{}\[\]]", _STRING.sub(b"", data)):
        depth += 1 if char in b"{[" else -1
        deepest = max(deepest, depth)
    return deepest > _DEPTH


def _items(value: Any) -> Iterator[Any]:
    yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _items(item)


def _check_item(item: Any) -> None:
    if isinstance(item, float):
        raise invalid("non-integer-in-signed-field", "a number is written with a fraction or an exponent")
    if isinstance(item, int) and not isinstance(item, bool) and abs(item) > MAX_INT:
        raise invalid("unsafe-integer", "a number is beyond 2^53 - 1")
    for text in item if isinstance(item, dict) else (item,) if isinstance(item, str) else ():
        points = [ord(char) for char in text]
        if any(point in _SURROGATES or point in _NONCHARACTERS or point & _LAST_TWO == _LAST_TWO for point in points):
            raise invalid("ill-formed-string", "a text holds half a character, or a noncharacter")
