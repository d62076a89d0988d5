"""One step of a job or session, told of everything that was recorded of it. Pure.

An event in a few words, for people who watch a job.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
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


def state_of(history: JobHistory, step: str, facts: StepFacts) -> StepState:
    """Return where a step stands, by what is recorded of it; a child recipe stands where its steps do (children.py)."""
    ended = history.end is not None
    if step in history.calls:
        return call_state(history.calls[step], waiting=facts.waiting, ended=ended)
    if step in history.models:
        return model_state(history.models[step], waiting=facts.waiting, ended=ended)
    if facts.relayed is not None:
        return "failed" if facts.relayed.error else "ok"
    if step in history.compensations:
        return "ok" if step in history.compensated else "running"
    return "waiting" if facts.waiting else "ok"


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

    def tell(self, step: str, facts: StepFacts, child: ChildFacts | None = None) -> StepNarrative:
        """A step; `child` says where it stands if it is a child recipe."""
        history = self._history
        state = child.state if child is not None else state_of(history, step, facts)
        common: dict[str, Any] = {
            "step": step,
            "state": state,
            "started_at": facts.since,
            "ended_at": (child.until if child is not None else facts.until) if state in _OVER else None,
            "taken_from": facts.taken_from,
            "attempts": tuple(attempt.told() for attempt in facts.tries),
            "waits": tuple(facts.waits.values()),
            "continued": tuple(facts.continued.values()),
            "ungoverned": facts.ungoverned,
            "log": log_of(facts.logged),
            "confirmations": tuple(sorted(facts.questions.values(), key=lambda question: question.asked_at)),
        }
        if step in history.calls:
            return self._call(step, history.calls[step], common)
        if step in history.models:
            return self._model(step, history.models[step], common)
        return self._other(step, facts, common)

    def _other(self, step: str, facts: StepFacts, common: dict[str, Any]) -> StepNarrative:
        """A step that called nothing."""
        history = self._history
        if facts.relayed is not None:
            relayed = facts.relayed
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


def _llm(command: k.CommandStarted | k.CommandCommitted, committed: k.CommandCommitted | None) -> LlmInvocation:
    """The model that was asked, and what its newest attempt took."""
    name = committed or command
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
    model: str = ""
    """The model that was asked in the place of another."""
    passed: tuple[str, ...] = ()
    """Reasons why models before it could not be asked."""

    def told(self) -> Attempt:
        """The attempt as a story tells it."""
        if self.finished is None:
            return Attempt(number=self.number, started_at=self.since, model=self.model, passed=self.passed)
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
            model=self.model,
            passed=self.passed,
        )


class StepFacts:
    """The facts of one step while its events are read; a job may have ten thousand of them."""

    __slots__ = (
        *(
            "continued",
            "logged",
            "questions",
            "relayed",
            "since",
            "taken_from",
            "tries",
            "ungoverned",
            "until",
            "waits",
        ),
    )

    def __init__(self, at: int, taken_from: str = "") -> None:
        self.since = self.until = at
        self.taken_from = taken_from
        self.tries: tuple[AttemptFacts, ...] = ()
        self.waits: dict[str, Waited] = {}
        self.questions: dict[str, QuestionRecord] = {}
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


class ChildFacts(msgspec.Struct, frozen=True):
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


def _created(created: k.JobCreated) -> str:
    by, schedule = (
        f"by {created.principal}" if created.principal else "",
        created.schedule.words if created.schedule else "",
    )
    return joined(created.name, shown(created.input, created.input_blob), by, schedule)


def _started(started: k.ToolInvocationStarted) -> str:
    attempt = f"attempt {started.attempt}" if started.attempt > 1 else ""
    return joined(started.step, started.tool_name, attempt, shown(started.args, started.args_blob))


def _finished(finished: k.ToolInvocationFinished) -> str:
    error = finished.error.words if finished.error else ""
    decided = f"as {finished.decided_by} says" if finished.decided_by else ""
    decided = f"as {finished.reported_by} reports" if finished.reported_by else decided
    return joined(
        finished.step,
        finished.outcome,
        decided,
        *finished.remarks,
        error or shown(finished.result, finished.result_blob),
    )


def _model_asked(started: k.CommandStarted) -> str:
    left_out = ", ".join(f"{tool} ({reason})" for tool, reason in started.left_out.items())
    attempt = f"attempt {started.attempt}" if started.attempt > 1 else ""
    reasons = f" ({'; '.join(started.passed.values())})" if started.passed else ""
    place = f"in the place of {started.asked}{reasons}" if started.asked else ""
    return joined(started.step, started.name, attempt, place, f"without {left_out}" if left_out else "")


def _answered(committed: k.CommandCommitted) -> str:
    error = committed.error.words if committed.error else ""
    following = f"next: {committed.next_model}" if committed.next_model else ""
    model = f"{committed.llm_provider}:{committed.llm_model}"
    return joined(committed.step, model, error or said(committed.result, committed.result_blob), following)


def _refused(refused: k.GateRefused) -> str:
    return joined(refused.step, refused.tool_name, f"{refused.code}:", refused.reason)


def _waiting(waiting: k.JobWaiting) -> str:
    key = waiting.correlation_key if waiting.correlation_key != waiting.step else ""
    return joined(waiting.step, waiting.wait_type, key, waiting.reason if waiting.reason != key else "")


def _came(completed: k.WaitCompleted) -> str:
    how = "no one answered in time" if completed.timed_out else shown(completed.payload, completed.payload_blob)
    return joined(
        completed.step,
        completed.wait_type,
        completed.correlation_key,
        f"by {completed.by}" if completed.by else "",
        how,
    )


def _asked(requested: k.ConfirmationRequested) -> str:
    return joined(requested.step, requested.confirmation, requested.tool_name, requested.question, requested.digest)


def _value(recorded: Any) -> str:
    return joined(recorded.step, str(recorded.value))


def _failed(failed: k.JobFailed) -> str:
    return failed.error.words


def _undoes(started: k.CompensationStarted) -> str:
    reason = (
        f"{started.error.code}: {started.error.message}" if started.error else "cancelled" if not started.step else ""
    )
    return joined(started.step, f"steps {', '.join(started.steps)}", reason)


def _cancelled(cancelled: k.JobCancelled) -> str:
    return joined(f"by {cancelled.by}" if cancelled.by else "", cancelled.reason)


def _drifted(drifted: Drifted) -> str:
    drift = drift_of(drifted, 0)
    return f"{drift.words} was {drift.recorded or 'none'}, is {drift.current or 'gone'}"


BEGIN_UNSEEN: Final = "begin not seen"
"""Words for a session that its agent's hooks did not tell of until it made a call."""
_WORDS: Final[dict[type[k.Payload], Callable[[Any], str]]] = {
    k.JobCreated: _created,
    k.PlanGenerated: lambda payload: joined(payload.schema_version, payload.plan_hash),
    k.ToolInvocationStarted: _started,
    k.ToolInvocationFinished: _finished,
    k.GateRefused: _refused,
    k.CallUngoverned: lambda payload: joined(
        payload.step, payload.tool_name, payload.call_id, "ran ungoverned: no gate saw it"
    ),
    k.CallLogged: lambda payload: joined(payload.step, shown(payload.lines, payload.lines_blob)),
    k.BytesKept: lambda payload: joined(payload.step, f"{payload.kept_blob.bytes} bytes", payload.digest),
    k.SchemaGateWarned: lambda payload: joined(payload.step, payload.tool_name, payload.boundary, *payload.warn_codes),
    k.UndoDeclared: lambda payload: joined(payload.step, payload.tool_name, shown(payload.args, payload.args_blob)),
    k.CompensationStarted: _undoes,
    k.CompensationCompleted: lambda payload: joined(payload.step, f"undone: {', '.join(payload.undone) or 'nothing'}"),
    k.StepCompensated: lambda payload: joined(
        payload.step, payload.tool_name, payload.outcome, payload.error.code if payload.error else ""
    ),
    k.SessionOpened: lambda payload: joined(
        payload.client,
        payload.client_version,
        f"as {payload.principal}",
        payload.via,
        BEGIN_UNSEEN * payload.begin_unseen,
    ),
    k.CallOpened: lambda payload: joined(payload.step, payload.tool_name, f"by {payload.principal}", payload.session),
    k.CallContinued: lambda payload: joined(
        payload.step, payload.tool_name, f"in {payload.session}", f"asked in {payload.asked_in}"
    ),
    k.RequestRelayed: lambda payload: joined(
        payload.step, payload.provider_id, payload.method, payload.target, payload.error
    ),
    k.BudgetReached: lambda payload: joined(
        payload.step, payload.budget, payload.share, f"{payload.level} %", payload.taken
    ),
    k.LimitReturned: lambda payload: joined(payload.step, f"undone by {payload.undo_step}"),
    k.LimitTaken: lambda payload: joined(
        payload.step, payload.rule_id, payload.tool_name, f"by {payload.principal}", payload.amount
    ),
    k.McpToolsPinned: lambda payload: joined(
        payload.server, f"{len(payload.tools)} tools", payload.how, f"by {payload.by}"
    ),
    k.McpRestartRequested: lambda payload: joined(payload.server, f"by {payload.by}"),
    k.CommandStarted: _model_asked,
    k.CommandCommitted: _answered,
    k.EvidenceAttached: lambda payload: joined(
        payload.step, f"{len(payload.items)} pieces" if payload.items else "kept erasable"
    ),
    k.JobWaiting: _waiting,
    k.WaitCompleted: _came,
    k.TimerFired: lambda payload: payload.step,
    k.ConfirmationRequested: _asked,
    k.TimeRecorded: _value,
    k.RandomRecorded: _value,
    k.UuidRecorded: _value,
    k.ChildStarted: lambda payload: joined(payload.step, payload.name, payload.version),
    k.ChildEnded: lambda payload: joined(
        payload.step, payload.error.words if payload.error else shown(payload.result, payload.result_blob)
    ),
    k.RecoveryStarted: lambda payload: joined(
        payload.owner, f"after {payload.previous_owner}" if payload.previous_owner else ""
    ),
    k.RecoveryCompleted: lambda payload: f"{payload.replayed_steps} steps returned",
    k.PatchRecorded: lambda payload: payload.name,
    k.JobLabeled: lambda payload: joined(payload.step, payload.words()),
    k.VersionMismatchRecorded: _drifted,
    k.SchemaDriftRecorded: _drifted,
    k.ModelDriftRecorded: _drifted,
    k.JobForked: lambda payload: joined(
        f"from {payload.job} after event {payload.seq}", f"by {payload.by}" if payload.by else ""
    ),
    k.StepArgsGiven: lambda payload: joined(
        payload.step, shown(payload.args, payload.args_blob), f"by {payload.by}" if payload.by else ""
    ),
    k.JobCompleted: lambda payload: shown(payload.result, payload.result_blob),
    k.JobFailed: _failed,
    k.JobCancelled: _cancelled,
    k.StreamPruned: lambda payload: joined(
        f"{payload.events} events", payload.package, payload.reason, f"by {payload.by}" if payload.by else ""
    ),
}
