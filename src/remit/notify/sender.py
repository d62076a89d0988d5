"""Sends a message to a target by whatever way that has, and says what came back."""

from __future__ import annotations

import asyncio
import base64
import binascii
import datetime as dt
import hashlib
import hmac
import http.client
import smtplib
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from email.message import EmailMessage
from email.utils import format_datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from remit.blocking import Threads
from remit.clock import SECOND
from remit.errors import ProviderError, RemitError, SettingsError
from remit.http.retry import retry_after
from remit.notify.message import slack_text
from remit.notify.target import is_loopback, mail_server, url_problem
from remit.process.child import Child
from remit.process.environment import environment, without
from remit.redact import line
from remit.settings.expansion import expand, sendable
from remit.version import __version__

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.notify.message import Message
    from remit.notify.target import MailServer, Target

LONGEST_S: Final = 30.0
"""Seconds that an attempt may take in all."""
SILENCE_S: Final = 10.0
"""Seconds that a server may say nothing."""


class Answer(NamedTuple):
    """The end of an attempt."""

    ok: bool
    """Whether the target took the message."""
    words: str
    """The answer, in words for people, without secrets."""
    pause_s: float = 0.0
    """Seconds that the target asks us to wait before the next attempt."""


_SHORTEST: Final = 6
"""Characters of the shortest text that is taken for a secret by its place."""
AT_ONCE: Final = 8
"""Messages on their way at once."""


