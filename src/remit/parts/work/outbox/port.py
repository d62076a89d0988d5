"""The port to a place that keeps issues (contract: executors, "Outbox"), and pull requests where it has any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol

import msgspec

from remit.parts.work.references import IssueRef

OWN_PREFIXES: Final = ("state:", "kind:", "prio:", "decision:")
"""Labels of which an issue has one of each kind."""
PRECEDENCE: Final = ("needs-human", "blocked", "review", "doing", "todo")
"""Of two states that an issue's labels name, the one that stands first counts."""


class Issue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An issue as its backend has it."""

    issue_ref: str
    title: str
    body: str = ""
    labels: tuple[str, ...] = ()
    assignee: str = ""
    """The person responsible; never the executor."""
    state: Literal["open", "closed"] = "open"
    url: str = ""
    read_up_to: str = ""
    """The newest event of its thread."""


class Posted(msgspec.Struct, frozen=True, kw_only=True):
    """A comment in an issue's thread."""

    reference: str
    """The comment, as its backend names it."""
    body: str
    at: int
    """Microseconds since the Unix epoch."""
    own: bool = True
    """True if the account that writes for Remit wrote it."""


PullState = Literal["open", "merged", "closed"]


class Pull(msgspec.Struct, frozen=True, kw_only=True):
    """A pull request, or merge request, as its forge has it."""

    number: int
    url: str
    title: str
    body: str
    draft: bool
    state: PullState


class PullForm(msgspec.Struct, frozen=True, kw_only=True):
    """What a pull request is to say."""

    title: str
    body: str
    draft: bool


class Pulls(Protocol):
    """The pull requests of a project. Every method raises ProviderError, as those of a forge do."""

    async def get(self, number: int) -> Pull:
        """Return a pull request. Raise ProviderError with cause `not_found`."""
        ...

    async def find(self, branch: str, *, in_doubt: bool = False) -> Pull | None:
        """Return the open pull request of a branch; `in_doubt` looks again at a list that lags."""
        ...

    async def open(self, branch: str, target: str, form: PullForm) -> Pull:
        """Open one, a draft if the forge takes drafts. It does not look whether the branch has one."""
        ...

    async def change(self, pull: Pull, form: PullForm) -> Pull:
        """Change what differs."""
        ...


class Forge(Protocol):
    """A place that keeps issues. Every method raises ProviderError where the place refuses or cannot be reached."""

    @property
    def name(self) -> str:
        """`local`, or the kind of forge."""
        ...

    @property
    def pulls(self) -> Pulls | None:
        """Return its pull requests; None where it has none."""
        ...

    async def list_issues(self, *, labels: Sequence[str] = (), state: str = "open", limit: int = 100) -> list[Issue]:
        """Return issues that carry all of these labels, newest first."""
        ...

    async def get_issue(self, issue: IssueRef) -> Issue:
        """Return an issue. Raise ProviderError with cause `not_found`."""
        ...

    async def create_issue(self, title: str, body: str, labels: Sequence[str], *, key: str) -> IssueRef:
        """Create an issue; once for each `key`."""
        ...

    async def comments(self, issue: IssueRef) -> list[Posted]:
        """Return the comments of a thread, oldest first: listed, never searched for."""
        ...

    async def find(self, issue: IssueRef, marker: str, *, in_doubt: bool = False) -> Posted | None:
        """Return the oldest comment of ours that carries a marker; None for none.

        `in_doubt`: one may have been posted a moment ago, so a list that lags is looked at again.
        """
        ...

    async def append_event(self, issue: IssueRef, body: str, *, trigger: str) -> Posted:
        """Write a comment. It does not look whether one of this trigger stands there."""
        ...

    async def mutate_issue(
        self,
        issue: IssueRef,
        *,
        labels: Sequence[str] | None = None,
        assignee: str | None = None,
        closed: bool | None = None,
    ) -> Issue:
        """Change what is given: labels whole, assignee, standing. Doing it again changes nothing."""
        ...


def exclusive(labels: Sequence[str]) -> tuple[str, ...]:
    """Return labels with one of each exclusive kind: the last one given; of states, the one that takes precedence."""
    chosen: dict[str, str] = {}
    others: list[str] = []
    for label in labels:
        kind = next((prefix for prefix in OWN_PREFIXES if label.startswith(prefix)), "")
        if not kind:
            others.append(label)
        elif kind not in chosen or kind != "state:" or _rank(label) < _rank(chosen[kind]):
            chosen[kind] = label
    return tuple(sorted({*others, *chosen.values()}))


def _rank(label: str) -> int:
    state = label.partition(":")[2]
    return PRECEDENCE.index(state) if state in PRECEDENCE else len(PRECEDENCE)
