"""Sends a message to a target by whatever way that has, and says what came back.

The message: one JSON object for webhooks and commands, a text for Slack and mail.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import datetime as dt
import hashlib
import hmac
import http.client
import shlex
import smtplib
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from email.message import EmailMessage
from email.utils import format_datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from remit.clock import SECOND, isoformat
from remit.errors import ProviderError, RemitError, SettingsError
from remit.http.retry import retry_after
from remit.parts.notify.target import is_loopback, mail_server, url_problem
from remit.process.child import ChildProcess
from remit.process.environment import environment, without
from remit.redact import line
from remit.settings.expansion import expand, sendable
from remit.threads import Threads
from remit.version import __version__

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.parts.notify.occasion import Occasion
    from remit.parts.notify.target import MailServer, NotifyTarget


_MOST: Final = 8 * 1024
"""Bytes of labels that are sent."""
_SLACK: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "\u02cb"})
"""Characters that Slack would take for markup, as https://docs.slack.dev/messaging/formatting-message-text says.

Within a block of code there is no other markup, and no address becomes a link; the backtick would end the block.
"""


class Notice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a target is told. Fields that say nothing are left out."""

    id: str
    """The same in every attempt: the idempotency key."""
    event: str
    """`question`, `expired`, `stuck`, `failed`, `uncertain`, `budget`, `digest` of many, or `test`."""
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
    about: tuple[str, ...] = ()
    """Of many events: what they are, each with its number."""

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
        return [*self.about, *(f"{name}: {text}" for name, text in about.items() if text)]


def message_of(notification: str, occasion: Occasion, *, details: bool, console: str) -> Notice:
    """The message about an event; `console` is the base URL of the pages, empty if there is none."""
    page = f"/inbox/{quote(occasion.confirmation, safe='')}" if occasion.confirmation else ""
    page = page or (f"/jobs/{quote(occasion.job, safe='')}" if occasion.job else "")
    labels = {line(name): line(value) for name, value in occasion.labels.items()}
    return Notice(
        id=notification,
        event=occasion.event,
        at=isoformat(occasion.at),
        title=title_of(occasion),
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


def sample(notification: str, now: int, console: str) -> Notice:
    """A message that says that messages arrive."""
    title = "A test message: notifications arrive here"
    return Notice(id=notification, event="test", at=isoformat(now), title=title, url=console)


def slack_text(message: Notice) -> bytes:
    """The body for a webhook of Slack, or of what understands the same."""
    facts = "\n".join(fact.translate(_SLACK) for fact in message.lines())
    link = f"<{message.url}|Open in Remit>" if message.url else ""
    parts = (f"*{message.title.translate(_SLACK)}*", facts and f"```\n{facts}\n```", link)
    return msgspec.json.encode({"text": "\n".join(filter(None, parts))})


def teams_card(message: Notice) -> bytes:
    """The body for a workflow of Teams: a card whose texts are no markup, and a button that opens the console."""
    texts = [(message.title, "Bolder"), *((fact, "Default") for fact in message.lines())]
    blocks = [
        {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, "weight": weight}]}
        for text, weight in texts
    ]
    link = [{"type": "Action.OpenUrl", "title": "Open in Remit", "url": message.url}] if message.url else []
    card = {"type": "AdaptiveCard", "version": "1.4", "body": blocks, "actions": link}
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "content": card}
    return msgspec.json.encode({"type": "message", "attachments": [attachment]})


def ntfy_post(message: Notice, topic: str) -> bytes:
    """The body for a server of ntfy, which opens the console where its notice is touched."""
    link = {"click": message.url} if message.url else {}
    body = {"topic": topic, "title": message.title, "message": "\n".join(message.lines()) or message.title, **link}
    return msgspec.json.encode(body)


def title_of(occasion: Occasion) -> str:
    """The event in one line."""
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
        case "budget":
            return f"Budget {occasion.code} reached"
        case "uncertain":
            return f"{occasion.tool or recipe}: the outcome of step {occasion.step} is unknown"


def _command(occasion: Occasion) -> str:
    if occasion.event == "question":
        return shlex.join(["remit", "confirm", occasion.confirmation])
    return shlex.join(["remit", "show", occasion.job]) if occasion.job else ""


LONGEST_S: Final = 30.0
"""Seconds that an attempt may take in all."""
SILENCE_S: Final = 10.0
"""Seconds that a server may say nothing."""


