"""Slack as an app: questions with buttons, and what people press there.

    message: blocks of plain text, nothing of which is markup ──> Approve, Deny, Deny with a reason
    request: `v0=` HMAC-SHA256 of "v0:TIME:BODY" with the app's signing secret, of the last five minutes

A request is answered at once, as Slack waits for three seconds: what it says is recorded, and decided from the record.
Sources: docs.slack.dev, "Verifying requests from Slack", "Handling user interaction", "Block Kit".
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

import msgspec

from remit.api.route import bytes_of
from remit.clock import SECOND
from remit.codes import Code
from remit.http.problem import HttpProblem, unauthenticated
from remit.http.router import REQUEST, StatelessPart
from remit.parts.notify.answers import Answerable, ButtonMark, Press, keep_press
from remit.parts.notify.method import ask
from remit.parts.notify.sender import AttemptEnd
from remit.redact import line
from remit.settings.expansion import expand, sendable

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from remit.journal.journal import Journal
    from remit.parts.notify.kinds import AnswerReceived
    from remit.parts.notify.sender import Notice
    from remit.parts.notify.target import NotifyTarget

CHANNEL: Final = "slack"
_API: Final = "https://slack.com/api"
PATH: Final = "/channels/slack"
AGE_S: Final = 300
"""Seconds that a request may be old."""
_BODY: Final = 64 * 1024
_HEADER: Final = 150
_REASON: Final = "reason"
_FIELD: Final = "why"
_SHOWN: Final = 3_000


class SlackApi:
    """Slack's methods, with the token of one target's app."""

    def __init__(self, target: NotifyTarget, environ: Mapping[str, str]) -> None:
        self._target = target
        self._environ = environ

    async def ask(self, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Call a method; its answer. Raises SettingsError, OSError, TimeoutError or ValueError."""
        who = f"notify {self._target.name}"
        token = sendable(expand(self._target.token, self._environ, who), f"{who}: its token")
        url = f"{(self._target.api or _API).rstrip('/')}/{method}"
        status, data = await ask(url, body, secret=token, headers={"authorization": f"Bearer {token}"})
        answer = msgspec.json.decode(data) if status == 200 else {"error": f"HTTP {status}"}  # noqa: PLR2004 - OK
        return answer if isinstance(answer, dict) else {"error": "the answer is not an object"}

    async def post(self, message: Notice, question: Answerable | str | None) -> AttemptEnd:
        """Post a message, with buttons if its question is shown whole."""
        body = {"channel": self._target.slack, "text": line(message.title, _HEADER), "unfurl_links": False}
        reply = await self.ask("chat.postMessage", {**body, "blocks": blocks_of(message, question)})
        if not reply.get("ok"):
            return AttemptEnd(ok=False, words=f"Slack says: {line(str(reply.get('error')))}")
        shown = question.shown if isinstance(question, Answerable) else ""
        return AttemptEnd(ok=True, words="posted", place=f"{reply.get('channel')}/{reply.get('ts')}", shown=shown)

    async def settle(self, place: str, text: str) -> None:
        """Take the buttons from a message, and say in it how its question ended."""
        channel, _, ts = place.partition("/")
        await self.ask("chat.update", {"channel": channel, "ts": ts, "text": text, "blocks": [_plain(text)]})

    async def tell(self, received: AnswerReceived, _body: bytes, text: str, *, closed: bool) -> None:
        """Tell who pressed a button what that did, unless it closed the question, as its message will say."""
        if closed:
            return
        channel, user = received.message.partition("/")[0], received.account.rpartition("/")[2]
        await self.ask("chat.postEphemeral", {"channel": channel, "user": user, "text": text})


def blocks_of(message: Notice, question: Answerable | str | None) -> list[dict[str, Any]]:
    """The blocks of a message; of one with buttons, the text is the whole question."""
    header = {"type": "header", "text": {"type": "plain_text", "text": line(message.title, _HEADER)}}
    link = {"type": "button", "text": _text("Open in Remit"), "url": message.url} if message.url else None
    if isinstance(question, Answerable):
        mark = question.mark(message.id)
        buttons = [
            {"type": "button", "action_id": "approve", "style": "primary", "text": _text("Approve"), "value": mark},
            {"type": "button", "action_id": "deny", "style": "danger", "text": _text("Deny"), "value": mark},
            {"type": "button", "action_id": _REASON, "text": _text("Deny with a reason"), "value": mark},
        ]
        shown = _plain(question.text)
    else:
        buttons = []
        reason = f"\nAnswer in Remit: {question}." if question else ""
        shown = _plain("\n".join(message.lines())[: _SHOWN - len(reason)] + reason)
    actions = [{"type": "actions", "elements": [*buttons, *([link] if link else [])]}] if buttons or link else []
    return [header, shown, *actions]


