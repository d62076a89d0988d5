"""Steps of jobs: look at one whole, decide one whose outcome is unknown.

The whole input and result of a step, of whatever kind it is: as its arguments and value on every face.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from remit.codes import Code
from remit.errors import NotFoundError, PayloadErasedError, StateError, UsageError
from remit.gateway.confirmation import KIND as CONFIRMATION
from remit.jobs.inbox import JobInbox
from remit.jobs.state import CallRecord, JobHistory, stream_of
from remit.journal import kinds as k
from remit.journal.event import UNSET, HeadQuery
from remit.journal.kinds import ErrorInfo, GateRefused, StepDecided
from remit.journal.lineage import whole
from remit.models.message import Message
from remit.models.message import decode as message_of
from remit.models.openai_messages import to_openai
from remit.operation import Body, By, operation
from remit.record.heads import open_job, stream_named
from remit.record.job_story import error_view, step_row, story_of, whole_step
from remit.record.transcript import prompts_of
from remit.record.values import ERASED, encoded, value_of
from remit.record.views import StepView, TaskError

if TYPE_CHECKING:
    from remit.gateway.services import Services
    from remit.jobs.state import ModelRecord, WaitRecord
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.record.story import EventStory


async def prompt_of(journal: Journal, events: list[Event], step: str) -> list[Message]:
    """The messages that the newest attempt of a step asked a model, oldest first; none if it asked none.

    Raises PayloadErasedError.
    """
    prompts = await prompts_of(journal, events, own=False)
    prompt = prompts.asked(step)
    return prompt.messages() if prompt is not None else []


async def answer_of(journal: Journal, record: ModelRecord) -> Message | None:
    """Return what a model answered; None if it did not. Raises PayloadErasedError."""
    committed = record.committed
    if committed is None:
        return None
    recorded = await journal.value(committed.result, committed.result_blob)
    return message_of(recorded) if recorded is not None else None


class StepValues:
    """The values of the steps of one job or session."""

    def __init__(self, journal: Journal, history: JobHistory, stream: str) -> None:
        self._journal = journal
        self._history = history
        self._stream = stream

    async def args(self, step: str, question: str = "") -> Any:
        """A step's input; None if it has none. `question`: the newest one that people are asked about a call."""
        history = self._history
        if step in history.calls:
            return await self._args_of_call(history.calls[step], question)
        if step in history.models:
            return await self._prompt(step, history.models[step])
        if step in history.children:
            child = history.children[step]
            return await value_of(self._journal, child.input, child.input_blob)
        if step in history.compensations:
            return {"steps": list(history.compensations[step].steps)}
        wait = self._wait(step)
        return _purpose(wait.waiting) if wait is not None else None

    async def value(self, step: str) -> Any:
        """A step's result; None if it has none."""
        history, journal = self._history, self._journal
        if step in history.calls:
            finished = history.calls[step].finished
            return await value_of(journal, finished.result, finished.result_blob) if finished else None
        if step in history.models:
            return await self._answer(history.models[step])
        if step in history.values:
            return history.values[step].value
        if step in history.returned:
            returned = history.returned[step]
            return await value_of(journal, returned.result, returned.result_blob)
        if step in history.compensated:
            done = history.compensated[step]
            return {"undone": list(done.undone), "left": list(done.left)}
        return await self._came(step)

    async def _args_of_call(self, record: CallRecord, question: str) -> Any:
        started = record.started
        if started is not None:
            return await value_of(self._journal, started.args, started.args_blob)
        if not question or record.refused is not None:
            return None
        # Nothing of it is recorded in the job before the answer.
        heads = await self._journal.heads(HeadQuery(kind=CONFIRMATION, labels={"id": question}, limit=1))
        return await self._args_asked(heads[0].stream) if heads else None

    async def _args_asked(self, stream: str) -> Any:
        for event in await self._journal.read(stream):
            request = k.decode(event.kind, event.data)
            if isinstance(request, k.ConfirmationRequested):
                return await value_of(self._journal, request.args, request.args_blob)
        return None

    async def _prompt(self, step: str, record: ModelRecord) -> Any:
        started = record.started
        if started is None:
            return None
        try:
            events = await whole(self._journal, await self._journal.read(self._stream))
            messages = await prompt_of(self._journal, events, step)
        except PayloadErasedError:
            return ERASED
        settings = await value_of(self._journal, started.prompt, started.prompt_blob)
        named = settings if isinstance(settings, dict) else {}
        return {
            "messages": to_openai(messages),
            "tools": await self._offered(named.get("tools") or ""),
            **{name: named[name] for name in ("choice", "sampling") if name in named},
        }

    async def _answer(self, record: ModelRecord) -> Any:
        """Return what a model answered, as a message; None if it did not."""
        try:
            answer = await answer_of(self._journal, record)
        except PayloadErasedError:
            return ERASED
        return to_openai([answer])[0] if answer is not None else None

    async def _came(self, step: str) -> Any:
        """Return what a wait brought; None if nothing came."""
        wait = self._wait(step)
        came = wait.completed if wait is not None else None
        if not isinstance(came, k.WaitCompleted):
            return None
        return await value_of(self._journal, came.payload, came.payload_blob)

    async def _offered(self, digest: str) -> list[str]:
        """The names of the tools that a model was offered."""
        data = await self._journal.blob(digest) if digest else None
        specs: list[dict[str, Any]] = msgspec.json.decode(data) if data is not None else []
        return [spec["name"].replace("__", ".") for spec in specs]

    def _wait(self, step: str) -> WaitRecord | None:
        return next((wait for (place, _), wait in self._history.waits.items() if place == step), None)


