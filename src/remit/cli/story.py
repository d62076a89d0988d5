"""A narrative as text."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from remit.cli.output import clean, counted, cut, one_line, pad, short
from remit.cli.tables import clock_time, fields, moment
from remit.clock import duration
from remit.jobs.state import TURN
from remit.record.states import worker_words
from remit.redact import line
from remit.regex import regex

if TYPE_CHECKING:
    from collections.abc import Callable

    from remit.cli.output import OutputChannel
    from remit.record.step import CallLines, Drift, QuestionRecord, StepNarrative, Untrusted, Waited
    from remit.record.story import Narrative, Recovery, Segment

_HASH: Final = 12
"""Hexadecimal digits of a digest that are enough to tell two apart by eye."""
_MOST_SEGMENTS: Final = 40
_MOST_LOGGED: Final = 20
"""The newest log lines of a step that a story tells; `remit show JOB STEP` has all."""
_DECISIONS: Final = {
    "approve": "approved", "deny": "denied", "edit": "edited", "revoke": "withdrawn", "expire": "expired"
}  # fmt: skip
"""Ends of questions, in words."""
_NULL: Final = regex(r', ?"\w+": ?null|(?<=^\{)(?:"\w+": ?null(?:, ?)?)+')
"""Inputs that a job was not given, in the preview of its input."""


class StoryWriter:
    """Writes one job's story."""

    def __init__(self, out: OutputChannel, narrative: Narrative, state: str) -> None:
        self._out = out
        self._narrative = narrative
        self._state = state
        self._place = max((len(one_line(step.step)) for step in narrative.steps), default=0)
        self._name = max((len(short(step.name)) for step in narrative.steps), default=0)

    def write(self) -> None:
        """Tell who and when, the timeline, every step, and between them who took it over; the end."""
        self.head()
        self._timeline()
        self._out.line()
        narrative = self._narrative
        changes: list[tuple[int, Callable[[], None]]] = [
            *((item.started_at, partial(self.step, item)) for item in narrative.steps),
            *((item.at, partial(self.recovery, item)) for item in narrative.recoveries),
            *((item.at, partial(self.drift, item)) for item in narrative.drifts),
            *((item.since, partial(self.stuck, item)) for item in narrative.stuck),
        ]
        for _, write in sorted(changes, key=itemgetter(0)):
            write()
        self.end()

    # --- head and timeline

    def head(self) -> None:
        """Tell of the job, who began it, and when."""
        out, narrative = self._out, self._narrative
        state = f"  {out.style(self._state, self._state)}" if self._state else ""
        out.line(f"{out.style(narrative.job, 'bold')}  {one_line(narrative.name)}{state}")
        fields(
            out,
            [
                ("asked by", one_line(narrative.principal)),
                ("started by", one_line(narrative.schedule.words) if narrative.schedule else ""),
                ("retry of", one_line(narrative.retry_of)),
                ("fork of", one_line(narrative.fork_of or "")),
                ("created", moment(narrative.created_at)),
                (
                    "ended",
                    f"{moment(narrative.ended_at)}, {duration(narrative.ended_at - narrative.created_at)} later"
                    if narrative.ended_at
                    else "",
                ),
                ("code", _joined(narrative.execution_version, narrative.planner_version)),
                ("tools", _digest(narrative.tool_registry_version)),
                ("input", self._cut(_NULL.sub("", narrative.input_preview), 14)),
            ],
        )

    def _timeline(self) -> None:
        segments = self._narrative.segments
        if len(segments) < 2:  # noqa: PLR2004 - one stretch is no line
            return
        self._out.line()
        for segment in segments[:_MOST_SEGMENTS]:
            self._segment(segment)
        if len(segments) > _MOST_SEGMENTS:
            self._out.line(f"  … and {len(segments) - _MOST_SEGMENTS} more")

    def _segment(self, segment: Segment) -> None:
        took = duration(segment.until - segment.since) if segment.until is not None else "until now"
        kind = "stopped" if segment.kind == "interrupted" else segment.kind
        self._out.line(f"  {self._time(segment.since)}  {kind:<11}  {took}")

    # --- steps

    def step(self, step: StepNarrative) -> None:
        """One step, in short."""
        out = self._out
        took = self._took(step)
        name = pad(one_line(short(step.name)), self._name)
        state = out.style(step.state, step.state)
        out.line(f"  {self._time(step.started_at)}  {pad(one_line(step.step), self._place)}  {name}  {state}{took}")
        if step.taken_from:
            self._more(f"taken from {step.taken_from}, recorded {moment(step.started_at)}", "dim")
        self._continued(step)
        self._more(self._cut(step.args_preview, 6))
        if step.code:
            self._more(line(f"{step.code}: {step.reason}"), "red")
        elif step.name.startswith("wait."):
            self._more(clean(step.reason))
        self._more(self._cut(step.result_preview, 9), before="-> ")
        self._versions(step)
        for text, style in untrusted_lines(step.untrusted):
            self._more(text, style)
        for confirmation in step.confirmations:
            for text in asked_lines(confirmation):
                self._more(text)
        for waited in step.waits:
            for text, style in waited_lines(
                waited, questions={question.confirmation for question in step.confirmations}
            ):
                self._more(text, style)
        self._attempts(step)
        self._left(step)

    def _left(self, step: StepNarrative) -> None:
        for text, style in log_lines(step.log)[-_MOST_LOGGED:]:
            self._more(text, style)
        if step.evidence:
            self._more(f"{len(step.evidence)} piece{'' if len(step.evidence) == 1 else 's'} of evidence")

    def _continued(self, step: StepNarrative) -> None:
        for again in step.continued:
            self._more(
                f"made again at {clock_time(again.at)} in {again.session}, first asked in {again.asked_in}", "dim"
            )

    def _attempts(self, step: StepNarrative) -> None:
        for call in step.ungoverned:
            self._more(line(f"{call} ran ungoverned: no gate saw it"), "red")
        if len(step.attempts) > 1:
            for attempt in step.attempts:
                ended = attempt.outcome or "its end was not recorded"
                reason = f": {attempt.code}" if attempt.code else ""
                again = f", again {duration(attempt.again_ms * 1_000)} later" if attempt.again_ms else ""
                again = f", then {attempt.next_model}" if attempt.next_model else again
                begun = f"attempt {attempt.number} at {clock_time(attempt.started_at)}{line(attempt.by)}"
                self._more(f"{begun}: {ended}{reason}{again}")
        people = {waited.by for waited in step.waits if waited.decision}
        for attempt in step.attempts:
            if attempt.decided_by and attempt.decided_by not in people:
                self._more(f"{one_line(attempt.decided_by)} resolved it")
            if attempt.reported_by:
                remarks = f" ({', '.join(attempt.remarks)})" if attempt.remarks else ""
                self._more(f"as {one_line(attempt.reported_by)} reports, which made the call{remarks}", "dim")

    def _took(self, step: StepNarrative) -> str:
        if step.attempts and step.attempts[-1].duration_us:
            return f"  {duration(step.attempts[-1].duration_us)}"
        waited = step.ended_at is not None and step.ended_at - step.started_at
        return f"  {duration(waited)}" if waited and not step.attempts else ""

    def _versions(self, step: StepNarrative) -> None:
        tool, model = step.tool_invocation, step.llm_invocation
        if tool is not None:
            parts = [
                _joined(tool.provider, tool.version),
                f"schema in {_digest(tool.request_schema_hash)}" if tool.request_schema_hash else "",
                f"out {_digest(tool.response_schema_hash)}" if tool.response_schema_hash else "",
                f"rule {step.rule_id}" if step.rule_id else "",
            ]
            self._more(", ".join(filter(None, parts)), "dim")
        if model is not None:
            prompt = f"prompt {_digest(model.prompt_hash)}" if model.prompt_hash else ""
            self._more(", ".join(filter(None, (f"{model.provider} {model.model}", prompt, model.words))), "dim")
        if step.state_diff is not None:
            key = step.state_diff.idempotency_key[:_HASH]
            self._more(f"{step.state_diff.kind}: {step.state_diff.words}, key {key}", "dim")
            if step.state_diff.before:
                self._more(one_line(f"before {step.state_diff.before}, after {step.state_diff.after}"), "dim")
        if step.repaired:
            self._more(f"repaired: {step.repaired}", "dim")

    # --- between the steps, and the end

    def recovery(self, recovery: Recovery) -> None:
        """Tell who took the job over."""
        replayed = "" if recovery.replayed_steps is None else f", {counted(recovery.replayed_steps, 'step')} returned"
        after = f" after {worker_words(recovery.previous_owner)}" if recovery.previous_owner else ""
        self._out.line(f"  {self._time(recovery.at)}  taken over by {worker_words(recovery.owner)}{after}{replayed}")

    def drift(self, drift: Drift) -> None:
        """Tell what was no longer as it was recorded."""
        changed = self._out.style("changed since", "warn")
        was, now = _digest(drift.recorded) or "none", _digest(drift.current) or "gone"
        self._out.line(f"  {self._time(drift.at)}  {changed} {one_line(drift.words)}: was {was}, is {now}")

    def stuck(self, waited: Waited) -> None:
        """Tell why the code at hand could not go on."""
        for text, style in waited_lines(waited, questions=set()):
            self._out.line(f"  {self._time(waited.since)}  {self._out.style(text, style)}")

    def end(self) -> None:
        """Tell how it ended, if it has."""
        out, narrative = self._out, self._narrative
        if narrative.error is not None:
            out.line(f"  {out.style('failed', 'failed')}  {line(narrative.error.words)}")
            for frame in narrative.error.frames:
                out.line(f"          at {one_line(frame)}")
        elif self._state == "cancelled":
            out.line(f"  cancelled by {one_line(narrative.cancelled_by) or 'somebody'}")
        elif narrative.result_preview:
            out.line(f"  {out.style('result', 'dim')}  {self._cut(narrative.result_preview, 10)}")

    # --- pieces

    def _time(self, at: int) -> str:
        return self._out.style(clock_time(at), "dim")

    def _more(self, text: str, style: str = "", *, before: str = "") -> None:
        if text:
            self._out.line("      " + self._out.style(before + text, style))

    def _cut(self, text: str, before: int) -> str:
        text = one_line(text)
        width = self._out.width
        return text if width is None else cut(text, width - before)


