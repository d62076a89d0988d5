"""Asks the person at this terminal: shows the exact call that waits, and takes one of a few answers."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.cli.errors import describe, show
from remit.cli.tables import fields, moment
from remit.cli.terminal import forget_typed, read_line
from remit.cli.text import clean, one_line, rows
from remit.clock import SystemClock, duration
from remit.codes import Code
from remit.errors import RemitError
from remit.service.views import ConfirmationView, ToolView

if TYPE_CHECKING:
    from remit.cli.opened import Opened
    from remit.cli.output import Channel, Output

_ANSWERS: Final = {
    "a": "approve", "approve": "approve", "y": "approve", "yes": "approve",
    "d": "deny", "deny": "deny", "n": "deny", "no": "deny",
    "e": "edit", "edit": "edit",
    "l": "later", "later": "later",
    "s": "show", "show": "show",
}  # fmt: skip
_OVER: Final = frozenset({Code.CONFIRMATION_CLOSED, Code.CONFIRMATION_EXPIRED})
"""Errors after which there is nothing left to answer."""
_EDITORS: Final = ("sensible-editor", "vim", "nano", "vi")
"""What click looks for where neither VISUAL nor EDITOR names one."""


class Prompt:
    """Puts questions on stderr and reads answers from stdin."""

    def __init__(self, remit: Opened, output: Output, by: str = "") -> None:
        """`by`: who answers; empty: the configured principal."""
        self.current = ""
        self._remit = remit
        self._output = output
        self._err = output.err
        self._by = by

    async def ask(self, question: ConfirmationView) -> bool:
        """Show a question and act on the answer; whether it was answered, rather than left for later."""
        self._show(question)
        while True:
            self.current = question.confirmation
            typed = await self._line(f"{_about(question)}? ")
            answer = "later" if typed is None else _ANSWERS.get(typed.strip().lower(), "")
            if answer == "later":
                self._err.line(f"left for later: remit confirm {question.confirmation}")
                return False
            if answer == "show":
                self._show(question)
            elif answer == "edit" and question.tool:
                edited = await self._edit(question)
                if edited is not None:
                    question = edited
                    self._show(question)
            elif answer in {"approve", "deny"}:
                return await self._decide(question, answer)
            else:
                self._err.line("Type a word or its first letter; `show` shows the call again.")

    def withdraw(self) -> None:
        """Say that the question on the screen was answered elsewhere."""
        self._err.line(f"{self.current} was answered elsewhere")
        self.current = ""

    # --- answers

    async def _decide(self, question: ConfirmationView, answer: str) -> bool:
        reason = ""
        if answer == "deny":
            reason = await self._line("reason (Enter for none): ") or ""
        self.current = ""
        try:
            decided = await self._remit.service.confirmations.decide(
                question.confirmation,
                "approve" if answer == "approve" else "deny",
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

    def _show(self, question: ConfirmationView) -> None:
        show_question(self._err, question, now=SystemClock().now())
        self._err.line()


async def known_tool(remit: Opened, name: str) -> ToolView | None:
    """The tool that a question is about, where this process knows it."""
    try:
        return await remit.service.tools.view(name) if name else None
    except RemitError:
        return None


def show_question(channel: Channel, question: ConfirmationView, *, now: int) -> None:
    """Everything that a decision is made from, whole."""
    head = "A call waits for approval" if question.tool else "A job asks"
    channel.line()
    channel.line(channel.style(head, "bold", "yellow") + "  " + question.confirmation)
    fields(channel, _rows(question, now))
    if question.tool or question.args is not None:
        channel.line("  " + channel.style("arguments" if question.tool else "details", "dim"))
        room = None if channel.width is None else channel.width - 4
        for line in rows(pretty(question.args), room):
            channel.line("    " + line)
    _untrusted(channel, question)
    channel.line("  " + channel.style("digest of all this", "dim"))
    channel.line("    " + question.digest)


def _untrusted(channel: Channel, question: ConfirmationView) -> None:
    if question.untrusted:
        channel.line("  " + channel.style("arguments from untrusted text", "bold", "yellow"))
    for one in question.untrusted:
        channel.line("    " + one_line(one.words))
        if one.excerpt:
            channel.line("      " + one_line(one.excerpt))


def _about(question: ConfirmationView) -> str:
    """What is asked, once more beside the answer: the call above may be longer than the screen."""
    if not question.tool:
        return "approve, deny or later"
    level = f" ({question.capability_level})" if question.capability_level else ""
    return f"{one_line(question.tool)}{level}: approve, edit, deny or later"


def _rows(question: ConfirmationView, now: int) -> list[tuple[str, str]]:
    where = question.caller.removeprefix("job/")
    said = [
        ("tool", one_line(question.tool)),
        ("level", _level(question)),
        ("question" if not question.tool else "why", one_line(question.question)),
        ("rule", question.rule_id),
        ("asked by", one_line(question.principal)),
        ("for", f"{where} step {question.step}"),
        ("edited from", question.edited_from),
    ]
    if question.approvals > 1 or question.approvers:
        given = one_line(", ".join(question.approved_by))
        needed = f"{question.approvals} needed" + (f", so far {given}" if given else "")
        said.append(("approvals", needed))
        said.append(("may approve", one_line(", ".join(question.approvers))))
    if question.expires_at is not None:
        left = question.expires_at - now
        said.append(
            ("expires", f"{moment(question.expires_at)} (in {duration(left)})" if left > 0 else "it has expired")
        )
    return said


def _level(question: ConfirmationView) -> str:
    if not question.provider_id:
        return "not recorded" if question.tool else ""
    version = f", version {question.tool_version}" if question.tool_version else ""
    return f"{question.capability_level}, provider {question.provider_id}{version}"


def pretty(value: Any) -> str:
    """A JSON value on several lines."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def has_editor() -> bool:
    """Whether there is an editor to open."""
    from shutil import which

    named = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    return bool(named) or any(which(editor) for editor in _EDITORS)