class Sender:
    """Sends messages; each is one attempt, and never raises for what a target does."""

    def __init__(self, environ: Mapping[str, str], folder: str, clock: Clock) -> None:
        self._environ = environ
        self._folder = folder
        self._clock = clock
        self._threads = Threads(AT_ONCE)

    async def send(self, target: Target, message: Message) -> Answer:
        """Make one attempt."""
        try:
            answer = await self._sent(target, message)
        except (RemitError, ProviderError) as error:
            answer = Answer(ok=False, words=getattr(error, "message", "") or str(error))
        except TimeoutError:
            answer = Answer(ok=False, words="no answer in time")
        except (OSError, http.client.HTTPException, smtplib.SMTPException, ValueError) as error:
            answer = Answer(ok=False, words=f"{type(error).__name__}: {error}")
        return answer._replace(words=line(without(_secrets(target, self._environ), answer.words)))

    async def _sent(self, target: Target, message: Message) -> Answer:
        now = self._clock.now()
        if target.url:
            return await post(target, message, self._environ, now, self._threads)
        if target.email:
            moment = dt.datetime.fromtimestamp(now // SECOND, dt.UTC)
            return await mail(target, message, self._environ, moment, self._threads)
        return await run(target, message, self._environ, self._folder)


def _secrets(target: Target, environ: Mapping[str, str]) -> list[str]:
    """Return what may be secret of a target, longest first: a server can send back what it was sent."""
    texts = [target.url, target.secret, target.password, *target.headers.values(), *target.env.values()]
    found = set[str]()
    for text in texts:
        with suppress(SettingsError):
            found.add(expand(text, environ, target.name))
    words = {word for text in found for word in (text, *text.split(), *text.split("/")[3:])}
    return sorted((word for word in words if len(word) >= _SHORTEST), key=len, reverse=True)


_SUBJECT: Final = 150


async def mail(
    target: Target, message: Message, environ: Mapping[str, str], now: dt.datetime, threads: Threads
) -> Answer:
    """Send a mail. Raises SettingsError, OSError, TimeoutError or smtplib.SMTPException."""
    who = f"notify {target.name}"
    password = expand(target.password, environ, who)
    server = mail_server(target.smtp)
    if server is None:  # read_targets has seen to it
        raise SettingsError(f"{who}: smtp names no server", remedy="Correct smtp.")
    letter = _letter(target, message, now)
    async with asyncio.timeout(LONGEST_S):
        return await threads.run(lambda: _handed_in(server, target.user, password, letter))


def _letter(target: Target, message: Message, now: dt.datetime) -> EmailMessage:
    letter = EmailMessage()
    letter["From"], letter["To"] = target.sender, ", ".join(target.email)
    letter["Subject"] = line(message.title, _SUBJECT)
    letter["Date"] = format_datetime(now)
    letter["Message-ID"] = f"<{message.id}@{target.sender.rpartition('@')[2]}>"  # a repeated mail is the same one
    letter["Auto-Submitted"] = "auto-generated"
    letter.set_content("\n".join([message.title, "", *message.lines(), *(["", message.url] if message.url else [])]))
    return letter


def _handed_in(server: MailServer, user: str, password: str, letter: EmailMessage) -> Answer:
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
    return Answer(ok=True, words=f"{words}, but not for {', '.join(refused)}" if refused else words)


_GRACE_S: Final = 1.0


async def run(
    target: Target, message: Message, environ: Mapping[str, str], folder: str, limit_s: float = LONGEST_S
) -> Answer:
    """Run the target's command in `folder`; status 0 means that it took the message.

    Raises SettingsError, or OSError if the program cannot be started.
    """
    who = f"notify {target.name}"
    added = {name: expand(text, environ, who) for name, text in target.env.items()}
    child = Child(grace_s=_GRACE_S)
    try:
        await child.start(target.command, env=environment(environ, added), cwd=folder)
        child.write(message.encoded + b"\n")
        child.close_stdin()
        async with asyncio.timeout(limit_s):
            status = await child.ended()
    finally:
        await child.close()
    said = child.shown(child.err) or child.shown(child.out)
    return Answer(status == 0, f"{child.why_ended}: {said}" if said else child.why_ended)


_ANSWER: Final = 2_048
"""Bytes of the answer that are read."""
_PREFIX: Final = "whsec_"


async def post(target: Target, message: Message, environ: Mapping[str, str], now: int, threads: Threads) -> Answer:
    """Post a message. Raises SettingsError, OSError, TimeoutError or http.client.HTTPException."""
    who = f"notify {target.name}"
    url = sendable(expand(target.url, environ, who), f"{who}: its url")
    problem = url_problem(url)
    if problem is not None:
        raise SettingsError(f"{who}: {problem[0]}", remedy=problem[1])
    body = message.encoded if target.format == "json" else slack_text(message)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"remit/{__version__}",
        "Idempotency-Key": message.id,
        **{name: sendable(expand(text, environ, who), f"{who}: {name}") for name, text in target.headers.items()},
    }
    if target.secret:
        headers |= signature(expand(target.secret, environ, who), message.id, now // SECOND, body, who)
    parts = urlsplit(url)
    host = parts.hostname or ""
    connection = (
        http.client.HTTPSConnection(host, parts.port, timeout=SILENCE_S, context=ssl.create_default_context())
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=SILENCE_S)
    )
    place = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return await _asked(connection, place, body, headers, now, threads)


def signature(secret: str, identifier: str, seconds: int, body: bytes, who: str) -> dict[str, str]:
    """The headers that prove who sent a body, and when. Raises SettingsError for a key that cannot be used."""
    try:
        key = base64.b64decode(secret[len(_PREFIX) :], validate=True) if secret.startswith(_PREFIX) else secret.encode()
    except binascii.Error as error:
        why = f"{who}: its secret begins with {_PREFIX}, and what follows is not base64"
        raise SettingsError(why, remedy="Copy it again, or leave the prefix out.") from error
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
) -> Answer:
    """One request in a thread; once the time is over, its socket is shut, so that the thread ends too."""

    def ask() -> Answer:
        connection.request("POST", place, body, dict(headers))
        response = connection.getresponse()
        text = response.read(_ANSWER).decode("utf-8", "replace").strip()
        words = f"HTTP {response.status} {response.reason}".rstrip()
        ok = 200 <= response.status < 300  # noqa: PLR2004 - the class of answers that means success
        pause_s = retry_after(response.headers, now) or 0.0
        return Answer(ok, words if ok or not text else f"{words}: {text}", pause_s)

    try:
        async with asyncio.timeout(LONGEST_S):
            return await threads.run(ask)
    finally:
        if connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
