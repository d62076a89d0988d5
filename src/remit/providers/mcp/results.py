"""From a server's result to a value with evidence.

    structured content         is the value; where what people and models read says something else, that is evidence
    one text                   is the value, as text
    anything else              is the list of its blocks; an image, a sound or a file is named by its digest and kept as
                               evidence, never carried in the value (rule 10)

`isError` is a failure whose reason is the text; where another Remit says that its call is in doubt, so is this one, and
one that waits there has failed here, however that is told.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ProviderError
from remit.jsonrpc.message import REPAIRED
from remit.redact import line
from remit.tools.provider import EvidenceCandidate, ToolResult
from remit.tools.remote import ATTACHMENT, BETWEEN_US, CONTENT, META, OUTCOME

_REASON: Final = 2_000
_OF_THE_ERA: Final = ("resultType", "ttlMs", "cacheScope")
"""The members that a client's own era decides about."""


def result_of(raw: dict[str, Any], *, source: str, now: int) -> ToolResult:
    """The result of a call; `source` is the tool's full name. Raises ProviderError for a failure.

    The server has done its work: a part of another shape, or with bytes that cannot be read, is kept as a text.
    """
    content = _blocks(raw.get("content"))
    outcome = _told(raw)
    repaired = _repaired(raw)
    if raw.get("isError") is True or outcome.get("status") == "pending":
        reason = _reason(content) or "the tool reported an error without a message"
        code = Code.OUTCOME_UNKNOWN if outcome.get("uncertain") is True else None
        raise ProviderError(
            reason,
            cause=None,
            code=code,
            evidence=_attached(raw.get("_meta"), source, now),
            effect=outcome.get("effect", ""),
            repaired=repaired,
        )
    evidence: list[EvidenceCandidate] = []
    blocks = [_referred(block, evidence, source, now) for block in content]
    evidence += _attached(raw.get("_meta"), source, now)
    structured = raw.get("structuredContent")
    if structured is None:
        value: Any = blocks[0]["text"] if _is_plain_text(blocks) else blocks
        return ToolResult(value, tuple(evidence), repaired)
    if not _says_the_same(blocks, structured):
        text = msgspec.json.encode(blocks).decode()
        evidence.insert(0, EvidenceCandidate(kind=CONTENT, source=source, retrieved_at=now, text=text))
    return ToolResult(structured, tuple(evidence), repaired)


def passed_on(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A server's result as it came, for its client: what another shape would break is a text, as in `result_of`."""
    meta = raw.get("_meta")
    own = (
        {name: value for name, value in meta.items() if not name.startswith(BETWEEN_US)}
        if isinstance(meta, dict)
        else {}
    )
    rest = {name: value for name, value in raw.items() if name not in {"_meta", *_OF_THE_ERA}}
    blocks = [block if _is_readable(block) else _unreadable(block) for block in _blocks(raw.get("content"))]
    return {**rest, "content": blocks, **({"_meta": own} if own else {})}


def _is_readable(block: dict[str, Any]) -> bool:
    """Return whether the bytes of a block are base64, if it has any."""
    resource = block.get("resource")
    held = {"image": block.get("data"), "audio": block.get("data")}.get(str(block.get("type")), "")
    if block.get("type") == "resource" and isinstance(resource, dict):
        held = resource.get("blob", "")
    return _bytes_of(held) is not None


def _blocks(content: Any) -> list[dict[str, Any]]:
    parts = content if isinstance(content, list) else [] if content is None else [content]
    return [part if isinstance(part, dict) else _text(part) for part in parts]


def _text(part: Any) -> dict[str, Any]:
    return {"type": "text", "text": part if isinstance(part, str) else msgspec.json.encode(part).decode()}


def _attached(meta: Any, source: str, now: int) -> list[EvidenceCandidate]:
    """Return what the server attached for the client, as evidence; nothing if it attached nothing."""
    if not isinstance(meta, dict):
        return []
    rest = {name: value for name, value in meta.items() if not name.startswith(BETWEEN_US)}
    text = msgspec.json.encode(rest).decode()
    return [EvidenceCandidate(kind=META, source=source, retrieved_at=now, text=text)] if rest else []


def _told(raw: dict[str, Any]) -> dict[str, Any]:
    """Return what another Remit tells of the outcome of its call."""
    meta = raw.get("_meta")
    outcome = meta.get(OUTCOME) if isinstance(meta, dict) else None
    return outcome if isinstance(outcome, dict) else {}


def _repaired(raw: dict[str, Any]) -> Mapping[str, int]:
    """Return what our own reader repaired in the result."""
    meta = raw.get("_meta")
    repaired: Mapping[str, int] = meta.get(REPAIRED, {}) if isinstance(meta, dict) else {}
    return repaired


def _referred(block: dict[str, Any], evidence: list[EvidenceCandidate], source: str, now: int) -> dict[str, Any]:
    """The block with its bytes kept as evidence, and named by their digest instead."""
    match block.get("type"):
        case "image" | "audio":
            return _kept(block, "data", evidence, source, now) or _unreadable(block)
        case "resource":
            resource = block.get("resource")
            if isinstance(resource, dict) and "blob" in resource:
                kept_resource = _kept(resource, "blob", evidence, source, now)
                return {**block, "resource": kept_resource} if kept_resource is not None else _unreadable(block)
        case _:
            pass
    return block


def _unreadable(block: dict[str, Any]) -> dict[str, Any]:
    return _text(f"[{line(str(block['type']))} that cannot be read: its data is not base64]")


def _kept(
    part: dict[str, Any], field: str, evidence: list[EvidenceCandidate], source: str, now: int
) -> dict[str, Any] | None:
    """The part with its bytes kept as evidence; None if they are not base64."""
    data = _bytes_of(part.get(field))
    if data is None:
        return None
    media_type, uri = part.get("mimeType"), part.get("uri")
    metadata = {"media_type": media_type if isinstance(media_type, str) else "application/octet-stream"}
    if isinstance(uri, str):
        metadata["uri"] = uri
    evidence.append(EvidenceCandidate(kind=ATTACHMENT, source=source, retrieved_at=now, data=data, metadata=metadata))
    rest = {name: value for name, value in part.items() if name != field}
    return {**rest, "digest": sha256(data), "size": len(data)}


def _bytes_of(encoded: Any) -> bytes | None:
    try:
        return base64.b64decode(encoded or "", validate=True)
    except (binascii.Error, TypeError, ValueError):
        return None


def _is_plain_text(blocks: list[dict[str, Any]]) -> bool:
    return len(blocks) == 1 and set(blocks[0]) == {"type", "text"} and isinstance(blocks[0]["text"], str)


def _says_the_same(blocks: list[dict[str, Any]], structured: Any) -> bool:
    """Return whether the blocks are only the structured content as JSON text, as the protocol advises."""
    if not blocks:
        return True
    if not _is_plain_text(blocks):
        return False
    try:
        return bool(msgspec.json.decode(blocks[0]["text"]) == structured)
    except (msgspec.DecodeError, RecursionError):
        return False


def _reason(blocks: list[dict[str, Any]]) -> str:
    return "\n".join(_texts(blocks))[:_REASON]


def _texts(blocks: list[dict[str, Any]]) -> Iterator[str]:
    for block in blocks:
        text = block.get("text")
        if isinstance(text, str):
            yield text
