"""Many messages of one time are one: what goes by itself, what is gathered, and what the one message says."""

from __future__ import annotations

from typing import Any

import pytest

from remit import Remit
from remit.clock import SECOND
from remit.journal.event import HeadPatch
from remit.parts.notify.kinds import NotificationQueued
from remit.parts.notify.notifications import DIGEST, KIND, LATE, Rhythm
from remit.parts.notify.sender import AttemptEnd, slack_text
from remit_testing.clock import ManualClock
from tests.opened import OpenRemit, until, until_waiting
from tests.parts.notify.telling import CODE, CONSOLE, Script, Teller, fails, repay

TARGET = {"name": "oncall", "url": "https://example.com/hook"}
S = SECOND


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def asked(remit: Remit, number: int) -> None:
    """So many jobs that wait for an answer."""
    for job in [await remit.start(repay("ada", cents)) for cents in range(1, number + 1)]:
        await until_waiting(remit, job.id)


def flags(**keys: Any) -> dict[str, Any]:
    return {"notify.targets": [{**TARGET, **keys}]}


async def deny(remit: Remit, number: int) -> None:
    """Answer so many of the newest questions."""
    for question in (await remit.service.confirmations.pending())[-number:]:
        await remit.service.confirmations.decide(question.confirmation, "deny")


async def test_many_questions_of_one_time_are_five_messages_and_one_more(
    remit_in: OpenRemit, clock: ManualClock
) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags()) as remit:
        script = Script()
        teller = Teller(remit, script)
        await asked(remit, 20)
        await teller.round()
        assert script.told == ["question"] * 5
        clock.advance(30)
        await teller.round()
        assert script.told == ["question"] * 5 + ["digest"]
        digest = script.sent[-1]
        assert digest.title == "15 questions wait for an answer"
        assert digest.about == ("shop.refund (L1) waits for an answer (repay): 15",)
        assert (digest.url, digest.command) == (f"{CONSOLE}/inbox", "remit confirm")
        assert b"(repay): 15" in slack_text(digest)
        view = await teller.view()
        assert (view.sent, view.waiting) == (20, 0)
        clock.advance(7_200)
        await teller.round()
        assert len(script.sent) == 6


async def test_a_refusal_is_named_behind_many_that_wait(remit_in: OpenRemit, clock: ManualClock) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags()) as remit:
        script = Script()
        teller = Teller(remit, script)
        script.answers = [AttemptEnd(ok=False, words="refused")] * 5
        await asked(remit, 20)
        await teller.round()
        (view,) = await teller.seen.views()
        assert (view.fails, [row.attempts for row in view.last]) == ("refused", [0] * 5)


async def test_a_digest_tells_of_what_still_waits(remit_in: OpenRemit, clock: ManualClock) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(digest=0)) as remit:
        script = Script()
        teller = Teller(remit, script)
        await asked(remit, 4)
        for _ in range(2):
            job = await remit.start(fails())
            await until(remit, job.id, lambda row: row.state == "failed")
        await teller.round()
        await deny(remit, 1)
        clock.advance(30)
        await teller.round()
        assert [message.title for message in script.sent] == ["3 questions wait for an answer, 2 jobs failed"]
        states = [row.state for row in await teller.rows()]
        assert (states.count("sent"), states.count("dropped")) == (5, 1)


async def test_the_one_that_is_left_has_a_message_of_its_own(remit_in: OpenRemit, clock: ManualClock) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(digest=0)) as remit:
        script = Script()
        teller = Teller(remit, script)
        await asked(remit, 3)
        await teller.round()
        await deny(remit, 2)
        clock.advance(30)
        await teller.round()
        (message,) = script.sent
        (row,) = [row for row in await teller.rows() if row.state == "sent"]
        assert (message.event, message.id) == ("question", row.notification)


async def test_a_digest_that_fails_is_sent_again_as_the_same(remit_in: OpenRemit, clock: ManualClock) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(digest=0)) as remit:
        script = Script()
        script.answers = [AttemptEnd(ok=False, words="HTTP 500")]
        teller = Teller(remit, script)
        await asked(remit, 3)
        await teller.round()
        for seconds in (30, 10):
            clock.advance(seconds)
            await teller.round()
        assert script.told == ["digest", "digest"]
        assert len({message.id for message in script.sent}) == 1
        assert (await teller.view()).sent == 3


async def test_what_waited_for_the_morning_comes_as_one(remit_in: OpenRemit, clock: ManualClock) -> None:
    """Each is told after the quiet hours, which end for all of them at the same minute."""
    minute = clock.now() // (60 * SECOND) % (24 * 60)
    hours = "-".join(f"{at // 60 % 24:02}:{at % 60:02}" for at in (minute, minute + 30))
    async with remit_in(**CODE, clock=clock, flags=flags(digest=1, quiet={"hours": hours})) as remit:
        script = Script()
        teller = Teller(remit, script)
        await asked(remit, 6)
        for seconds in (0, 29 * 60, 60, 30):
            clock.advance(seconds)
            await teller.round()
        assert script.told == ["question", "digest"]
        assert script.sent[1].title == "5 questions wait for an answer"


def test_when_a_message_goes_and_with_which_others() -> None:
    rhythm = Rhythm(2)
    assert rhythm.place("a", 0, 0) == (0, "")
    assert rhythm.place("b", 1 * S, 1 * S) == (1 * S, "")
    assert rhythm.place("c", 2 * S, 2 * S) == (32 * S, "c")
    assert rhythm.place("d", 9 * S, 9 * S) == (32 * S + LATE, "c")
    assert rhythm.place("e", 90 * S, 9 * S) == (90 * S, ""), "it is due at another time"
    assert rhythm.place("f", 33 * S, 33 * S) == (63 * S, "f"), "it goes on: so often at most"
    assert rhythm.place("g", 150 * S, 150 * S) == (150 * S, ""), "it is over"


def test_nothing_is_carried_by_what_another_process_queued() -> None:
    rhythm = Rhythm(0)
    rhythm.place("a", 0, 0)
    rhythm.forget("a")
    assert rhythm.place("b", 0, 0) == (30 * S, "b")


async def test_a_message_whose_carrier_is_gone_is_sent_by_itself(remit_in: OpenRemit, clock: ManualClock) -> None:
    """As if a follower added it, by a clock that is behind, to one that was sent already."""
    async with remit_in(**CODE, clock=clock, flags=flags(digest=0)) as remit:
        script = Script()
        teller = Teller(remit, script)
        await teller.round()
        await asked(remit, 1)
        (question,) = await remit.service.confirmations.pending()
        source = f"{question.caller}/confirmation/{question.confirmation}"
        queued = NotificationQueued(
            notification="n_late", target="oncall", event="question", source=source, seq=1, digest="n_gone"
        )
        patch = HeadPatch(state="gathered", due_at=clock.now(), route="oncall", labels={DIGEST: "n_gone"})
        await teller.journal.create("notify/oncall/n_late", KIND, queued, patch=patch)
        await teller.round()
        assert [(message.event, message.id) for message in script.sent] == [("question", "n_late")]
