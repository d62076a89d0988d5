"""The outbox as tools, so that the gateway announces, confirms, records and settles what is written to an issue.

A comment is written once for each trigger: what was confirmed is never posted again, and what was announced is looked
for among the thread's own comments, by the trigger's marker. Of two that carry it, the older one counts.

The rows of the outbox: for each issue a stream that says which triggers are being written, and which stand there.

Who writes to an issue holds its stream under a lease, so that all processes write to it one after another. A trigger is
announced before it is posted, and confirmed with the comment's id after it; one that was announced and not confirmed
may stand in the thread already (contract: executors, "Forge recipe").

The arguments of the outbox's tools, and what they give.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from remit.codes import Code
from remit.errors import ProviderError, UsageError
from remit.journal import kinds as k
from remit.parts.work import kinds as w
from remit.parts.work.comment import MAX_BODY, PULL_TRIGGER, RUN_TRIGGER, Comment, marked, marker_of
from remit.parts.work.outbox.port import Forge, Issue, Pull, PullForm, Pulls, exclusive
from remit.parts.work.outbox.remote import Pushed, branch_of
from remit.parts.work.references import IssueRef
from remit.parts.work.workflow import OutboxTable
from remit.service.calls import TurnTaking
from remit.tools.meta import Retry, ToolMeta
from remit.tools.provider import CallContext, Preview, ToolResult, Toolset, arguments, declare

if TYPE_CHECKING:
    from remit.journal.event import Event
    from remit.journal.journal import Journal
    from remit.journal.leases import HeldLease


KIND: Final = "outbox"


class ThreadRows:
    """The rows of one issue, held by who writes to it."""

    def __init__(self, held: HeldLease, events: Sequence[Event]) -> None:
        self._held = held
        self.announced: set[str] = set()
        """Triggers that may stand in the thread."""
        self.confirmed: dict[str, str] = {}
        """The comment of each trigger that stands there, or stood."""
        for event in events:
            match k.decode(event.kind, event.data):
                case w.OutboxAnnounced(trigger=trigger):
                    self.announced.add(trigger)
                case w.OutboxConfirmed(trigger=trigger, reference=reference):
                    self.confirmed[trigger] = reference
                case _:
                    pass

    async def announce(self, trigger: str) -> None:
        """Record that a comment is about to be posted. Raise AppendConflictError if someone else writes by now."""
        await self._append(w.OutboxAnnounced(trigger=trigger))

    async def confirm(self, trigger: str, reference: str) -> None:
        """Record that a comment stands there. Raise AppendConflictError if someone else writes by now."""
        await self._append(w.OutboxConfirmed(trigger=trigger, reference=reference))

    async def _append(self, payload: k.Payload) -> None:
        await self._held.journal.append(self._held.writer, payload, synced=True)


class OutboxRows:
    """The rows of one journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @asynccontextmanager
    async def turn(self, issue: IssueRef) -> AsyncIterator[ThreadRows]:
        """Wait for the turn to write to an issue, and hold it: no other process writes there meanwhile."""
        stream = f"{KIND}/{issue.file_name}"
        async with TurnTaking(self._journal).held(stream, KIND, w.OutboxOpened(issue_ref=str(issue))) as held:
            yield ThreadRows(held, await self._journal.read(stream))

    async def spent(self, stream: str, step: str, tools: Sequence[str]) -> int:
        """Return how many calls of these tools a job's stream announced before this step."""
        steps = set()
        for event in await self._journal.read(stream):
            payload = k.decode(event.kind, event.data)
            if isinstance(payload, k.ToolInvocationStarted) and payload.tool_name in tools:
                steps.add(payload.step)
        return len(steps - {step})


Reference = Annotated[str, Meta(min_length=3, max_length=512, description="Such as owner/repo#12 or local#12.")]
Labels = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=100)], ...], Meta(max_length=50)]


class GetArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which issue."""

    issue_ref: Reference


class ListArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which issues."""

    labels: Labels = ()
    state: Annotated[str, Meta(pattern="^(open|closed|all)$")] = "open"
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class IssueList(msgspec.Struct, frozen=True):
    """Issues, newest first."""

    issues: list[Issue]


class CreateArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new issue."""

    title: Annotated[str, Meta(min_length=1, max_length=200)]
    body: Annotated[str, Meta(max_length=MAX_BODY)] = ""
    labels: Labels = ()


class Created(msgspec.Struct, frozen=True):
    """The new issue."""

    issue_ref: str


class CommentArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A comment, and what it is written for."""

    issue_ref: Reference
    trigger: Annotated[str, Meta(min_length=1, max_length=200, description="It is written once for each trigger.")]
    body: Annotated[str, Meta(min_length=1, max_length=MAX_BODY)]


class Commented(msgspec.Struct, frozen=True, kw_only=True):
    """The comment that stands in the issue now."""

    reference: str
    written: bool
    """False: it stood there before."""


class MutateArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to change; what is not given stays."""

    issue_ref: Reference
    labels: Annotated[Labels | None, Meta(description="All of the labels; of exclusive ones, one of each kind.")] = None
    assignee: Annotated[str, Meta(max_length=100)] | None = None
    closed: bool | None = None


class PushArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run has done up to now."""

    issue_ref: Reference
    run_id: Annotated[str, Meta(min_length=3, max_length=512)]
    commit: Annotated[str, Meta(pattern="^[0-9a-f]{40,64}$")]


class PushGiven(msgspec.Struct, frozen=True, kw_only=True):
    """The branch as it stands on the remote now."""

    branch: str
    commit: str
    written: bool
    """False: it stood there before."""


class PullArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pull request; the one of the branch is changed if there is one."""

    issue_ref: Reference
    branch: Annotated[str, Meta(min_length=1, max_length=250)]
    target: Annotated[str, Meta(min_length=1, max_length=250, description="The branch that it is meant for.")]
    title: Annotated[str, Meta(min_length=1, max_length=250)]
    body: Annotated[str, Meta(max_length=MAX_BODY)] = ""
    draft: Annotated[bool, Meta(description="False marks it as ready; true marks none as a draft again.")] = True


class PullGiven(msgspec.Struct, frozen=True, kw_only=True):
    """The pull request."""

    url: str
    number: int
    state: str
    draft: bool


PROVIDER: Final = "outbox"

_PATIENCE_MS: Final = 1_800_000
"""A forge's limits are waited out for so long."""
_AGAIN: Final = Retry(attempts=4, first_delay_ms=1_000)
_IN_DOUBT: Final = frozenset({Code.BadGateway, Code.NetworkError, Code.Timeout})
"""Causes of a failure after which a comment may stand there."""
Project = Callable[[], tuple[OutboxTable, Forge]]
"""Gives the project's outbox and its forge, as workflow.toml has them now. Raise UsageError (WORK_INVALID)."""
Wrote = Callable[[IssueRef, str, str], Awaitable[None]]
Queued = Callable[[IssueRef, str], Awaitable[Comment | None]]
Push = Callable[[IssueRef, str, str], Awaitable[tuple[str, Pushed]]]
"""Pushes a commit of an issue's run; gives the branch. Raise ProviderError (stale_run) for one that is not active."""


class OutboxTool(NamedTuple):
    """A tool of this provider."""

    description: str
    takes: type[msgspec.Struct]
    gives: type[msgspec.Struct]
    call: Callable[[Any, CallContext], Awaitable[msgspec.Struct]]
    cap: str = ""
    """The field of `[outbox]` that bounds how often one job calls it; empty: it writes nothing."""


