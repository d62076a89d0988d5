"""Jobs: start, find, look at, signal, cancel, resume and replay them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec

from remit.canonical import as_json
from remit.clock import SECOND
from remit.codes import Code
from remit.errors import AppendConflictError, UsageError
from remit.gateway.turnstiles import LimitCaller
from remit.jobs.inbox import JobInbox
from remit.jobs.routes import free, kept_for, route_of
from remit.jobs.state import KIND, NAME, JobHistory, stream_of
from remit.journal.blobs import pack
from remit.journal.event import Blob, HeadPatch, HeadQuery, StreamTally
from remit.journal.kinds import (
    CancelRequested,
    JobCompleted,
    JobCreated,
    JobForked,
    JobLabeled,
    Payload,
    PlanGenerated,
    SignalSent,
    decode,
)
from remit.journal.labels import OURS, Bound, relabeled
from remit.journal.lineage import whole
from remit.journal.references import fit_subject
from remit.journal.sharded.placement import new_identifier
from remit.journal.values import is_pruned
from remit.operation import Body, By, FromKey, JobReference, operation
from remit.record.heads import find_job, fit_identifier, head_of, open_job, prove_job
from remit.record.search import FoundPage, JobSearch, principal_of, search
from remit.record.values import encoded, title_of, value_of
from remit.record.views import JobRow, JobView, job_row
from remit.service.admission import NO_ROOM, JobAdmission
from remit.service.options import Options

if TYPE_CHECKING:
    from remit.http.access import Access
    from remit.jobs.bound import RecipeCall
    from remit.jobs.plans.plan import Plan
    from remit.jobs.replay import ReplayReport, ReplayStop
    from remit.record.job_story import JobStory
    from remit.service.many import Labels, Replayed
    from remit.service.parts import Parts
    from remit.service.retry import Retried

T = TypeVar("T")
_ONE: Final = "/v1/jobs/{job}"
_OPEN: Final = (Code.JOB_NOT_FOUND, Code.JOB_FINISHED)
_PATIENCE_S: Final = 5.0
"""Seconds that a new job waits for servers still connecting: their tools then do not count for its record."""


async def may_retry(jobs: Jobs, access: Access, path: Mapping[str, Any]) -> None:
    """Raise Problem unless a token may have a job run again: all that it may, under the requester's name."""
    access.require_all_tools("the job")
    if access.principal is not None and await jobs.principal(path["job"]) != access.principal:
        access.require("decide")


