"""One step of a job or session, told of everything that was recorded of it. Pure.

An event in a few words, for people who watch a job.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import structs

from remit.jobs.state import JobHistory
from remit.journal import kinds as k
from remit.journal.event import Event
from remit.journal.kinds import JobFailed
from remit.record.question import judged
from remit.record.step import (
    Attempt,
    Continued,
    Drift,
    LlmInvocation,
    Preview,
    QuestionRecord,
    StepNarrative,
    StepState,
    ToolInvocation,
    Waited,
    call_state,
    joined,
    log_of,
    model_state,
    repairs,
    said,
    shown,
    state_diff,
)
from remit.redact import line

if TYPE_CHECKING:
    from remit.jobs.state import CallRecord, ModelRecord


Drifted = k.VersionMismatchRecorded | k.SchemaDriftRecorded | k.ModelDriftRecorded
_OVER = frozenset({"ok", "failed", "blocked"})
"""States in which a step has ended."""


def state_of(history: JobHistory, step: str, one: StepFacts) -> StepState:
    """Return where a step stands, by what is recorded of it; a child recipe stands where its steps do (children.py)."""
    ended = history.end is not None
    if step in history.calls:
        return call_state(history.calls[step], waiting=one.waiting, ended=ended)
    if step in history.models:
        return model_state(history.models[step], waiting=one.waiting, ended=ended)
    if one.relayed is not None:
        return "failed" if one.relayed.error else "ok"
    if step in history.compensations:
        return "ok" if step in history.compensated else "running"
    return "waiting" if one.waiting else "ok"


def drift_of(payload: Drifted, at: int) -> Drift:
    """A recorded difference of versions, with the thing that changed."""
    recorded, current = payload.recorded, payload.current
    match payload:
        case k.VersionMismatchRecorded(tool_name=""):
            return Drift(subject=payload.subject, recorded=recorded, current=current, at=at)
        case k.VersionMismatchRecorded():
            about = "version" if payload.subject == "tool" else payload.subject
            return Drift(subject=payload.tool_name, about=about, recorded=recorded, current=current, at=at)
        case k.SchemaDriftRecorded():
            schema = "result" if payload.direction == "response" else "arguments"
            return Drift(subject=payload.tool_name, about=schema, recorded=recorded, current=current, at=at)
        case k.ModelDriftRecorded():
            return Drift(subject=payload.subject, step=payload.step, recorded=recorded, current=current, at=at)


class Teller:
    """Tells steps of one job, with values as `preview` shows them."""

    def __init__(self, history: JobHistory, drifts: Sequence[Drift] = (), preview: Preview = shown) -> None:
        self._history = history
        self._drifts = drifts
        self._preview = preview

    def tell(self, step: str, one: StepFacts, child: ChildFacts | None = None) -> StepNarrative:
        """A step; `child` says where it stands if it is a child recipe."""
        history = self._history
        state = child.state if child is not None else state_of(history, step, one)
        common: dict[str, Any] = {
            "step": step,
            "state": state,
            "started_at": one.since,
            "ended_at": (child.until if child is not None else one.until) if state in _OVER else None,
            "taken_from": one.taken_from,
            "attempts": tuple(attempt.told() for attempt in one.tries),
            "waits": tuple(one.waits.values()),
            "continued": tuple(one.continued.values()),
            "ungoverned": one.ungoverned,
            "log": log_of(one.logged),
            "confirmations": tuple(sorted(one.asked.values(), key=lambda asked: asked.asked_at)),
        }
        if step in history.calls:
            return self._call(step, history.calls[step], common)
        if step in history.models:
            return self._model(step, history.models[step], common)
        return self._other(step, one, common)

    def _other(self, step: str, one: StepFacts, common: dict[str, Any]) -> StepNarrative:
        """A step that called nothing."""
        history = self._history
        if one.relayed is not None:
            relayed = one.relayed
            name = f"relayed.{relayed.method}"
            return StepNarrative(name=name, args_preview=relayed.target, reason=relayed.error, **common)
        if step in history.values:
            value = history.values[step]
            name = value.KIND.removesuffix("_recorded")
            return StepNarrative(name=name, result_preview=str(value.value), **common)
        if step in history.children:
            started, returned = history.children[step], history.returned.get(step)
            return StepNarrative(
                name=f"recipe.{started.name}",
                args_preview=self._preview(started.input, started.input_blob) or started.version,
                result_preview=self._preview(returned.result, returned.result_blob) if returned is not None else "",
                **_failure(returned.error if returned is not None else None),
                **common,
            )
        if step in history.compensations:
            steps = ", ".join(history.compensations[step].steps)
            return StepNarrative(name="compensate", args_preview=f"steps {steps}" if steps else "", **common)
        return self._wait(step, common)

    def _call(self, step: str, record: CallRecord, common: dict[str, Any]) -> StepNarrative:
        started, finished, refused = record.started, record.finished, record.refused
        undone = self._history.undone.get(step)
        common |= {
            "evidence": record.evidence,
            "untrusted": judged(record, common["confirmations"]),
            "undone": undone.outcome if undone is not None else "",
        }
        if refused is not None:
            return self._refused(f"tool.{refused.tool_name}", refused, record.confirmation, common)
        if started is None:
            name = f"tool.{record.wanted}" if record.wanted else "tool"
            return StepNarrative(name=name, confirmation=record.confirmation or "", **common)
        return StepNarrative(
            name=f"tool.{started.tool_name}",
            args_preview=self._preview(started.args, started.args_blob),
            result_preview=self._preview(finished.result, finished.result_blob) if finished else "",
            **_failure(finished.error if finished else None),
            principal=started.principal,
            rule_id=started.rule_id,
            policy_hash=started.policy_hash,
            capability_level=f"L{started.capability_level}",
            risk_level=started.risk_level,
            approval=started.confirmation,
            confirmation=started.confirmation,
            drifts=tuple(drift for drift in self._drifts if drift.subject == started.tool_name),
            tool_invocation=ToolInvocation(
                tool=started.tool_name,
                provider=started.provider_id,
                version=started.tool_version,
                request_schema_hash=started.request_schema_hash,
                response_schema_hash=finished.response_schema_hash if finished else "",
            ),
            state_diff=state_diff(started, finished, undone),
            repaired=repairs(started, finished),
            **common,
        )

    def _model(self, step: str, record: ModelRecord, common: dict[str, Any]) -> StepNarrative:
        started, committed, refused = record.started, record.committed, record.refused
        if refused is not None:
            return self._refused(f"model.{refused.tool_name}", refused, record.confirmation, common)
        event = started or committed
        if event is None:
            return StepNarrative(name="model", confirmation=record.confirmation or "", **common)
        name = started.name if started is not None else f"{event.llm_provider}:{event.llm_model}"
        new = record.added
        speak = said if self._preview is shown else self._preview
        return StepNarrative(
            name=f"model.{name}",
            args_preview=f"{new} new message{'' if new == 1 else 's'}" if started is not None else "",
            result_preview=speak(committed.result, committed.result_blob) if committed is not None else "",
            **_failure(committed.error if committed is not None and record.ended else None),
            principal=started.principal if started is not None else "",
            rule_id=started.rule_id if started is not None else "",
            policy_hash=started.policy_hash if started is not None else "",
            approval=started.confirmation if started is not None else "",
            confirmation=record.confirmation or "",
            drifts=tuple(drift for drift in self._drifts if drift.step == step),
            llm_invocation=_llm(event, committed),
            **common,
        )

    def _refused(
        self, name: str, refused: k.GateRefused, confirmation: str | None, common: dict[str, Any]
    ) -> StepNarrative:
        return StepNarrative(
            name=name,
            code=refused.code,
            reason=refused.reason,
            remedy=refused.remedy,
            principal=refused.principal,
            rule_id=refused.rule_id,
            policy_hash=refused.policy_hash,
            confirmation=confirmation or "",
            **common,
        )

    def _wait(self, step: str, common: dict[str, Any]) -> StepNarrative:
        kind = self._history.places.get(step, "human")
        first = next((waited for waited in common["waits"] if not waited.stuck), None)
        key = first.key if first is not None else ""
        return StepNarrative(
            name=f"wait.{kind}",
            reason=first.reason if first is not None else "",
            args_preview=key if kind != "timer" else "",
            confirmation=key if kind == "human" else "",
            **common,
        )


def _failure(error: k.ErrorInfo | None) -> dict[str, Any]:
    return {"code": error.code, "reason": error.message, "remedy": error.remedy} if error is not None else {}


def _llm(asked: k.CommandStarted | k.CommandCommitted, committed: k.CommandCommitted | None) -> LlmInvocation:
    """The model that was asked, and what its newest attempt took."""
    name = committed or asked
    invocation = LlmInvocation(
        model=name.llm_model,
        provider=name.llm_provider,
        temperature=name.llm_temperature,
        prompt_hash=name.prompt_hash,
        token_count=committed.token_count if committed is not None else 0,
    )
    if committed is None:
        return invocation
    return structs.replace(
        invocation,
        input_tokens=committed.input_tokens,
        output_tokens=committed.output_tokens,
        cached_tokens=committed.cached_tokens,
        reasoning_tokens=committed.reasoning_tokens,
        cost=committed.cost,
        finish_reason=committed.finish_reason,
        finish_raw=committed.finish_raw,
        first_token_ms=committed.first_token_ms,
    )


class AttemptFacts(NamedTuple):
    """An attempt as it was announced, and as it ended if that was recorded."""

    number: int
    since: int
    until: int | None = None
    finished: k.ToolInvocationFinished | k.CommandCommitted | None = None

    def told(self) -> Attempt:
        """The attempt as a story tells it."""
        if self.finished is None:
            return Attempt(number=self.number, started_at=self.since)
        finished, error = self.finished, self.finished.error
        of_tool = finished if isinstance(finished, k.ToolInvocationFinished) else None
        return Attempt(
            number=self.number,
            started_at=self.since,
            ended_at=self.until,
            duration_us=of_tool.duration_us if of_tool is not None else round(finished.duration_ms * 1_000),
            outcome=finished.outcome,
            code=error.code if error else "",
            message=error.message if error else "",
            cause=error.cause if error else "",
            decided_by=of_tool.decided_by if of_tool is not None else "",
            reported_by=of_tool.reported_by if of_tool is not None else "",
            remarks=of_tool.remarks if of_tool is not None else (),
            again_ms=finished.again_ms if isinstance(finished, k.CommandCommitted) else None,
            next_model=finished.next_model if isinstance(finished, k.CommandCommitted) else "",
        )


class StepFacts:
    """The facts of one step while its events are read; a job may have ten thousand of them."""

    __slots__ = (
        *("asked", "continued", "logged", "relayed", "since", "taken_from", "tries", "ungoverned", "until", "waits"),
    )

    def __init__(self, at: int, taken_from: str = "") -> None:
        self.since = self.until = at
        self.taken_from = taken_from
        self.tries: tuple[AttemptFacts, ...] = ()
        self.waits: dict[str, Waited] = {}
        self.asked: dict[str, QuestionRecord] = {}
        self.relayed: k.RequestRelayed | None = None
        self.ungoverned: tuple[str, ...] = ()
        self.continued: dict[str, Continued] = {}
        """Calls by the session that made them again."""
        self.logged: tuple[k.CallLogged, ...] = ()

    @property
    def waiting(self) -> bool:
        """Return whether it waits for something that has not come; other code is nothing that a step waits for."""
        return any(waited.until is None and not waited.stuck for waited in self.waits.values())


_BUSY: Final[tuple[StepState, ...]] = ("unknown", "waiting", "running")
"""The states that a child has as long as one of its steps has; the first counts most."""


class ChildFacts(NamedTuple):
    """A child recipe."""

    state: StepState
    until: int
    """When the last of its steps was heard of, in microseconds since the Unix epoch."""


def children(history: JobHistory, steps: Collection[tuple[str, StepState, int]]) -> dict[str, ChildFacts]:
    """Each child, by its place; `steps` are those of the job: place, state, and when it was heard of last."""
    states = child_states(history, ((step, state) for step, state, _ in steps))
    until = dict.fromkeys(states, 0)
    for step, _, last in steps:
        place = step
        while place:
            if place in until:
                until[place] = max(until[place], last)
            place = place.rpartition(".")[0]
    return {place: ChildFacts(state, until[place]) for place, state in states.items()}


def child_states(history: JobHistory, states: Iterable[tuple[str, str]]) -> dict[str, StepState]:
    """Return where each child stands, by its place; `states` are those of the job's steps, by place."""
    if not history.children:
        return {}
    busy: dict[str, StepState] = {}
    newest: dict[str, int] = {}
    for step, state in states:
        own, place = "" if step in history.children else state, step
        while place:
            above, _, number = place.rpartition(".")
            if number.isdigit():
                newest[above] = max(newest.get(above, 0), int(number))
            for kind in _BUSY:
                if above and kind in {own, busy.get(above)}:
                    busy[above] = kind
                    break
            place = above
    return {child: _state(child, busy, newest, history) for child in history.children}


