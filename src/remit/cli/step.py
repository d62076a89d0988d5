"""One step of a job, whole: nothing of it is cut, and what is masked says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.cli.output import clean, one_line, short
from remit.cli.question import show_rows, value_rows
from remit.cli.story import asked_lines, log_lines, untrusted_lines, waited_lines
from remit.cli.tables import fields, moment
from remit.clock import duration
from remit.redact import MASK, mask

if TYPE_CHECKING:
    from remit.cli.context import CommandState
    from remit.cli.output import OutputChannel
    from remit.record.step import StepNarrative
    from remit.record.views import StepView, TaskError


_TITLES: Final = {"tool": ("arguments", "result"), "model": ("prompt", "answer")}
"""The titles of the input and the result of each kind of step; `input` and `result` for all others."""


async def show_step(state: CommandState, reference: str, step: str) -> int:
    """Print a step; the exit status. Raises NotFoundError."""
    async with state.open(code="unused") as remit:
        job = await remit.service.jobs.find(reference)
        view = await remit.service.steps.view(job, step)
    return state.show(view, lambda state, view: _print(state.output.out, job, view, view.narrative))


def _print(out: OutputChannel, job: str, view: StepView, narrative: StepNarrative | None) -> None:
    row = view.row
    place = f"{out.style(f'step {row.step}', 'bold')} of {job}"
    out.line(f"{place}  {one_line(short(row.name))}  {out.style(row.state, row.state)}")
    fields(out, _facts(view, narrative))
    if narrative is not None:
        lines_asked = [
            line for confirmation in narrative.confirmations for line in asked_lines(confirmation, whole=True)
        ]
        confirmations = {confirmation.confirmation for confirmation in narrative.confirmations}
        waited = [
            line for confirmation in narrative.waits for line in waited_lines(confirmation, questions=confirmations)
        ]
        _section(out, "people", [(text, "") for text in lines_asked] + untrusted_lines(narrative.untrusted) + waited)
        _section(out, "attempts", [(text, "") for text in _attempts(narrative)])
        _section(out, "log", log_lines(narrative.log))
    input_title, came = _TITLES.get(row.name.partition(".")[0], ("input", "result"))
    if view.args is not None:
        _value(out, input_title, view.args)
    if view.error is not None:
        _failure(out, view.error)
    elif row.state == "ok":
        _value(out, came, view.value)
    for item in view.evidence:
        _value(out, "evidence", item)


def _facts(view: StepView, narrative: StepNarrative | None) -> list[tuple[str, str]]:
    if narrative is None:
        return []
    tool, model, effect = narrative.tool_invocation, narrative.llm_invocation, narrative.state_diff
    ended = f", ended {moment(narrative.ended_at)}" if narrative.ended_at is not None else ""
    took = f", took {duration(view.row.duration_us)}" if view.row.duration_us else ""
    facts = [
        ("began", f"{moment(narrative.started_at)}{ended}{took}"),
        ("taken from", narrative.taken_from),
        ("asked by", one_line(narrative.principal)),
        ("level", " ".join(filter(None, (narrative.capability_level, narrative.risk_level)))),
        ("rule", narrative.rule_id),
        ("policy", narrative.policy_hash),
        ("approval", narrative.approval),
    ]
    if tool is not None:
        facts += [
            ("provider", f"{tool.provider}, version {tool.version}" if tool.version else tool.provider),
            ("schema of arguments", tool.request_schema_hash),
            ("schema of result", tool.response_schema_hash),
        ]
    if model is not None:
        facts += [
            ("model", f"{model.provider} {model.model}"),
            ("took", model.words),
            ("first piece", f"after {duration(round(model.first_token_ms * 1_000))}" if model.first_token_ms else ""),
            ("prompt", model.prompt_hash),
        ]
    if effect is not None:
        facts += [("side effect", f"{effect.kind}: {effect.words}"), ("idempotency key", effect.idempotency_key)]
        facts += [("before", one_line(effect.before)), ("after", one_line(effect.after))]
    facts.append(("repaired", narrative.repaired))
    for drift in narrative.drifts:
        was, now = drift.recorded or "none", drift.current or "gone"
        facts.append(("changed since", f"{drift.words}: was {was}, is {now}"))
    return facts


def _attempts(narrative: StepNarrative) -> list[str]:
    lines = []
    for attempt in narrative.attempts:
        ended = attempt.outcome or "its end was not recorded"
        took = f" after {duration(attempt.duration_us)}" if attempt.duration_us else ""
        reason = f": {attempt.code}: {attempt.message}" if attempt.code else ""
        by = f", resolved by {attempt.decided_by}" if attempt.decided_by else ""
        again = f"; again {duration(attempt.again_ms * 1_000)} later" if attempt.again_ms else ""
        other = f"; then {attempt.next_model}" if attempt.next_model else ""
        told_of = (
            f"{attempt.number} at {moment(attempt.started_at)}{attempt.by}: {ended}{took}{by}{reason}{again}{other}"
        )
        lines.append(one_line(mask(told_of)))
    return lines


def _section(out: OutputChannel, title: str, lines: list[tuple[str, str]]) -> None:
    if lines:
        out.line("  " + out.style(title, "dim"))
    for text, style in lines:
        out.line("    " + out.style(clean(text), style))


def _failure(out: OutputChannel, error: TaskError) -> None:
    lines = [(mask(f"{error.code}: {error.message}"), "red")]
    lines += [(f"at {frame}", "") for frame in error.frames]
    lines += [(f"cause: {error.cause}", "")] if error.cause else []
    lines += [(f"-> {error.remedy}", "cyan")] if error.remedy else []
    _section(out, "error", lines)


def _value(out: OutputChannel, title: str, value: Any) -> None:
    exact = msgspec.json.encode(value).decode()
    masked = mask(exact)
    hidden = masked.count(MASK) - exact.count(MASK)
    note = f" ({hidden} masked: --json shows everything)" if hidden else ""
    out.line("  " + out.style(title + note, "dim"))
    try:
        shown = msgspec.json.decode(masked)
    except msgspec.DecodeError:  # what was masked is no JSON any more
        shown = masked
    show_rows(out, value_rows(shown, None if out.width is None else out.width - 4))
