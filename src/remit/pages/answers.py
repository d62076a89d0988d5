"""The same answer to many questions: first each call, whole, then the answer to each of them and what came out."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final, Literal

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.pages.bulk import MOST, TYPED
from remit.pages.inbox import InboxFilter, group_of, hindrance
from remit.pages.page import Page, PageRequest, PageView, written
from remit.record.views import ConfirmationView
from remit.service.confirmations import Answered, answer_each
from remit.service.reach import check_reach

Decision = Literal["approve", "deny"]


class Selection(InboxFilter, frozen=True, kw_only=True):
    """Which questions of a filtered inbox, and how they are to be answered."""

    decision: Decision
    pick: tuple[str, ...] = ()
    """Questions, each for itself."""
    whole: tuple[str, ...] = ()
    """Groups, with everything in them that the filter finds."""


class AnswersForm(InboxFilter, frozen=True, kw_only=True):
    """The answer."""

    seen: tuple[str, ...] = ()
    """Each question that was shown, and its digest, with a blank between them."""
    number: str = ""
    """Their number, typed."""
    reason: str = ""


class WholeQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question, whole."""

    question: ConfirmationView
    args: str
    """The arguments, exactly."""
    defaults: str
    """The defaults that the tool puts in for what they leave out, by place."""


class Review(PageView, frozen=True, kw_only=True):
    """What would be answered."""

    template: ClassVar[str] = "review.html"
    decision: Decision
    filter: InboxFilter
    calls: tuple[WholeQuestion, ...]
    lost: int
    """The number that were selected and cannot be answered by now."""
    more: bool
    """Whether there are more than one round takes."""
    typed: bool
    """Whether the number has to be typed."""
    wrong: str


class QuestionOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A question, and what the answer to it did."""

    question: ConfirmationView
    answered: Answered


class AnswersDone(PageView, frozen=True, kw_only=True):
    """What was answered."""

    template: ClassVar[str] = "answered.html"
    filter: InboxFilter
    outcomes: tuple[QuestionOutcome, ...]
    done: int


async def review(request: PageRequest) -> Review:
    """The questions that were selected, each with everything that an answer is bound to."""
    form: Selection = request.form
    pending = await _answerable(request)
    wanted = {question.confirmation for question in form.of(pending) if group_of(question) in form.whole} | set(
        form.pick
    )
    questions = [question for question in pending if question.confirmation in wanted]
    return _review(form, form.decision, questions, lost=len(wanted) - len(questions))


async def answer(decision: Decision, request: PageRequest) -> Review | AnswersDone:
    """Answer each question that was shown, bound to the digest that was shown."""
    form: AnswersForm = request.form
    digests = [(name, digest) for name, _, digest in (text.partition(" ") for text in form.seen)]
    if not digests or len(digests) > MOST:
        raise UsageError("The form names no question, or too many.", code=Code.INVALID_INPUT)
    if len(digests) > TYPED and form.number.strip() != str(len(digests)):
        names = {name for name, _ in digests}
        questions = [question for question in await _answerable(request) if question.confirmation in names]
        wrong = f"Type the number of questions: {len(questions)}."
        return _review(form, decision, questions, lost=len(names) - len(questions), wrong=wrong)
    confirmations = request.service.confirmations
    for name, _ in digests:
        await check_reach(request.service, request.access, {"confirmation": name})
    before = {name: await confirmations.view(name) for name, _ in digests}
    answers = await answer_each(
        confirmations,
        digests,
        decision,
        by=request.principal,
        reason=form.reason,
        proof="token" if request.access.principal else "",
    )
    outcomes = [
        QuestionOutcome(question=before[name], answered=question)
        for (name, _), question in zip(digests, answers, strict=True)
    ]
    done = sum(not question.code for question in answers)
    return AnswersDone(
        title=f"{decision.capitalize()}: {done} of {len(answers)} questions",
        filter=form,
        outcomes=tuple(sorted(outcomes, key=lambda outcome: not outcome.answered.code)),
        done=done,
    )


async def _answerable(request: PageRequest) -> list[ConfirmationView]:
    pending = await request.service.confirmations.pending()
    return [question for question in pending if not hindrance(question, request.access)]


def _review(
    chosen: InboxFilter, decision: Decision, questions: list[ConfirmationView], *, lost: int, wrong: str = ""
) -> Review:
    shown = questions[:MOST]
    return Review(
        title=f"{decision.capitalize()} {len(shown)} {'question' if len(shown) == 1 else 'questions'}",
        status=Code.INVALID_INPUT.http if wrong else 200,
        decision=decision,
        filter=chosen,
        calls=tuple(
            WholeQuestion(
                question=confirmation,
                args=written(confirmation.args),
                defaults=written(confirmation.defaults) if confirmation.defaults else "",
            )
            for confirmation in shown
        ),
        lost=lost,
        more=len(questions) > MOST,
        typed=len(shown) > TYPED,
        wrong=wrong,
    )


PAGES: Final = (
    Page(path="/inbox/review", scope="decide", handler=review, form=Selection),
    Page(path="/inbox/answers/approve", scope="decide", handler=partial(answer, "approve"), form=AnswersForm),
    Page(path="/inbox/answers/deny", scope="decide", handler=partial(answer, "deny"), form=AnswersForm),
)
