"""Forks: a new job that shares what another one recorded up to a step, and lives on from there with something changed.

Nothing is copied: `job_forked` names the job and the last of its events that count (journal/lineage.py). No approval of
the other job counts for the calls of this one, and its mistakes are its own: what it does again is really done again.

The results and arguments that a fork gives steps in place of recorded ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from remit.canonical import as_json
from remit.codes import Code
from remit.errors import AppendConflictError, StateError, UsageError
from remit.jobs.plans.check import read_plan
from remit.jobs.plans.plan import bind_inputs
from remit.jobs.state import KIND, JobHistory, stream_of
from remit.journal import kinds as k
from remit.journal.blobs import pack
from remit.journal.labels import OURS
from remit.models.message import Message, Text, encode
from remit.operation import Body, By, FromKey, JobReference, operation
from remit.parts.forks.diff import RunDiff, Side, diff
from remit.parts.forks.line import ForkCut, cut, events_of, line_of
from remit.record.heads import head_of
from remit.record.job_story import story_of
from remit.record.states import shown_state
from remit.record.views import job_row
from remit.service.admission import NO_ROOM
from remit.service.options import Options
from remit.service.retry import CONTINUES, renewed, replayable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from remit.http.access import Access
    from remit.journal.event import Blob, Event, StreamHead
    from remit.service.jobs import Jobs
    from remit.service.noun_means import NounOpening
    from remit.service.parts import Parts


class ForkEvent(msgspec.Struct, frozen=True):
    """An event that a fork begins with, and the bytes beside it."""

    payload: k.Payload
    blobs: tuple[Blob, ...] = ()


def args_given(step: str, args: dict[str, Any], by: str) -> ForkEvent:
    """Give a step that runs again other arguments."""
    packed = pack(as_json(args))
    return ForkEvent(k.StepArgsGiven(step=step, args=packed.inline, args_blob=packed.ref, by=by), packed.blobs)


def result_given(step: str, value: Any, events: Iterable[Event], by: str) -> ForkEvent:
    """Give a recorded step another result; `events` are those of the step. Raises UsageError (FORK_INVALID).

    What a model said is a text; a moment is in microseconds since the Unix epoch.
    """
    recorded = [k.decode(event.kind, event.data) for event in events]
    last = next((payload for payload in reversed(recorded) if isinstance(payload, _RESULTS)), None)
    try:
        match last:
            case k.ToolInvocationFinished():
                packed = pack(as_json(value))
                return ForkEvent(_finished(last, packed.inline, packed.ref, by), packed.blobs)
            case k.CommandCommitted():
                return _said(last, msgspec.convert(value, str))
            case k.WaitCompleted():
                packed = pack(as_json(value))
                came = {"payload": packed.inline, "payload_blob": packed.ref, "timed_out": False, "by": by}
                return ForkEvent(msgspec.structs.replace(last, inbox_seq=0, **came), packed.blobs)
            case k.TimeRecorded():
                return ForkEvent(k.TimeRecorded(step=step, value=msgspec.convert(value, int)))
            case k.RandomRecorded():
                return ForkEvent(k.RandomRecorded(step=step, value=msgspec.convert(value, float)))
            case k.UuidRecorded():
                return ForkEvent(k.UuidRecorded(step=step, value=msgspec.convert(value, str)))
            case _:
                pass
    except msgspec.ValidationError as error:
        reason = f"this is no result for step {step}: {error}"
        raise UsageError(
            reason, code=Code.FORK_INVALID, remedy="Look at what it returned: remit show JOB STEP."
        ) from error
    reason = f"step {step} has no result that another one could take the place of"
    raise UsageError(reason, code=Code.FORK_INVALID, remedy=f"Run it again instead: --at {step}.")


def _finished(last: k.ToolInvocationFinished, inline: k.OptionalRaw, ref: k.OptionalRef, by: str) -> k.Payload:
    outcome = last.step_outcome if last.outcome == "success" else "success"
    fields = {"outcome": "success", "step_outcome": outcome, "error": None, "evidence": 0, "decided_by": by}
    if last.effect and last.outcome != "success":
        fields |= {"effect": "committed", "effect_by": "person"}
    return msgspec.structs.replace(last, result=inline, result_blob=ref, **fields)


def _said(last: k.CommandCommitted, text: str) -> ForkEvent:
    message = Message("assistant", (Text(text),), f"{last.llm_provider}/{last.llm_model}")
    packed = pack(encode(message))
    fields = {"outcome": "success", "error": None, "again_ms": None, "finish_reason": "answer"}
    return ForkEvent(
        msgspec.structs.replace(last, result=packed.inline, result_blob=packed.ref, **fields), packed.blobs
    )


_RESULTS = (
    k.ToolInvocationFinished,
    k.CommandCommitted,
    k.WaitCompleted,
    k.TimeRecorded,
    k.RandomRecorded,
    k.UuidRecorded,
)


FORK_OF: Final = "remit.fork_of"
"""Label of a job that is a fork of another one: which."""
_MOST: Final = 100
"""Changes that one fork may make."""


class Forked(msgspec.Struct, frozen=True, kw_only=True):
    """A fork that was created."""

    job: str
    of: str
    """The job that recorded what is shared: another one than was named, if that is a fork itself and shares it too."""
    shared: int
    """The last event of it that counts for the new job."""


async def may_fork(forks: Forks, access: Access, path: Mapping[str, Any]) -> None:
    """Raise Problem unless a token may have a job run again: all that it may, under the requester's name."""
    access.require_all_tools("the job")
    if access.principal is not None and await forks.jobs.principal(path["job"]) != access.principal:
        access.require("decide")


