"""What is known of a job or session while its events are read: told whole, or step by step. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from remit.jobs.state import History
from remit.journal import kinds as k
from remit.journal.event import Event
from remit.trace.children import Child, children
from remit.trace.narrative import Narrative, Recovery
from remit.trace.question import read_question
from remit.trace.seen import Seen, Try
from remit.trace.segments import Timeline
from remit.trace.step import (
    Drift,
    LlmInvocation,
    StepNarrative,
    StepState,
    ToolInvocation,
    Waited,
    call_state,
    said,
    shown,
    state_diff,
)
from remit.trace.untrusted import judged


def narrate(events: Iterable[Event], confirmations: Mapping[str, Iterable[Event]] | None = None) -> Narrative:
    """The story that a job's events tell; `confirmations` are the events of its questions, by identifier.

    Questions may be read after the job: those of steps that its events do not tell of are left out.
    """
    story = Story(events)
    for identifier, asked in (confirmations or {}).items():
        story.ask(identifier, asked)
    return story.narrative()


class Story:
    """A job's events, read once and carried on as more of them come."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        """Read the first events, in order."""
        self.history = History()
        self.steps: dict[str, Seen] = {}
        """What is known of each step, in the order in which they began."""
        self.drifts: list[Drift] = []
        self.recoveries: list[Recovery] = []
        self.events = 0
        """How many were read; the newest has this number."""
        self.size = 0
        """Bytes of their data."""
        self.stream = ""
        self.created_at = 0
        self.ended_at: int | None = None
        self.session: k.SessionOpened | None = None
        self._timeline = Timeline()
        self._children: tuple[int, dict[str, Child]] = 0, {}
        self.read(events)

    def read(self, events: Iterable[Event]) -> None:
        """Read more events, in order."""
        for event in events:
            if not self.events:
                self.stream, self.created_at = event.stream, event.at
            self.events += 1
            self.size += len(event.data)
            payload = k.decode(event.kind, event.data)
            if payload is not None:
                self.history.take(payload)
                self._timeline.add(payload, event.at)
                self._read(payload, event.at)

    def ask(self, identifier: str, events: Iterable[Event]) -> None:
        """Put a question and its answers as they are now beside the step that asked."""
        asked = read_question(identifier, events)
        if asked is not None and asked[0] in self.steps:
            step, question = asked
            self._step(step, question.asked_at).asked[identifier] = question

    def told(self, step: str) -> StepNarrative | None:
        """One step, whole; None if there is none."""
        one = self.steps.get(step)
        return self._told(step, one) if one is not None and step else None

    def span(self, step: str) -> tuple[int, int]:
        """From the first to the last event of a step, in microseconds since the Unix epoch."""
        one = self.steps[step]
        return one.since, one.until

    def busy(self, until: int) -> Iterator[tuple[int, int]]:
        """Stretches of work; a model that has not answered works `until` then."""
        for one in self.steps.values():
            if one.answer is not None:
                yield one.since, one.until or until
            elif not one.tries:
                yield one.since, one.since
            for attempt in one.tries:
                yield attempt.since, attempt.until or attempt.since

    @property
    def queued(self) -> tuple[str, int, int] | None:
        """Its first step, and from when to when the job waited for a worker before that; None if it did not."""
        since, until = self._timeline.queued
        first = next((step for step in self.steps if step), None)
        return (first, since, until) if first is not None and until > since else None

    @property
    def name(self) -> str:
        """The recipe's or plan's; the program that calls, for a session."""
        created = self.history.created
        return self.session.client if self.session else created.name if created else ""

    @property
    def principal(self) -> str:
        """In whose name it runs."""
        return self.session.principal if self.session else self.history.principal

    def narrative(self) -> Narrative:
        """Everything together."""
        history = self.history
        created = history.created or k.JobCreated(kind="recipe", name="")
        end = history.end
        return Narrative(
            job=self.stream.partition("/")[2],
            name=self.name,
            kind="session" if self.session else created.kind,
            principal=self.principal,
            retry_of=history.forked.job if history.forked else "",
            execution_version=created.execution_version,
            planner_version=created.planner_version,
            tool_registry_version=created.tool_registry_version,
            created_at=self.created_at,
            ended_at=self.ended_at,
            events=self.events,
            input_preview=shown(created.input, created.input_blob),
            result_preview=shown(end.result, end.result_blob) if isinstance(end, k.JobCompleted) else "",
            error=end.error if isinstance(end, k.JobFailed) else None,
            cancelled_by=end.by if isinstance(end, k.JobCancelled) else "",
            segments=self._timeline.segments(),
            steps=tuple(self._told(step, one) for step, one in self.steps.items() if step),
            drifts=tuple(self.drifts),
            recoveries=tuple(self.recoveries),
        )

    # --- reading

    def _step(self, step: str, at: int) -> Seen:
        found = self.steps.get(step)
        if found is None:
            found = self.steps[step] = Seen(at)
        elif at > found.until:
            found.until = at
        return found

    def _read(self, payload: k.Payload, at: int) -> None:
        read = self._readers.get(type(payload))
        if read is not None:
            read(self, payload, at)
        elif step := getattr(payload, "step", ""):
            self._step(step, at)

    def _start(self, payload: k.ToolInvocationStarted, at: int) -> None:
        self._step(payload.step, at).tries += (Try(payload.attempt, at),)

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
        if step.tries:
            announced = step.tries[-1]
            step.tries = (*step.tries[:-1], Try(announced.number, announced.since, at, payload))

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
        if open_wait is not None:
            waits[payload.correlation_key] = open_wait.over(payload, at)

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

    def _told(self, step: str, one: Seen) -> StepNarrative:
        common: dict[str, Any] = {
            "step": step,
            "started_at": one.since,
            "attempts": tuple(attempt.told() for attempt in one.tries),
            "waits": tuple(one.waits.values()),
            "confirmations": tuple(sorted(one.asked.values(), key=lambda asked: asked.asked_at)),
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
            started, child = self.history.children[step], self._child(step)
            return StepNarrative(
                name=f"recipe.{started.name}",
                state=child.state,
                args_preview=started.version,
                ended_at=child.until if child.state in {"ok", "failed"} else None,
                **common,
            )
        return _wait_step(self.history.places.get(step, "human"), one, common)

    def _state(self, step: str, one: Seen) -> StepState:
        """Where a step stands by itself, whatever it holds."""
        if step in self.history.calls:
            return call_state(self.history.calls[step], waiting=one.waiting, ended=self.history.end is not None)
        if one.relayed is not None:
            return "failed" if one.relayed.error else "ok"
        return "waiting" if one.waiting and one.answer is None else "ok"

    def _child(self, step: str) -> Child:
        """A child recipe; what is known of all of them is made once for so many events."""
        if self._children[0] != self.events:
            told = ((place, self._state(place, one), one.until) for place, one in self.steps.items() if place)
            self._children = self.events, children(self.history, tuple(told))
        return self._children[1][step]

    def _call(self, step: str, one: Seen, common: dict[str, Any]) -> StepNarrative:
        record = self.history.calls[step]
        started, finished, refused = record.started, record.finished, record.refused
        state = self._state(step, one)
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
            state_diff=state_diff(started, finished, unknown=record.unknown, undone=self.history.undone.get(step)),
            **common,
        )


def _model(one: Seen, common: dict[str, Any]) -> StepNarrative:
    answer = one.answer
    if answer is None:
        raise AssertionError(common["step"])
    return StepNarrative(
        name="model",
        state="ok",
        ended_at=one.until,
        result_preview=said(answer.result, answer.result_blob),
        llm_invocation=LlmInvocation(
            model=answer.llm_model,
            provider=answer.llm_provider,
            temperature=answer.llm_temperature,
            prompt_hash=answer.prompt_hash,
            token_count=answer.token_count,
        ),
        **common,
    )


def _passed(relayed: k.RequestRelayed, one: Seen, common: dict[str, Any]) -> StepNarrative:
    """A request that was passed on to a server as it was."""
    return StepNarrative(
        name=f"relayed.{relayed.method}",
        state="failed" if relayed.error else "ok",
        args_preview=relayed.target,
        reason=relayed.error,
        ended_at=one.until,
        **common,
    )


def _wait_step(kind: str, one: Seen, common: dict[str, Any]) -> StepNarrative:
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
