"""Checks on jobs and their steps."""

from __future__ import annotations

from typing import Final

from remit.codes import Code
from remit.errors import AppendConflictError, NotFoundError, PlanError, StateError, UsageError
from remit.ids import new_id
from remit.jobs.plans.check import read_plan
from remit.service.options import Options
from remit_testing.service.world import Check, Reach, refused, world
from remit_testing.suite import checks_in

_PLAN: Final = {
    "version": "taskgraph-v1",
    "name": "look",
    "inputs": {"at": {"type": "string"}},
    "nodes": [{"id": "a", "tool": "desk.look", "args": {"at": "${inputs.at}"}}],
    "output": "${a.value}",
}


async def check_a_job_runs_and_is_looked_at_whole(reach: Reach) -> None:
    """Its view has input, steps and result, as the journal has them."""
    async with world(reach) as place:
        job = await place.ran("looks", at="x")
        view = await place.service.jobs.view(job)
        assert (view.state, view.result, view.principal) == ("completed", {"found": ["X"]}, "ann")
        assert view == await place.local.jobs.view(job)
        assert await place.service.jobs.result(job) == {"found": ["X"]}
        assert await place.service.jobs.row(job) == view.row


async def check_input_may_come_as_text(reach: Reach) -> None:
    """Numbers may be written as a command line writes them."""
    async with world(reach) as place:
        assert await place.service.jobs.result(await place.ran("looks", at="x", times="2")) == {"found": ["X", "X"]}


async def check_a_job_is_filed_as_its_options_say(reach: Reach) -> None:
    """Identifier, title, labels, budget, tools, subject and trust reach the record."""
    async with world(reach) as place:
        options = Options(
            job=new_id("job"),
            title="a look",
            labels={"team": "a"},
            priority=3,
            delay_s=600.0,
            tools=("desk.look",),
            budget={"max_steps": 5},
            policy=({"id": "no", "effect": "deny", "tools": ["desk.write"]},),
            subject="customer-7",
            untrusted=True,
        )
        job = await place.service.jobs.start_named("looks", {"at": "x"}, options)
        assert job == options.job
        row = await place.service.jobs.row(job)
        assert (row.title, row.labels, row.state) == ("a look", {"team": "a"}, "pending")
        created = (await place.local.jobs.history(job)).created
        assert created is not None
        assert created.budget == {"max_steps": 5}
        assert created.overlay["tools"] == ["desk.look"]
        assert created.input_untrusted
        with refused(Code.APPEND_CONFLICT, AppendConflictError):
            await place.service.jobs.start_named("looks", {"at": "y"}, options)


async def check_a_job_that_cannot_be_started_is_refused(reach: Reach) -> None:
    """An unknown recipe, an input that does not fit, an invalid identifier."""
    async with world(reach) as place:
        with refused(Code.UNKNOWN_RECIPE, NotFoundError):
            await place.service.jobs.start_named("none", {})
        with refused(Code.INVALID_INPUT, UsageError):
            await place.service.jobs.start_named("looks", {"unknown": 1})
        with refused(Code.USAGE, UsageError):
            await place.service.jobs.start_named("looks", {"at": "x"}, Options(job="job_1"))


async def check_a_plan_is_carried_out(reach: Reach) -> None:
    """A task graph runs with its inputs; inputs that do not fit are refused."""
    async with world(reach) as place:
        job = await place.service.jobs.start_plan(read_plan(_PLAN), {"at": "x"})
        await place.at_rest(job)
        assert await place.service.jobs.result(job) == "X"
        with refused(Code.INVALID_INPUT, PlanError):
            await place.service.jobs.start_plan(read_plan(_PLAN), {})


async def check_a_job_is_found_by_an_ending_and_as_last(reach: Reach) -> None:
    """References work wherever the journal is; one that fits nothing is refused, whatever it holds."""
    async with world(reach) as place:
        first, second = await place.ran("fails"), await place.ran("fails")
        assert await place.service.jobs.find(first) == first
        assert await place.service.jobs.find(first[-12:]) == first
        assert await place.service.jobs.find("last") == second
        for reference in ("job_none", "", "a/b", "..", "50%25", "ä?#"):
            with refused(Code.JOB_NOT_FOUND, NotFoundError):
                await place.service.jobs.find(reference)


async def check_jobs_are_listed_by_state_and_label_page_by_page(reach: Reach) -> None:
    """Newest first; `before` goes on after a job."""
    async with world(reach) as place:
        failed = await place.ran("fails")
        labelled = await place.service.jobs.start_named("waits", {}, Options(labels={"team": "a=b"}))
        await place.at_rest(labelled)
        assert [row.job for row in await place.service.jobs.rows()] == [labelled, failed]
        assert [row.job for row in await place.service.jobs.rows(("failed", "cancelled"))] == [failed]
        assert [row.job for row in await place.service.jobs.rows(labels={"team": "a=b"})] == [labelled]
        assert await place.service.jobs.rows(labels={"team": "b"}) == []
        assert [row.job for row in await place.service.jobs.rows(limit=1)] == [labelled]
        assert [row.job for row in await place.service.jobs.rows(before=labelled)] == [failed]


