"""The recipe of one run: an executor does the work, and the outbox says so in the issue."""

from __future__ import annotations

from typing import Any

from remit.codes import Code
from remit.jobs.recipe import recipe
from remit.jobs.run import Run
from remit.parts.work.unit import tool_of


@recipe("work_run", version="3")
async def work_run(
    run: Run, issue_ref: str, run_id: str, executor: str, command: list[str], claim: bool = False
) -> dict[str, Any]:
    """Hand the order of a run to an executor, and write the result to its issue, once.

    With `claim` the issue says `state:doing` before the work begins.

    `executor` and `command` are those of workflow.toml. Returns {result, verdict, comment, pack}: the result as the
    adapter proved it, null if none can be used, and whether it was accepted, archived for a run that took the place of
    this one, or refused; `unready` says why its pull request does not say so.
    """
    if claim:
        await _label(run, issue_ref, "doing")
    exec_args = {"issue_ref": issue_ref, "run_id": run_id, "command": command}
    done: dict[str, Any] = (await run.call(tool_of(executor), exec_args)).value
    if done["comment"]:
        run.progress("writing to the issue")
        written = {"issue_ref": issue_ref, "trigger": done["verdict"]["trigger"], "body": done["comment"]}
        await run.call("outbox.comment", written)
    if done["comment"] or done["verdict"]["code"] == Code.output_unparseable.name:
        await _label(run, issue_ref, done["verdict"]["state"])
    if done.get("pull"):
        pulled = await run.attempt("outbox.pull", done["pull"])
        if not pulled.ok:  # the result counts all the same
            done["unready"] = pulled.reason
    return done


async def _label(run: Run, issue_ref: str, state: str) -> None:
    """Give the issue the label of a state, in the place of another."""
    issue = (await run.call("outbox.get", {"issue_ref": issue_ref})).value
    labels = [label for label in issue.get("labels", []) if not label.startswith("state:")]
    await run.call("outbox.mutate", {"issue_ref": issue_ref, "labels": [*labels, f"state:{state}"]})