class AttemptEnd(NamedTuple):
    """The end of an attempt."""

    ok: bool
    """Whether the target took the message."""
    words: str
    """The answer, in words for people, without secrets."""
    pause_s: float = 0.0
    """Seconds that the target asks us to wait before the next attempt."""
    place: str = ""
    """The message, as its channel names it, if people can answer there."""
    shown: str = ""
    """Digest of the question that it shows whole."""


_SHORTEST: Final = 6
"""Characters of the shortest text that is taken for a secret by its place."""
AT_ONCE: Final = 8
"""Messages on their way at once."""


Post = Callable[["NotifyTarget", Notice, Mapping[str, str]], Awaitable[AttemptEnd]]
"""Posts a message on a channel where people answer."""


class Sender:
    """Sends messages; each is one attempt, and never raises for what a target does."""

    def __init__(self, environ: Mapping[str, str], folder: str, clock: Clock, post: Post | None = None) -> None:
        self._post = post
        self._environ = environ
        self._folder = folder
        self._clock = clock
        self._threads = Threads(AT_ONCE)

    async def send(self, target: NotifyTarget, message: Notice) -> AttemptEnd:
        """Make one attempt."""
        try:
            answer = await self._sent(target, message)
        except (RemitError, ProviderError) as error:
            answer = AttemptEnd(ok=False, words=getattr(error, "message", "") or str(error))
        except TimeoutError:
            answer = AttemptEnd(ok=False, words="no answer in time")
        except (OSError, http.client.HTTPException, smtplib.SMTPException, ValueError) as error:
            answer = AttemptEnd(ok=False, words=f"{type(error).__name__}: {error}")
        return answer._replace(words=line(without(_secrets(target, self._environ), answer.words)))

    async def _sent(self, target: NotifyTarget, message: Notice) -> AttemptEnd:
        now = self._clock.now()
        if target.url:
            return await post(target, message, self._environ, now, self._threads)
        if target.email:
            moment = dt.datetime.fromtimestamp(now // SECOND, dt.UTC)
            return await mail(target, message, self._environ, moment, self._threads)
        if (target.answerable or target.push) and self._post is not None:
            return await self._post(target, message, self._environ)
        return await run(target, message, self._environ, self._folder)


def _secrets(target: NotifyTarget, environ: Mapping[str, str]) -> list[str]:
    """Return what may be secret of a target, longest first: a server can send back what it was sent."""
    texts = [target.url, target.secret, target.password, target.token, *target.headers.values(), *target.env.values()]
    secrets_found = set[str]()
    for text in texts:
        with suppress(SettingsError):
            secrets_found.add(expand(text, environ, target.name))
    words = {word for text in secrets_found for word in (text, *text.split(), *text.split("/")[3:])}
    return sorted((word for word in words if len(word) >= _SHORTEST), key=len, reverse=True)


_SUBJECT: Final = 150


async def mail(
    target: NotifyTarget, message: Notice, environ: Mapping[str, str], now: dt.datetime, threads: Threads
) -> AttemptEnd:
    """Send a mail. Raises SettingsError, OSError, TimeoutError or smtplib.SMTPException."""
    who = f"notify {target.name}"
    password = expand(target.password, environ, who)
    server = mail_server(target.smtp)
    if server is None:  # read_targets has seen to it
        raise SettingsError(f"{who}: smtp names no server", remedy="Correct smtp.")
    letter = _letter(target, message, now)
    async with asyncio.timeout(LONGEST_S):
        return await threads.run(lambda: _handed_in(server, target.user, password, letter))


def _letter(target: NotifyTarget, message: Notice, now: dt.datetime) -> EmailMessage:
    letter = EmailMessage()
    letter["From"], letter["To"] = target.sender, ", ".join(target.email)
    letter["Subject"] = line(message.title, _SUBJECT)
    letter["Date"] = format_datetime(now)
    letter["Message-ID"] = f"<{message.id}@{target.sender.rpartition('@')[2]}>"  # a repeated mail is the same one
    letter["Auto-Submitted"] = "auto-generated"
    letter.set_content("\n".join([message.title, "", *message.lines(), *(["", message.url] if message.url else [])]))
    return letter


def _handed_in(server: MailServer, user: str, password: str, letter: EmailMessage) -> AttemptEnd:
    context = ssl.create_default_context()
    if server.tls:
        connection: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=SILENCE_S, context=context)
    else:
        connection = smtplib.SMTP(server.host, server.port, timeout=SILENCE_S)
    with connection:
        if not server.tls and not is_loopback(server.host):
            connection.starttls(context=context)
        if user:
            connection.login(user, password)
        refused = connection.send_message(letter)
    words = f"accepted by {server.host}"
    return AttemptEnd(ok=True, words=f"{words}, but not for {', '.join(refused)}" if refused else words)


