"""Decisions about results: a person accepts one in the inbox, as any call that needs a confirmation.

The tool only proves that the result is still the one that was shown; its caller writes the decision to the
issue, and the control plane takes it over from there, as if a person had set the label on the forge.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from remit.codes import Code
from remit.errors import ProviderError, RemitError
from remit.jobs.recipe import recipe
from remit.jobs.run import Run
from remit.parts.work.references import IssueRef
from remit.parts.work.store import WorkStore
from remit.redact import line
from remit.tools.provider import CallContext, Preview, ToolResult, Toolset, arguments, declare

PROVIDER: Final = "decision"
ACCEPT: Final = "decision.accept"
RECIPE: Final = "work_decision"


class AcceptArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result that is looked at."""

    issue_ref: Annotated[str, Meta(min_length=3, max_length=512)]
    run_id: Annotated[str, Meta(min_length=3, max_length=512)]


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The decision."""

    accepted: bool


class DecisionProvider(Toolset):
    """decision.accept: asks whether the result of a run is good."""

    def __init__(self, store: WorkStore) -> None:
        about = "Accept the result of a run: its issue is done."
        super().__init__(PROVIDER, (declare(ACCEPT, about, AcceptArgs, Accepted, provider=PROVIDER, writes=True),))
        self._store = store

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:  # noqa: ARG002 - the port's
        """Accept a result that is still the newest one of an issue in review. Raise ProviderError."""
        self._require(name)
        await self._summary(arguments(AcceptArgs, args))
        return ToolResult(msgspec.to_builtins(Accepted(accepted=True)))

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        """Show the result. Raise ProviderError."""
        self._require_open()
        accept_args = arguments(AcceptArgs, args)
        return Preview(
            what=f"Accepts {accept_args.run_id} of {accept_args.issue_ref} ({name}).",
            diff=await self._summary(accept_args),
        )

    async def _summary(self, args: AcceptArgs) -> str:
        """Return the result as lines of a diff. Raise ProviderError unless it is the one to decide about."""
        try:
            issue = IssueRef.parse(args.issue_ref)
            unit, result = await self._store.unit(issue), await self._store.result(issue, args.run_id)
        except RemitError as error:
            raise ProviderError(error.message, cause=Code.not_found) from error
        if result is None or unit.state != "review" or next(reversed(unit.runs)) != args.run_id:
            raise ProviderError(f"{args.run_id} is not what {issue} has in review.", cause=Code.stale_run)
        rows = [result.summary, f"PR {result.changes.pr}", f"commit {result.changes.commit}"]
        rows += [f"{test.result} {test.command}" for test in result.tests]
        return "\n".join(f"+{line(row, 1_000)}" for row in rows if row.split(" ", 1)[-1])


@recipe(RECIPE, version="1")
async def work_decision(run: Run, issue_ref: str, run_id: str) -> str:
    """Ask whether the result of a run is good, and write the decision to its issue: `accept`, `reject` or `none`.

    A denial with its reason requests changes. An issue that someone decided about otherwise is left as it is.
    """
    outcome = await run.attempt(ACCEPT, {"issue_ref": issue_ref, "run_id": run_id})
    denied = outcome.code is Code.CONFIRMATION_DENIED
    if not (outcome.ok or denied):
        return "none"
    if denied:
        comment_args = {
            "issue_ref": issue_ref,
            "trigger": f"decision:{run_id}",
            "body": f"Changes requested: {outcome.reason}",
        }
        await run.call("outbox.comment", comment_args)
    decision = "reject" if denied else "accept"
    issue = (await run.call("outbox.get", {"issue_ref": issue_ref})).value
    labels = [label for label in issue.get("labels", []) if not label.startswith("decision:")]
    await run.call("outbox.mutate", {"issue_ref": issue_ref, "labels": [*labels, f"decision:{decision}"]})
    return decision
