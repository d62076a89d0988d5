"""A job's events as a story: when it worked and when it waited, what each step did, who allowed it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Literal

import msgspec

from remit.jobs.state import History
from remit.journal import kinds as k
from remit.journal.event import Event
from remit.trace.question import read_question
from remit.trace.segments import Segment, segments
from remit.trace.step import (
    Attempt,
    Drift,
    LlmInvocation,
    QuestionRecord,
    StateDiff,
    StepNarrative,
    ToolInvocation,
    Waited,
    call_state,
    shown,
)
from remit.trace.untrusted import judged


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """Another worker went on with the job."""

    at: int
    owner: str
    previous_owner: str
    replayed_steps: int | None
    """None while it is still replaying."""


class Narrative(msgspec.Struct, frozen=True, kw_only=True):
    """The story of one job, or of one session of calls from outside any job."""

    job: str
    """Its identifier, or the session's."""
    name: str
    """The recipe's or plan's; the program that calls, for a session."""
    kind: str
    """`recipe`, `plan` or `session`."""
    principal: str
    retry_of: str
    """The job whose steps it took over; empty: none."""
    execution_version: str
    planner_version: str
    tool_registry_version: str
    created_at: int
    ended_at: int | None
    events: int
    input_preview: str
    result_preview: str
    error: k.ErrorInfo | None
    cancelled_by: str
    segments: tuple[Segment, ...]
    steps: tuple[StepNarrative, ...]
    drifts: tuple[Drift, ...]
    recoveries: tuple[Recovery, ...]


def narrate(events: Iterable[Event], confirmations: Mapping[str, Iterable[Event]] | None = None) -> Narrative:
    """The story that a job's events tell; `confirmations` are the events of its questions, by identifier.

    Questions may be read after the job: those of steps that its events do not tell of are left out.
    """
    recorded = tuple(events)
    teller = _Teller(recorded)
    for identifier, asked in (confirmations or {}).items():
        teller.ask(identifier, asked)
    return teller.tell()


class _Step:
    """What is known of one step while its events are read."""

    def __init__(self, at: int) -> None:
        self.since = self.until = at
        self.attempts: list[Attempt] = []
        self.waits: dict[str, Waited] = {}
        self.asked: list[QuestionRecord] = []
        self.answer: k.CommandCommitted | None = None
        self.relayed: k.RequestRelayed | None = None


