"""Jobs set going: `remit run`, `remit resume` and `remit retry`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import json_option, pass_state, wait_option
from remit.cli.output import clean, reserved_stdout
from remit.cli.runnable import from_module, list_runnable
from remit.cli.values import json_object, pairs
from remit.errors import ChainBrokenError, StateError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from remit.cli.access import Opened

_PLANS: Final = (".yaml", ".yml", ".json")


class _Command(click.Command):
    """A command that also completes the parameters of the recipe that it is to run."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Options of the command, then those of the recipe."""
        completions = super().shell_complete(ctx, incomplete)
        return completions + complete.parameters(ctx, incomplete) if incomplete.startswith("-") else completions


@click.command(
    "run",
    cls=_Command,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.argument("name", required=False, metavar="NAME", shell_complete=complete.recipes)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[--PARAMETER VALUE]...")
@click.option("--input", "input_text", metavar="JSON|@FILE", help="All parameters as one JSON object; @- reads stdin.")
@click.option("--title", default="", help="Title to show in lists.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label the job; repeatable.")
@click.option("--priority", metavar="N", default=0, help="Workers run jobs with a higher priority first.")
@click.option(
    "--policy",
    "rules",
    metavar="FILE",
    help="Add rules for this job: a TOML file of [[policy.rules]] that deny or ask.",
)
@click.option("--skill", "skills", multiple=True, metavar="NAME", help="Put the job under a skill; repeatable.")
@click.option(
    "--about",
    "subject",
    metavar="NAME",
    help="The subject that its values are about: `remit erase --subject NAME` erases them.",
)
@click.option(
    "--untrusted",
    is_flag=True,
    help="The input is untrusted text, such as a mail: an agent's task then names nothing that it may reach.",
)
@click.option("--detach", is_flag=True, help="Print the job's id and leave it to a worker.")
@wait_option
@json_option("job, state, and result or error")
@click.option("-h", "--help", "help_", is_flag=True, help="Show this message; with NAME, show the recipe's parameters.")
@pass_state
@click.pass_context
def command(
    context: click.Context,
    state: CommandState,
    name: str | None,
    words: tuple[str, ...],
    input_text: str | None,
    title: str,
    labels: tuple[str, ...],
    priority: int,
    rules: str | None,
    skills: tuple[str, ...],
    subject: str | None,
    untrusted: bool,
    detach: bool,
    patient: bool,
    help_: bool,
) -> int:
    """Run a recipe or a plan, and show its result.

    NAME is a recipe, a plan (.yaml, .yml or .json), or a Python file that defines one recipe; FILE.py:RECIPE picks one
    of several. Pass the recipe's parameters as options: `remit run NAME --help` lists them. Without NAME, lists what
    you can run.

    Progress goes to stderr, the result to stdout. Ctrl-C stops the job; you can resume it later. If a call needs
    approval, Remit asks you at the terminal. Without a terminal it prints how to answer and exits with status 4.
    """
    if name is None:
        if help_:
            click.echo(context.get_help())
            return exit_codes.OK
        return list_runnable(state, Path())
    name = from_module(state, name)
    if help_:
        return _explain(context, state, name)
    options: dict[str, Any] = {"title": title, "labels": pairs(labels, "--label"), "priority": priority}
    options |= {"untrusted": untrusted, "skills": skills}
    if subject is not None:
        from remit.journal.references import fit_subject

        options["subject"] = fit_subject(subject)
    if rules is not None:
        from remit.cli.policies import rules_in

        options["policy"] = rules_in(Path(rules))
    start = _Start(name, words, json_object(input_text, "--input") if input_text is not None else {}, options)
    if detach:
        return _detach(state, start)
    from remit.cli.job_worker import work_on

    return work_on(state, start, patient=patient, creates=True)


class _Start:
    """Creates the job, once everything about it was found to be right."""

    def __init__(self, name: str, words: Sequence[str], args: dict[str, Any], options: dict[str, Any]) -> None:
        self.name = name
        self.words = words
        self.args = args
        self.options = options

    async def __call__(self, remit: Opened, new: str = "") -> list[str]:
        """Return the job's identifier: `new`, if that is given. Raises UsageError."""
        from remit.cli.parameters import plan_input, recipe_input
        from remit.service.options import Options

        options = Options(**self.options, job=new)
        if is_plan(self.name):
            plan = await _plan(remit, self.name)
            inputs = {**self.args, **plan_input(plan, self.words)}
            return [await remit.service.jobs.start_plan(plan, inputs, options)]
        words = recipe_input(await remit.service.recipes.view(self.name), self.words)
        return [await remit.service.jobs.start_named(self.name, {**self.args, **words}, options)]


def is_plan(name: str) -> bool:
    """Return whether a name is a plan's file rather than a recipe."""
    return name.endswith(_PLANS)


async def _plan(remit: Opened, file: str) -> Any:
    from remit.jobs.plans.source import load_plan

    tools = {word for tool in await remit.service.tools.views() for word in (tool.name, tool.key, tool.wire_name)}
    return load_plan(file, tools=tools, recipes=[view.name for view in await remit.service.recipes.views()])


def _detach(state: CommandState, start: _Start) -> int:

    async def create(remit: Opened) -> str:
        return (await start(remit))[0]

    with reserved_stdout():
        job = state.ask(create, creates=True)
    return state.show({"job": job, "state": "pending"}, lambda state, _: state.output.out.line(job))


# --- help


def _explain(context: click.Context, state: CommandState, name: str) -> int:
    """Print what a recipe or a plan takes; nothing is opened for it but the modules."""
    from remit.cli.runhelp import plan_help, recipe_help

    if not state.server:
        state.journal = ":memory:"

    async def found(remit: Opened) -> Any:
        return await _plan(remit, name) if is_plan(name) else await remit.service.recipes.view(name)

    what = state.ask(found)
    formatter = context.make_formatter()
    if is_plan(name):
        plan_help(formatter, name, what)
    else:
        recipe_help(formatter, what)
    click.echo(formatter.getvalue().rstrip("\n"))
    return exit_codes.OK


_OPEN: Final = ("pending", "running", "waiting")
_MOST: Final = 10_000


@click.command("resume")
@click.argument("jobs", nargs=-1, metavar="[JOB]...", shell_complete=complete.jobs)
@click.option("--all", "everything", is_flag=True, help="Every job that has not ended.")
@wait_option
@json_option("job, state, and result or error; a list for several jobs")
@pass_state
@click.pass_context
def resume(context: click.Context, state: CommandState, jobs: tuple[str, ...], everything: bool, patient: bool) -> int:
    """Continue jobs that stopped or are waiting.

    Recorded steps are not done again. A job whose process died is taken over at once; a job that another process is
    running is only watched. Otherwise this works like `remit run`. JOB is an id, a unique ending of one, or `last`.
    Damaged jobs are named and left out by --all; the status is then 7.
    """
    if bool(jobs) == everything:
        raise click.UsageError("Give JOB or --all.", context)
    from remit.cli.job_worker import work_on
    from remit.cli.runnable import count_in_files_of

    damaged: list[str] = []

    async def choose(remit: Opened, _new: str) -> list[str]:
        if everything:
            listed = await remit.service.jobs.rows(_OPEN, limit=_MOST)
            for row in listed:
                try:
                    with suppress(StateError):  # it has ended since it was listed: how it ended is shown all the same
                        await _wake(state, remit, row.job)
                except ChainBrokenError as error:  # no worker continues it
                    state.output.err.line(f"{state.output.err.style('damaged', 'fail')} {clean(str(error))}")
                    damaged.append(row.job)
            return [row.job for row in listed if row.job not in damaged]
        job_ids = list(dict.fromkeys([await remit.service.jobs.find(job) for job in jobs]))
        for job in job_ids:
            await _wake(state, remit, job)
        return job_ids

    count_in_files_of(state, jobs, _OPEN if everything else ())
    status = work_on(state, choose, patient=patient)
    return exit_codes.DAMAGED if damaged else status


async def _wake(state: CommandState, remit: Opened, job: str) -> None:
    """Make a job due; say who works on it, if someone does."""
    from remit.record.states import holder, is_held

    row = await remit.service.jobs.row(job)
    if is_held(row):
        state.note(f"{holder(row)} is running {job}")
    await remit.service.jobs.resume(job)


@click.command("retry")
@click.argument("job", shell_complete=complete.jobs)
@click.option(
    "--from", "step", default="", metavar="STEP", help="Run again from this step. Default: the one that failed."
)
@click.option("--repeat", is_flag=True, help="Repeat calls that took effect, or may have.")
@click.option("--reason", default="", help="The reason; it is recorded.")
@wait_option
@json_option("job, state, and result or error")
@pass_state
def retry(state: CommandState, job: str, step: str, repeat: bool, reason: str, patient: bool) -> int:
    """Run a failed or cancelled job again, keeping its finished steps.

    Creates a new job that keeps every finished step except the one that failed, and continues from there with the
    current code. JOB itself is unchanged. With --from, STEP and every step that began after it run again. JOB is an id,
    a unique ending of one, or `last`.
    """
    from remit.cli.job_worker import work_on
    from remit.cli.runnable import count_in_files_of

    async def choose(remit: Opened, _new: str) -> list[str]:
        job_id = await remit.service.jobs.find(job)
        retried = await remit.service.jobs.retry(job_id, step, repeat=repeat, reason=reason)
        state.note(f"retrying {job_id}" + (f"; again: step {', '.join(retried.again)}" if retried.again else ""))
        return [retried.job]

    count_in_files_of(state, (job,))
    return work_on(state, choose, patient=patient)