def asked_lines(record: QuestionRecord, *, whole: bool = False) -> list[str]:
    """A question to people and every answer; digests are `whole` or shortened."""
    digest = str if whole else _digest
    lines = [f"asked at {clock_time(record.asked_at)}: {record.confirmation}, digest {digest(record.digest)}"]
    if record.edited_from:
        lines.append(f"  in place of {record.edited_from}")
    lines += [f"  {clean(event.words)}, at {clock_time(event.at)}" for event in record.put_off]
    for event in record.decisions:
        shown = f", shown {digest(event.digest)}" if event.digest else ""
        became = f", now {event.replaced_by}" if event.replaced_by else ""
        reason = f": {clean(event.reason)}" if event.reason else ""
        by = f" by {one_line(event.by)}" if event.by else ""
        by += f" for {one_line(event.instead_of)}, who was absent" if event.instead_of else ""
        did = _DECISIONS.get(event.decision, one_line(event.decision))
        way = (
            f", by {event.channel} as {one_line(event.account)}, which showed {digest(event.shown)}"
            if event.channel
            else ""
        )
        lines.append(f"  {did}{by} at {clock_time(event.at)}{way}{shown}{became}{reason}")
    return lines


def waited_lines(waited: Waited, *, questions: set[str]) -> list[tuple[str, str]]:
    """A wait that no question in `questions` stands for: lines and their styles."""
    if waited.key in questions or waited.type == "timer":
        return _turn_lines(waited) if waited.key.startswith(TURN) and waited.type == "timer" else []
    stuck, _, code = waited.key.partition(":")
    if waited.type == "human" and stuck == "stuck":
        end = f", until {clock_time(waited.until)}" if waited.until is not None else ""
        return [(f"stuck since {clock_time(waited.since)}{end}: {line(f'{code}: {waited.reason}')}", "yellow")]
    if waited.decision and waited.until is not None:
        reason = f', "{line(waited.because)}"' if waited.because else ""
        by = one_line(waited.by) or "someone"
        return [(f"{by} decided at {clock_time(waited.until)}: {waited.decision}{reason}", "")]
    what = _joined(waited.type, waited.key if waited.type == "signal" else "")
    if waited.until is None:
        return [(f"waits for {what} since {clock_time(waited.since)}", "yellow")]
    who = "no one answered in time" if waited.timed_out else f"came from {one_line(waited.by) or 'someone'}"
    lines = [(f"waited for {what}: {who} at {clock_time(waited.until)}", "")]
    return [*lines, (f"  {one_line(waited.answer)}", "")] if waited.answer else lines


