"""People are asked one after the other, each in their own place; the delegate of who is absent is told and answers."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from remit.cli.story import asked_lines
from remit.codes import Code
from remit.errors import SettingsError, UsageError
from remit.journal.event import HeadQuery
from remit.journal.kinds import decode
from remit.parts.notify.kinds import NotificationSent
from remit.parts.notify.people import read_directory, read_targets
from remit.settings import load
from remit_testing.clock import ManualClock
from tests.parts.notify.telling import MINUTE
from tests.parts.notify.test_slack import PEOPLE, World, problems, world

ASK = ["ann", "bob after 15m", "@leads after 1h"]
TARGET: dict[str, Any] = {"slack": "person", "ask": ASK}
AWAY = {"since": "2000-01-01", "until": "2999-01-01"}
STAFF = [*PEOPLE, {"principal": "carl", "slack": "T1/U3"}]
ABSENT = [{"principal": "ann", "slack": "T1/U1", "absent": AWAY, "delegate": "bob"}, *STAFF[1:]]
ANN = [{"id": "ann", "tools": ["pay.*"], "effect": "ask", "approvers": ["ann"]}]
BOTH = [{"id": "both", "tools": ["pay.*"], "effect": "ask", "approvals": 2, "approvers": ["ann", "carl"]}]


def to(at: World) -> list[str]:
    """Whom the messages went to."""
    return [post["channel"] for post in at.slack.posts()]


async def test_each_is_asked_in_their_own_place_if_no_one_answered_by_then() -> None:
    clock = ManualClock()
    async with world(ANN, clock=clock, target=TARGET, people=STAFF, groups={"leads": ["carl", "robot"]}) as at:
        await at.ask()
        assert to(at) == ["U1"]
        for minutes, more in ((14, []), (1, ["U2"]), (44, []), (1, ["U3", "U9"])):
            before = len(to(at))
            clock.advance(minutes * MINUTE)
            await at.teller.round()
            assert sorted(to(at)[before:]) == more


async def test_who_answers_ends_the_turns_of_others() -> None:
    clock = ManualClock()
    async with world(ANN, clock=clock, target={"slack": "person", "ask": ASK[:2]}, people=STAFF) as at:
        await at.ask()
        await decide(at, "ann")
        clock.advance(60 * MINUTE)
        await at.teller.round()
        assert to(at) == ["U1"]


async def test_the_delegate_of_who_is_absent_is_told_and_answers_for_them() -> None:
    async with world(ANN, target={"slack": "person", "ask": ["ann"]}, people=ABSENT) as at:
        job = await at.ask()
        assert to(at) == ["U2"]
        assert "(for ann, who is absent)" in at.slack.posts()[0]["text"]
        assert "May approve: ann, bob for ann" in str(at.slack.posts()[0]["blocks"])
        await at.slack.press("approve", "U2")
        await at.teller.round()
        assert (await at.remit.ended(job)).state == "completed"
        await at.teller.round()
        assert at.slack.said("chat.update") == ["pay.wire: approved by bob for ann."]
        record = await at.question()
        assert [(one.by, one.instead_of) for one in record.decisions] == [("bob", "ann")]
        (line,) = [line for line in asked_lines(record) if "approved" in line]
        assert "by bob for ann, who was absent" in line
        assert "by slack as T1/U2, which showed" in line
        assert await problems(at) == []
        sent = await sent_by(at)
        assert [(one.person, one.delegate) for one in sent] == [("ann", "bob")]


@pytest.mark.parametrize(("turns", "people"), [(["ann", "bob after 15m"], ABSENT), (["bob", "ann after 15m"], ABSENT)])
async def test_a_delegate_who_has_a_turn_too_is_told_once(turns: list[str], people: Any) -> None:
    clock = ManualClock()
    async with world(ANN, clock=clock, target={"slack": "person", "ask": turns}, people=people) as at:
        await at.ask()
        clock.advance(15 * MINUTE)
        await at.teller.round()
        assert to(at) == ["U2"]
        later = f"oncall-{turns[1].partition(' ')[0]}"
        (row,) = await at.teller.rows(later)
        assert (row.state, row.said) == ("dropped", f"bob was told as oncall-{turns[0]}")


@pytest.mark.parametrize("turns", [["ann", "bob"], ["bob", "ann"]], ids="-".join)
async def test_a_delegate_with_a_turn_at_the_same_time_is_told_once(turns: list[str]) -> None:
    clock = ManualClock()
    async with world(ANN, clock=clock, target={"slack": "person", "ask": turns}, people=ABSENT) as at:
        at.teller.together = True
        await at.ask()
        clock.advance(MINUTE)
        await at.teller.round()
        assert to(at) == ["U2"]
        (row,) = await at.teller.rows(f"oncall-{turns[1]}")
        assert (row.state, row.said) == ("dropped", f"bob was told as oncall-{turns[0]}")


async def test_a_delegate_is_told_where_the_turn_before_theirs_is_damaged(tmp_path: Path) -> None:
    clock, url = ManualClock(), str(tmp_path / "journal.db")
    async with world(ANN, clock=clock, url=url, target={"slack": "person", "ask": ["ann", "bob"]}, people=ABSENT) as at:
        at.slack.error = "ratelimited"
        await at.ask()
        with closing(sqlite3.connect(url)) as db:
            (number,) = db.execute("SELECT id FROM heads WHERE stream LIKE 'notify/oncall-ann/n%'").fetchone()
            db.execute("UPDATE events SET data = x'7b' WHERE stream = ?", (number,))
            db.commit()
        at.slack.error = ""
        clock.advance(2 * MINUTE)
        await at.teller.round()
        assert to(at)[-1:] == ["U2"]
        assert [row.state for row in await at.teller.rows("oncall-bob")] == ["sent"]
        (damaged,) = await at.teller.rows("oncall-ann")
        assert "cannot be read" in damaged.said


async def sent_by(at: World) -> list[NotificationSent]:
    journal = at.remit.runtime.journal
    heads = await journal.heads(HeadQuery(prefix="notify/oncall-ann/n_"))
    payloads = [decode(event.kind, event.data) for head in heads for event in await journal.read(head.stream)]
    return [payload for payload in payloads if isinstance(payload, NotificationSent)]


async def decide(at: World, by: str) -> None:
    (question,) = await at.remit.service.confirmations.pending()
    await at.remit.service.confirmations.decide(question.confirmation, "approve", by=by)


async def test_a_delegate_counts_once_and_only_while_someone_is_absent() -> None:
    async with world(BOTH, people=ABSENT) as at:
        await at.ask()
        (question,) = await at.remit.service.confirmations.pending()
        assert question.stand_ins == {"bob": "ann"}
        await decide(at, "bob")
        for by in ("bob", "ann", "robot"):  # who came back finds that their place is taken
            with pytest.raises(UsageError) as refused:
                await decide(at, by)
            assert refused.value.code is Code.DECIDER_NOT_ALLOWED
        await decide(at, "carl")
        record = await at.question()
        assert [(one.by, one.instead_of) for one in record.decisions] == [("bob", "ann"), ("carl", "")]
    async with world(BOTH, people=STAFF) as at:
        await at.ask()
        with pytest.raises(UsageError):
            await decide(at, "bob")


async def test_who_asked_stands_in_for_no_one() -> None:
    people = [{"principal": "ann", "absent": AWAY, "delegate": "robot"}]
    async with world(ANN, people=people) as at:
        await at.ask()
        (question,) = await at.remit.service.confirmations.pending()
        assert question.stand_ins == {}
        with pytest.raises(UsageError) as refused:
            await decide(at, "robot")
        assert refused.value.code is Code.DECIDER_NOT_ALLOWED


async def test_no_one_stands_in_for_who_asked() -> None:
    rules = [{**BOTH[0], "approvers": ["robot", "carl", "dora"]}]
    people = [{"principal": "robot", "absent": AWAY, "delegate": "bob"}]
    async with world(rules, people=people) as at:
        await at.ask()
        with pytest.raises(UsageError):
            await decide(at, "bob")


PEOPLE_AWAY = {"ann": ("bob", AWAY), "bob": ("carl", {"days": "sat"}), "x": ("y", AWAY), "y": ("x", AWAY)}
SATURDAY, MONDAY = 1_000_000 * 1_767_400_000, 1_000_000 * 1_767_600_000
"""2026-01-03 and 2026-01-05."""


@pytest.mark.parametrize(
    ("person", "now", "delegate"),
    [
        ("ann", MONDAY, "bob"),
        ("ann", SATURDAY, "carl"),
        ("bob", MONDAY, ""),
        ("carl", SATURDAY, ""),
        ("x", MONDAY, ""),
    ],
)
def test_who_stands_in(person: str, now: int, delegate: str) -> None:
    people = [{"principal": who, "absent": when, "delegate": to} for who, (to, when) in PEOPLE_AWAY.items()]
    assert read_directory(load(env={"REMIT_PEOPLE": json.dumps(people)})).stand_in(person, now) == delegate


NO_SLACK = dict.fromkeys(("slack", "token", "secret"))


@pytest.mark.parametrize(
    "keys",
    [
        {"ask": ["ann"]},
        {"ask": ["ann"], "slack": "person", "after": "5m"},
        {"ask": ["ann then bob"], "slack": "person"},
        {"ask": ["bob after soon"], "slack": "person"},
        {"ask": ["@leads"], "slack": "person"},
        {"ask": ["@idp:leads"], "slack": "person"},
        {"ask": ["zoe"], "slack": "person"},
        {"ask": ["ann", "ann after 1h"], "slack": "person"},
        {**NO_SLACK, "ask": ["ann"], "email": ["person", "boss@x"], "smtp": "smtp://localhost", "from": "r@x"},
        {"slack": "person"},
        {"person": "ann"},
        {"table": "oncall"},
    ],
    ids=str,
)
def test_turns_that_are_doubtful_are_refused(keys: dict[str, Any]) -> None:
    table = {"name": "oncall", "slack": "C1", "token": "t", "secret": "s", **keys}
    table = {key: value for key, value in table.items() if value is not None}
    people = [{"email": "ann@x", **PEOPLE[0]}, *PEOPLE[1:]]
    env = {"REMIT_NOTIFY": json.dumps([table]), "REMIT_PEOPLE": json.dumps(people)}
    with pytest.raises(SettingsError):
        read_targets(load(env=env))


def test_who_had_a_turn_has_none_again_with_their_group() -> None:
    table = {"name": "t", "push": "person", "secret": "s", "ask": ["ann", "@leads after 1h", "@all after 2h"]}
    flags = {"policy.groups": {"leads": ["bob", "ann"], "all": ["ann", "bob", "carl"]}}
    targets = read_targets(load(env={"REMIT_NOTIFY": json.dumps([table])}, flags=flags))
    assert [(each.person, each.after) for each in targets] == [("ann", ""), ("bob", "1h"), ("carl", "2h")]
