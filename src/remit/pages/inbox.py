"""Inbox: the questions that wait for an answer, the longest waiting first, and answers to earlier ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from remit.pages.page import Page, PageRequest, View
from remit.service.views import ConfirmationView

if TYPE_CHECKING:
    from remit.http.access import Access
    from remit.service.service import Service

_ANSWERED: Final = 10


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What was just done."""

    done: str = ""
    """The question that was just answered."""


class Inbox(View, frozen=True, kw_only=True):
    """Open questions, and the newest that are over."""

    template: ClassVar[str] = "inbox.html"
    mine: tuple[ConfirmationView, ...]
    """Those that the reader can answer."""
    others: tuple[ConfirmationView, ...]
    answered: tuple[ConfirmationView, ...]
    done: ConfirmationView | None


async def inbox(asked: PageRequest) -> Inbox:
    """The lists."""
    confirmations = asked.service.confirmations
    pending = await confirmations.pending()
    mine = tuple(one for one in pending if not hindrance(one, asked.access))
    return Inbox(
        title="Inbox",
        mine=mine,
        others=tuple(one for one in pending if one not in mine),
        answered=tuple(await confirmations.answered(limit=_ANSWERED)),
        done=await confirmations.view(asked.query.done) if asked.query.done else None,
    )


def hindrance(question: ConfirmationView, access: Access) -> str:
    """Why someone cannot answer a question, in a sentence; empty: they can, as far as a page knows."""
    who = access.principal
    if not access.allows("decide"):
        return "Your token lacks the scope decide."
    if not who:
        return ""
    if question.approvers and who not in question.approvers:
        return f"Only {', '.join(question.approvers)} may answer."
    if question.approvals > 1 and who == question.principal:
        return "You asked for this call, and it needs the approval of others."
    if who in question.approved_by:
        return "You have approved it; it needs another person too."
    return ""


async def answerable(service: Service, access: Access) -> int:
    """How many questions someone can answer."""
    pending = await service.confirmations.pending()
    return sum(not hindrance(one, access) for one in pending)


PAGES: Final = (Page(path="/inbox", scope="read", handler=inbox, query=Query, live="heads"),)
