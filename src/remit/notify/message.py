"""The message: one JSON object for webhooks and commands, a text for Slack and mail. Pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec

from remit.clock import isoformat
from remit.redact import line

if TYPE_CHECKING:
    from remit.notify.occasion import Occasion

_MOST: Final = 8 * 1024
"""Bytes of labels that are sent."""
_SLACK: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "\u02cb"})
"""Characters that Slack would take for markup, as https://docs.slack.dev/messaging/formatting-message-text says.

Within a block of code there is no other markup, and no address becomes a link; the backtick would end the block.
"""


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a target is told. Fields that say nothing are left out."""

    id: str
    """The same in every attempt: the idempotency key."""
    event: str
    """`question`, `expired`, `stuck`, `failed`, `uncertain` or `test`."""
    at: str
    """When it happened, as RFC 3339 in UTC."""
    title: str
    """The event, in one line."""
    url: str = ""
    """The page of the console about it."""
    command: str = ""
    """The command that shows it."""
    job: str = ""
    recipe: str = ""
    labels: dict[str, str] = {}
    confirmation: str = ""
    tool: str = ""
    level: str = ""
    step: str = ""
    principal: str = ""
    """In whose name the call is made."""
    question: str = ""
    arguments: str = ""
    """The beginning of the call's arguments, on one line, with secrets masked."""
    code: str = ""
    reason: str = ""
    expires_at: str = ""

    @property
    def encoded(self) -> bytes:
        """The message as JSON."""
        return msgspec.json.encode(self)

    def lines(self) -> list[str]:
        """The message for people, one fact a line."""
        about = {
            "Question": self.question,
            "Arguments": self.arguments,
            "Reason": self.reason,
            "Job": " ".join(filter(None, (self.recipe, self.job))),
            "Step": self.step,
            "For": self.principal,
            "Answer by": self.expires_at if self.event == "question" else "",
            "At a terminal": self.command,
        }
        return [f"{name}: {text}" for name, text in about.items() if text]


def message_of(notification: str, occasion: Occasion, *, details: bool, console: str) -> Message:
    """The message about an event; `console` is the base URL of the pages, empty if there is none."""
    page = f"/inbox/{quote(occasion.confirmation, safe='')}" if occasion.confirmation else ""
    page = page or (f"/jobs/{quote(occasion.job, safe='')}" if occasion.job else "")
    labels = {line(name): line(value) for name, value in occasion.labels.items()}
    return Message(
        id=notification,
        event=occasion.event,
        at=isoformat(occasion.at),
        title=_title(occasion),
        url=f"{console.rstrip('/')}{page}" if console and page else "",
        command=_command(occasion),
        job=occasion.job,
        recipe=occasion.recipe,
        labels=labels if len(msgspec.json.encode(labels)) <= _MOST else {},
        confirmation=occasion.confirmation,
        tool=occasion.tool,
        level=occasion.level,
        step=occasion.step,
        principal=line(occasion.principal),
        question=occasion.question if details else "",
        arguments=occasion.arguments if details else "",
        code=occasion.code,
        reason=occasion.reason if details else "",
        expires_at=isoformat(occasion.expires_at) if occasion.expires_at is not None else "",
    )


def sample(notification: str, now: int, console: str) -> Message:
    """A message that says that messages arrive."""
    title = "A test message: notifications arrive here"
    return Message(id=notification, event="test", at=isoformat(now), title=title, url=console)


def slack_text(message: Message) -> bytes:
    """The body for a webhook of Slack, or of what understands the same."""
    facts = "\n".join(fact.translate(_SLACK) for fact in message.lines())
    link = f"<{message.url}|Open in Remit>" if message.url else ""
    parts = (f"*{message.title.translate(_SLACK)}*", facts and f"```\n{facts}\n```", link)
    return msgspec.json.encode({"text": "\n".join(filter(None, parts))})


def _title(occasion: Occasion) -> str:
    what = f"{occasion.tool} ({occasion.level})" if occasion.level else occasion.tool or "A question"
    recipe = occasion.recipe or "A job"
    match occasion.event:
        case "question":
            return f"{what} waits for an answer"
        case "expired":
            return f"{what}: no one answered in time"
        case "stuck":
            return f"{recipe} is stuck: {occasion.code}"
        case "failed":
            return f"{recipe} failed: {occasion.code}"
        case "uncertain":
            return f"{occasion.tool or recipe}: the outcome of step {occasion.step} is unknown"


def _command(occasion: Occasion) -> str:
    if occasion.event == "question":
        return shlex.join(["remit", "confirm", occasion.confirmation])
    return shlex.join(["remit", "show", occasion.job]) if occasion.job else ""