def _turn_lines(waited: Waited) -> list[tuple[str, str]]:
    limit, since = line(waited.reason), clock_time(waited.since)
    if waited.until is not None:
        return [(f"waited for its turn from {since} to {clock_time(waited.until)}: {limit}", "dim")]
    return [(f"waits for its turn since {since}, until {clock_time(waited.due_at or waited.since)}: {limit}", "yellow")]


def log_lines(log: CallLines | None) -> list[tuple[str, str]]:
    """The lines that a tool logged, with the style of each."""
    if log is None:
        return []
    styles = {"error": "red", "warning": "warn"}
    lines = [(f"{clock_time(each.at)}  {one_line(each.text)}", styles.get(each.level, "dim")) for each in log.lines]
    return [*lines, (f"… and {counted(log.left_out, 'line')} more", "dim")] if log.left_out else lines


def untrusted_lines(untrusted: Untrusted | None) -> list[tuple[str, str]]:
    """The arguments of a call from untrusted text, and what was decided: lines and their styles."""
    if untrusted is None:
        return []
    verdict = f": {one_line(untrusted.verdict)}" if untrusted.verdict else ""
    lines = [(f"arguments from untrusted text{verdict}", "yellow")]
    for argument in untrusted.arguments:
        lines.append((f"  {one_line(argument.words)}", ""))
        if argument.excerpt:
            lines.append((f"    {one_line(argument.excerpt)}", "dim"))
    if untrusted.kept is not None:
        lines.append((f"  {one_line(untrusted.kept.preview)}", ""))
    return lines


def _digest(text: str) -> str:
    """A digest short enough to read; anything else as it is."""
    kind, separator, digits = text.partition(":")
    return digits[:_HASH] if separator and kind == "sha256" else text


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)