def _text(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}


def _plain(text: str) -> dict[str, Any]:
    return {"type": "section", "text": _text(text or " ")}


def signed(secret: str, headers: Mapping[str, str], body: bytes, now_s: int) -> int | None:
    """Return when Slack sent a request with this secret, in seconds; None: it did not, or too long ago."""
    sent = headers.get("x-slack-request-timestamp", "")
    if not (sent.isascii() and sent.isdigit()) or abs(now_s - int(sent)) > AGE_S or not secret:
        return None
    digest = hmac.new(secret.encode(), b"v0:%b:%b" % (sent.encode(), body), hashlib.sha256).hexdigest()
    x_slack_signature = headers.get("x-slack-signature", "")
    return int(sent) if hmac.compare_digest(f"v0={digest}".encode(), x_slack_signature.encode()) else None


class SlackPart(StatelessPart):
    """Takes what people press (remit.http.router.ServerPart)."""

    def __init__(self, journal: Journal, targets: Sequence[NotifyTarget], environ: Mapping[str, str]) -> None:
        self._journal = journal
        self._targets = tuple(targets)
        self._environ = environ

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["path"] != PATH or scope["method"] != "POST":
            raise HttpProblem(Code.PATH_UNKNOWN)
        headers: dict[str, str] = scope[REQUEST].headers
        body = await bytes_of(headers, receive, most=_BODY)
        now_s = self._journal.clock.now() // SECOND
        signers = [(target, signed(self._secret(target), headers, body, now_s)) for target in self._targets]
        sent = max((at for _, at in signers if at is not None), default=None)
        if sent is None:
            raise unauthenticated("The request is not signed by Slack, or is too old.")
        targets = {target.name: target for target, at in signers if at is not None}
        try:
            await self._take(targets, body, sent)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):  # not of the form that is documented
            raise HttpProblem(Code.INVALID_INPUT, "The request cannot be read.") from None
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    def _secret(self, target: NotifyTarget) -> str:
        return expand(target.secret, self._environ, f"notify {target.name}")

    async def _take(self, targets: Mapping[str, NotifyTarget], body: bytes, sent: int) -> None:
        """Keep what someone pressed, or ask them for a reason first."""
        payload = msgspec.json.decode(parse_qs(body.decode(), strict_parsing=True)["payload"][0])
        team, user = payload["team"]["id"], payload["user"]["id"]
        if payload["type"] == "view_submission":
            metadata = msgspec.json.decode(payload["view"]["private_metadata"])
            reason = payload["view"]["state"]["values"][_FIELD][_FIELD]["value"] or ""
            mark, place, decision = msgspec.json.decode(metadata["mark"], type=ButtonMark), metadata["place"], "deny"
        elif payload["type"] == "block_actions":
            (action,) = payload["actions"]
            if "value" not in action:
                return  # the link, which Slack tells of too
            mark, reason = msgspec.json.decode(action["value"], type=ButtonMark), ""
            place, decision = (
                f"{payload['container']['channel_id']}/{payload['container']['message_ts']}",
                action["action_id"],
            )
            if decision == _REASON:
                target = await self._target(targets, mark)
                modal = _modal(msgspec.json.encode({"mark": action["value"], "place": place}).decode())
                await SlackApi(target, self._environ).ask(
                    "views.open", {"trigger_id": payload["trigger_id"], "view": modal}
                )
                return
        else:
            return
        target = await self._target(targets, mark)
        press = Press(CHANNEL, f"{team}/{user}", place, decision, mark, line(reason, 1_000), sent, body)
        await keep_press(self._journal, target.name, press)

    async def _target(self, targets: Mapping[str, NotifyTarget], mark: ButtonMark) -> NotifyTarget:
        """The target whose app signed, and that a notification was sent to. Raises ValueError."""
        for target in targets.values():
            if await self._journal.head(f"notify/{target.name}/{mark.n}") is not None:
                return target
        raise ValueError("no message of this app")


def _modal(metadata: str) -> dict[str, Any]:
    field = {"type": "plain_text_input", "action_id": _FIELD, "multiline": True, "max_length": 1_000}
    return {
        "type": "modal",
        "private_metadata": metadata,
        "title": _text("Deny the call"),
        "submit": _text("Deny"),
        "close": _text("Cancel"),
        "blocks": [{"type": "input", "block_id": _FIELD, "label": _text("Why?"), "element": field}],
    }