async def check_a_signal_reaches_a_job(reach: Reach) -> None:
    """Its payload is what the job gets; one without a name, or to a job that has ended, is refused."""
    async with world(reach) as place:
        job = await place.ran("waits")
        with refused(Code.SIGNAL_INVALID, UsageError):
            await place.service.jobs.signal(job, "")
        await place.service.jobs.signal(job, "go", {"n": 1, "none": None})
        await place.at_rest(job)
        assert await place.service.jobs.result(job) == {"n": 1, "none": None}
        with refused(Code.JOB_FINISHED, StateError):
            await place.service.jobs.signal(job, "go")


async def check_a_job_is_cancelled_with_its_reason(reach: Reach) -> None:
    """The error of a cancelled job says who stopped it and why."""
    async with world(reach) as place:
        job = await place.ran("waits")
        await place.service.jobs.cancel(job, reason="enough")
        await place.at_rest(job)
        error = (await place.service.jobs.view(job)).error
        assert error is not None
        assert (error.code, error.message) == ("JOB_CANCELLED", "cancelled by ann: enough")
        with refused(Code.JOB_FINISHED, StateError):
            await place.service.jobs.cancel(job)


async def check_a_delayed_job_is_resumed_at_once(reach: Reach) -> None:
    """Resuming makes a job due; there is nothing to resume of one that has ended."""
    async with world(reach) as place:
        job = await place.service.jobs.start_named("looks", {"at": "x"}, Options(delay_s=600.0))
        await place.service.jobs.resume(job)
        await place.at_rest(job)
        assert await place.service.jobs.result(job) == {"found": ["X"]}
        with refused(Code.JOB_FINISHED, StateError):
            await place.service.jobs.resume(job)


async def check_jobs_are_replayed_alone_and_together(reach: Reach) -> None:
    """A replay reports that the code does the same; one that cannot be replayed says why."""
    async with world(reach) as place:
        ended, open_ = await place.ran("looks", at="x"), await place.ran("waits")
        assert await place.service.jobs.replay(ended) == await place.local.jobs.replay(ended)
        replays = [each async for each in place.service.jobs.replays()]
        assert [(each.job, each.report and each.report.verdict) for each in replays] == [
            (open_, "incomplete"),
            (ended, "same"),
        ]
        assert [each.job async for each in place.service.jobs.replays(("completed",))] == [ended]
        since = (await place.local.jobs.row(open_)).created_at
        assert [each.job async for each in place.service.jobs.replays(since=since)] == [open_]
        with refused(Code.JOB_NOT_FOUND, NotFoundError):
            await place.service.jobs.replay("job_none")


async def check_a_step_is_shown_whole(reach: Reach) -> None:
    """Arguments, value and error of one step; one that is not there is refused."""
    async with world(reach) as place:
        job = await place.ran("looks", at="x")
        step = await place.service.steps.view(job, "1")
        assert (step.args, step.value) == ({"at": "x"}, "X")
        assert step == await place.local.steps.view(job, "1")
        with refused(Code.STEP_NOT_FOUND, NotFoundError):
            await place.service.steps.view(job, "9/9")


async def check_a_step_that_waits_for_a_decision_is_decided(reach: Reach) -> None:
    """An undo that failed is left as it is; a step that waits for nothing cannot be decided."""
    async with world(reach) as place:
        job = await place.ran("regrets")
        (wait,) = (await place.service.jobs.view(job)).waits
        await place.service.steps.decide(job, wait.step, "fail", reason="it stays booked")
        assert (await place.at_rest(job)).state == "failed"
        waiting = await place.ran("waits")
        with refused(Code.STEP_NOT_WAITING, StateError):
            await place.service.steps.decide(waiting, "1", "retry")


async def check_a_failed_job_is_retried_in_a_new_one(reach: Reach) -> None:
    """Hold that what is recorded is taken over; a job is retried once, and only if it has ended badly."""
    async with world(reach) as place:
        failed, waiting = await place.ran("fails"), await place.ran("waits")
        retried = await place.service.jobs.retry(failed, reason="once more")
        assert retried.job != failed
        await place.at_rest(retried.job)
        forked = (await place.local.jobs.history(retried.job)).forked
        assert forked is not None
        assert (forked.job, forked.by, forked.reason) == (failed, "ann", "once more")
        assert (await place.service.jobs.view(retried.job)).retry_of == failed
        for job in (failed, waiting):
            with refused(Code.JOB_NOT_RETRYABLE, StateError):
                await place.service.jobs.retry(job)
        with refused(Code.STEP_NOT_FOUND, NotFoundError):
            await place.service.jobs.retry(retried.job, "99")
        with refused(Code.JOB_NOT_FOUND, NotFoundError):
            await place.service.jobs.retry("job_none")


JOB_CHECKS: Final[tuple[Check, ...]] = checks_in(globals())
