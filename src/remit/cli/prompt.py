"""Asks the person at this terminal: shows the exact call that waits, and takes one of a few answers."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

import msgspec

from remit.cli.errors import describe, show
from remit.cli.output import clean, one_line, pretty
from remit.cli.question import show_head, show_question
from remit.cli.tables import moment
from remit.cli.terminal import PagedLines, forget_typed, pager, read_line, show_paged
from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import RemitError
from remit.record.views import ConfirmationView
from remit.service.approvals import REMEMBERED_S, scopes_of

if TYPE_CHECKING:
    from remit.cli.access import Opened
    from remit.cli.output import TerminalOutput
    from remit.policy.approval import Scope
    from remit.tools.provider import Preview

_ANSWERS: Final = {
    "a": "approve", "approve": "approve", "y": "approve", "yes": "approve",
    "d": "deny", "deny": "deny", "n": "deny", "no": "deny",
    "e": "edit", "edit": "edit",
    "l": "later", "later": "later",
    "s": "show", "show": "show",
    "j": "job", "job": "job",
    "t": "session", "session": "session",
    "8": "everything", "everything": "everything",
}  # fmt: skip
_OVER: Final = frozenset({Code.CONFIRMATION_CLOSED, Code.CONFIRMATION_EXPIRED})
"""Errors after which there is nothing left to answer."""
_EDITORS: Final = ("sensible-editor", "vim", "nano", "vi")
"""Editors that click looks for where neither VISUAL nor EDITOR names one."""


class TerminalPrompt:
    """Puts questions on stderr and reads answers from stdin."""

    def __init__(self, remit: Opened, output: TerminalOutput, by: str = "") -> None:
        self.current = ""
        self._remit = remit
        self._output = output
        self._err = output.err
        self._by = by

    async def ask(self, question: ConfirmationView) -> bool:
        await self._show(question)
        while True:
            self.current = question.confirmation
            typed = await self._line(_about(question))
            answer = "later" if typed is None else _ANSWERS.get(typed.strip().lower(), "")
            scopes = scopes_of(question)
            if answer == "later":
                self._err.line(f"left for later: remit confirm {question.confirmation}")
                return False
            if answer == "show":
                await self._show(question)
            elif answer == "edit" and question.tool:
                edited = await self._edit(question)
                if edited is not None:
                    question = edited
                    await self._show(question)
            elif answer in {"approve", "deny"} or answer in scopes:
                return await self._decide(question, answer)
            else:
                self._menu(question)

    def withdraw(self) -> None:
        self._err.line(f"{self.current} was answered elsewhere")
        self.current = ""

    # --- answers

    async def _decide(self, question: ConfirmationView, answer: str) -> bool:
        reason = ""
        if answer == "deny":
            reason = await self._line("reason (Enter for none): ") or ""
        self.current = ""
        try:
            if answer in scopes_of(question):
                return await self._remember(question, scopes_of(question)[answer])
            decided = await self._remit.service.confirmations.decide(
                question.confirmation,
                "deny" if answer == "deny" else "approve",
                digest=question.digest,
                by=self._by,
                reason=reason.strip(),
                proof="terminal",
            )
        except RemitError as error:
            show(describe(error), self._output)
            self.current = question.confirmation
            return error.code in _OVER
        if decided.state == "pending":
            missing = question.approvals - len(decided.approved_by)
            self._err.line(f"approved; {missing} more must approve")
            self.current = question.confirmation
            return False
        self._err.line(self._err.style(decided.state, "ok" if decided.state == "approved" else "failed"))
        return True

    async def _remember(self, question: ConfirmationView, scope: Scope) -> bool:
        """Approve for later calls too; it is offered where one person's approval is enough. Raises RemitError."""
        remember = await self._remit.service.approvals.remember(
            question.confirmation,
            scope,
            seconds=REMEMBERED_S,
            exact=False,
            digest=question.digest,
            by=self._by,
            proof="terminal",
        )
        self._err.line(self._err.style("approved", "ok"))
        if remember is not None:
            where = "everywhere" if scope == "everything" else f"in this {scope}"
            what = f"{one_line(remember.tool)} runs {where} without asking until {moment(remember.expires_at)}"
            self._err.line(f"{what}; end that with: remit policy revoke {remember.id}")
        return True

    async def _edit(self, question: ConfirmationView) -> ConfirmationView | None:
        """The question that replaces this one; None where the arguments stayed as they were, or cannot be used."""
        text = pretty(question.args)
        edited = await self._edited(text)
        if edited is None or edited.strip() in {"", text.strip()}:
            self._err.line("nothing changed")
            return None
        self.current = ""
        try:
            replaced = await self._remit.service.confirmations.edit(
                question.confirmation, msgspec.json.decode(edited.encode()), by=self._by
            )
        except msgspec.DecodeError as error:
            self._err.line(f"that is not JSON: {error}")
        except RemitError as error:
            show(describe(error), self._output)
        else:
            return replaced
        return None

    async def _edited(self, text: str) -> str | None:
        if not has_editor():
            return await self._line(
                "no editor is set (EDITOR); type the new arguments as JSON on one line, or nothing:\n"
            )
        import click

        try:
            return await asyncio.to_thread(click.edit, text + "\n", extension=".json")
        except click.ClickException as error:
            self._err.line(clean(error.format_message()))
            return None

    async def _line(self, prompt: str) -> str | None:
        forget_typed()
        self._err.stream.write(self._err.style(prompt, "bold"))
        self._err.flush()
        try:
            return await read_line()
        except asyncio.CancelledError:
            self._err.line()  # what is said next begins on a line of its own
            raise

    # --- the screen

    async def _show(self, question: ConfirmationView) -> None:
        """The whole question; in the pager if it is longer than the screen, with its head on the screen afterwards."""
        self.current = question.confirmation
        now = SystemClock().now()
        page = PagedLines(self._err)
        show_question(page, question, await preview(self._remit, question), now=now)
        command = None if page.fits else pager()
        self._err.flush()
        if command is not None and await show_paged(command, page.lines):
            show_head(self._err, question, now=now)
            self._err.line(f"  {len(page.lines)} lines, shown in the pager; `s` shows them again")
        else:
            page.write()
        self._err.line()
        self._menu(question)

    def _menu(self, question: ConfirmationView) -> None:
        tool = one_line(question.tool)
        keys = [("a", "approve this call" if tool else "approve")]
        for answer, scope in scopes_of(question).items():
            where = "everywhere" if scope == "everything" else f"in this {scope}"
            key = next(key for key, word in _ANSWERS.items() if word == answer)
            keys.append((key, f"approve, and run {tool} {where} without asking for 8 h, whatever its arguments"))
        keys += [("d", "deny"), *([("e", "edit the arguments")] if tool else [])]
        keys += [("s", "show it again"), ("l", "later")]
        for key, meaning in keys:
            self._err.line(f"  {self._err.style(key, 'bold')}  {meaning}")


async def preview(remit: Opened, question: ConfirmationView) -> Preview | None:
    """Return what the call would change; None if that is not known here."""
    if not question.tool or question.state != "pending":
        return None
    try:
        return await remit.service.confirmations.preview(question.confirmation)
    except RemitError:  # it helps to decide, and is not needed for it
        return None


def _about(question: ConfirmationView) -> str:
    """Return what is asked, once more beside the answer: the call above may be longer than the screen."""
    if not question.tool:
        return "approve, deny or later? "
    level = f" ({question.capability_level})" if question.capability_level else ""
    return f"{one_line(question.tool)}{level}: approve, deny, edit or later? "


def has_editor() -> bool:
    """Return whether there is an editor to open."""
    from shutil import which

    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    return bool(named) or any(which(editor) for editor in _EDITORS)