class Jobs:
    """The jobs of one journal."""

    def __init__(self, parts: Parts, principal: str, wake: Callable[[], None]) -> None:
        self._journal = parts.journal
        self._parts = parts
        self._principal = principal
        self._wake = wake
        self._admission = JobAdmission(parts.journal, parts.settings.jobs)
        self.keeper = ""  # the owner of leases that is about to take what is made or resumed now: no other one may

    # --- queries

    async def find(self, reference: str) -> str:
        """Return a job by identifier, by an end that fits only one, or `last`; or a session. Raises NotFoundError."""
        return await find_job(self._journal, reference)

    async def rows(
        self,
        states: tuple[str, ...] = (),
        *,
        labels: dict[str, str] | None = None,
        bounds: tuple[Bound, ...] = (),
        limit: int = 20,
        before: str | None = None,
        text: str = "",
        since: int = 0,
    ) -> list[JobRow]:
        """Jobs, newest first; `before` continues after a job of an earlier page.

        `bounds` are conditions on the sizes of labels, `text` stands in the title, and `since` is the earliest
        creation, in microseconds since the Unix epoch.
        """
        after = stream_of(before) if before else None
        query = HeadQuery(
            kind=KIND,
            states=states,
            labels=labels or {},
            bounds=bounds,
            limit=limit,
            before=after,
            text=text,
            since=since,
        )
        return [job_row(head) for head in await self._journal.heads(query)]

    async def search(self, wanted: JobSearch) -> FoundPage:
        """The newest jobs that are wanted, and where to go on."""
        return await search(self._journal, wanted)

    async def counts(self) -> dict[str, int]:
        """Return how many jobs are in each state; a state without one is left out."""
        return await self._journal.counts(KIND)

    async def tallies(self, since: int, width: int, bounds: Sequence[int]) -> list[StreamTally]:
        """Count the jobs made from `since` on, by stretches of `width`, state, and `bounds` of their time (µs)."""
        return await self._journal.tallies(KIND, since, width, bounds)

    async def row(self, job: str) -> JobRow:
        """A job's row. Raises NotFoundError."""
        return job_row(await head_of(self._journal, job))

    async def principal(self, job: str) -> str:
        """Return who asked for a job, or opened a session."""
        return await principal_of(self._journal, job)

    async def events(self, job: str) -> int:
        """Return how many events are recorded of a job. Raises NotFoundError."""
        return (await head_of(self._journal, job)).seq

    async def view(self, job: str) -> JobView:
        """One job, whole, as it is at one moment. Raises NotFoundError."""
        from remit.record.job_story import job_view

        return await job_view(self._journal, job)

    async def story(self, job: str, known: JobStory | None = None) -> JobStory:
        """The job as a page shows it; `known` is one of earlier, carried on. Raises NotFoundError."""
        from remit.record.job_story import JobStory

        story = known or JobStory(await self.row(job))
        await story.carry_on(self._journal)
        return story

    async def input(self, job: str) -> Any:
        """Return what a job was given; None for one that is unknown. Raises RecordPrunedError."""
        first = await self._journal.page(stream_of(job), 0, 1)
        created = decode(first[0].kind, first[0].data) if first else None
        return (
            await value_of(self._journal, created.input, created.input_blob)
            if isinstance(created, JobCreated)
            else None
        )

    async def result(self, job: str) -> Any:
        """Return what a completed job returned; None for any other. Raises RecordPrunedError."""
        # Nothing comes after the end.
        head = await head_of(self._journal, job)
        newest = await self._journal.read(stream_of(job), 0 if is_pruned(head) else max(head.seq - 1, 0))
        end = decode(newest[-1].kind, newest[-1].data) if newest else None
        return await value_of(self._journal, end.result, end.result_blob) if isinstance(end, JobCompleted) else None

    async def history(self, job: str, events: int | None = None) -> JobHistory:
        """A job's events, folded: all, or the first so many."""
        return JobHistory(await whole(self._journal, (await self._journal.read(stream_of(job)))[:events]))

    async def replay(self, job: str, *, anyway: bool = False, stop: ReplayStop | None = None) -> ReplayReport:
        """Run a job's recipe on its record, and judge its calls as of today; of a session, its calls alone.

        Raises NotFoundError or VersionError.
        """
        from remit.service.replay import replay_job, replay_session, session_head

        policy = "warn" if anyway else self._parts.services.mismatch
        session = await session_head(self._parts, job) if stop is None else None
        if session is not None:
            return await replay_session(self._parts, session, job, policy)
        return await replay_job(self._parts, job, policy, stop)

    async def settled(self, jobs: Collection[str] | None = None, *, labels: Labels = None) -> list[JobRow]:
        """Wait until jobs have ended or wait for something from outside; their rows. Raises NotFoundError."""
        from remit.service.many import settled

        return await settled(self._journal, jobs, labels=labels)

    def replays(
        self, states: tuple[str, ...] = (), *, since: int = 0, labels: Labels = None, anyway: bool = False
    ) -> AsyncIterator[Replayed]:
        """Replay every job in these states that was created at `since` (µs) or later, newest first."""
        from remit.service.many import replayed

        return replayed(self._journal, partial(self.replay, anyway=anyway), states, since=since, labels=labels)

    # --- commands

    async def start(self, bound: RecipeCall[T], options: Options | None = None) -> str:
        """Create a job that runs a recipe; its identifier. Raises AppendConflictError, StateError or NotFoundError."""
        from remit.jobs.recipe import recipe_of
        from remit.service.job_limits import limits_record

        options, recipe = options or Options(), recipe_of(bound)
        self._parts.programs.recipes.add(recipe)
        if recipe.admits is not None:
            recipe.admits(bound.input)
        skills = await self._parts.skills.admit([recipe.name], options.skills)
        packed = pack(as_json(bound.input))
        if not (options.title or options.subject or packed.blobs):
            options = msgspec.structs.replace(options, title=title_of(recipe.name, as_json(recipe.chosen(bound.input))))
        created = JobCreated(
            kind="recipe",
            name=recipe.name,
            input=packed.inline,
            input_blob=packed.ref,
            principal=options.principal or self._principal,
            execution_version=recipe.execution_version,
            tool_registry_version=await self._registry_version(),
            module=recipe.file,
            schedule=options.schedule,
            **limits_record(options, skills, self._parts.services.policy.groups),
        )
        return await self.create(recipe.name, (*packed.blobs, *skills.blobs), options, created)

    async def start_named(self, name: str, values: Mapping[str, Any], options: Options | None = None) -> str:
        """Create a job by the recipe's name, with input as JSON or as text from a command line."""
        return await self.start(self._parts.programs.recipes.get(name).bind(values, strict=False), options)

    async def start_plan(self, plan: Plan, values: Mapping[str, Any], options: Options | None = None) -> str:
        """Create a job that carries out a task graph. Raises PlanError if the inputs do not fit."""
        from remit.jobs.plans.plan import SCHEMA_VERSION, Child, bind_inputs, plan_hash, task_graph
        from remit.jobs.program import PLANNER_VERSION
        from remit.service.job_limits import limits_record

        options, inputs = options or Options(), pack(as_json(bind_inputs(plan, values)))
        graph = pack(msgspec.json.encode(task_graph(plan)))
        name = plan.name or "plan"
        run_types = ["plan", *(node.action.recipe for node in plan.nodes if isinstance(node.action, Child))]
        skills = await self._parts.skills.admit(run_types, options.skills)
        created = JobCreated(
            kind="plan",
            name=name,
            input=inputs.inline,
            input_blob=inputs.ref,
            principal=options.principal or self._principal,
            execution_version=PLANNER_VERSION,
            planner_version=PLANNER_VERSION,
            tool_registry_version=await self._registry_version(),
            **limits_record(options, skills, self._parts.services.policy.groups),
        )
        planned = PlanGenerated(
            task_graph=graph.inline,
            task_graph_blob=graph.ref,
            planner_version=PLANNER_VERSION,
            schema_version=SCHEMA_VERSION,
            plan_hash=plan_hash(plan),
        )
        return await self.create(name, (*inputs.blobs, *graph.blobs, *skills.blobs), options, created, planned)

    @operation(
        "jobs.retry",
        f"POST {_ONE}/retry",
        "call",
        "Run a failed job again.",
        body=Body("RetryBody", "Where a job goes on, and why."),
        status=201,
        codes=(
            Code.JOB_NOT_FOUND,
            Code.STEP_NOT_FOUND,
            Code.JOB_NOT_RETRYABLE,
            Code.RETRY_REPEATS,
            Code.UNKNOWN_RECIPE,
            *NO_ROOM,
        ),
        check=may_retry,
        example={"reason": "the address is right now"},
    )
    async def retry(
        self,
        job: JobReference,
        step: str = "",
        *,
        repeat: bool = False,
        by: By = "",
        reason: str = "",
        made: Annotated[str, FromKey("job", repeats=True)] = "",
    ) -> Retried:
        """Run a failed or cancelled job again in a new one, which takes over what is recorded.

        It goes on where the other failed; with `step`, from there, also if the job completed. Calls that took
        effect, or may have, are made again only with `repeat`. `made` is the identifier of the new job, if a repeated
        request has to meet the same one: then it is not created again. Raises NotFoundError, or StateError
        (JOB_NOT_RETRYABLE, RETRY_REPEATS).
        """
        from remit.jobs.retry import take_over
        from remit.service.retry import RETRY_OF, Retried, checked_step, fork_of, not_retried, renewed, repeats

        head = await head_of(self._journal, job)
        if not repeat:
            await not_retried(self._journal, job, made)
        events = await whole(self._journal, (await self._journal.read(stream_of(job)))[: head.seq])
        history = JobHistory(events)
        step = checked_step(head, history, step)
        taken = take_over(events, history, step)
        if taken.repeated and not repeat:
            raise repeats(job, taken.repeated)
        created = renewed(history, self._parts.programs)
        labels = {name: text for name, text in head.labels.items() if not name.startswith(OURS)}
        labels = relabeled(labels, *(event.labels for event in taken.events if isinstance(event, JobLabeled)))
        options = Options(title=head.title, labels={**labels, RETRY_OF: job}, priority=head.priority, job=made)
        forked = fork_of(head, step, taken.times, history.forked, by=by or self._principal, reason=reason)
        try:
            made = await self.create(created.name, (), options, created, forked, *taken.events)
        except AppendConflictError:
            if not made or (await head_of(self._journal, made)).labels.get(RETRY_OF) != job:
                raise
        return Retried(job=made, again=taken.again)

    @operation(
        "jobs.signal",
        f"POST {_ONE}/signal",
        "decide",
        "Send a signal.",
        body=Body("SignalBody", "A signal."),
        codes=(*_OPEN, Code.SIGNAL_INVALID),
        invalid=Code.SIGNAL_INVALID,
        example={"name": "go"},
    )
    async def signal(
        self,
        job: str,
        name: str,
        payload: Any = None,
        *,
        by: By = "",
        key: Annotated[str, FromKey("sig", repeats=True)] = "",
    ) -> JobRow:
        """Send a job a signal.

        It must not have ended. Under the same `key` the signal is sent once, however often that is asked for, also if
        the job has ended meanwhile. Raises NotFoundError, StateError or UsageError.
        """
        head, inbox = await head_of(self._journal, job), JobInbox(self._journal, job)
        if key:
            await inbox.refresh()
        if not inbox.has(key):
            head = await open_job(self._journal, job)
        if not name:
            raise UsageError("a signal needs a name", code=Code.SIGNAL_INVALID)
        message = SignalSent(name=name, by=by or self._principal, key=key)
        await inbox.send(message, encoded(payload, Code.SIGNAL_INVALID), head)
        self._wake()
        return await self.row(job)

    @operation(
        "jobs.cancel",
        f"POST {_ONE}/cancel",
        "decide",
        "Stop a job.",
        body=Body("CancelBody", "Why a job is to stop."),
        codes=_OPEN,
        example={"reason": "no longer needed"},
    )
    async def cancel(self, job: str, *, by: By = "", reason: str = "") -> JobRow:
        """Ask a job to stop.

        Its worker ends what is under way. Raises NotFoundError or StateError.
        """
        await open_job(self._journal, job)
        await JobInbox(self._journal, job).post(CancelRequested(by=by or self._principal, reason=reason))
        self._wake()
        await self._for_everyone(job)
        return await self.row(job)

    @operation("jobs.resume", f"POST {_ONE}/resume", "decide", "Continue a job now.", codes=_OPEN)
    async def resume(self, job: str) -> JobRow:
        """Make a job due now, whatever it waits for.

        Raises NotFoundError, StateError, or ChainBrokenError if no worker continues it.
        """
        await prove_job(self._journal, await open_job(self._journal, job))
        if self.keeper:
            await self._for_everyone(job)
        await self._journal.wake(stream_of(job))
        await self._for_everyone(job)
        return await self.row(job)

    async def create(self, name: str, blobs: tuple[Blob, ...], options: Options, *events: Payload) -> str:
        """Create a job of these events. Raises AppendConflictError (it is there), BusyError or NameInvalidError."""
        job = fit_identifier(options.job) if options.job else await new_identifier("job", KIND, self._journal.answers)
        created, *more = events
        if isinstance(created, JobCreated) and more and isinstance(more[0], JobForked):  # any other has been admitted
            await self._parts.skills.admit([created.name] if created.kind == "recipe" else [], ())
        arguments = bytes(raw) if isinstance(raw := getattr(created, "input", None), msgspec.Raw) else b"{}"
        caller = LimitCaller("", getattr(created, "principal", ""), name, options.labels)
        async with self._admission.place(caller) as share:
            patch = HeadPatch(
                state="pending",
                due_at=self._journal.clock.now() + int(options.delay_s * SECOND),
                priority=options.priority,
                route=kept_for(route_of(created) if isinstance(created, JobCreated) else "", self.keeper),
                title=options.title or (name if options.subject else title_of(name, arguments)),
                subject=fit_subject(options.subject) if options.subject else "",
                labels={**options.labels, **self._admission.labels(caller), NAME: name},
                share=share,
            )
            try:
                await self._journal.create(stream_of(job), KIND, *events, patch=patch, blobs=blobs)
            except AppendConflictError as error:
                raise AppendConflictError(f"{job} is there already", remedy=f"Look at it: remit show {job}.") from error
        self._wake()
        return job

    async def _for_everyone(self, job: str) -> None:
        await free(self._journal, stream_of(job), self.keeper)
        self._wake()

    async def _registry_version(self) -> str:
        await self._parts.services.catalog.tools(_PATIENCE_S)
        return self._parts.services.catalog.version
