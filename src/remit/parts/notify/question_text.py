"""A question as a message on a channel: whole, or without buttons.

Who approves has seen everything that runs (rule 15). So a message has buttons only where it shows the call whole: its
arguments, unmasked and uncut, and nothing of it that needs the console. Else it says why, and has the link alone.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from remit.canonical import sha256
from remit.redact.visible import visible

if TYPE_CHECKING:
    from remit.record.views import ConfirmationView

LONGEST: Final = 2_800
"""Characters of a question that is shown whole, in units of UTF-16: Slack cuts at 3,000, Telegram refuses 4,097."""


class Answerable(NamedTuple):
    """A question, shown whole."""

    text: str
    confirmation: str
    digest: str

    @property
    def shown(self) -> str:
        """The digest of what is shown."""
        return sha256(self.text.encode())

    def mark(self, notification: str) -> str:
        """Return what a button brings back."""
        return msgspec.json.encode({"n": notification, "c": self.confirmation, "d": self.digest}).decode()


class ButtonMark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The mark of a button: the notification, the question and the digest of its call."""

    n: str
    c: str
    d: str


def answerable(view: ConfirmationView, *, erasable: bool, channel_counts: bool) -> Answerable | str:
    """Return a question shown whole, or why it has to be answered elsewhere."""
    text = text_of(view)
    reasons = {
        "answers on a channel do not count here": not channel_counts,
        "its arguments can be erased, and a message cannot": erasable,
        "it has arguments from untrusted text": bool(view.untrusted),
        "it was edited, and the difference is in the console": bool(view.edited_from),
        "the tool puts defaults in for what is left out": bool(view.tool) and view.defaults != {},
        "it is longer than a message shows": len(text.encode("utf-16-le", "surrogatepass")) > 2 * LONGEST,
        "it is answered already": view.state != "pending",
    }
    reason = next((reason for reason, holds in reasons.items() if holds), "")
    return reason or Answerable(text, view.confirmation, view.digest)


def text_of(view: ConfirmationView) -> str:
    """The whole question, one fact a line; each character that cannot be seen stands as its number."""
    facts: dict[str, Any] = {
        "Tool": view.tool,
        "Level": view.capability_level,
        "Version": view.tool_version,
        "Question": view.question,
        "Asked by": view.principal,
        "For": view.caller,
        "Approvals needed": view.approvals if view.approvals > 1 else "",
        "May approve": ", ".join(view.may_answer),
        "Arguments": json.dumps(view.args, indent=2, ensure_ascii=False),
    }
    return "\n".join(f"{name}: {visible(str(value), _number)}" for name, value in facts.items() if value)


def _number(char: str) -> str:
    return char if char in "\n\t" else f"⟨U+{ord(char):04X}⟩"