class _Teller:
    """Reads a job's events once."""

    def __init__(self, events: tuple[Event, ...]) -> None:
        self.events = events
        self.history = History(events)
        self.steps: dict[str, _Step] = {}
        self.drifts: list[Drift] = []
        self.recoveries: list[Recovery] = []
        self.ended_at: int | None = None
        self.session: k.SessionOpened | None = None
        for event in events:
            payload = k.decode(event.kind, event.data)
            if payload is not None:
                self._read(payload, event.at)

    def ask(self, identifier: str, events: Iterable[Event]) -> None:
        """Put a question and its answers beside the step that asked."""
        asked = read_question(identifier, events)
        if asked is not None and asked[0] in self.steps:
            step, question = asked
            self._step(step, question.asked_at).asked.append(question)

    def tell(self) -> Narrative:
        """Everything together."""
        history = self.history
        created = history.created or k.JobCreated(kind="recipe", name="")
        session = self.session
        end = history.end
        return Narrative(
            job=self.events[0].stream.partition("/")[2] if self.events else "",
            name=session.client if session else created.name,
            kind="session" if session else created.kind,
            principal=session.principal if session else created.principal,
            retry_of=history.forked.job if history.forked else "",
            execution_version=created.execution_version,
            planner_version=created.planner_version,
            tool_registry_version=created.tool_registry_version,
            created_at=self.events[0].at if self.events else 0,
            ended_at=self.ended_at,
            events=len(self.events),
            input_preview=shown(created.input, created.input_blob),
            result_preview=shown(end.result, end.result_blob) if isinstance(end, k.JobCompleted) else "",
            error=end.error if isinstance(end, k.JobFailed) else None,
            cancelled_by=end.by if isinstance(end, k.JobCancelled) else "",
            segments=segments(self.events),
            steps=tuple(self._told(step, one) for step, one in self.steps.items() if step),
            drifts=tuple(self.drifts),
            recoveries=tuple(self.recoveries),
        )

    # --- reading

    def _step(self, step: str, at: int) -> _Step:
        found = self.steps.setdefault(step, _Step(at))
        found.until = max(found.until, at)
        return found

    def _read(self, payload: k.Payload, at: int) -> None:
        read = self._readers.get(type(payload))
        if read is not None:
            read(self, payload, at)
        elif step := getattr(payload, "step", ""):
            self._step(step, at)

    def _start(self, payload: k.ToolInvocationStarted, at: int) -> None:
        self._step(payload.step, at).attempts.append(Attempt(number=payload.attempt, started_at=at))

    def _answer(self, payload: k.CommandCommitted, at: int) -> None:
        self._step(payload.step, at).answer = payload

    def _open(self, payload: k.SessionOpened, _at: int) -> None:
        self.session = payload

    def _relay(self, payload: k.RequestRelayed, at: int) -> None:
        self._step(payload.step, at).relayed = payload

    def _mismatch(self, payload: k.VersionMismatchRecorded, at: int) -> None:
        self.drifts.append(Drift(subject=payload.subject, recorded=payload.recorded, current=payload.current, at=at))

    def _drift(self, payload: k.SchemaDriftRecorded, at: int) -> None:
        self.drifts.append(Drift(subject=payload.tool_name, recorded=payload.recorded, current=payload.current, at=at))

    def _recover(self, payload: k.RecoveryStarted, at: int) -> None:
        self.recoveries.append(
            Recovery(at=at, owner=payload.owner, previous_owner=payload.previous_owner, replayed_steps=None)
        )

    def _recovered(self, payload: k.RecoveryCompleted, _at: int) -> None:
        if self.recoveries:
            done = msgspec.structs.replace(self.recoveries[-1], replayed_steps=payload.replayed_steps)
            self.recoveries[-1] = done

    def _end(self, _payload: k.Payload, at: int) -> None:
        self.ended_at = at

    def _finish(self, payload: k.ToolInvocationFinished, at: int) -> None:
        step = self._step(payload.step, at)
        if not step.attempts:
            return
        error = payload.error
        step.attempts[-1] = msgspec.structs.replace(
            step.attempts[-1],
            ended_at=at,
            duration_us=payload.duration_us,
            outcome=payload.outcome,
            code=error.code if error else "",
            message=error.message if error else "",
            decided_by=payload.decided_by,
        )

    def _wait(self, payload: k.JobWaiting, at: int) -> None:
        waited = Waited(
            type=payload.wait_type,
            key=payload.correlation_key,
            since=at,
            due_at=payload.due_at,
            reason=payload.reason,
        )
        self._step(payload.step, at).waits[payload.correlation_key] = waited

    def _end_wait(self, payload: k.WaitCompleted | k.TimerFired, at: int) -> None:
        waits = self._step(payload.step, at).waits
        open_wait = waits.get(payload.correlation_key)
        if open_wait is None:
            return
        if isinstance(payload, k.WaitCompleted):
            open_wait = msgspec.structs.replace(open_wait, by=payload.by, timed_out=payload.timed_out)
        waits[payload.correlation_key] = msgspec.structs.replace(open_wait, until=at)

    _readers: ClassVar[dict[type[k.Payload], Callable[[Any, Any, int], None]]] = {
        k.ToolInvocationStarted: _start,
        k.ToolInvocationFinished: _finish,
        k.CommandCommitted: _answer,
        k.SessionOpened: _open,
        k.RequestRelayed: _relay,
        k.JobWaiting: _wait,
        k.WaitCompleted: _end_wait,
        k.TimerFired: _end_wait,
        k.VersionMismatchRecorded: _mismatch,
        k.SchemaDriftRecorded: _drift,
        k.RecoveryStarted: _recover,
        k.RecoveryCompleted: _recovered,
        k.JobCompleted: _end,
        k.JobFailed: _end,
        k.JobCancelled: _end,
    }

    # --- telling

    def _told(self, step: str, one: _Step) -> StepNarrative:
        common: dict[str, Any] = {
            "step": step,
            "started_at": one.since,
            "attempts": tuple(one.attempts),
            "waits": tuple(one.waits.values()),
            "confirmations": tuple(sorted(one.asked, key=lambda asked: asked.asked_at)),
        }
        if step in self.history.calls:
            return self._call(step, one, common)
        if one.answer is not None:
            return _model(one, common)
        if one.relayed is not None:
            return _passed(one.relayed, one, common)
        if step in self.history.values:
            value = self.history.values[step]
            name = value.KIND.removesuffix("_recorded")
            return StepNarrative(name=name, state="ok", ended_at=one.until, result_preview=str(value.value), **common)
        if step in self.history.children:
            child = self.history.children[step]
            return StepNarrative(
                name=f"recipe.{child.name}", state="ok", args_preview=child.version, ended_at=one.until, **common
            )
        return _wait_step(self.history.places.get(step, "human"), one, common)

    def _call(self, step: str, one: _Step, common: dict[str, Any]) -> StepNarrative:
        record = self.history.calls[step]
        started, finished, refused = record.started, record.finished, record.refused
        waiting = any(waited.until is None for waited in one.waits.values())
        state = call_state(record, waiting=waiting, ended=self.history.end is not None)
        common |= {
            "state": state,
            "ended_at": one.until if state in {"ok", "failed", "blocked"} else None,
            "evidence": record.evidence,
            "untrusted": judged(record, common["confirmations"]),
        }
        if refused is not None:
            return StepNarrative(
                name=f"tool.{refused.tool_name}",
                code=refused.code,
                reason=refused.reason,
                remedy=refused.remedy,
                principal=refused.principal,
                rule_id=refused.rule_id,
                policy_hash=refused.policy_hash,
                **common,
            )
        if started is None:
            return StepNarrative(name=f"tool.{record.wanted}" if record.wanted else "tool", **common)
        error = finished.error if finished else None
        return StepNarrative(
            name=f"tool.{started.tool_name}",
            args_preview=shown(started.args, started.args_blob),
            result_preview=shown(finished.result, finished.result_blob) if finished else "",
            code=error.code if error else "",
            reason=error.message if error else "",
            remedy=error.remedy if error else "",
            principal=started.principal,
            rule_id=started.rule_id,
            policy_hash=started.policy_hash,
            capability_level=f"L{started.capability_level}",
            risk_level=started.risk_level,
            approval=started.confirmation,
            drifts=tuple(drift for drift in self.drifts if drift.subject == started.tool_name),
            tool_invocation=ToolInvocation(
                tool=started.tool_name,
                provider=started.provider_id,
                version=started.tool_version,
                request_schema_hash=started.request_schema_hash,
                response_schema_hash=finished.response_schema_hash if finished else "",
            ),
            state_diff=_state_diff(started, finished, unknown=record.unknown, undone=self.history.undone.get(step)),
            **common,
        )


