"""`remit confirm`: the questions that jobs ask people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from remit.cli import complete, exit_codes
from remit.cli.context import CommandState, Requirement
from remit.cli.options import json_option, pass_state

if TYPE_CHECKING:
    from remit.cli.access import Opened
    from remit.policy.approval import Scope
    from remit.record.views import ConfirmationView

_REMEMBERED: Final = "8h"
_LAST: Final = "last"
_SHOW: Final = "show"
"""Before an ID: show the question and ask nothing, at a terminal too. An ID has no `o` and cannot be this word."""


class _Answer(NamedTuple):
    """The answer that the options give."""

    approve: bool
    deny: bool
    revoke: bool
    edit: str | None
    digest: str | None
    reason: str
    remember: Scope | None
    seconds: int
    exact: bool
    by: str
    sign: Path | None
    show: bool

    @property
    def given(self) -> bool:
        return self.approve or self.deny or self.revoke or self.edit is not None


@click.command("confirm")
@click.argument("words", nargs=-1, metavar="[show] [ID]", shell_complete=complete.confirmations)
@click.option("--approve", is_flag=True, help="Let the call run.")
@click.option("--deny", is_flag=True, help="Refuse the call.")
@click.option("--revoke", is_flag=True, help="Take back an approval that no call has used yet.")
@click.option(
    "--edit", metavar="JSON|@FILE", help="Change the arguments. The edited call needs an approval of its own."
)
@click.option("--reason", default="", help="The reason; the job receives it.")
@click.option("--digest", metavar="SHA256", help="The digest you saw: fail if the call has another one.")
@click.option(
    "--remember",
    type=click.Choice(["job", "session", "everything"]),
    help="With --approve: also allow later calls like it, within this scope.",
)
@click.option(
    "--for", "time", metavar="TIME", help=f"With --remember: for how long, such as 30m or 2d. Default: {_REMEMBERED}."
)
@click.option("--any-args", is_flag=True, help="With --remember: allow any arguments, not only the same ones.")
@click.option("--sign", type=click.Path(path_type=Path), metavar="KEY", help="Sign the answer with this SSH key.")
@click.option("--as", "by", default="", metavar="NAME", help="Answer under this name. Default: yours.")
@click.option(
    "--tool", default="", metavar="NAME", shell_complete=complete.tools, help="Only questions about this tool."
)
@click.option("--recipe", default="", metavar="NAME", shell_complete=complete.recipes, help="Only those of its jobs.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Only those of jobs with it; repeatable.")
@click.option("--principal", default="", metavar="NAME", help="Only those that this principal's calls ask.")
@click.option("--digests", metavar="SHA256,…|@FILE", help="Only those with these digests, which you saw.")
@click.option("-y", "--yes", is_flag=True, help="With --digests: answer them without asking.")
@json_option("the questions, or the answer")
@pass_state
@click.pass_context
def command(
    context: click.Context,
    state: CommandState,
    /,
    words: tuple[str, ...],
    approve: bool,
    deny: bool,
    revoke: bool,
    edit: str | None,
    reason: str,
    digest: str | None,
    remember: Scope | None,
    time: str | None,
    any_args: bool,
    sign: Path | None,
    by: str,
    **many: Any,
) -> int:
    """List pending approvals and questions, or answer one or many.

    Without ID, lists what waits for an answer. With ID alone, shows it in full and, at a terminal, asks you; with
    `show` before it, asks nothing. ID may be a unique ending, or `last`. With --approve or --deny and a filter
    instead of ID, shows every question in full, asks once, and answers each. After your answer a worker continues the
    job; without a worker, run `remit resume`.
    """
    from remit.cli.runner import run_async
    from remit.cli.values import seconds

    confirmation, show = _meant(context, words)
    if [approve, deny, revoke, edit is not None, show].count(True) > 1:
        raise click.UsageError("Use only one of show, --approve, --deny, --edit and --revoke.", context)
    if (remember or time or any_args) and not (approve and remember):
        raise click.UsageError("--for and --any-args need --remember, and --remember needs --approve.", context)
    if confirmation == _LAST and digest is None and (approve or deny or revoke or edit is not None):
        raise click.UsageError("The last question may have changed: give its id, or its --digest.", context)
    answer = _Answer(
        approve,
        deny,
        revoke,
        edit,
        digest,
        reason,
        remember,
        seconds(time or _REMEMBERED, "--for"),
        not any_args,
        by,
        sign,
        show,
    )
    if confirmation is None:
        return _many(context, state, answer, many)
    if any(many.values()):
        raise click.UsageError("Give either an ID, or which questions.", context)
    return run_async(lambda _stop: _one(state, confirmation, answer))


def _meant(context: click.Context, words: tuple[str, ...]) -> tuple[str | None, bool]:
    """Return the ID that is given, and whether the question is only shown."""
    show = words[:1] == (_SHOW,)
    references = words[1:] if show else words
    if len(references) > 1 or (show and not references):
        raise click.UsageError("Give one ID: `remit confirm` lists the open questions.", context)
    return (references[0] if references else None), show


def _many(context: click.Context, state: CommandState, answer: _Answer, many: dict[str, Any]) -> int:
    """List questions, or answer all that the options name."""
    from remit.cli.answers import AnswerChoice, answer_many, list_questions
    from remit.cli.runner import run_async
    from remit.cli.values import pairs, words
    from remit.service.confirmations import QuestionFilter

    labels = pairs(many["labels"], "--label")
    wanted = QuestionFilter(tool=many["tool"], recipe=many["recipe"], labels=labels, principal=many["principal"])
    if not answer.given:
        if many["digests"] or many["yes"]:
            raise click.UsageError("--digests and --yes need --approve or --deny.", context)
        return run_async(lambda _stop: list_questions(state, wanted))
    if answer.edit is not None or answer.remember or answer.digest or not any(many.values()):
        raise click.UsageError("Which question? `remit confirm` lists the open ones.", context)
    choice = AnswerChoice(
        filter=wanted,
        digests=words(many["digests"], "--digests") if many["digests"] else (),
        yes=many["yes"],
        reason=answer.reason,
        by=answer.by,
        sign=answer.sign,
    )
    return run_async(lambda _stop: answer_many(state, choice, "approve" if answer.approve else "deny"))


async def _one(state: CommandState, reference: str, answer: _Answer) -> int:
    # A question can be answered by someone whose modules are broken or who has none; only a new set of arguments
    # cannot be checked without the tool. Its defaults are shown where the tool is known without running anything.
    asks = state.output.interactive and not (state.as_json or answer.given or answer.show)
    shows: Requirement = "described" if state.as_json or not answer.given else "unused"
    code: Requirement = "needed" if answer.edit is not None else "wanted" if asks else shows
    async with state.open(code=code, writes=answer.given) as remit:
        question = await _found(remit, reference)
        if answer.edit is not None:
            return await _edit(state, remit, question, answer)
        if answer.revoke:
            return await _revoke(state, remit, question, answer)
        if answer.given:
            return await _decide(state, remit, question, answer)
        return await _show(state, remit, question, answer)


async def _found(remit: Opened, reference: str) -> ConfirmationView:
    """The question that is meant."""
    if reference != _LAST:
        return await remit.service.confirmations.view(reference)
    pending = await remit.service.confirmations.pending()
    if not pending:
        from remit.codes import Code
        from remit.errors import NotFoundError

        raise NotFoundError("no question is open", code=Code.CONFIRMATION_NOT_FOUND, remedy="`remit jobs` lists jobs.")
    return pending[-1]


async def _show(state: CommandState, remit: Opened, question: ConfirmationView, answer: _Answer) -> int:
    if state.as_json:
        state.output.json(question)
        return exit_codes.OK
    from remit.cli.prompt import TerminalPrompt, preview
    from remit.cli.question import show_question
    from remit.clock import SystemClock

    if question.state == "pending" and state.output.interactive and not answer.show:
        if await TerminalPrompt(remit, state.output, answer.by).ask(question):
            _go_on(state, question)
        return exit_codes.OK
    now = SystemClock().now()
    show_question(state.output.out, question, await preview(remit, question), now=now)
    if question.state == "pending":
        command = state.command("confirm", question.confirmation)
        state.note(f"  {state.output.err.style('->', 'cyan')} {command} --approve | --deny --reason WHY | --edit JSON")
        return exit_codes.OK
    if not state.server:
        from remit.cli.story import asked_lines

        for line in asked_lines(await remit.service.confirmations.answers(question.confirmation))[1:]:
            state.output.out.line(line)
    state.note(f"it is {question.state}")
    return exit_codes.OK


async def _decide(state: CommandState, remit: Opened, question: ConfirmationView, answer: _Answer) -> int:
    if answer.remember is not None and not question.rememberable:  # before anything is decided
        from remit.service.approvals import not_rememberable

        raise not_rememberable(question.confirmation, question.tool, question.provider_id)
    if answer.remember is None:
        decided = await remit.service.confirmations.decide(
            question.confirmation,
            "approve" if answer.approve else "deny",
            digest=answer.digest,
            by=answer.by,
            reason=answer.reason,
            sign=answer.sign,
        )
        status, rule = decided.state, ""
    else:
        status, rule = await _remember(remit, question, answer, answer.remember)
    fields: dict[str, Any] = {"confirmation": question.confirmation, "state": status, "remembered": rule}
    if state.as_json:
        state.output.json(fields)
        return exit_codes.OK
    alone = "; it is remembered once as many say --remember alike" if answer.remember and not rule else ""
    if status == "pending":
        decided = await remit.service.confirmations.view(question.confirmation)
        state.note(f"approved; {question.approvals - len(decided.approved_by)} more must approve{alone}")
        return exit_codes.OK
    state.note(status + alone)
    if rule:
        state.note(f"remembered as {rule}; end it with: {state.command('policy', 'revoke', rule)}")
    _go_on(state, question)
    return exit_codes.OK


async def _revoke(state: CommandState, remit: Opened, question: ConfirmationView, answer: _Answer) -> int:
    revoked = await remit.service.confirmations.revoke(question.confirmation, by=answer.by, reason=answer.reason)
    state.show(revoked, lambda state, _: state.note("the approval is taken back; its call asks again"))
    _go_on(state, question)
    return exit_codes.OK


async def _remember(remit: Opened, question: ConfirmationView, answer: _Answer, scope: Scope) -> tuple[str, str]:
    """Approve for later calls too: the question's state after that, and the rule if there is one."""
    remember = await remit.service.approvals.remember(
        question.confirmation,
        scope,
        seconds=answer.seconds,
        exact=answer.exact,
        digest=answer.digest or question.digest,
        by=answer.by,
        reason=answer.reason,
        sign=answer.sign,
    )
    if remember is not None:
        return "approved", remember.id
    decided = await remit.service.confirmations.view(question.confirmation)
    return "pending" if decided.state == "pending" else "approved", ""


async def _edit(state: CommandState, remit: Opened, question: ConfirmationView, answer: _Answer) -> int:
    from remit.cli.prompt import preview
    from remit.cli.question import show_question
    from remit.cli.values import json_object
    from remit.clock import SystemClock

    args = json_object(answer.edit or "", "--edit")
    edited = await remit.service.confirmations.edit(question.confirmation, args, by=answer.by, reason=answer.reason)
    looks = None if state.as_json else await preview(remit, edited)
    now = SystemClock().now()
    state.show(edited, lambda state, edited: show_question(state.output.out, edited, looks, now=now))
    state.note(f"asked again; approve it with: {state.command('confirm', edited.confirmation, '--approve')}")
    return exit_codes.OK


def _go_on(state: CommandState, question: ConfirmationView) -> None:
    kind, _, job = question.caller.partition("/")
    if kind == "job":
        state.note(f"if no worker runs, continue with: {state.command('resume', job)}")