_GRACE_S: Final = 1.0


async def run(
    target: NotifyTarget, message: Notice, environ: Mapping[str, str], folder: str, limit_s: float = LONGEST_S
) -> AttemptEnd:
    """Run the target's command in `folder`; status 0 means that it took the message.

    Raises SettingsError, or OSError if the program cannot be started.
    """
    who = f"notify {target.name}"
    added = {name: expand(text, environ, who) for name, text in target.env.items()}
    child = ChildProcess(grace_s=_GRACE_S)
    try:
        await child.start(target.command, env=environment(environ, added), cwd=folder)
        child.write(message.encoded + b"\n")
        child.close_stdin()
        async with asyncio.timeout(limit_s):
            status = await child.ended()
    finally:
        await child.close()
    output = child.shown(child.err) or child.shown(child.out)
    return AttemptEnd(status == 0, f"{child.why_ended}: {output}" if output else child.why_ended)


_ANSWER: Final = 2_048
"""Bytes of the answer that are read."""
_PREFIX: Final = "whsec_"


async def post(
    target: NotifyTarget, message: Notice, environ: Mapping[str, str], now: int, threads: Threads
) -> AttemptEnd:
    """Post a message. Raises SettingsError, OSError, TimeoutError or http.client.HTTPException."""
    who = f"notify {target.name}"
    url = sendable(expand(target.url, environ, who), f"{who}: its url")
    problem = url_problem(url)
    if problem is not None:
        raise SettingsError(f"{who}: {problem[0]}", remedy=problem[1])
    parts = urlsplit(url)
    path, body = parts.path or "/", message.encoded
    if target.format == "slack":
        body = slack_text(message)
    elif target.format == "teams":
        body = teams_card(message)
    elif target.format == "ntfy":
        path, _, topic = path.rpartition("/")
        path, body = f"{path}/", ntfy_post(message, topic)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"remit/{__version__}",
        "Idempotency-Key": message.id,
        **{name: sendable(expand(text, environ, who), f"{who}: {name}") for name, text in target.headers.items()},
    }
    if target.secret:
        headers |= signature(expand(target.secret, environ, who), message.id, now // SECOND, body, who)
    host = parts.hostname or ""
    connection = (
        http.client.HTTPSConnection(host, parts.port, timeout=SILENCE_S, context=ssl.create_default_context())
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=SILENCE_S)
    )
    place = path + (f"?{parts.query}" if parts.query else "")
    return await _asked(connection, place, body, headers, now, threads)


def signature(secret: str, identifier: str, seconds: int, body: bytes, who: str) -> dict[str, str]:
    """The headers that prove who sent a body, and when. Raises SettingsError for a key that cannot be used."""
    try:
        key = base64.b64decode(secret[len(_PREFIX) :], validate=True) if secret.startswith(_PREFIX) else secret.encode()
    except binascii.Error as error:
        reason = f"{who}: its secret begins with {_PREFIX}, and what follows is not base64"
        raise SettingsError(reason, remedy="Copy it again, or leave the prefix out.") from error
    if not key:
        raise SettingsError(f"{who}: its secret is empty", remedy="Set the variable that it refers to.")
    digest = hmac.new(key, f"{identifier}.{seconds}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": identifier,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


async def _asked(
    connection: http.client.HTTPConnection,
    place: str,
    body: bytes,
    headers: Mapping[str, str],
    now: int,
    threads: Threads,
) -> AttemptEnd:
    """One request in a thread; once the time is over, its socket is shut, so that the thread ends too."""

    def ask() -> AttemptEnd:
        connection.request("POST", place, body, dict(headers))
        response = connection.getresponse()
        text = response.read(_ANSWER).decode("utf-8", "replace").strip()
        words = f"HTTP {response.status} {response.reason}".rstrip()
        ok = 200 <= response.status < 300  # noqa: PLR2004 - the class of answers that means success
        pause_s = retry_after(response.headers, now) or 0.0
        return AttemptEnd(ok, words if ok or not text else f"{words}: {text}", pause_s)

    try:
        async with asyncio.timeout(LONGEST_S):
            return await threads.run(ask)
    finally:
        if connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
