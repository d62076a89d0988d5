from decimal import Decimal
from typing import Any

import pytest

from remit.errors import PolicyError
from remit.policy.decision import Caller, Facts, Query
from remit.policy.limit import Limit, parse_limit
from remit.policy.rules import Policy
from remit.policy.table import Table
from tests.policy.samples import ALICE, WRITE, caller, query

NOON = 1_777_636_800_000_000
DAY = 86_400_000_000


def limit(**said: Any) -> Limit:
    found = parse_limit(Table({"limit": said}, "rule 1", ("limit",)))
    assert found is not None
    return found


def asked(taken: dict[str, Any] | None = None, who: Caller = ALICE, now: int = NOON, **args: Any) -> Query:
    return Query(tool=WRITE, key="fs", args=args, caller=who, now=now, facts=Facts(taken=taken))


@pytest.mark.parametrize(
    ("said", "calls", "total", "args", "expected"),
    [
        ({"calls": 3}, 2, "0", {}, True),
        ({"calls": 3}, 3, "0", {}, False),
        ({"sum": "cents", "max": 500}, 9, "400", {"cents": 100}, True),
        ({"sum": "cents", "max": 500}, 9, "400", {"cents": 100.5}, False),
        ({"sum": "cents", "max": 0.3}, 1, "0.2", {"cents": 0.1}, True),  # no error of binary fractions
        ({"sum": "cents", "max": 500, "calls": 3}, 3, "0", {"cents": 1}, False),
        ({"sum": "cents", "max": 500}, 0, "0", {}, None),
        ({"sum": "cents", "max": 500}, 0, "0", {"cents": -1}, None),  # which would make room again
        ({"sum": "cents", "max": 500}, 0, "0", {"cents": "1"}, None),
        ({"sum": "cents", "max": 500}, 0, "0", {"cents": True}, None),
        ({"sum": "cents", "max": 500}, 0, "0", {"cents": float("nan")}, None),
        ({"sum": "cents", "max": 500}, 0, "0", {"cents": 10**400}, None),
    ],
)
def test_whether_there_is_room(
    said: dict[str, Any], calls: int, total: str, args: dict[str, Any], expected: Any
) -> None:
    one = limit(per="day", **said)
    query = asked({one.key("r", asked()): (calls, Decimal(total))}, **args)
    assert one.within("r", query) is expected


def test_what_is_counted_together() -> None:
    bob, tomorrow = caller("session", "bob"), NOON + DAY
    one = limit(per="day", calls=1)
    assert one.key("r", asked()) == one.key("r", asked(who=bob)) != one.key("r", asked(now=tomorrow))
    assert one.key("r", asked()) != one.key("other", asked())
    own = limit(per="day", calls=1, by=["principal"])
    assert own.key("r", asked()) != own.key("r", asked(who=bob))
    job = limit(per="job", calls=1)
    part = Caller(principal="alice", kind="session", stream="session/S/part/1")
    assert job.key("r", asked()) == job.key("r", asked(who=part, now=tomorrow))


@pytest.mark.parametrize(
    ("one", "query"),
    [
        (limit(per="day", calls=1), asked({}, now=0)),
        (limit(per="job", calls=1), asked({}, who=caller("http", "bob"))),
        (limit(per="day", calls=1), asked(None)),
        (limit(per="day", calls=1), query(now=NOON)),
    ],
)
def test_what_is_not_known_cannot_be_told(one: Limit, query: Query) -> None:
    assert one.within("r", query) is None


def test_an_allow_rule_matches_within_its_limit_and_a_deny_rule_beyond() -> None:
    said = {"per": "day", "calls": 2}
    allow = Policy.parse([{"id": "r", "effect": "allow", "limit": said}])
    deny = Policy.parse([{"id": "a", "effect": "allow"}, {"id": "r", "effect": "deny", "limit": said}])
    key = limit(**said).key("r", asked())
    for taken, allowed in (({}, True), ({key: (1, Decimal(0))}, True), ({key: (2, Decimal(0))}, False), (None, False)):
        assert (allow.decide(asked(taken)).effect == "allow") == allowed
        assert (deny.decide(asked(taken)).effect == "allow") == allowed


@pytest.mark.parametrize(
    "said",
    [
        {}, {"per": "day"}, {"calls": 1}, {"per": "year", "calls": 1}, {"per": "day", "calls": 0}, 3,
        {"per": "day", "sum": "x"}, {"per": "day", "max": 1}, {"per": "day", "sum": "x", "max": -1},
        {"per": "day", "sum": "x", "max": True}, {"per": "day", "sum": "x.y", "max": 1},
        {"per": "day", "calls": 1, "by": "moon"}, {"per": "day", "calls": 1, "most": 2},
    ],
)  # fmt: skip
def test_what_is_no_limit_is_refused(said: Any) -> None:
    with pytest.raises(PolicyError):
        parse_limit(Table({"limit": said}, "rule 1", ("limit",)))


def test_it_is_shown_and_hashed_with_all_it_says() -> None:
    one = limit(per="day", by=["tool", "principal"], calls=3, sum="cents", max=500)
    assert str(one) == "3 calls and cents up to 500 per day and principal and tool"
    assert one.canonical() == {"per": "day", "by": ["principal", "tool"], "calls": 3, "sum": "cents", "max": 500}


def test_a_rule_that_a_job_brings_along_counts_that_job_alone() -> None:
    one = limit(per="day", calls=1)
    jobs = [Caller(principal="alice", kind="job", recipe="r", stream=f"job/{name}") for name in "AB"]
    assert len({one.key("job:r", asked(who=job)) for job in jobs}) == 2
    assert len({one.key("r", asked(who=job)) for job in jobs}) == 1
    assert one.key("job:r", asked(who=jobs[0], now=0)) == ""
