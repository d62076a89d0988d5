"""Inbox: the questions that wait for an answer, the longest waiting first, and answers to earlier ones.

Several about one tool stand together below its name, each with the arguments that tell it from the others. Those that
are selected, or all of a tool, are answered at once by way of remit.pages.answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from remit.pages.actions import labels
from remit.pages.page import Page, PageRequest, PageView
from remit.policy.groups import may_decide
from remit.record.views import ConfirmationView
from remit.service.confirmations import QuestionFilter, telling
from remit.service.visible import sees_tool

if TYPE_CHECKING:
    from remit.http.access import Access
    from remit.service.service import Service

_ANSWERED: Final = 10


class InboxFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which questions: this is what stands in the address."""

    tool: str = ""
    recipe: str = ""
    label: str = ""
    """`KEY=VALUE`, of the job that asks."""
    principal: str = ""

    @property
    def narrow(self) -> bool:
        """Return whether anything is left out."""
        return bool(self.tool or self.recipe or self.label or self.principal)

    @property
    def fields(self) -> dict[str, object]:
        """The filter, for links and hidden fields."""
        return {name: getattr(self, name) for name in InboxFilter.__struct_fields__}

    def of(self, questions: list[ConfirmationView]) -> list[ConfirmationView]:
        """Return those that fit. A label that is not KEY=VALUE raises UsageError."""
        wanted = QuestionFilter(tool=self.tool, recipe=self.recipe, labels=labels(self.label), principal=self.principal)
        return wanted.of(questions)


class InboxQuery(InboxFilter, frozen=True, kw_only=True):
    """Which questions, and what was just done."""

    done: str = ""
    """The question that was just answered."""


class InboxEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A question in a list."""

    question: ConfirmationView
    args: Any
    """The arguments that tell it from the others of its group."""
    group: str


class InboxGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Questions about one tool, or of one recipe about none."""

    name: str
    """The tool; `?` and the recipe for questions about none."""
    recipe: str
    """The recipe, for questions about no tool."""
    entries: tuple[InboxEntry, ...]


class InboxPage(PageView, frozen=True, kw_only=True):
    """Open questions, and the newest that are over."""

    template: ClassVar[str] = "inbox.html"
    filter: InboxFilter
    mine: tuple[InboxGroup, ...]
    """Those that the reader can answer."""
    waiting: int
    """The number that would be, without the filter."""
    others: tuple[InboxEntry, ...]
    answered: tuple[ConfirmationView, ...]
    done: ConfirmationView | None
    tools: tuple[str, ...]
    """Names to choose from; as are the next two."""
    recipes: tuple[str, ...]
    principals: tuple[str, ...]


async def inbox(request: PageRequest) -> InboxPage:
    """The lists."""
    confirmations, query = request.service.confirmations, request.query
    pending = [question for question in await confirmations.pending() if sees_tool(request.access, question.tool)]
    answered = await confirmations.answered(limit=_ANSWERED)
    shown = query.of(pending)
    mine = [question for question in shown if not hindrance(question, request.access)]
    others = [question for question in shown if hindrance(question, request.access)]
    return InboxPage(
        title="Inbox",
        filter=query,
        mine=grouped(mine),
        waiting=sum(not hindrance(question, request.access) for question in pending),
        others=tuple(entry for group in grouped(others) for entry in group.entries),
        answered=tuple(question for question in answered if sees_tool(request.access, question.tool)),
        done=await confirmations.view(query.done) if query.done else None,
        tools=_names(question.tool for question in pending),
        recipes=_names(question.recipe for question in pending),
        principals=_names(question.principal for question in pending),
    )


def group_of(question: ConfirmationView) -> str:
    """The name of the group that a question belongs to."""
    return question.tool or f"?{question.recipe}"


def grouped(questions: list[ConfirmationView]) -> tuple[InboxGroup, ...]:
    """Questions by what they are about; a group stands where its first question does."""
    groups: dict[str, list[ConfirmationView]] = {}
    for question in questions:
        groups.setdefault(group_of(question), []).append(question)
    return tuple(
        InboxGroup(
            name=name,
            recipe="" if members[0].tool else members[0].recipe,
            entries=tuple(
                InboxEntry(question=member, args=args, group=name)
                for member, args in zip(members, telling(members), strict=True)
            ),
        )
        for name, members in groups.items()
    )


def hindrance(question: ConfirmationView, access: Access) -> str:
    """Return why someone cannot answer a question, in a sentence; empty: they can, as far as a page knows."""
    who = access.principal
    if not access.allows("decide"):
        return "Your token lacks the scope decide."
    if not who or not sees_tool(access, question.tool):
        return "" if not access.tools else "Your token is for other tools."
    if not may_decide(question.approvers, who, access.groups) and who not in question.stand_ins:
        return f"Only {', '.join(question.approvers)} may answer."
    if question.approvals > 1 and who == question.principal:
        return "You asked for this call, and it needs the approval of others."
    if who in question.approved_by:
        return "You have approved it; it needs another person too."
    return ""


async def answerable(service: Service, access: Access) -> int:
    """Return how many questions someone can answer."""
    pending = await service.confirmations.pending()
    return sum(not hindrance(question, access) for question in pending)


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name}))


PAGES: Final = (
    Page(
        path="/inbox",
        scope="read",
        handler=inbox,
        name="Inbox",
        key="i",
        under="Inbox",
        about="questions that wait for an answer",
        query=InboxQuery,
        live="heads",
    ),
)
