"""Channels on which people are asked and answer: a question is sent whole, and what they press is settled."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from remit.errors import ChainBrokenError, NotFoundError, RemitError
from remit.parts.notify.answers import Answerable, answerable, end_of
from remit.parts.notify.sender import AttemptEnd
from remit.parts.notify.slack import SlackApi
from remit.parts.notify.telegram import Presses, TelegramApi
from remit.redact import line

if TYPE_CHECKING:
    from remit.gateway.proof import Proofs
    from remit.journal.journal import Journal
    from remit.parts.notify.answers import ChannelAnswers
    from remit.parts.notify.kinds import AnswerReceived, AnswerSettled, UpdateQueued
    from remit.parts.notify.sender import Notice
    from remit.parts.notify.target import NotifyTarget
    from remit.service.service import Service

_log: Final = logging.getLogger("remit.notify")


def api_of(target: NotifyTarget, environ: Mapping[str, str]) -> SlackApi | TelegramApi:
    """The methods of a target's channel."""
    return TelegramApi(target, environ) if target.telegram else SlackApi(target, environ)


async def post(
    target: NotifyTarget, message: Notice, environ: Mapping[str, str], question: Answerable | str | None = None
) -> AttemptEnd:
    """Post a message on a target's channel: one attempt, which never raises for what the channel does."""
    try:
        return await api_of(target, environ).post(message, question)
    except RemitError as error:
        return AttemptEnd(ok=False, words=error.message)
    except (OSError, ValueError) as error:  # a timeout is an OSError
        return AttemptEnd(ok=False, words=line(str(error)) or type(error).__name__)


class NotifyChannels:
    """The channels of one process."""

    def __init__(
        self, service: Service, journal: Journal, proofs: Proofs, answers: ChannelAnswers, environ: Mapping[str, str]
    ) -> None:
        self._service = service
        self._journal = journal
        self._proofs = proofs
        self._answers = answers
        self._environ = environ

    async def send(self, target: NotifyTarget, message: Notice) -> AttemptEnd:
        """Send a message; one about a question has buttons if it can be shown whole."""
        return await post(target, message, self._environ, await self._question(target, message))

    def presses(self, targets: Sequence[NotifyTarget]) -> Presses:
        """Return what people press in the chats of one bot, which these targets share."""
        return Presses(self._journal, self._service, targets, self._environ)

    async def settle(self, target: NotifyTarget, received: AnswerReceived) -> AnswerSettled:
        """Decide as an answer says, and tell the person what it did. A failure to tell them is logged alone."""
        settled = await self._answers.decide(received)
        closed = settled.state not in {"", "pending"}
        body = await self._journal.blob(received.body) or b""
        try:
            await api_of(target, self._environ).tell(received, body, settled.text, closed=closed)
        except (OSError, TimeoutError, ValueError, RemitError) as error:
            _log.warning("%s was not told what an answer did: %s", target.name, line(str(error)))
        return settled

    async def update(self, target: NotifyTarget, update: UpdateQueued) -> str:
        """Have a message say how its question ended; the result in words."""
        try:
            view = await self._service.confirmations.view(update.confirmation)
            record = await self._service.confirmations.answers(update.confirmation)
            await api_of(target, self._environ).settle(update.message, end_of(view, record.decisions))
        except (OSError, TimeoutError, ValueError, RemitError) as error:
            return line(str(error)) or type(error).__name__
        return "updated"

    async def _question(self, target: NotifyTarget, message: Notice) -> Answerable | str | None:
        if message.event != "question":
            return None
        if not target.details:
            return "its target has no details"
        try:
            view = await self._service.confirmations.view(message.confirmation)
            head = await self._journal.head(view.caller)
        except (NotFoundError, ChainBrokenError) as error:
            return error.message
        erasable = head is not None and bool(head.subject)
        return answerable(view, erasable=erasable, channel_counts=self._proofs.takes("channel"))