def _state(child: str, busy: Mapping[str, StepState], newest: Mapping[str, int], history: JobHistory) -> StepState:
    end, returned = history.end, history.returned.get(child)
    if returned is not None:
        return "failed" if returned.error else "ok"
    if child in busy:
        return busy[child]
    if end is not None:
        failed_at = end.error.step if isinstance(end, JobFailed) else ""
        return "failed" if failed_at == child or failed_at.startswith(f"{child}.") else "ok"
    above, _, number = child.rpartition(".")
    return "ok" if number.isdigit() and newest.get(above, 0) > int(number) else "running"


def words(event: Event) -> str:
    """Return what an event says, on one line, without its kind and its time."""
    payload = k.decode(event.kind, event.data)
    if payload is None:
        return ""
    worded = _WORDS.get(type(payload))
    return line(worded(payload) if worded is not None else payload.words())


def _created(one: k.JobCreated) -> str:
    by, schedule = f"by {one.principal}" if one.principal else "", one.schedule.words if one.schedule else ""
    return joined(one.name, shown(one.input, one.input_blob), by, schedule)


def _started(one: k.ToolInvocationStarted) -> str:
    attempt = f"attempt {one.attempt}" if one.attempt > 1 else ""
    return joined(one.step, one.tool_name, attempt, shown(one.args, one.args_blob))


