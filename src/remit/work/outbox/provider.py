"""The outbox as tools, so that the gateway announces, confirms, records and settles what is written to an issue.

A comment is written once for each trigger: before one is posted, and when the outcome of one is in doubt, the thread's
own comments are listed and looked through for the trigger's marker. Of two that carry it, the older one counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from remit.codes import Code
from remit.errors import ProviderError, UsageError
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.provider import CallContext, Preview, ToolResult
from remit.tools.shapes import arguments, struct_schema
from remit.work.comment import MAX_BODY, marked, marker_of
from remit.work.outbox.port import Forge, Issue, Posted, exclusive
from remit.work.references import IssueRef

PROVIDER: Final = "outbox"

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


Wrote = Callable[[IssueRef, str, str], Awaitable[None]]


class Row(NamedTuple):
    """A tool of this provider."""

    description: str
    takes: type[msgspec.Struct]
    gives: type[msgspec.Struct]
    call: Callable[[Any, CallContext], Awaitable[msgspec.Struct]]
    writes: bool = True


class OutboxProvider:
    """outbox.list, outbox.get, outbox.create, outbox.comment and outbox.mutate, on one forge."""

    def __init__(self, forge: Forge, wrote: Wrote) -> None:
        """Write to `forge`; `wrote` is told of each comment that stands there, by its issue, trigger and reference."""
        self._forge = forge
        self._wrote = wrote
        self._turns: dict[IssueRef, asyncio.Lock] = {}
        self._closed = False
        self._tools = {
            "list": Row("List issues by label.", ListArgs, IssueList, self._list, writes=False),
            "get": Row("Read an issue.", GetArgs, Issue, self._get, writes=False),
            "create": Row("Open an issue.", CreateArgs, Created, self._create),
            "comment": Row("Write a comment, once for each trigger.", CommentArgs, Commented, self._comment),
            "mutate": Row("Change labels, assignee or standing.", MutateArgs, Issue, self._mutate),
        }

    @property
    def provider_id(self) -> str:
        """`outbox`."""
        return PROVIDER

    async def list_tools(self) -> Sequence[ToolMeta]:
        """Return the five tools."""
        self._require_open()
        return [_meta(f"{PROVIDER}.{name}", row) for name, row in self._tools.items()]

    async def invoke(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult:
        """Call a tool. Raise ProviderError."""
        self._require_open()
        row = self._tools.get(name.removeprefix(f"{PROVIDER}."))
        if row is None:
            raise ProviderError(f"The outbox has no tool {name!r}.", cause=Code.ToolNotFound)
        try:
            return ToolResult(msgspec.to_builtins(await row.call(arguments(row.takes, args), ctx)))
        except UsageError as error:
            raise ProviderError(f"{error.message}. {error.remedy}", cause=Code.InvalidInput) from error

    async def reconcile(self, name: str, args: dict[str, Any], ctx: CallContext) -> ToolResult | None:  # noqa: ARG002 - the port's
        """Look whether a comment stands in its thread; whatever else it does may be done again. Raise ProviderError."""
        self._require_open()
        if name != f"{PROVIDER}.comment":
            return None
        asked = arguments(CommentArgs, args)
        posted = await self._posted(IssueRef.parse(asked.issue_ref), asked.trigger)
        if posted is None:
            return None
        commented = await self._standing(asked, posted, written=False)
        return ToolResult(msgspec.to_builtins(commented))

    async def preview(self, name: str, args: dict[str, Any]) -> Preview | None:
        """Show what would be written. Raise ProviderError."""
        self._require_open()
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
            case _:
                return None

    async def close(self) -> None:
        """Release the forge's connections."""
        if not self._closed:
            self._closed = True
            await self._forge.close()

    def _require_open(self) -> None:
        if self._closed:
            raise ProviderError("The outbox has been closed.", cause=Code.ProviderClosed)

    # --- the tools

    async def _list(self, asked: ListArgs, _ctx: CallContext) -> IssueList:
        return IssueList(await self._forge.list_issues(labels=asked.labels, state=asked.state, limit=asked.limit))

    async def _get(self, asked: GetArgs, _ctx: CallContext) -> Issue:
        return await self._forge.get_issue(IssueRef.parse(asked.issue_ref))

    async def _create(self, asked: CreateArgs, ctx: CallContext) -> Created:
        labels = exclusive(asked.labels)
        return Created(str(await self._forge.create_issue(asked.title, asked.body, labels, key=ctx.idempotency_key)))

    async def _comment(self, asked: CommentArgs, _ctx: CallContext) -> Commented:
        issue = IssueRef.parse(asked.issue_ref)
        async with self._turns.setdefault(issue, asyncio.Lock()):
            posted = await self._posted(issue, asked.trigger)
            if posted is not None:
                return await self._standing(asked, posted, written=False)
            fresh = await self._forge.append_event(issue, marked(asked.body, asked.trigger), trigger=asked.trigger)
        return await self._standing(asked, fresh, written=True)

    async def _standing(self, asked: CommentArgs, posted: Posted, *, written: bool) -> Commented:
        """Say that a comment stands there."""
        await self._wrote(IssueRef.parse(asked.issue_ref), asked.trigger, posted.reference)
        return Commented(reference=posted.reference, written=written)

    async def _mutate(self, asked: MutateArgs, _ctx: CallContext) -> Issue:
        issue = IssueRef.parse(asked.issue_ref)
        labels = None if asked.labels is None else exclusive(asked.labels)
        async with self._turns.setdefault(issue, asyncio.Lock()):
            return await self._forge.mutate_issue(issue, labels=labels, assignee=asked.assignee, closed=asked.closed)

    async def _posted(self, issue: IssueRef, trigger: str) -> Posted | None:
        """Return the oldest comment of ours that carries a trigger's marker."""
        marker = marker_of(trigger)
        return next((one for one in await self._forge.comments(issue) if one.own and marker in one.body), None)

    async def _preview_mutate(self, asked: MutateArgs) -> Preview:
        before = await self._forge.get_issue(IssueRef.parse(asked.issue_ref))
        wanted = before.labels if asked.labels is None else exclusive(asked.labels)
        lines = [
            *(f"-label {label}" for label in sorted({*before.labels} - {*wanted})),
            *(f"+label {label}" for label in sorted({*wanted} - {*before.labels})),
        ]
        if asked.assignee is not None and asked.assignee != before.assignee:
            lines += [f"-assignee {before.assignee or 'none'}", f"+assignee {asked.assignee or 'none'}"]
        if asked.closed is not None and asked.closed != (before.state == "closed"):
            lines += [f"-{before.state}", f"+{'closed' if asked.closed else 'open'}"]
        return Preview(what=f"Changes {asked.issue_ref} ({self._forge.name}).", diff="\n".join(lines))


def _meta(name: str, row: Row) -> ToolMeta:
    return ToolMeta(
        name=name,
        provider_id=PROVIDER,
        description=row.description,
        input_schema=struct_schema(row.takes),
        output_schema=struct_schema(row.gives),
        capability_level=Level.L1 if row.writes else Level.L0,
        risk_level=Risk.WRITE if row.writes else Risk.READ_ONLY,
        side_effects=row.writes,
        idempotent=True,
        requires_confirm=row.writes,
        version="1",
        output_trusted=row.gives in {Created, Commented},
    )
