"""The arguments of the outbox's tools, and what they give. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from remit.work.comment import MAX_BODY
from remit.work.outbox.port import Issue

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