def _finished(one: k.ToolInvocationFinished) -> str:
    error = one.error.words if one.error else ""
    decided = f"as {one.decided_by} says" if one.decided_by else ""
    decided = f"as {one.reported_by} reports" if one.reported_by else decided
    return joined(one.step, one.outcome, decided, *one.remarks, error or shown(one.result, one.result_blob))


def _model_asked(one: k.CommandStarted) -> str:
    left_out = ", ".join(f"{tool} ({reason})" for tool, reason in one.left_out.items())
    attempt = f"attempt {one.attempt}" if one.attempt > 1 else ""
    reasons = f" ({'; '.join(one.passed.values())})" if one.passed else ""
    place = f"in the place of {one.asked}{reasons}" if one.asked else ""
    return joined(one.step, one.name, attempt, place, f"without {left_out}" if left_out else "")


def _answered(one: k.CommandCommitted) -> str:
    error = one.error.words if one.error else ""
    following = f"next: {one.next_model}" if one.next_model else ""
    model = f"{one.llm_provider}:{one.llm_model}"
    return joined(one.step, model, error or said(one.result, one.result_blob), following)


def _refused(one: k.GateRefused) -> str:
    return joined(one.step, one.tool_name, f"{one.code}:", one.reason)


def _waiting(one: k.JobWaiting) -> str:
    key = one.correlation_key if one.correlation_key != one.step else ""
    return joined(one.step, one.wait_type, key, one.reason if one.reason != key else "")


