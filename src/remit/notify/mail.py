"""Hands a message in as a mail, over TLS except on this machine."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from collections.abc import Mapping
from email.message import EmailMessage
from email.utils import format_datetime
from typing import TYPE_CHECKING, Final

from remit.errors import SettingsError
from remit.notify.answer import LONGEST_S, SILENCE_S, Answer
from remit.notify.target import is_loopback, mail_server
from remit.redact import line
from remit.settings.expansion import expand

if TYPE_CHECKING:
    import datetime as dt

    from remit.blocking import Threads
    from remit.notify.message import Message
    from remit.notify.target import MailServer, Target

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
