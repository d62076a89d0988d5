"""From an outcome to what `tools/call` answers."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.tools.remote import CONTENT, META, OUTCOME

if TYPE_CHECKING:
    from remit.gateway.outcome import EvidenceItem
    from remit.record.outcome import OutcomeView
    from remit.service.streams import Streams
    from remit.service.visible import OfferedTool

_RECIPE: Final = "recipe."
"""The beginning of the names of tools that run a recipe as a job."""
_COMMAND: Final = "remit "
"""In a remedy: a command, which a model cannot run."""
_FOR_MODELS: Final[Mapping[str, str]] = {Code.INVALID_TOOL_ARGS.name: "Correct them by the tool's input schema."}
"""Remedies for models in the place of commands."""
_OF_TOOLS: Final = frozenset({Code.TOOL_EXEC_FAILED.name, Code.OUTCOME_UNKNOWN.name})
"""Codes of failures that a tool itself reports."""
_TEXT: Final = msgspec.json.Encoder().encode


async def reply_of(
    outcome: OutcomeView,
    streams: Streams,
    tool: OfferedTool | None,
    confirm: str,
    *,
    waiting: str = "error",
    result: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The result of a call of a tool. Only values of MCP servers are content, or structured without being objects.

    `confirm` is the command by which a person here decides on calls that wait; `waiting` is as `mcp.waiting`. `result`
    is the result of an MCP server as it came, if it came just now: it is passed on whole, unless Remit refused it.
    """
    if result is not None and _is_theirs(outcome, result):
        facts = {"invocation": outcome.invocation_id} if outcome.ok else _told(outcome, outcome.remedy)
        meta = {**result.get("_meta", {}), OUTCOME: facts}
        return {"isError": False, **result, "_meta": meta}
    if not outcome.ok:
        plain = waiting == "result" and not _promises_structure(tool)
        return _failure(outcome, confirm, await _attached(outcome, streams), plain=plain)
    value, foreign = outcome.value, tool is not None and tool.definition is not None
    meta = {**await _attached(outcome, streams), OUTCOME: {"invocation": outcome.invocation_id}}
    if isinstance(value, dict) or (foreign and tool is not None and tool.output_schema is not None):
        content = await _content_beside(outcome, streams)
        if content is None:
            content = [{"type": "text", "text": _TEXT(value).decode()}]
        failed = tool is not None and tool.name.startswith(_RECIPE) and _has_failed(value)
        return {"content": content, "structuredContent": value, "isError": failed, "_meta": meta}
    blocks = value if foreign and _are_blocks(value) else [_text(value)]
    return {"content": [await _filled(block, outcome, streams) for block in blocks], "isError": False, "_meta": meta}


def _is_theirs(outcome: OutcomeView, result: Mapping[str, Any]) -> bool:
    """Return whether the outcome is the server's result: a success, or the error that the tool reports."""
    failed = result.get("isError") is True
    return outcome.ok if not failed else outcome.code in _OF_TOOLS


def _promises_structure(tool: OfferedTool | None) -> bool:
    """Return whether clients want the structure of an output schema from each result of a tool, errors excepted."""
    if tool is None or tool.output_schema is None:
        return False
    return tool.definition is not None or tool.output_schema.get("type") == "object"


def _has_failed(value: Any) -> bool:
    """Say whether the job that a call stands for ended badly; that it was started is all that the call itself says."""
    return isinstance(value, dict) and value.get("state") in {"failed", "cancelled"}


def _failure(outcome: OutcomeView, confirm: str, attached: dict[str, Any], *, plain: bool) -> dict[str, Any]:
    """A call that did not do what was asked; `plain`: one that waits is no error."""
    code = outcome.code or "FAILED"
    remedy, waits = outcome.remedy, code == Code.CONFIRMATION_REQUIRED.name
    if waits:
        remedy = (
            f"It has not run. A person decides with: {confirm} {outcome.confirmation}. Do something else meanwhile; "
            "make the same call again once you are told that it is decided, not before."
        )
    remedy_text = remedy if waits or _COMMAND not in remedy else _FOR_MODELS.get(code, "")
    text = f"{outcome.named or code}: {outcome.reason.rstrip('.')}." + (f" {remedy_text}" if remedy_text else "")
    meta = {**attached, OUTCOME: _told(outcome, remedy)}
    return {"content": [{"type": "text", "text": text}], "isError": not (plain and waits), "_meta": meta}


def _told(outcome: OutcomeView, remedy: str) -> dict[str, Any]:
    """Return what programs are told of an outcome that is not ok; the remedy is for the people behind them."""
    facts = {
        "status": outcome.status,
        "code": outcome.code or "FAILED",
        "remedy": remedy,
        "cause": outcome.cause,
        "confirmation": outcome.confirmation,
        "invocation": outcome.invocation_id,
        "uncertain": outcome.uncertain or None,
        "effect": outcome.effect or ("none" if outcome.status == "pending" else None),
    }
    return {name: value for name, value in facts.items() if value}


def _text(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value if isinstance(value, str) else _TEXT(value).decode()}


def _are_blocks(value: Any) -> bool:
    """Return whether a value is content as an MCP server gave it."""
    return isinstance(value, list) and all(
        isinstance(each, dict) and isinstance(each.get("type"), str) for each in value
    )


async def _content_beside(outcome: OutcomeView, streams: Streams) -> list[dict[str, Any]] | None:
    """The blocks that stood beside the structured content, where they said something else and were kept."""
    for item in outcome.evidence:
        if item.kind == CONTENT:
            encoded = await _bytes_of(item, streams)
            if encoded is not None:
                return [await _filled(block, outcome, streams) for block in msgspec.json.decode(encoded)]
    return None


async def _attached(outcome: OutcomeView, streams: Streams) -> dict[str, Any]:
    """Return what the server attached to its result, if it was kept."""
    item = next((item for item in outcome.evidence if item.kind == META), None)
    encoded = await _bytes_of(item, streams) if item is not None else None
    return msgspec.json.decode(encoded, type=dict[str, Any]) if encoded is not None else {}


async def _filled(block: dict[str, Any], outcome: OutcomeView, streams: Streams) -> dict[str, Any]:
    """A block with its bytes again, or a text in its place where they were not kept."""
    resource = block.get("resource")
    part, field = (resource, "blob") if isinstance(resource, dict) else (block, "data")
    digest = part.get("digest")
    if not isinstance(digest, str) or field in part:
        return block
    item = next((each for each in outcome.evidence if each.hash == digest), None)
    data = await _bytes_of(item, streams) if item is not None else None
    if data is None:
        size = part.get("size")
        return _text(f"[{part.get('mimeType', 'content')} of {size} bytes was not kept: see evidence.raw_limit_bytes]")
    rest = {name: value for name, value in part.items() if name not in {"digest", "size"}}
    whole = {**rest, field: base64.b64encode(data).decode()}
    return whole if part is block else {**block, "resource": whole}


async def _bytes_of(item: EvidenceItem, streams: Streams) -> bytes | None:
    if item.inline is not None:
        return item.inline.encode()
    return await streams.kept(item.raw_pointer) if item.raw_pointer else None
