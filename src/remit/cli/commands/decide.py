"""`remit decide`: a person resolves a call whose outcome is unknown (rule 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState
from remit.cli.options import pass_state
from remit.cli.values import json_value

if TYPE_CHECKING:
    from remit.cli.access import Opened


@click.command("decide")
@click.argument("job", shell_complete=complete.jobs)
@click.argument("step", shell_complete=complete.steps)
@click.option("--done", metavar="JSON|@FILE", help="The call took effect, and this is its result.")
@click.option("--retry", is_flag=True, help="The call did not take effect: make it again.")
@click.option("--fail", is_flag=True, help="Treat the call as failed.")
@click.option(
    "--attempt",
    type=click.IntRange(min=1),
    metavar="N",
    help="The attempt you saw: fail if another one waits.",
)
@click.option("--replace", is_flag=True, help="Correct an earlier decision that no worker has used yet.")
@click.option("--reason", default="", help="The reason; it is recorded.")
@pass_state
@click.pass_context
def command(
    context: click.Context,
    state: CommandState,
    job: str,
    step: str,
    done: str | None,
    retry: bool,
    fail: bool,
    attempt: int | None,
    replace: bool,
    reason: str,
) -> int:
    """Resolve a step whose outcome is unknown.

    If a process dies during a call with side effects, Remit cannot know whether the call took effect, and does not
    guess. Your decision applies to this attempt only, and the first decision counts; --replace corrects it. JOB is an
    id, a unique ending of one, or `last`; `remit show JOB` lists its steps.
    """
    if [done is not None, retry, fail].count(True) != 1:
        raise click.UsageError("Use exactly one of --done, --retry and --fail.", context)
    decision: Literal["done", "retry", "fail"] = "done" if done is not None else "retry" if retry else "fail"
    value: Any = json_value(done, "--done") if done is not None else None

    async def decide(remit: Opened) -> str:
        job_id = await remit.service.jobs.find(job)
        await remit.service.steps.decide(job_id, step, decision, value, attempt=attempt, reason=reason, replace=replace)
        return job_id

    job_id = state.ask(decide, code="unused", writes=True)
    state.note(f"recorded; if no worker runs, continue with: {state.command('resume', job_id)}")
    return exit_codes.OK
