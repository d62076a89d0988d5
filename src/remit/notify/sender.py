"""Sends a message to a target by whatever way that has, and says what came back."""

from __future__ import annotations

import datetime as dt
import http.client
import smtplib
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from remit.blocking import Threads
from remit.clock import SECOND
from remit.errors import ProviderError, RemitError, SettingsError
from remit.notify.answer import Answer
from remit.notify.mail import mail
from remit.notify.program import run
from remit.notify.webhook import post
from remit.process.environment import without
from remit.redact import line
from remit.settings.expansion import expand

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.notify.message import Message
    from remit.notify.target import Target

_SHORTEST: Final = 6
"""Characters of the shortest text that is taken for a secret by its place."""
AT_ONCE: Final = 8
"""Messages on their way at once."""


class Sender:
    """Sends messages; each is one attempt, and never raises for what a target does."""

    def __init__(self, environ: Mapping[str, str], folder: str, clock: Clock) -> None:
        """Take secrets from `environ`, and run commands in `folder`."""
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
    """What may be secret of a target, longest first: a server can send back what it was sent."""
    texts = [target.url, target.secret, target.password, *target.headers.values(), *target.env.values()]
    found = set[str]()
    for text in texts:
        with suppress(SettingsError):
            found.add(expand(text, environ, target.name))
    words = {word for text in found for word in (text, *text.split(), *text.split("/")[3:])}
    return sorted((word for word in words if len(word) >= _SHORTEST), key=len, reverse=True)
