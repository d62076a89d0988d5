"""People are told of what waits for them, once for each event and target, while it is worth telling."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from remit import Remit
from remit.parts.notify.sender import AttemptEnd
from remit.parts.notify.work import pause_s
from remit.parts.retention.rule import RetentionRule, rule_for
from remit.service.options import Options
from remit_testing.clock import ManualClock
from tests.opened import OpenRemit, until, until_left, until_waiting
from tests.parts.notify.servers import Hook
from tests.parts.notify.telling import CODE, MINUTE, Script, Teller, ask, fails, repay, ships, telling, until_closed


def flags(*targets: dict[str, Any]) -> dict[str, Any]:
    return {"notify.targets": list(targets), "serve.public_url": "https://remit.example/"}


def target(**keys: Any) -> dict[str, Any]:
    return {"name": "oncall", "url": "https://example.com/hook", **keys}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def asked(remit: Remit) -> str:
    """A job that waits for an answer."""
    job = await remit.start(repay())
    await until_waiting(remit, job.id)
    return job.id


async def failed(remit: Remit) -> str:
    job = await remit.start(fails())
    await until(remit, job.id, lambda row: row.state == "failed")
    return job.id


async def decide(remit: Remit, decision: Any = "deny") -> None:
    (question,) = await remit.service.confirmations.pending()
    await remit.service.confirmations.decide(question.confirmation, decision)


async def test_a_question_is_told_with_what_it_takes_to_answer(remit_in: OpenRemit, hook: Hook) -> None:
    async with telling(remit_in(**CODE, flags=flags(target(url=hook.url)))) as remit:
        job = await remit.start(repay("ada", 450))
        (posted,) = await hook.until(1)
        await until_closed(remit, 1)
        (row,) = await Teller(remit, Script()).rows()
        (question,) = await remit.service.confirmations.pending()
    assert (row.state, row.attempts, row.said) == ("sent", 1, "HTTP 200 OK")
    assert posted.headers["idempotency-key"] == row.notification
    assert posted.json == {
        "id": row.notification,
        "event": "question",
        "at": posted.json["at"],
        "title": "shop.refund (L1) waits for an answer",
        "url": f"https://remit.example/inbox/{question.confirmation}",
        "command": f"remit confirm {question.confirmation}",
        "job": job.id,
        "recipe": "repay",
        "confirmation": question.confirmation,
        "tool": "shop.refund",
        "level": "L1",
        "step": "1",
        "principal": "alice",
        "question": "The tool writes, and no rule allows this call.",
        "arguments": "customer: ada, cents: 450, api_key: ********",
        "expires_at": posted.json["expires_at"],
    }


async def test_each_event_is_told_once_however_often_the_journal_is_read(
    remit_in: OpenRemit, clock: ManualClock
) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(target())) as remit:
        script = Script()
        teller = Teller(remit, script)
        await teller.round()
        await asked(remit)
        await failed(remit)
        for _ in range(3):
            await teller.round()
        assert sorted(script.told) == ["failed", "question"]
        await Teller(remit, script).round()  # another process, which begins where the first one was
        position = (await remit.runtime.journal.folds.read("notify-oncall"))[0].position
        assert position > 0
        assert len(script.told) == 2


async def test_a_question_that_was_recorded_while_nobody_followed_is_told_later(
    remit_in: OpenRemit, clock: ManualClock
) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(target())) as remit:
        await asked(remit)
    async with remit_in(**CODE, clock=clock, flags=flags(target())) as remit:
        script = Script()
        await Teller(remit, script).round()
    assert script.told == ["question"]


async def test_a_new_target_hears_of_what_waits_and_not_of_what_is_over(
    remit_in: OpenRemit, clock: ManualClock
) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(target())) as remit:
        await failed(remit)
        denied = await asked(remit)
        await decide(remit)
        await until(remit, denied, lambda row: row.state == "failed")
        await asked(remit)
        clock.advance(1)
        script = Script()
        await Teller(remit, script).round()
        assert script.told == ["question"]


async def test_an_escalation_is_told_only_if_nobody_answered_by_then(remit_in: OpenRemit, clock: ManualClock) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(target(name="boss", after="30m"))) as remit:
        script = Script()
        teller = Teller(remit, script)
        await teller.round()
        await asked(remit)
        await teller.round()
        clock.advance(29 * MINUTE)
        await teller.round()
        assert script.told == []
        clock.advance(1 * MINUTE)
        await teller.round()
        assert script.told == ["question"]
        await decide(remit)
        await asked(remit)
        await teller.round()
        await decide(remit)
        clock.advance(31 * MINUTE)
        await teller.round()
        assert script.told == ["question"]
        assert [row.state for row in await teller.rows("boss")] == ["sent", "dropped"]


async def test_a_failed_attempt_is_made_again_later_and_later_with_the_same_key(
    remit_in: OpenRemit, clock: ManualClock
) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(target())) as remit:
        script = Script()
        script.answers = [AttemptEnd(ok=False, words="HTTP 500"), AttemptEnd(ok=False, words="HTTP 429", pause_s=60)]
        teller = Teller(remit, script)
        await teller.round()
        await asked(remit)
        await teller.round()
        (row,) = await teller.rows()
        assert (row.state, row.attempts, row.said) == ("waiting", 1, "HTTP 500")
        assert (await teller.view()).fails == "HTTP 500"
        for seconds, attempts in ((9, 1), (1, 2), (59, 2), (1, 3), (1_000, 3)):
            clock.advance(seconds)
            await teller.round()
            assert len(script.sent) == attempts
        assert len({message.id for message in script.sent}) == 1
        (row,) = await teller.rows()
        assert (row.state, row.attempts, row.due_at) == ("sent", 3, None)
        assert not (await teller.view()).fails


async def test_of_a_job_that_was_pruned_no_one_is_told(remit_in: OpenRemit, clock: ManualClock) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(target())) as remit:
        script = Script()
        script.answers = [AttemptEnd(ok=False, words="refused")]
        teller = Teller(remit, script)
        await teller.round()
        await failed(remit)
        await teller.round()
        clock.advance(60)
        rule = RetentionRule(keep="30s")
        pruning = await remit.service.retention.prune(lambda head: rule_for([rule], head, clock.now()), ["job"])
        assert len(pruning.pruned) == 1
        await teller.round()
        (row,) = await teller.rows()
        assert (row.state, len(script.sent)) == ("dropped", 1)


@pytest.mark.slow
async def test_a_target_that_takes_nothing_is_given_up_after_a_day(remit_in: OpenRemit, clock: ManualClock) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(target())) as remit:
        script = Script()
        script.answers = [AttemptEnd(ok=False, words="refused")] * 1_000
        teller = Teller(remit, script)
        await teller.round()
        await failed(remit)
        for _ in range(40):
            await teller.round()
            clock.advance(3_600)
        (row,) = await teller.rows()
        assert (row.state, row.due_at) == ("failed", None)
        assert 24 <= row.attempts <= 27
        assert (await teller.view()).fails == "refused"


def test_pauses_double_up_to_an_hour() -> None:
    assert [pause_s(attempt, 0) for attempt in (1, 2, 3, 9, 10, 500)] == [10, 20, 40, 2_560, 3_600, 3_600]
    assert (pause_s(1, 99), pause_s(1, 99_999)) == (99, 3_600)


async def test_a_question_that_expired_is_told(remit_in: OpenRemit, clock: ManualClock) -> None:
    given = flags(target()) | {"confirm.expires_seconds": 600}
    async with remit_in(**CODE, clock=clock, flags=given) as remit:
        script = Script()
        teller = Teller(remit, script)
        await teller.round()
        job = await asked(remit)
        clock.advance(601)
        await until(remit, job, lambda row: row.state == "failed")
        await teller.round()
        assert sorted(script.told) == ["expired", "failed"]
        expired = next(message for message in script.sent if message.event == "expired")
        assert expired.title == "shop.refund (L1): no one answered in time"


async def test_a_stuck_job_is_told_once_until_it_moves(remit_in: OpenRemit, clock: ManualClock) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(target())) as remit:
        script = Script()
        teller = Teller(remit, script)
        await teller.round()
        job = await asked(remit)
        await teller.round()
    for _ in range(2):
        async with remit_in(tools=CODE["tools"], clock=clock, flags=flags(target())) as remit:
            await remit.service.jobs.resume(job)
            await until_left(remit, job)
            await Teller(remit, script).round()
            clock.advance(7_200)
    assert script.told == ["question", "stuck"]
    stuck = script.sent[1]
    assert (stuck.title, stuck.code, stuck.job) == ("repay is stuck: UNKNOWN_RECIPE", "UNKNOWN_RECIPE", job)
    assert (stuck.url, stuck.command) == (f"https://remit.example/jobs/{job}", f"remit show {job}")


async def test_an_unknown_outcome_is_told_until_a_person_decides(remit_in: OpenRemit, clock: ManualClock) -> None:
    given = flags(target(), target(name="boss", after="1h", on=["uncertain"], tools=["shop.ship"]))
    given["policy.rules"] = [{"effect": "allow", "tools": ["*"]}]
    async with remit_in(**CODE, clock=clock, flags=given) as remit:
        script = Script()
        teller = Teller(remit, script)
        await teller.round()
        job = await remit.start(ships(7))
        await until_waiting(remit, job.id)
        await teller.round()
        (message,) = script.sent
        assert (message.event, message.tool, message.level, message.step) == ("uncertain", "shop.ship", "L1", "1")
        assert message.title == "shop.ship: the outcome of step 1 is unknown"
        assert (message.arguments, message.command) == ("parcel: 7", f"remit show {job.id}")
        await remit.service.steps.decide(job.id, "1", "done", 1)
        clock.advance(60 * MINUTE)
        await teller.round()
        assert [row.state for row in await teller.rows("boss")] == ["dropped"]
        assert len(script.sent) == 1


WANTED = [
    ({}, {"question", "failed"}),
    ({"on": ["question"]}, {"question"}),
    ({"on": ["failed", "expired"]}, {"failed"}),
    ({"recipes": ["rep*"]}, {"question"}),
    ({"recipes": ["fails"]}, {"failed"}),
    ({"labels": {"team": "a"}}, {"failed"}),
    ({"labels": {"team": "b"}}, set()),
    ({"tools": ["shop.*"]}, {"question"}),
    ({"tools": ["fs.*"]}, set()),
    ({"levels": ["L1"]}, {"question"}),
    ({"levels": ["L2"]}, set()),
]


@pytest.mark.parametrize(("keys", "told"), WANTED, ids=[str(keys) for keys, _ in WANTED])
async def test_a_target_hears_of_what_its_conditions_fit(
    remit_in: OpenRemit, clock: ManualClock, keys: dict[str, Any], told: set[str]
) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(target(**keys))) as remit:
        script = Script()
        teller = Teller(remit, script)
        await teller.round()
        await asked(remit)
        job = await remit.start(fails(), Options(labels={"team": "a"}))
        await until(remit, job.id, lambda row: row.state == "failed")
        await teller.round()
        assert set(script.told) == told


async def test_values_that_can_be_erased_are_not_sent(remit_in: OpenRemit, clock: ManualClock) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(target())) as remit:
        job = await remit.start(repay("yusuf"), Options(subject="yusuf"))
        await until_waiting(remit, job.id)
        script = Script()
        await Teller(remit, script).round()
        (message,) = script.sent
        assert message.tool == "shop.refund"
        assert b"yusuf" not in message.encoded


async def test_without_details_a_message_only_says_what_to_look_at(remit_in: OpenRemit, clock: ManualClock) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(target(details=False))) as remit:
        script = Script()
        teller = Teller(remit, script)
        await teller.round()
        job = await remit.start(ask())
        await until_waiting(remit, job.id)
        await failed(remit)
        await asked(remit)
        await teller.round()
        assert sorted(script.told) == ["failed", "question", "question"]
        assert {(one.question, one.arguments, one.reason) for one in script.sent} == {("", "", "")}


async def test_a_copy_of_the_journal_does_not_tell_again(remit_in: OpenRemit, clock: ManualClock) -> None:
    async with remit_in(**CODE, clock=clock, flags=flags(target())) as remit:
        script = Script()
        teller = Teller(remit, script)
        await teller.round()
        await failed(remit)
        await teller.round()
        # A fold is never copied: the copy is read from its beginning.
        fold = (await remit.runtime.journal.folds.read("notify-oncall"))[0]
        assert await remit.runtime.journal.folds.keep([replace(fold, position=0)], fold.position)
        await Teller(remit, script).round()
        assert script.told == ["failed"]
