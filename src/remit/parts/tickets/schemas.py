"""JSON Schemas of what crosses a ticket's boundary (contract: tickets, "Ticket" and "Gates").

Fields of the contract are typed; an open object says so. Each root is closed by the gate in `strict` and `warn`.

The outputs of a TOOL ticket: the context its reply is written from, and the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from remit.parts.tickets.report import MAX_REASON, STATUSES, RunReport, StepReport
from remit.parts.tickets.steps import ToolStep

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_OPEN: Final[Schema] = {"type": "object"}

EVENT: Final[Schema] = {
    "type": "object",
    "required": ["type", "thread_id", "content"],
    "properties": {
        "type": {"type": "string", "minLength": 1, "maxLength": 200},
        "thread_id": {"type": "string", "minLength": 1, "maxLength": 500},
        "content": {"type": "string", "maxLength": 1_000_000},
        "actor": {"type": "string", "maxLength": 500},
        "timestamp": {"type": ["string", "number"]},
    },
    "additionalProperties": False,
}
TOOL_POLICY: Final[Schema] = {
    "type": "object",
    "properties": {
        "max_turns": {"type": "integer", "minimum": 1},
        "web_search_strategy": _TEXT,
        "web_search_budget": {"type": "integer", "minimum": 0},
        "tool_whitelist": {"type": "array", "items": _TEXT, "maxItems": 1_000},
    },
    "additionalProperties": False,
}
STEP: Final[Schema] = {
    "type": "object",
    "required": ["tool_name"],
    "properties": {
        "tool_name": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[^.]+$"},
        "args": {"type": ["object", "null"]},
        "budget": {
            "type": ["object", "null"],
            "properties": {
                "max_steps": {"type": ["integer", "null"], "minimum": 1},
                "max_wall_ms": {"type": ["integer", "null"], "minimum": 1},
            },
            "additionalProperties": False,
        },
        "save_as": {"type": ["string", "null"]},
    },
    "additionalProperties": False,
}
TOOL_INPUT: Final[Schema] = {
    "type": "object",
    "properties": {
        "event": _OPEN,
        "triage": {},
        "tool_steps": {"type": "array", "items": STEP},
        "tool_policy": TOOL_POLICY,
        "tool_context": _OPEN,
        "tool_verdict": {},
    },
    "additionalProperties": False,
}
VERDICT: Final[Schema] = {
    "anyOf": [
        {"enum": list(STATUSES)},
        {
            "type": "object",
            "required": ["status"],
            "properties": {
                "status": {"enum": list(STATUSES)},
                "reason": {"type": "string", "maxLength": MAX_REASON},
            },
            "additionalProperties": False,
        },
    ]
}
_LIST: Final[Schema] = {"type": "array"}
TOOL_CONTEXT: Final[Schema] = {
    "type": "object",
    "properties": {
        "evidence": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["source", "snippet"],
                "properties": {"source": _TEXT, "snippet": _TEXT, "relevance_score": {"type": ["number", "null"]}},
            },
        },
        "logs_hits": _LIST,
        "graph_nodes": _LIST,
        "web_summaries": _LIST,
        "tool_trace": _LIST,
        "truncated": {"type": "boolean"},
        "turn_control": {
            "type": "object",
            "properties": {"turns_used": {"type": "integer"}, "max_turns": {"type": ["integer", "null"]}},
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}
OUTPUTS: Final[dict[str, Schema]] = {
    "TRIAGE": {
        "type": "object",
        "properties": {
            "triage": {},
            "tool_steps": {"type": "array", "items": STEP},
            "tool_policy": TOOL_POLICY,
        },
    },
    "TOOL": {
        "type": "object",
        "properties": {"tool_context": TOOL_CONTEXT, "tool_verdict": VERDICT},
    },
    "REPLY": {"type": "object", "properties": {"reply": {}, "content": _TEXT}},
}
"""The schema of the outputs of each kind of ticket."""
CREATE: Final[Schema] = {
    "type": "object",
    "required": ["type", "event"],
    "properties": {
        "type": {"enum": ["TRIAGE", "TOOL", "REPLY"]},
        "event": EVENT,
        "tool_input": TOOL_INPUT,
        "tool_steps": _LIST,
        "parent_ticket_id": _TEXT,
        "triage_ticket_id": _TEXT,
        "assigned_to": _TEXT,
        "priority": {"type": "integer"},
    },
}
"""The schema that a ticket is created from."""


SNIPPET: Final = 500
"""Characters of a piece of evidence."""
MAX_EVIDENCE: Final = 50


def outputs_of(report: RunReport, steps: Sequence[ToolStep], max_turns: int | None) -> dict[str, Any]:
    """`final_outputs` of a run (contract: tickets, "Ticket"). Evidence is quoted in short and named by its source."""
    items = report.evidence_summary.items
    return {
        "tool_context": {
            "evidence": [_evidence(item) for item in items[:MAX_EVIDENCE]],
            "logs_hits": [],
            "graph_nodes": [],
            "web_summaries": [],
            "tool_trace": [_trace(done, steps[done.step_index]) for done in report.step_reports],
            "truncated": len(items) > MAX_EVIDENCE or any(item.get("truncated") for item in items),
            "turn_control": {"turns_used": len(report.step_reports), "max_turns": max_turns},
        },
        "tool_verdict": {"status": report.tool_verdict.status, "reason": report.tool_verdict.reason},
    }


def _evidence(item: dict[str, Any]) -> dict[str, Any]:
    score = (item.get("metadata") or {}).get("relevance_score")
    return {
        "source": item["source"],
        "snippet": (item.get("inline") or "")[:SNIPPET],
        "relevance_score": score if isinstance(score, int | float) else None,
    }


def _trace(done: StepReport, step: ToolStep) -> dict[str, Any]:
    trace = {
        "tool_name": done.tool_name,
        "status": done.status,
        "code": done.code,
        "duration_ms": done.duration_ms,
        "result_summary": done.result_summary,
    }
    named = {"save_as": step.save_as, "_original_tool": step.original_tool}
    return {**trace, **{name: value for name, value in named.items() if value}}