def _came(one: k.WaitCompleted) -> str:
    how = "no one answered in time" if one.timed_out else shown(one.payload, one.payload_blob)
    return joined(one.step, one.wait_type, one.correlation_key, f"by {one.by}" if one.by else "", how)


def _asked(one: k.ConfirmationRequested) -> str:
    return joined(one.step, one.confirmation, one.tool_name, one.question, one.digest)


def _value(one: Any) -> str:
    return joined(one.step, str(one.value))


def _failed(one: k.JobFailed) -> str:
    return one.error.words


def _undoes(one: k.CompensationStarted) -> str:
    reason = f"{one.error.code}: {one.error.message}" if one.error else "cancelled" if not one.step else ""
    return joined(one.step, f"steps {', '.join(one.steps)}", reason)


def _cancelled(one: k.JobCancelled) -> str:
    return joined(f"by {one.by}" if one.by else "", one.reason)


def _drifted(one: Drifted) -> str:
    drift = drift_of(one, 0)
    return f"{drift.words} was {drift.recorded or 'none'}, is {drift.current or 'gone'}"


BEGIN_UNSEEN: Final = "begin not seen"
"""Words for a session that its agent's hooks did not tell of until it made a call."""
_WORDS: Final[dict[type[k.Payload], Callable[[Any], str]]] = {
    k.JobCreated: _created,
    k.PlanGenerated: lambda one: joined(one.schema_version, one.plan_hash),
    k.ToolInvocationStarted: _started,
    k.ToolInvocationFinished: _finished,
    k.GateRefused: _refused,
    k.CallUngoverned: lambda one: joined(one.step, one.tool_name, one.call_id, "ran ungoverned: no gate saw it"),
    k.CallLogged: lambda one: joined(one.step, shown(one.lines, one.lines_blob)),
    k.BytesKept: lambda one: joined(one.step, f"{one.kept_blob.bytes} bytes", one.digest),
    k.SchemaGateWarned: lambda one: joined(one.step, one.tool_name, one.boundary, *one.warn_codes),
    k.UndoDeclared: lambda one: joined(one.step, one.tool_name, shown(one.args, one.args_blob)),
    k.CompensationStarted: _undoes,
    k.CompensationCompleted: lambda one: joined(one.step, f"undone: {', '.join(one.undone) or 'nothing'}"),
    k.StepCompensated: lambda one: joined(one.step, one.tool_name, one.outcome, one.error.code if one.error else ""),
    k.SessionOpened: lambda one: joined(
        one.client, one.client_version, f"as {one.principal}", one.via, BEGIN_UNSEEN * one.begin_unseen
    ),
    k.CallOpened: lambda one: joined(one.step, one.tool_name, f"by {one.principal}", one.session),
    k.CallContinued: lambda one: joined(one.step, one.tool_name, f"in {one.session}", f"asked in {one.asked_in}"),
    k.RequestRelayed: lambda one: joined(one.step, one.provider_id, one.method, one.target, one.error),
    k.BudgetReached: lambda one: joined(one.step, one.budget, one.share, f"{one.level} %", one.taken),
    k.LimitReturned: lambda one: joined(one.step, f"undone by {one.undo_step}"),
    k.LimitTaken: lambda one: joined(one.step, one.rule_id, one.tool_name, f"by {one.principal}", one.amount),
    k.McpToolsPinned: lambda one: joined(one.server, f"{len(one.tools)} tools", one.how, f"by {one.by}"),
    k.McpRestartRequested: lambda one: joined(one.server, f"by {one.by}"),
    k.CommandStarted: _model_asked,
    k.CommandCommitted: _answered,
    k.EvidenceAttached: lambda one: joined(one.step, f"{len(one.items)} pieces" if one.items else "kept erasable"),
    k.JobWaiting: _waiting,
    k.WaitCompleted: _came,
    k.TimerFired: lambda one: one.step,
    k.ConfirmationRequested: _asked,
    k.TimeRecorded: _value,
    k.RandomRecorded: _value,
    k.UuidRecorded: _value,
    k.ChildStarted: lambda one: joined(one.step, one.name, one.version),
    k.ChildEnded: lambda one: joined(one.step, one.error.words if one.error else shown(one.result, one.result_blob)),
    k.RecoveryStarted: lambda one: joined(one.owner, f"after {one.previous_owner}" if one.previous_owner else ""),
    k.RecoveryCompleted: lambda one: f"{one.replayed_steps} steps returned",
    k.PatchRecorded: lambda one: one.name,
    k.JobLabeled: lambda one: joined(one.step, one.words()),
    k.VersionMismatchRecorded: _drifted,
    k.SchemaDriftRecorded: _drifted,
    k.ModelDriftRecorded: _drifted,
    k.JobForked: lambda one: joined(f"from {one.job} after event {one.seq}", f"by {one.by}" if one.by else ""),
    k.StepArgsGiven: lambda one: joined(one.step, shown(one.args, one.args_blob), f"by {one.by}" if one.by else ""),
    k.JobCompleted: lambda one: shown(one.result, one.result_blob),
    k.JobFailed: _failed,
    k.JobCancelled: _cancelled,
    k.StreamPruned: lambda one: joined(
        f"{one.events} events", one.package, one.reason, f"by {one.by}" if one.by else ""
    ),
}