class OutboxProvider(Toolset):
    """Tools that read and write on one forge, and push to the remote beside it.

    `wrote` is told of each comment there, by its issue, trigger and reference. `queued` returns the comment that is to
    be written for the trigger of a run: such a trigger takes no other one.
    """

    def __init__(self, project: Project, rows: OutboxRows, wrote: Wrote, queued: Queued, push: Push) -> None:
        self._pushes = push
        self._project = project
        self._rows = rows
        self._wrote = wrote
        self._queued = queued
        self._calls = {
            "list": OutboxTool("List issues by label.", ListArgs, IssueList, self._list),
            "get": OutboxTool("Read an issue.", GetArgs, Issue, self._get),
            "create": OutboxTool("Open an issue.", CreateArgs, Created, self._create, "max_issues"),
            "comment": OutboxTool(
                "Write a comment, once for each trigger.", CommentArgs, Commented, self._comment, "max_comments"
            ),
            "mutate": OutboxTool(
                "Change labels, assignee or standing.", MutateArgs, Issue, self._mutate, "max_changes"
            ),
            "push": OutboxTool(
                "Push the work on an issue to its branch.", PushArgs, PushGiven, self._push, "max_changes"
            ),
            "pull": OutboxTool(
                "Open or change the pull request of a branch.", PullArgs, PullGiven, self._pull, "max_changes"
            ),
        }
        super().__init__(PROVIDER, [_meta(f"{PROVIDER}.{name}", row) for name, row in self._calls.items()])

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        """Call a tool. Raise ProviderError."""
        self._require(name)
        row = self._calls[name.removeprefix(f"{PROVIDER}.")]
        try:
            await self._require_room(name, row, ctx)
            return ToolResult(msgspec.to_builtins(await row.call(arguments(row.takes, args), ctx)))
        except UsageError as error:
            raise ProviderError(f"{error.message}. {error.remedy}", cause=Code.InvalidInput) from error

    async def reconcile(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult | None:  # noqa: ARG002 - the port's
        """Look whether a comment stands in its thread; whatever else it does may be done again. Raise ProviderError."""
        self._require_open()
        if name != f"{PROVIDER}.comment":
            return None
        comment_args = arguments(CommentArgs, args)
        issue = IssueRef.parse(comment_args.issue_ref)
        async with self._rows.turn(issue) as rows:
            reference = rows.confirmed.get(comment_args.trigger) or await self._posted(
                issue, comment_args.trigger, in_doubt=True
            )
            if reference and comment_args.trigger not in rows.confirmed:
                await rows.confirm(comment_args.trigger, reference)
        return ToolResult(msgspec.to_builtins(await self._standing(comment_args, reference))) if reference else None

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        """Show what would be written. Raise ProviderError."""
        self._require_open()
        try:
            return await self._previewed(name, args)
        except UsageError as error:
            raise ProviderError(f"{error.message}. {error.remedy}", cause=Code.InvalidInput) from error

    async def _previewed(self, name: str, args: dict[str, Any]) -> Preview | None:
        match name.removeprefix(f"{PROVIDER}."):
            case "comment":
                comment = arguments(CommentArgs, args)
                added = "\n".join(f"+{line}" for line in comment.body.splitlines())
                return Preview(what=f"Writes a comment to {comment.issue_ref} ({self._forge.name}).", diff=added)
            case "create":
                new = arguments(CreateArgs, args)
                added = "\n".join(f"+{line}" for line in (new.title, "", *new.body.splitlines()))
                return Preview(what=f"Opens an issue ({self._forge.name}).", diff=added)
            case "mutate":
                return await self._preview_mutate(arguments(MutateArgs, args))
            case "push":
                push = arguments(PushArgs, args)
                table = self._project()[0]
                branch = branch_of(table, IssueRef.parse(push.issue_ref))
                return Preview(what=f"Pushes {push.commit} to {branch} of {table.remote}.")
            case "pull":
                pull = arguments(PullArgs, args)
                added = "\n".join(f"+{line}" for line in (pull.title, "", *pull.body.splitlines()))
                draft = "a draft" if pull.draft else "ready for review"
                where = f"{pull.branch} to {pull.target} ({self._forge.name})"
                return Preview(what=f"Opens or changes the pull request of {where}, {draft}.", diff=added)
            case _:
                return None

    async def _require_room(self, name: str, row: OutboxTool, ctx: CallContext) -> None:
        """Raise ProviderError (BUDGET_EXCEEDED) for a job that has written as much as workflow.toml lets it."""
        if not row.cap or not ctx.stream.startswith("job/"):
            return
        table, _ = self._project()
        cap: int = getattr(table, row.cap)
        if await self._rows.spent(ctx.stream, ctx.step, (name,)) >= cap:
            reason = f"This job has called {name} {cap} times, which is [outbox] {row.cap}."
            raise ProviderError(reason, cause=None, code=Code.BUDGET_EXCEEDED)

    @property
    def _forge(self) -> Forge:
        return self._project()[1]

    # --- the tools

    async def _list(self, args: ListArgs, _ctx: CallContext) -> IssueList:
        return IssueList(await self._forge.list_issues(labels=args.labels, state=args.state, limit=args.limit))

    async def _get(self, args: GetArgs, _ctx: CallContext) -> Issue:
        return await self._forge.get_issue(IssueRef.parse(args.issue_ref))

    async def _create(self, args: CreateArgs, ctx: CallContext) -> Created:
        labels = exclusive(args.labels)
        return Created(str(await self._forge.create_issue(args.title, args.body, labels, key=ctx.idempotency_key)))

    async def _comment(self, args: CommentArgs, _ctx: CallContext) -> Commented:
        issue, trigger, written = IssueRef.parse(args.issue_ref), args.trigger, False
        async with self._rows.turn(issue) as rows:
            reference = rows.confirmed.get(trigger, "")
            if not reference:
                reference = await self._posted(issue, trigger, in_doubt=trigger in rows.announced)
                if not reference:
                    if trigger not in rows.announced:
                        await self._require_own(issue, args)
                        await rows.announce(trigger)
                    reference, written = await self._post(issue, args), True
                await rows.confirm(trigger, reference)
        return await self._standing(args, reference, written=written)

    async def _post(self, issue: IssueRef, args: CommentArgs) -> str:
        """Post a comment; if it is in doubt whether that happened, look for it. Raise ProviderError if it is not there.

        The next attempt looks again before it posts, for the trigger stays announced.
        """
        try:
            return (
                await self._forge.append_event(issue, marked(args.body, args.trigger), trigger=args.trigger)
            ).reference
        except ProviderError as error:
            post = await self._posted(issue, args.trigger, in_doubt=True) if error.cause in _IN_DOUBT else ""
            if not post:
                raise
            return post

    async def _require_own(self, issue: IssueRef, args: CommentArgs) -> None:
        """Raise UsageError for the trigger of a run, unless this very comment is queued for it.

        Used before its run ends, one would keep the result of the run out of the issue.
        """
        if args.trigger.startswith(PULL_TRIGGER):
            reason, remedy = f"{args.trigger} is that of a pull request", "Take another trigger."
            raise UsageError(reason, code=Code.WORK_INVALID, remedy=remedy)
        if args.trigger.startswith(RUN_TRIGGER):
            queued = await self._queued(issue, args.trigger)
            if queued is None or queued.body != args.body:
                reason = f"no such comment is to be written for {args.trigger}"
                remedy = "Triggers of runs are Remit's own: take another."
                raise UsageError(reason, code=Code.WORK_INVALID, remedy=remedy)

    async def _standing(self, args: CommentArgs, reference: str, *, written: bool = False) -> Commented:
        """Say that a comment stands there."""
        await self._wrote(IssueRef.parse(args.issue_ref), args.trigger, reference)
        return Commented(reference=reference, written=written)

    async def _mutate(self, args: MutateArgs, _ctx: CallContext) -> Issue:
        issue = IssueRef.parse(args.issue_ref)
        labels = None if args.labels is None else exclusive(args.labels)
        async with self._rows.turn(issue):
            return await self._forge.mutate_issue(issue, labels=labels, assignee=args.assignee, closed=args.closed)

    async def _push(self, args: PushArgs, _ctx: CallContext) -> PushGiven:
        issue = IssueRef.parse(args.issue_ref)
        async with self._rows.turn(issue):
            branch, pushed = await self._pushes(issue, args.run_id, args.commit)
        return PushGiven(branch=branch, commit=pushed.commit, written=pushed.written)

    async def _pull(self, args: PullArgs, _ctx: CallContext) -> PullGiven:
        """Change the pull request of a branch, or open one. One that people closed stays so, and so does their text."""
        pulls, trigger = self._forge.pulls, f"{PULL_TRIGGER}{args.branch}"
        if pulls is None:
            raise ProviderError(f"{self._forge.name} has no pull requests.", cause=Code.ToolNotFound)
        form = PullForm(title=args.title, body=marked(args.body, trigger), draft=args.draft)
        async with self._rows.turn(IssueRef.parse(args.issue_ref)) as rows:
            known = rows.confirmed.get(trigger, "")
            pull = await pulls.get(int(known)) if known else None
            if pull is None or pull.state == "merged":
                pull = await pulls.find(args.branch, in_doubt=trigger in rows.announced and not known)
            if pull is None:
                await rows.announce(trigger)
                pull = await _opened(pulls, args, form)
            elif pull.state == "open":
                own = marker_of(trigger) in pull.body
                words = form if own else PullForm(title=pull.title, body=pull.body, draft=form.draft)
                pull = await pulls.change(pull, replace(words, draft=pull.draft and form.draft))
            if str(pull.number) != known:
                await rows.confirm(trigger, str(pull.number))
        return PullGiven(url=pull.url, number=pull.number, state=pull.state, draft=pull.draft)

    async def _posted(self, issue: IssueRef, trigger: str, *, in_doubt: bool) -> str:
        """Return the oldest comment of ours that carries a trigger's marker; empty for none."""
        posted = await self._forge.find(issue, marker_of(trigger), in_doubt=in_doubt)
        return posted.reference if posted is not None else ""

    async def _preview_mutate(self, args: MutateArgs) -> Preview:
        before = await self._forge.get_issue(IssueRef.parse(args.issue_ref))
        wanted = before.labels if args.labels is None else exclusive(args.labels)
        lines = [
            *(f"-label {label}" for label in sorted({*before.labels} - {*wanted})),
            *(f"+label {label}" for label in sorted({*wanted} - {*before.labels})),
        ]
        if args.assignee is not None and args.assignee != before.assignee:
            lines += [f"-assignee {before.assignee or 'none'}", f"+assignee {args.assignee or 'none'}"]
        if args.closed is not None and args.closed != (before.state == "closed"):
            lines += [f"-{before.state}", f"+{'closed' if args.closed else 'open'}"]
        return Preview(what=f"Changes {args.issue_ref} ({self._forge.name}).", diff="\n".join(lines))


async def _opened(pulls: Pulls, args: PullArgs, form: PullForm) -> Pull:
    """Open a pull request; if the forge fails, or says that there is one, look for it. Raise ProviderError."""
    try:
        return await pulls.open(args.branch, args.target, form)
    except ProviderError as error:
        pull = None
        if error.cause in {*_IN_DOUBT, Code.InvalidInput}:
            pull = await pulls.find(args.branch, in_doubt=error.cause in _IN_DOUBT)
        if pull is None:
            raise
        return pull


def _meta(name: str, row: OutboxTool) -> ToolMeta:
    return declare(
        name,
        row.description,
        row.takes,
        row.gives,
        provider=PROVIDER,
        writes=bool(row.cap),
        timeout_ms=_PATIENCE_MS,
        retry=_AGAIN,
        output_trusted=row.gives in {Created, Commented, PushGiven, PullGiven},
    )
