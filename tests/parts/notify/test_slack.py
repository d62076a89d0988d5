"""Answering in Slack: who counts, for which call, in which message; and everything that must not count."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from http import HTTPStatus
from typing import Any

import pytest
from msgspec.structs import replace

from remit import Options, Remit, Run, recipe, tool
from remit.canonical import sha256
from remit.clock import Clock
from remit.codes import Code
from remit.errors import SettingsError
from remit.journal.event import HeadQuery
from remit.journal.kinds.people import Via
from remit.parts.notify.answers import Answerable, ChannelAnswers, answerable
from remit.parts.notify.channels import NotifyChannels
from remit.parts.notify.kinds import AnswerSettled
from remit.parts.notify.people import read_directory
from remit.parts.notify.sender import Sender
from remit.parts.notify.work import NotificationWork
from remit.settings import load
from tests.opened import until_waiting
from tests.parts.notify.slack_app import SECRET, Slack, served, slack_api
from tests.parts.notify.telling import Script, Teller

ENVIRON = {"BOT": "xoxb-1", "SIGN": SECRET}
PEOPLE = [
    {"principal": "ann", "slack": "T1/U1"},
    {"principal": "bob", "slack": "T1/U2"},
    {"principal": "robot", "slack": "T1/U9"},
]
TWO = [{"id": "two", "tools": ["pay.*"], "effect": "ask", "approvals": 2, "approvers": ["ann", "bob", "robot"]}]


@tool("pay.wire", level="L1")
async def wire(amount: int, note: str) -> int:
    """Pay."""
    return amount if note else 0


@recipe("pays")
async def pays(run: Run, amount: int = 5, note: str = "rent") -> int:
    """Pay once someone says so."""
    return int((await run.call("pay.wire", {"amount": amount, "note": note})).value)


class World:
    """A Remit with a target on a channel, worked on a round at a time."""

    def __init__(self, remit: Remit, slack: Slack, environ: Mapping[str, str] = ENVIRON) -> None:
        self.remit, self.slack, self.environ = remit, slack, environ
        self.teller = Teller(remit, Script())
        self.work()

    def work(self) -> None:
        """Begin as another process would."""
        remit, journal = self.remit, self.remit.runtime.journal
        directory = read_directory(remit.settings)
        answers = ChannelAnswers(remit.service, journal, directory.accounts)
        proofs = remit.runtime.services.confirmations.proofs
        self.channels = NotifyChannels(remit.service, journal, proofs, answers, self.environ)
        sender = Sender(self.environ, ".", remit.clock)
        self.teller.work = NotificationWork(
            journal, self.teller.targets, sender, "https://remit.example", self.channels, directory
        )

    async def ask(self, **args: Any) -> str:
        """Ask a question, and post it; the job."""
        job = (await self.remit.start(pays(**args))).id
        await until_waiting(self.remit, job)
        await self.teller.round()
        return job

    async def question(self) -> Any:
        found = await self.remit.service.confirmations.pending() or await self.remit.service.confirmations.answered()
        return await self.remit.service.confirmations.answers(found[0].confirmation)

    async def state(self) -> tuple[str, list[str]]:
        """The state of the first question, and who answered it."""
        pending = await self.remit.service.confirmations.pending()
        state = "pending" if pending else (await self.remit.service.confirmations.answered())[0].state
        return state, [one.by for one in (await self.question()).decisions]


@asynccontextmanager
async def world(
    rules: Any = TWO, clock: Clock | None = None, groups: Any = None, url: str = ":memory:", **more: Any
) -> AsyncIterator[World]:
    slack = Slack(None)  # type: ignore[arg-type] # it comes next
    async with slack_api(slack):
        target = {"name": "oncall", "slack": "C1", "token": "${BOT}", "secret": "${SIGN}", "api": slack.api}
        env = {
            "REMIT_NOTIFY": json.dumps([{**target, **more.pop("target", {})}]),
            "REMIT_PEOPLE": json.dumps(more.pop("people", PEOPLE)),
            "REMIT_PRINCIPAL": "robot",
            **{f"REMIT_CONFIRM_{key.upper()}": str(value) for key, value in more.items()},
        }
        flags = {"policy.rules": rules, "policy.groups": groups or {}, "journal.url": url}
        settings = load(env=env, flags=flags)
        async with Remit(settings=settings, tools=[wire], recipes=[pays], clock=clock) as remit:
            slack.remit = remit
            async with served(slack, ENVIRON) if clock is None else nullcontext():
                yield World(remit, slack)


async def test_two_people_approve_in_slack_and_the_call_runs_once() -> None:
    async with world() as at:
        job = await at.ask()
        assert await at.slack.press("approve", "U1") == HTTPStatus.OK
        assert (await at.state())[1] == [], "it is kept first, and decided from the record"
        at.work()
        await at.teller.round()
        assert at.slack.said("chat.postEphemeral") == ["ann approved pay.wire; 1 more must approve."]
        assert await at.slack.press("approve", "U2") == HTTPStatus.OK
        await at.teller.round()
        assert (await at.remit.ended(job)).state == "completed"
        await at.teller.round()
        assert at.slack.said("chat.update") == ["pay.wire: approved by ann, bob."]
        record = await at.question()
        assert [(one.by, one.channel, one.account) for one in record.decisions] == [
            ("ann", "slack", "T1/U1"),
            ("bob", "slack", "T1/U2"),
        ]
        assert all(one.shown.startswith("sha256:") for one in record.decisions)
        assert await problems(at) == []


ATTACKS: dict[str, dict[str, Any]] = {
    "another secret": {"secret": "x"},
    "ten minutes old": {"age_s": 600},
    "of later": {"age_s": -600},
    "another body": {"tamper": b"&payload=%7B%7D"},
    "no secret": {"secret": ""},
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_a_request_that_slack_did_not_sign_now_is_not_kept(name: str) -> None:
    async with world() as at:
        await at.ask()
        payload = at.slack.pressed("approve", at.slack.buttons()["approve"])
        assert await at.slack.send(payload, **ATTACKS[name]) == HTTPStatus.UNAUTHORIZED
        await at.teller.round()
        assert await at.state() == ("pending", [])


@pytest.mark.parametrize(
    ("user", "team", "why"),
    [
        ("U3", "T1", "PERSON_UNKNOWN"),
        ("U1", "T2", "PERSON_UNKNOWN"),
        ("U9", "T1", "DECIDER_NOT_ALLOWED"),
    ],
)
async def test_who_may_not_decide_is_told_so(user: str, team: str, why: str) -> None:
    async with world() as at:
        await at.ask()
        assert await at.slack.press("approve", user, team=team) == HTTPStatus.OK
        await at.teller.round()
        assert await at.state() == ("pending", [])
        assert len(at.slack.said("chat.postEphemeral")) == 1
        assert await codes(at) == [why]


async def problems(at: World) -> list[Code]:
    """Return what `remit verify` finds wrong with the answers."""
    heads = await at.remit.runtime.journal.heads(HeadQuery(kind="confirmation"))
    checked = [await at.remit.runtime.services.confirmations.check(head) for head in heads]
    return [code for one in checked for code, _ in one.problems]


async def codes(at: World) -> list[str]:
    journal = at.remit.runtime.journal
    heads = await journal.heads(HeadQuery(kind="notification", prefix="notify/oncall/answer/"))
    ends = [(await journal.read(head.stream))[-1] for head in heads]
    return [json.loads(end.data).get("code", "") for end in ends if end.kind == AnswerSettled.KIND]


async def test_a_button_counts_in_its_own_message_and_for_its_own_call() -> None:
    async with world() as at:
        await at.ask(amount=1)
        await at.ask(amount=2)
        first, second = at.slack.buttons(0)["approve"], at.slack.buttons(1)["approve"]
        mixed = json.dumps({**json.loads(first), "d": json.loads(second)["d"]})
        swapped = json.dumps({**json.loads(first), "c": json.loads(second)["c"]})
        await at.slack.send(at.slack.pressed("approve", first, number=1))
        await at.slack.send(at.slack.pressed("approve", mixed, number=0))
        await at.slack.send(at.slack.pressed("approve", swapped, number=0))
        await at.teller.round()
        assert sorted(await codes(at)) == [Code.CONFIRMATION_MISMATCH.name, "MESSAGE_MISMATCH", "MESSAGE_MISMATCH"]
        assert all(not one.approved_by for one in await at.remit.service.confirmations.pending())


async def test_a_request_that_comes_again_counts_once() -> None:
    async with world() as at:
        await at.ask()
        payload = at.slack.pressed("approve", at.slack.buttons()["approve"])
        for _ in range(3):
            assert await at.slack.send(payload, nonce="1") == HTTPStatus.OK
            await at.teller.round()
        assert await at.state() == ("pending", ["ann"])


async def test_a_question_that_is_answered_elsewhere_loses_its_buttons() -> None:
    async with world(rules=[{"id": "one", "tools": ["pay.*"], "effect": "ask"}]) as at:
        await at.ask()
        view = (await at.remit.service.confirmations.pending())[0]
        await at.remit.service.confirmations.decide(view.confirmation, "deny", by="carol")
        await at.teller.round()
        assert at.slack.said("chat.update") == ["pay.wire: denied by carol."]
        await at.slack.press("approve", "U1")
        await at.teller.round()
        assert await codes(at) == [Code.CONFIRMATION_CLOSED.name]


async def test_a_refusal_asks_for_its_reason_first() -> None:
    async with world() as at:
        await at.ask()
        assert await at.slack.press("reason", "U2") == HTTPStatus.OK
        (view,) = [body["view"] for method, body in at.slack.asked if method == "views.open"]
        submitted = {
            "type": "view_submission",
            "team": {"id": "T1"},
            "user": {"id": "U2"},
            "view": {
                "private_metadata": view["private_metadata"],
                "state": {"values": {"why": {"why": {"value": "the wrong account"}}}},
            },
        }
        assert await at.slack.send(submitted) == HTTPStatus.OK
        await at.teller.round()
        record = await at.question()
        assert [(one.decision, one.by, one.reason) for one in record.decisions] == [
            ("deny", "bob", "the wrong account")
        ]
        await at.teller.round()
        assert at.slack.said("chat.update") == ["pay.wire: denied by bob: the wrong account"]


LINKS: dict[str, dict[str, Any]] = {
    "too long": {"args": {"note": "x" * 5_000}},
    "a stricter proof": {"proof": "token"},
    "no details": {"target": {"details": False}},
}


@pytest.mark.parametrize("name", LINKS)
async def test_a_question_that_is_not_shown_whole_has_no_buttons(name: str) -> None:
    more = {**LINKS[name]}
    args = more.pop("args", {})
    async with world(**more) as at:
        await at.ask(**args)
        assert at.slack.buttons() == {}
        text = json.dumps(at.slack.posts()[0])
        assert "https://remit.example/inbox/" in text
        assert "Answer in Remit:" in text


HIDDEN: dict[str, dict[str, Any]] = {
    "text of strangers": {"untrusted": ("note",)},
    "an edit": {"edited_from": "c_1"},
    "defaults": {"defaults": {"note": "rent"}},
    "unknown defaults": {"defaults": None},
    "an answer": {"state": "approved"},
}


async def test_what_no_message_shows_is_answered_in_the_console() -> None:
    async with world() as at:
        await at.ask()
        confirmations = at.remit.service.confirmations
        view = await confirmations.view((await confirmations.pending())[0].confirmation)
        for name, changes in {"nothing": {}, **HIDDEN}.items():
            question = answerable(replace(view, **changes), erasable=False, channel_counts=True)
            assert isinstance(question, Answerable) == (name == "nothing"), name
        await confirmations.edit(view.confirmation, {"amount": 5, "note": "less"}, by="ann")
        subject = await at.remit.start(pays(amount=7), Options(subject="yusuf"))
        await until_waiting(at.remit, subject.id)
        await at.teller.round()
        assert [len(at.slack.buttons(number)) for number in range(3)] == [3, 0, 0]


async def test_all_of_a_call_is_shown_and_none_of_it_is_markup() -> None:
    async with world() as at:
        await at.ask(note="<!channel> *bold* \u202etxt sk-abcdef123456")
        blocks = at.slack.posts()[0]["blocks"]
        assert {block["text"]["type"] for block in blocks if "text" in block} == {"plain_text"}
        (shown,) = [block["text"]["text"] for block in blocks if block["type"] == "section"]
        assert '"note": "<!channel> *bold* ⟨U+202E⟩txt sk-abcdef123456"' in shown
        assert "Approvals needed: 2" in shown


async def test_a_kept_body_that_does_not_fit_the_answer_is_named() -> None:
    async with world(rules=[{"id": "one", "tools": ["pay.*"], "effect": "ask"}]) as at:
        await at.ask()
        view = (await at.remit.service.confirmations.pending())[0]
        body = b"payload=%7B%22someone%22%3A+%22else%22%7D"
        via = Via(channel="slack", account="T1/U1", body=sha256(body))
        await at.remit.service.confirmations.decide_on_channel(
            view.confirmation, "approve", digest=view.digest, by="ann", via=via, body=body
        )
        assert await problems(at) == [Code.APPROVAL_UNPROVEN]


async def test_slack_that_refuses_a_message_gets_it_again_later() -> None:
    async with world() as at:
        at.slack.error = "channel_not_found"
        await at.ask()
        (row,) = await at.teller.rows()
        assert (row.state, row.said) == ("waiting", "Slack says: channel_not_found")


@pytest.mark.parametrize(
    "people",
    [
        [{"principal": "ann", "slack": "T1/U1"}, {"principal": "bob", "slack": "T1/U1"}],
        [{"principal": "ann", "slack": "ann@acme.example"}],
        [{"principal": " ", "slack": "T1/U1"}],
        [{"principal": "ann", "mail": "ann@acme.example"}],
        [{"principal": "ann", "email": "Ann <ann@acme.example>"}],
        [{"principal": "ann", "absent": {"days": "mon"}}],
        [{"principal": "ann", "absent": {"days": "mon"}, "delegate": "ann"}],
        [{"principal": "ann", "absent": {"day": "mon"}, "delegate": "bob"}],
        [{"principal": "ann", "delegate": "bob"}],
    ],
)
def test_people_who_are_doubtful_are_refused(people: Any) -> None:
    with pytest.raises(SettingsError):
        read_directory(load(env={"REMIT_PEOPLE": json.dumps(people)}))
