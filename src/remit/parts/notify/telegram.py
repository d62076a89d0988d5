"""Telegram as a bot: questions with buttons, and what people press there, asked for by long polling.

    message: one preformatted text, in which nothing is markup or becomes a link ──> Approve, Deny
    button:  `a` or `d`, 32 digits of the call's digest, the question: 61 of the 64 bytes that a button may carry

Telegram keeps a press for a day, until it is asked for what comes after it; so each is kept before the next is asked
for. Of all targets with one bot, the process that follows the first of them asks: a bot answers one at a time.
Sources: core.telegram.org/bots/api, "getUpdates", "CallbackQuery", "sendMessage", "MessageEntity".
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.errors import ChainBrokenError, NotFoundError, SettingsError
from remit.gateway.confirmation import stream_of
from remit.journal.kinds import decode
from remit.parts.notify.answers import Answerable, ButtonMark, Press, keep_press
from remit.parts.notify.kinds import NotificationSent
from remit.parts.notify.method import ask
from remit.parts.notify.occasion import notification_of
from remit.parts.notify.sender import AttemptEnd
from remit.redact import line
from remit.regex import regex
from remit.settings.expansion import expand

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.parts.notify.kinds import AnswerReceived
    from remit.parts.notify.sender import Notice
    from remit.parts.notify.target import NotifyTarget
    from remit.record.views import ConfirmationView
    from remit.service.service import Service

CHANNEL: Final = "telegram"
_API: Final = "https://api.telegram.org"
_TOKEN: Final = regex(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,100}")
_BUTTON: Final = regex(r"([ad])([0-9a-f]{32})(\S{1,31})")
_DIGITS: Final = 32
_TITLE: Final = 120
_CUT: Final = 1_900
"""Characters of a text without buttons, of which each may count twice: Telegram takes 4,096."""
_WHISPER: Final = 200
_POLL_S: Final = 25
_PAUSE_S: Final = 5.0
_log: Final = logging.getLogger("remit.notify")


class _Reply(msgspec.Struct, frozen=True):
    """What each method answers."""

    ok: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    description: str = ""
    parameters: dict[str, Any] = {}


class _Id(msgspec.Struct, frozen=True):
    id: int


class _Place(msgspec.Struct, frozen=True):
    """A message."""

    chat: _Id
    message_id: int

    @property
    def name(self) -> str:
        return f"{self.chat.id}/{self.message_id}"


class _Query(msgspec.Struct, frozen=True, rename={"user": "from"}):
    """A press."""

    id: str
    user: _Id
    message: _Place
    data: str


class _Update(msgspec.Struct, frozen=True):
    update_id: int


class _PressUpdate(msgspec.Struct, frozen=True):
    callback_query: _Query


class TelegramApi:
    """Telegram's methods, with the token of one target's bot."""

    def __init__(self, target: NotifyTarget, environ: Mapping[str, str]) -> None:
        self._target = target
        self._environ = environ

    async def ask(self, method: str, body: Mapping[str, Any], wait_s: float = 0.0) -> _Reply:
        """Call a method; its answer. Raises SettingsError, OSError, TimeoutError or ValueError."""
        who = f"notify {self._target.name}"
        token = expand(self._target.token, self._environ, who)
        if not _TOKEN.fullmatch(token):
            raise SettingsError(f"{who}: its token is not one of a bot", remedy="Copy it from BotFather.")
        url = f"{(self._target.api or _API).rstrip('/')}/bot{token}/{method}"
        status, data = await ask(url, body, secret=token, wait_s=wait_s)
        try:
            return msgspec.json.decode(data, type=_Reply)
        except ValueError:
            raise ValueError(f"Telegram answers HTTP {status}") from None

    async def post(self, message: Notice, question: Answerable | str | None) -> AttemptEnd:
        """Post a message, with buttons if its question is shown whole."""
        body = {"chat_id": int(self._target.telegram), **_plain(text_of(message, question))}
        keys = keys_of(message, question)
        reply = await self.ask("sendMessage", {**body, "reply_markup": {"inline_keyboard": keys}} if keys else body)
        if not reply.ok:
            pause_s = reply.parameters.get("retry_after", 0)
            return AttemptEnd(ok=False, words=_words(reply), pause_s=float(pause_s))
        shown = question.shown if isinstance(question, Answerable) else ""
        place = msgspec.json.decode(reply.result, type=_Place)
        return AttemptEnd(ok=True, words="posted", place=place.name, shown=shown)

    async def settle(self, place: str, text: str) -> None:
        """Take the buttons from a message, and say in it how its question ended."""
        chat, _, number = place.partition("/")
        body = {"chat_id": int(chat), "message_id": int(number), **_plain(line(text, _CUT))}
        reply = await self.ask("editMessageText", body)
        if not reply.ok:
            raise ValueError(_words(reply))

    async def tell(self, _received: AnswerReceived, body: bytes, text: str, *, closed: bool) -> None:
        """Tell who pressed a button what that did."""
        query = msgspec.json.decode(body, type=_PressUpdate).callback_query
        answer = {"callback_query_id": query.id, "text": line(text, _WHISPER), "show_alert": not closed}
        await self.ask("answerCallbackQuery", answer)


class Presses:
    """Reads what people press in the chats of one bot."""

    def __init__(
        self, journal: Journal, service: Service, targets: Sequence[NotifyTarget], environ: Mapping[str, str]
    ) -> None:
        self._journal = journal
        self._service = service
        self._targets = tuple(targets)
        self._api = TelegramApi(targets[0], environ)
        self._next = 0

    async def run(self, changed: Callable[[str], Awaitable[None]], failure: str) -> None:
        """Ask until cancelled; `changed` is told why that fails, once, and with nothing that it works again.

        `failure` is what it was told last. Raises JournalError.
        """
        while True:
            words = ""
            try:
                await self.take()
            except (OSError, ValueError, SettingsError) as error:  # a timeout is an OSError
                words = line(str(error)) or type(error).__name__
                if words != failure:
                    _log.warning("%s: what people press is not known: %s", self._targets[0].name, words)
            if bool(words) != bool(failure):
                await changed(words)
            failure = words
            if words:
                await self._journal.clock.sleep(_PAUSE_S)

    async def take(self) -> None:
        """Ask once, and keep what came. Raises SettingsError, OSError, ValueError or JournalError."""
        wanted = {"offset": self._next, "timeout": _POLL_S, "limit": 20, "allowed_updates": ["callback_query"]}
        reply = await self._api.ask("getUpdates", wanted, _POLL_S)
        if not reply.ok:
            raise ValueError(_words(reply))
        for update in msgspec.json.decode(reply.result, type=list[msgspec.Raw]):
            await self._keep(bytes(update))
            self._next = msgspec.json.decode(update, type=_Update).update_id + 1

    async def _keep(self, update: bytes) -> None:
        """Keep a press of a button of ours; any other is logged."""
        try:
            query = msgspec.json.decode(update, type=_PressUpdate).callback_query
            decision, digits, confirmation = _parts(query.data)
            view = await self._service.confirmations.view(confirmation)
            if view.confirmation != confirmation:  # an ending of it is enough at a terminal
                raise LookupError("no button of ours")
            target, notification = await self._told(view, query.message.name)
        except (msgspec.DecodeError, LookupError, NotFoundError, ChainBrokenError) as error:
            _log.warning("%s: a press that is of no message of ours: %s", self._targets[0].name, line(str(error)))
            return
        same = view.digest.removeprefix("sha256:").startswith(digits)
        mark = ButtonMark(n=notification, c=confirmation, d=view.digest if same else digits)
        press = Press(CHANNEL, str(query.user.id), query.message.name, decision, mark, "", 0, update, query.id)
        await keep_press(self._journal, target.name, press)

    async def _told(self, view: ConfirmationView, place: str) -> tuple[NotifyTarget, str]:
        """The target whose message this is, else one that was told of the question. Raises LookupError."""
        identity = f"{stream_of(view.caller, view.confirmation)} 1"
        targets: dict[bool, tuple[NotifyTarget, str]] = {}
        for target in self._targets:
            notification = notification_of(target.name, identity)
            stream = f"notify/{target.name}/{notification}"
            events = await self._journal.left(stream) if await self._journal.head(stream) is not None else []
            payloads = [decode(event.kind, event.data) for event in events]
            same = any(isinstance(payload, NotificationSent) and payload.message == place for payload in payloads)
            if events:
                targets[same] = target, notification
        if not targets:
            raise LookupError("no target was told of its question")
        return targets.get(True) or targets[False]


def text_of(message: Notice, question: Answerable | str | None) -> str:
    """The text of a message; of one with buttons, it has the whole question."""
    title = line(message.title, _TITLE)
    if isinstance(question, Answerable):
        return f"{title}\n\n{question.text}"
    reason = f"\nAnswer in Remit: {question}." if question else ""
    return f"{title}\n\n" + "\n".join(message.lines())[: _CUT - len(reason)] + reason


def keys_of(message: Notice, question: Answerable | str | None) -> list[list[dict[str, str]]]:
    """The buttons of a message, by rows. Telegram refuses a message with a link that is not https."""
    link = [{"text": "Open in Remit", "url": message.url}] if message.url.startswith("https://") else []
    buttons: list[dict[str, str]] = []
    if isinstance(question, Answerable):
        call = f"{question.digest.removeprefix('sha256:')[:_DIGITS]}{question.confirmation}"
        buttons = [{"text": "Approve", "callback_data": f"a{call}"}, {"text": "Deny", "callback_data": f"d{call}"}]
    return [row for row in (buttons, link) if row]


def _parts(data: str) -> tuple[str, str, str]:
    match = _BUTTON.fullmatch(data)
    if match is None:
        raise LookupError("no button of ours")
    return ("approve" if match[1] == "a" else "deny"), match[2], match[3]


def _plain(text: str) -> dict[str, Any]:
    text = text.strip()
    length = len(text.encode("utf-16-le")) // 2
    return {"text": text, "entities": [{"type": "pre", "offset": 0, "length": length}]}


def _words(reply: _Reply) -> str:
    return f"Telegram says: {line(reply.description)}"
