"""Many questions at a terminal: the list, and one answer to all of them after each call was shown whole."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.cli import exit_codes
from remit.cli.output import one_line
from remit.cli.question import show_question
from remit.cli.tables import TableColumn, short_ids, table
from remit.cli.terminal import PagedLines, forget_typed, pager, read_line, show_paged
from remit.clock import SystemClock, age
from remit.codes import Code
from remit.errors import UsageError
from remit.redact import words_of
from remit.service.confirmations import Answered, QuestionFilter, answer_each, telling

if TYPE_CHECKING:
    from remit.cli.context import CommandState
    from remit.cli.output import OutputChannel
    from remit.record.views import ConfirmationView

_UNSEEN: Final = "List the questions with --json, and give --yes with --digests: the digests that you saw."


Decision = Literal["approve", "deny"]


class AnswerChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Which questions are answered, and how."""

    filter: QuestionFilter
    digests: tuple[str, ...]
    """Those that were seen; none: whatever is shown now."""
    yes: bool
    """Whether they are answered without asking."""
    reason: str
    by: str
    sign: Path | None


async def list_questions(state: CommandState, wanted: QuestionFilter) -> int:
    """Write the open questions, each with what differs from the others of its tool."""
    async with state.open(code="described" if state.as_json else "unused") as remit:
        pending = await remit.service.confirmations.pending(described=state.as_json)
    shown = wanted.of(pending)
    nothing = "no such questions are open" if pending else "no open questions"
    return state.listing(shown, lambda state, shown: _table(state.output.out, shown), nothing)


def _table(channel: OutputChannel, shown: list[ConfirmationView]) -> None:
    now = SystemClock().now()
    columns = (
        "ID",
        TableColumn("TOOL", whole=False),
        TableColumn("LEFT", style="dim"),
        "JOB",
        TableColumn("RECIPE", whole=False),
    )
    names = short_ids(channel, [confirmation.confirmation for confirmation in shown])
    callers = short_ids(channel, [confirmation.caller.removeprefix("job/") for confirmation in shown])
    rows = [
        (
            name,
            confirmation.tool or "(a question)",
            age(confirmation.expires_at - now) if confirmation.expires_at else "",
            caller,
            confirmation.recipe,
        )
        for name, caller, confirmation in zip(names, callers, shown, strict=True)
    ]
    table(channel, columns, rows, below=_below(shown))


async def answer_many(state: CommandState, choice: AnswerChoice, decision: Decision) -> int:
    """Show each call whole and ask once, unless `yes`; then answer each, bound to its digest.

    Raises UsageError where the calls would be answered unseen.
    """
    asks = not choice.yes
    if (asks and (state.as_json or not state.output.interactive)) or not (asks or choice.digests):
        raise UsageError("these calls would be answered unseen", code=Code.USAGE, remedy=_UNSEEN)
    async with state.open(code="wanted" if asks else "unused", writes=True) as remit:
        pending = choice.filter.of(await remit.service.confirmations.pending())
        questions = [question for question in pending if not choice.digests or question.digest in choice.digests]
        if not questions and not choice.digests:
            state.note("no such questions are open")
            return exit_codes.OK
        if asks and questions and not await _confirmed(state, questions, decision):
            state.note("left for later")
            return exit_codes.OK
        answers = await answer_each(
            remit.service.confirmations,
            [(question.confirmation, question.digest) for question in questions],
            decision,
            by=choice.by,
            reason=choice.reason,
            proof="terminal" if asks else "",
            sign=choice.sign,
        )
    known = {question.digest for question in questions}
    answers += [_lost(digest) for digest in choice.digests if digest not in known]
    state.show(answers, partial(_show, decision))
    return exit_codes.ERROR if any(question.code for question in answers) else exit_codes.OK


async def _confirmed(state: CommandState, questions: list[ConfirmationView], decision: Decision) -> bool:
    """Return whether the person types how many there are, after all were shown whole."""
    err, now = state.output.err, SystemClock().now()
    page = PagedLines(err)
    for question in questions:
        show_question(page, question, now=now)
    err.flush()
    command = None if page.fits else pager()
    if command is not None and await show_paged(command, page.lines):
        _table(err, questions)
    else:
        page.write()
    forget_typed()
    number = str(len(questions))
    prompt = f"type {number} to {decision} {'it' if number == '1' else f'all {number}'}, anything else leaves them: "
    err.stream.write(err.style(prompt, "bold"))
    err.flush()
    return (await read_line() or "").strip() == number


def _lost(digest: str) -> Answered:
    """Return what is said of a digest that no open question has by now, or none that the other options fit."""
    message = f"no open question that fits has the digest {digest}"
    return Answered(confirmation="", code=Code.CONFIRMATION_MISMATCH.name, message=message)


def _show(decision: Decision, state: CommandState, answers: list[Answered]) -> None:
    refused = [answer for answer in answers if answer.code]
    for answer in refused:
        state.note(f"{answer.confirmation or 'refused'}: {answer.code} {one_line(answer.message)}")
    open_still = sum(bool(answer.missing) for answer in answers)
    summary = [f"{decision}: {len(answers) - len(refused)} of {len(answers)}"]
    summary += [f"{len(refused)} refused"] if refused else []
    summary += [f"{open_still} need more approvals"] if open_still else []
    state.note(", ".join(summary))
    state.note(f"if no worker runs, continue with: {state.command('resume', '--all')}")


def _below(questions: list[ConfirmationView]) -> list[str]:
    """Return what each is about: of several about one tool, the arguments that differ."""
    groups: dict[str, list[ConfirmationView]] = {}
    for question in questions:
        groups.setdefault(question.tool, []).append(question)
    words = {
        question.confirmation: words_of(args)
        for members in groups.values()
        for question, args in zip(members, telling(members), strict=True)
    }
    return [words[question.confirmation] if question.tool else one_line(question.question) for question in questions]