def _purpose(waiting: k.JobWaiting) -> dict[str, Any]:
    """Return what a step waits for."""
    match waiting.wait_type:
        case "timer":
            return {"until": waiting.due_at}
        case "human":
            return {"question": waiting.reason, "until": waiting.due_at}
        case _:
            return {waiting.wait_type: waiting.correlation_key, "until": waiting.due_at}


class Steps:
    """The steps of jobs in one journal."""

    def __init__(self, services: Services, principal: str, wake: Callable[[], None]) -> None:
        self._services = services
        self._journal = services.journal
        self._principal = principal
        self._wake = wake

    # --- queries

    @operation(
        "jobs.step",
        "GET /v1/jobs/{job}/steps/{step}",
        "read",
        "Show one step.",
        codes=(Code.JOB_NOT_FOUND, Code.STEP_NOT_FOUND),
    )
    async def view(self, job: str, step: str) -> StepView:
        """Show one step of a job, with its whole input and result.

        Raises NotFoundError (STEP_NOT_FOUND).
        """
        return await self.view_in(await story_of(self._journal, job), job, step)

    async def view_in(self, story: EventStory, job: str, step: str) -> StepView:
        """The same of a job whose story is at hand."""
        step_view = story.told(step)
        if step_view is None:
            remedy = f"`remit show {job}` lists its steps."
            raise NotFoundError(f"{job} has no step {step!r:.80}", code=Code.STEP_NOT_FOUND, remedy=remedy)
        values = StepValues(self._journal, story.history, stream_named(job))
        return StepView(
            row=step_row(step_view),
            args=await values.args(step, step_view.confirmations[-1].confirmation if step_view.confirmations else ""),
            value=await values.value(step),
            error=_error(story.history, step),
            evidence=step_view.evidence,
            narrative=await whole_step(self._journal, step_view),
        )

    async def conversation(self, story: EventStory, job: str, step: str) -> list[Message]:
        """Return what one step asked a model, the answer if it came, and what the model was told of its calls later.

        Raises NotFoundError (STEP_NOT_FOUND), PayloadErasedError.
        """
        journal, history = self._journal, story.history
        record = history.models.get(step)
        if record is None:
            reason = f"{job} asks no model at step {step!r:.80}"
            raise NotFoundError(reason, code=Code.STEP_NOT_FOUND, remedy=f"`remit show {job}` lists its steps.")
        prompts = await prompts_of(journal, await whole(journal, await journal.read(stream_named(job))), own=False)
        prompt, answer = prompts.asked(step), await answer_of(journal, record)
        messages = prompt.messages() if prompt is not None else []
        return messages if answer is None else [*messages, answer, *prompts.results_after(step, answer)]

    # --- commands

    @operation(
        "steps.decide",
        "POST /v1/jobs/{job}/steps/{step}/decide",
        "decide",
        "Decide a step in doubt.",
        body=Body("StepDecision", "The outcome of a step."),
        status=204,
        codes=(Code.JOB_NOT_FOUND, Code.JOB_FINISHED, Code.STEP_NOT_FOUND, Code.STEP_NOT_WAITING, Code.STEP_DECIDED),
        example={"decision": "done", "value": {"sent": True}},
    )
    async def decide(
        self,
        job: str,
        step: str,
        decision: Literal["done", "retry", "fail"],
        value: Any = None,
        *,
        attempt: Annotated[int, msgspec.Meta(ge=1)] | None = None,
        by: By = "",
        reason: str = "",
        replace: bool = False,
    ) -> None:
        """Resolve a step whose end is not recorded; the first decision on an attempt counts.

        A person does that (rule 3). `attempt` is the one that was shown; without it, the attempt that waits now.
        `replace` corrects the decision that stands, as long as no worker has continued it. Raises NotFoundError or
        StateError, and UsageError (INVALID_INPUT) if the tool is known here and does not return what `value` is.
        """
        result = encoded(value, Code.INVALID_INPUT) if decision == "done" else None
        while True:
            head = await open_job(self._journal, job)
            waits = await self._waiting(job, step, attempt, value if decision == "done" else UNSET)
            message = StepDecided(step=step, attempt=waits, decision=decision, by=by or self._principal, reason=reason)
            inbox = JobInbox(self._journal, job)
            if not replace:
                await inbox.decide(message, result, head)
                break
            if await inbox.correct(message, result, head):
                break
        self._wake()

    async def _waiting(self, job: str, step: str, attempt: int | None, value: Any) -> int:
        """The attempt that waits for a decision; `value` is compared with what its tool returns, unless it is UNSET."""
        history = JobHistory(await whole(self._journal, await self._journal.read(stream_of(job))))
        waits = history.in_doubt(step)
        if waits is None or attempt not in {None, waits}:
            what = f"step {step} of {job}" if attempt is None else f"attempt {attempt} of step {step} of {job}"
            msg = f"{what} is not waiting for a decision"
            remedy = f"`remit show {job}` lists its steps; resume the job to see which one waits."
            if step not in history.places and step not in history.calls:
                raise NotFoundError(f"{job} has no step {step!r:.80}", code=Code.STEP_NOT_FOUND, remedy=remedy)
            raise StateError(msg, code=Code.STEP_NOT_WAITING, remedy=remedy)
        if value is not UNSET and waits:
            self._check(history, step, value)
        return waits

    def _check(self, history: JobHistory, step: str, value: Any) -> None:
        """Compare what a person says a call returned with the tool's output schema."""
        record = history.calls.get(step)
        started = record.started if record is not None else None
        tool = self._services.catalog.known(started.tool_name) if started is not None else None
        if tool is None or tool.output is None or tool.quarantined is not None:
            return
        problems = tool.output.problems(value)
        if problems:
            msg = f"this is not what {tool.meta.name} returns: {problems[0]}"
            raise UsageError(msg, code=Code.INVALID_INPUT, remedy="Give a value that matches the tool's output schema.")


def _error(history: JobHistory, step: str) -> TaskError | None:
    """Return what a step ended with, if it did not end well."""
    record = history.calls.get(step) or history.models.get(step)
    if record is None:
        returned = history.returned.get(step)
        return error_view(returned.error) if returned is not None and returned.error is not None else None
    if record.refused is not None:
        return _refusal(record.refused)
    ended = record.finished if isinstance(record, CallRecord) else record.committed
    return error_view(ended.error) if ended is not None and ended.error is not None else None


def _refusal(refused: GateRefused) -> TaskError:
    return error_view(ErrorInfo(code=refused.code, message=refused.reason, step=refused.step, remedy=refused.remedy))