def _state_diff(
    started: k.ToolInvocationStarted,
    finished: k.ToolInvocationFinished | None,
    *,
    unknown: bool,
    undone: k.StepCompensated | None,
) -> StateDiff | None:
    """None for a call that only reads."""
    if started.side_effect == "read":
        return None
    committed = finished is not None and finished.outcome == "success"
    effect: Literal["none", "committed", "undone", "unknown"]
    effect = "unknown" if unknown else "committed" if committed else "none"
    if undone is not None and undone.outcome == "compensated":
        effect = "undone"
    return StateDiff(side_effect=started.side_effect, effect=effect, idempotency_key=started.idempotency_key)


def _model(one: _Step, common: dict[str, Any]) -> StepNarrative:
    answer = one.answer
    if answer is None:
        raise AssertionError(common["step"])
    return StepNarrative(
        name="model",
        state="ok",
        ended_at=one.until,
        result_preview=shown(answer.result, answer.result_blob),
        llm_invocation=LlmInvocation(
            model=answer.llm_model,
            provider=answer.llm_provider,
            temperature=answer.llm_temperature,
            prompt_hash=answer.prompt_hash,
            token_count=answer.token_count,
        ),
        **common,
    )


def _passed(relayed: k.RequestRelayed, one: _Step, common: dict[str, Any]) -> StepNarrative:
    """A request that was passed on to a server as it was."""
    return StepNarrative(
        name=f"relayed.{relayed.method}",
        state="failed" if relayed.error else "ok",
        args_preview=relayed.target,
        reason=relayed.error,
        ended_at=one.until,
        **common,
    )


def _wait_step(kind: str, one: _Step, common: dict[str, Any]) -> StepNarrative:
    waits = tuple(one.waits.values())
    done = all(waited.until is not None for waited in waits)
    return StepNarrative(
        name=f"wait.{kind}" if kind != "compensation" else "compensate",
        state="ok" if done else "waiting",
        ended_at=one.until if done else None,
        reason=waits[0].reason if waits else "",
        args_preview=waits[0].key if waits and kind == "signal" else "",
        **common,
    )
