"""The outputs of a TOOL ticket: the context its reply is written from, and the verdict. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from remit.tickets.report import RunReport, StepReport
from remit.tickets.steps import ToolStep

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
