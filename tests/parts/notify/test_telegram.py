"""Answering in Telegram: who counts, for which call, in which message; and everything that must not count."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import pytest

from remit import Remit
from remit.canonical import sha256
from remit.capability import Look
from remit.clock import SECOND
from remit.codes import Code
from remit.journal.kinds.people import Via
from remit.parts.notify.channels import post
from remit.parts.notify.notifications import Follower
from remit.parts.notify.sender import sample
from remit.parts.notify.wiring import check_targets
from remit.settings import load
from tests.parts.notify.telegram_bot import CHAT, TOKEN, Telegram, telegram_api
from tests.parts.notify.telling import telling, until_closed
from tests.parts.notify.test_slack import TWO, World, codes, pays, problems, wire

ENVIRON = {"BOT": TOKEN}
PEOPLE = [
    {"principal": "ann", "telegram": "1"},
    {"principal": "bob", "telegram": "2"},
    {"principal": "robot", "telegram": "9"},
]
ONE = [{"id": "one", "tools": ["pay.*"], "effect": "ask"}]


class Chat(World):
    """A Remit with a target in Telegram."""

    def __init__(self, remit: Remit, telegram: Telegram) -> None:
        super().__init__(remit, None, ENVIRON)  # type: ignore[arg-type] # no Slack here
        self.telegram = telegram

    def work(self) -> None:
        super().work()
        self.presses = self.channels.presses(self.teller.targets)

    async def take(self) -> None:
        """Ask for what was pressed, and decide by it."""
        await self.presses.take()
        await self.teller.round()


def settings(telegram: Telegram, rules: Any, targets: Any, public_url: str = "", **confirm: Any) -> Any:
    own = {"name": "oncall", "telegram": str(CHAT), "token": "${BOT}", "api": telegram.api}
    env = {
        "REMIT_NOTIFY": json.dumps([{**own, **target} for target in targets]),
        "REMIT_PEOPLE": json.dumps(PEOPLE),
        "REMIT_PRINCIPAL": "robot",
        **({"REMIT_SERVE_PUBLIC_URL": public_url} if public_url else {}),
        **{f"REMIT_CONFIRM_{key.upper()}": str(value) for key, value in confirm.items()},
    }
    return load(env=env, flags={"policy.rules": rules, "journal.url": ":memory:"})


@asynccontextmanager
async def chat(rules: Any = TWO, targets: Any = ({},), **more: Any) -> AsyncIterator[Chat]:
    telegram = Telegram()
    async with (
        telegram_api(telegram),
        Remit(settings=settings(telegram, rules, targets, **more), tools=[wire], recipes=[pays]) as remit,
    ):
        yield Chat(remit, telegram)


async def test_two_people_approve_in_telegram_and_the_call_runs_once() -> None:
    async with chat() as at:
        job = await at.ask()
        approve = at.telegram.buttons()["Approve"]
        at.telegram.press(approve, 1)
        await at.presses.take()
        assert (await at.state())[1] == [], "it is kept first, and decided from the record"
        at.work()
        await at.teller.round()
        assert at.telegram.said("answerCallbackQuery") == ["ann approved pay.wire; 1 more must approve."]
        at.telegram.press(approve, 2)
        await at.take()
        assert (await at.remit.ended(job)).state == "completed"
        await at.teller.round()
        assert at.telegram.said("editMessageText") == ["pay.wire: approved by ann, bob."]
        decisions = [(one.by, one.channel, one.account) for one in (await at.question()).decisions]
        assert decisions == [("ann", "telegram", "1"), ("bob", "telegram", "2")]
        assert all(one.shown.startswith("sha256:") for one in (await at.question()).decisions)
        assert await problems(at) == []


Press = dict[str, Any]
ATTACKS: dict[str, tuple[Callable[[str, str], Press], str]] = {
    "a stranger": (lambda first, _: {"data": first, "user": 3}, "PERSON_UNKNOWN"),
    "the requester": (lambda first, _: {"data": first, "user": 9}, "DECIDER_NOT_ALLOWED"),
    "in another message": (lambda first, _: {"data": first, "number": 2}, "MESSAGE_MISMATCH"),
    "in another chat": (lambda first, _: {"data": first, "chat": 7}, "MESSAGE_MISMATCH"),
    "another call": (lambda first, second: {"data": second[:33] + first[33:]}, "CONFIRMATION_MISMATCH"),
    "another question": (lambda first, second: {"data": first[:33] + second[33:]}, "MESSAGE_MISMATCH"),
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_a_press_that_must_not_count_does_not(name: str) -> None:
    press, code = ATTACKS[name]
    async with chat() as at:
        await at.ask(amount=1)
        await at.ask(amount=2)
        at.telegram.press(**press(at.telegram.buttons(1)["Approve"], at.telegram.buttons(2)["Approve"]))
        await at.take()
        assert await codes(at) == [code]
        assert all(not one.approved_by for one in await at.remit.service.confirmations.pending())
        assert len(at.telegram.said("answerCallbackQuery")) == 1


async def test_what_is_no_press_of_ours_is_passed_over() -> None:
    async with chat() as at:
        await at.ask()
        approve = at.telegram.buttons()["Approve"]
        for data in ("", "approve", f"x{approve[1:]}", f"{approve[:33]}c_none", f"{approve[:33]}{approve[-6:]}"):
            at.telegram.press(data)
        at.telegram.send({"callback_query": {"id": "q", "from": {"id": 1}, "inline_message_id": "7", "data": approve}})
        at.telegram.send({"message": {"text": approve}})
        await at.take()
        assert await at.state() == ("pending", [])
        at.telegram.press(approve)
        await at.take()
        assert dict(at.telegram.asked)["getUpdates"]["offset"] == 8
        assert await at.state() == ("pending", ["ann"])


async def test_a_press_that_comes_again_counts_once() -> None:
    async with chat() as at:
        await at.ask()
        at.telegram.press(at.telegram.buttons()["Approve"])
        for name in ("whoever", "whoever", "a new name"):
            at.work()  # as a process that was killed before it asked for the next
            at.telegram.updates[0]["callback_query"]["from"]["first_name"] = name
            await at.take()
        assert await at.state() == ("pending", ["ann"])
        assert await problems(at) == []


async def test_a_question_that_is_answered_elsewhere_loses_its_buttons() -> None:
    async with chat(ONE) as at:
        await at.ask()
        view = (await at.remit.service.confirmations.pending())[0]
        await at.remit.service.confirmations.decide(view.confirmation, "deny", by="carol")
        await at.teller.round()
        assert at.telegram.said("editMessageText") == ["pay.wire: denied by carol."]
        at.telegram.press(at.telegram.buttons()["Approve"])
        await at.take()
        assert await codes(at) == [Code.CONFIRMATION_CLOSED.name]


LINKS: dict[str, dict[str, Any]] = {
    "too long": {"args": {"note": "x" * 5_000}},
    "too long for Telegram alone": {"args": {"note": "\U0001f4b8" * 2_000}},
    "a stricter proof": {"proof": "token"},
    "no details": {"targets": [{"details": False}]},
}


@pytest.mark.parametrize("name", LINKS)
async def test_a_question_that_is_not_shown_whole_has_no_buttons(name: str) -> None:
    more = {**LINKS[name]}
    args = more.pop("args", {})
    async with chat(**more) as at:
        await at.ask(**args)
        assert at.telegram.buttons() == {}
        body = dict(at.telegram.asked)["sendMessage"]
        assert "Answer in Remit:" in body["text"]
        ((link,),) = body["reply_markup"]["inline_keyboard"]
        assert link["url"].startswith("https://remit.example/inbox/")


async def test_all_of_a_call_is_shown_and_none_of_it_is_markup() -> None:
    async with chat() as at:
        await at.ask(note="@all *bold* https://evil.example \u202etxt \U0001f4b8 sk-abcdef123456")
        body = dict(at.telegram.asked)["sendMessage"]
        assert '"note": "@all *bold* https://evil.example ⟨U+202E⟩txt \U0001f4b8 sk-abcdef123456"' in body["text"]
        assert "parse_mode" not in body
        length = len(body["text"].encode("utf-16-le")) // 2
        assert body["entities"] == [{"type": "pre", "offset": 0, "length": length}]


async def test_a_chat_that_is_asked_too_often_gets_the_message_later() -> None:
    async with chat() as at:
        at.telegram.refusal = {
            "error_code": 429,
            "description": "Too Many Requests: retry after 77",
            "parameters": {"retry_after": 77},
        }
        before = at.remit.clock.now()
        await at.ask()
        (row,) = await at.teller.rows()
        assert (row.state, row.said) == ("waiting", "Telegram says: Too Many Requests: retry after 77")
        assert row.due_at is not None
        assert row.due_at - before >= 77 * SECOND


@pytest.mark.parametrize("environ", [{"BOT": "7:another"}, {"BOT": "no token"}, {}])
async def test_a_bot_that_cannot_post_says_why_and_not_its_token(environ: dict[str, str]) -> None:
    async with chat() as at:
        answer = await post(at.teller.targets[0], sample("n_1", 0, ""), environ)
        assert not answer.ok
        assert answer.words
        assert environ.get("BOT", "none") not in answer.words


async def test_a_message_without_an_https_link_has_none() -> None:
    async with chat() as at:
        answer = await post(at.teller.targets[0], sample("n_1", 0, "http://127.0.0.1:8321"), ENVIRON)
        assert answer.ok
        assert "reply_markup" not in dict(at.telegram.asked)["sendMessage"]


async def test_targets_with_one_bot_each_know_their_own_message() -> None:
    async with chat(targets=[{}, {"name": "boss", "telegram": "5"}, {"name": "same"}]) as at:
        await at.ask()
        for number, user in ((2, 1), (3, 2)):
            at.telegram.press(at.telegram.buttons(number)["Approve"], user, number, at.telegram.chat(number))
            await at.take()
        assert await at.state() == ("approved", ["ann", "bob"])


async def test_a_worker_asks_once_for_each_bot_and_the_job_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOT", TOKEN)
    telegram = Telegram()
    async with telegram_api(telegram):
        own = settings(telegram, ONE, [{}, {"name": "boss", "telegram": "5"}], "https://remit.example")
        async with telling(Remit(settings=own, tools=[wire], recipes=[pays])) as remit:
            (tested, _) = await remit.service.notifications.test()
            assert tested.ok, tested.said
            job = await remit.start(pays())
            await remit.settled(job.id)
            await until_closed(remit, 2)
            texts = telegram.said("sendMessage")
            number = next(number for number, text in enumerate(texts, 1) if "Arguments" in text)
            telegram.press(telegram.buttons(number)["Approve"], 1, number, telegram.chat(number))
            assert (await remit.ended(job.id)).state == "completed"
            assert telegram.most_polls == 1


async def test_polling_that_fails_is_recorded_once_and_named_until_it_works_again() -> None:
    async with chat() as at:
        await at.teller.round()
        at.telegram.refusal = {"error_code": 409, "description": "Conflict: webhook is active"}
        changes: asyncio.Queue[str] = asyncio.Queue()
        polling = asyncio.create_task(at.presses.run(changes.put, ""))
        try:
            assert await changes.get() == "Telegram says: Conflict: webhook is active"
        finally:
            polling.cancel()
            await asyncio.wait([polling])
        assert changes.empty()
        for reason, verdict in (("Telegram says: Conflict", "fail"), ("", "ok")):
            (lease,) = await at.teller.journal.claim(at.teller.terms())
            follower = at.teller.work.take(lease, "")
            assert isinstance(follower, Follower)
            await follower.polled(reason)
            await follower.give_up()
            (check,) = await check_targets(Look(at.remit.settings, lambda: nullcontext(at.remit)))
            assert check.verdict == verdict
            assert not reason or check.detail == f"oncall does not say what is pressed: {reason}"


async def test_a_kept_body_that_does_not_fit_the_answer_is_named() -> None:
    async with chat(ONE) as at:
        await at.ask()
        (view,) = await at.remit.service.confirmations.pending()
        body = json.dumps({"callback_query": {"from": {"id": 7}, "data": at.telegram.buttons()["Approve"]}}).encode()
        via = Via(channel="telegram", account="1", body=sha256(body))
        await at.remit.service.confirmations.decide_on_channel(
            view.confirmation, "approve", digest=view.digest, by="ann", via=via, body=body
        )
        assert await problems(at) == [Code.APPROVAL_UNPROVEN]