class Forks:
    """The forks of one journal's jobs."""

    def __init__(self, parts: Parts, jobs: Jobs, principal: str) -> None:
        self.jobs = jobs
        self._parts = parts
        self._journal = parts.journal
        self._principal = principal

    @operation(
        "forks.make",
        "POST /v1/jobs/{job}/fork",
        "call",
        "Run a job again from a step, with something changed.",
        body=Body("ForkBody", "Where a job is run again, and what is changed."),
        status=201,
        codes=(
            Code.JOB_NOT_FOUND,
            Code.STEP_NOT_FOUND,
            Code.JOB_NOT_REPLAYABLE,
            Code.RETRY_REPEATS,
            Code.FORK_INVALID,
            Code.PAYLOAD_ERASED,
            Code.UNKNOWN_RECIPE,
            *NO_ROOM,
        ),
        check=may_fork,
        example={"at": "2", "results": {"1": {"total": 10}}},
    )
    async def make(
        self,
        job: JobReference,
        at: str = "",
        *,
        input: dict[str, Any] | None = None,  # noqa: A002 - as the job's own field is called
        results: dict[str, Any] | None = None,
        args: dict[str, dict[str, Any]] | None = None,
        tools: dict[str, str] | None = None,
        models: dict[str, str] | None = None,
        repeat: bool = False,
        by: By = "",
        reason: str = "",
        made: Annotated[str, FromKey("job", repeats=True)] = "",
    ) -> Forked:
        """Create a job that shares what another one recorded before step `at`, and lives on from there.

        It runs today's code, and asks again for every approval. `input` takes the place of fields of the input;
        `results` of what recorded steps returned, `args` of what steps are given that run again; `tools` and `models`
        of those that new calls and questions go to. Without `at` it begins at the first step of `args`, else after the
        last one of `results`, else at the start. Calls that took effect, or may have, are made again only with
        `repeat`. Raises NotFoundError, StateError, UsageError (FORK_INVALID) or PayloadErasedError.
        """
        results, args = results or {}, args or {}
        if len(results) + len(args) + len(tools or {}) + len(models or {}) > _MOST:
            raise UsageError(f"a fork makes at most {_MOST} changes", code=Code.FORK_INVALID, remedy="Change less.")
        head = await replayable(self._journal, job)
        await self._check_names(job, tools or {}, models or {})
        line = await line_of(self._journal, job, head.seq)
        taken = await cut(line, at, results, args, repeat=repeat)
        if taken.repeated:
            steps = ", ".join(taken.repeated)
            problem = f"the fork of {job} would repeat calls that took effect, or may have: step {steps}"
            remedy = f"Choose a later step with --at, or --repeat them. See what they did: remit trace {job}"
            raise StateError(problem, code=Code.RETRY_REPEATS, remedy=remedy)
        changes = await self._changes(taken, results, args, by or self._principal)
        created, blobs = await self._created(job, input or {})
        base, before = taken.line[0].job, line[0].forked
        (last,) = await self._journal.page(stream_of(base), taken.seq - 1, 1)
        forked = k.JobForked(
            job=base,
            seq=taken.seq,
            hash=last.hash.hex(),
            step=at,
            by=by or self._principal,
            reason=reason,
            shared=True,
            changes=len(changes),
            tools={**(before.tools if before else {}), **(tools or {})},
            models={**(before.models if before else {}), **(models or {})},
        )
        blobs += tuple(blob for change in changes for blob in change.blobs)
        events = (created, forked, *(change.payload for change in changes))
        try:
            made = await self.jobs.create(created.name, blobs, _options(head, job, made), *events)
        except AppendConflictError:
            if not made or (await head_of(self._journal, made)).labels.get(FORK_OF) != job:
                raise
        return Forked(job=made, of=base, shared=taken.seq)

    @operation(
        "forks.diff",
        "GET /v1/jobs/{job}/diff/{other}",
        "read",
        "Compare two runs step by step.",
        codes=(Code.JOB_NOT_FOUND,),
    )
    async def diff(self, job: JobReference, other: JobReference, *, every: bool = False) -> RunDiff:
        """Compare two jobs, or sessions: which steps were put in, left out, or went otherwise.

        Steps are aligned by place, tool and arguments. With `every`, those that are the same are listed too. Raises
        NotFoundError.
        """
        return diff(await self._side(job), await self._side(other), every=every)

    async def _side(self, job: str) -> Side:
        head = await head_of(self._journal, job)
        state = shown_state(job_row(head)) if head.kind == KIND else "session"
        return Side(job, await story_of(self._journal, job), state)

    async def _check_names(self, job: str, tools: Collection[str], models: Collection[str]) -> None:
        """Raise UsageError (FORK_INVALID) for a tool or model in whose place nothing would ever come.

        The default model has no name; a job that asks none has no use for another one.
        """
        if not (tools or models):
            return
        history = (await story_of(self._journal, job)).history
        called = {record.tool for record in history.calls.values()}
        models_used = {record.started.name for record in history.models.values() if record.started is not None}
        if history.forked is not None:  # its code still asks for what an earlier fork put something else in place of
            called, models_used = called | history.forked.tools.keys(), models_used | history.forked.models.keys()
        strange = [name for name in tools if name not in called and await self._parts.catalog.find(name) is None]
        strange += [name or "the default" for name in models if not (name in models_used if name else models_used)]
        if strange:
            reason = f"{job} uses no tool or model {', '.join(strange):.200}, so there is nothing to put another one in"
            remedy = f"`remit show {job}` names those of its steps."
            raise UsageError(reason, code=Code.FORK_INVALID, remedy=remedy)

    async def _changes(
        self, taken: ForkCut, results: Mapping[str, Any], args: Mapping[str, dict[str, Any]], by: str
    ) -> list[ForkEvent]:
        """Return what the fork gives steps. Raises UsageError (FORK_INVALID) for one that has no result to change."""
        changes = [ForkEvent(change) for change in taken.changes]
        for step, value in results.items():
            events = await events_of(taken.line, taken.seq, step)
            if not events:
                reason = f"step {step} is not among those that are shared, so it has no result to change"
                remedy = f"Let the fork begin after it, or give it other arguments: {step}.args."
                raise UsageError(reason, code=Code.FORK_INVALID, remedy=remedy)
            changes.append(result_given(step, value, events, by))
        return [*changes, *(args_given(step, value, by) for step, value in args.items())]

    async def _created(self, job: str, values: Mapping[str, Any]) -> tuple[k.JobCreated, tuple[Blob, ...]]:
        """The new job's creation: as the other one's, for today's code. Raises PayloadErasedError or NotFoundError."""
        first = JobHistory(await self._journal.page(stream_of(job), 0, 1))
        created = renewed(first, self._parts.programs)
        changed = msgspec.json.decode(await self._journal.value(created.input, created.input_blob) or b"{}") | values
        if values and created.kind == "recipe":
            bound = self._parts.programs.recipes.get(created.name).bind(changed, strict=False)
            changed = dict(bound.input)
        elif values:
            planned = (await self.jobs.history(job, 2)).plan
            graph = await self._journal.value(planned.task_graph, planned.task_graph_blob) if planned else None
            changed = bind_inputs(read_plan(msgspec.json.decode(graph or b"null")), changed, strict=False)
        packed = pack(as_json(changed))
        return msgspec.structs.replace(created, input=packed.inline, input_blob=packed.ref), packed.blobs


def _options(head: StreamHead, job: str, new_job: str) -> Options:
    labels = {name: text for name, text in head.labels.items() if not name.startswith(OURS) or name == CONTINUES}
    return Options(
        title=head.title,
        labels={**labels, FORK_OF: job},
        priority=head.priority,
        subject=head.subject,
        job=new_job,
    )


def open_forks(opening: NounOpening) -> Forks:
    """Return the forks of a journal."""
    return Forks(opening.parts, opening.service.jobs, opening.principal)
