"""The text that is kept of rules reads back as the same rules, with the same hash."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.canonical import canonical
from remit.errors import PolicyError
from remit.policy.overlay import parse_overlay
from remit.policy.record import overlay_of_text, overlays_named, policy_of
from remit.policy.rules import Policy
from tests.policy.samples import TOOLS, query

NAMES: Final = st.sampled_from(["alice", "bob", "carol"])
TOOL: Final = st.sampled_from(["fs.*", "web.fetch", "*", "mcp.github.*", "fs_read", "shop.credit"])
WINDOW: Final = st.fixed_dictionaries(
    {},
    optional={
        "days": st.sampled_from(["mon-fri", ["sat", "sun"], "fri-mon"]),
        "hours": st.sampled_from(["09:00-17:00", "22:00-06:00", "00:00-24:00"]),
        "since": st.sampled_from(["2026-05-01", "2026-05-01T12:00:00.123456Z"]),
        "until": st.sampled_from(["2027-05-01", "2027-05-01T12:00:00+02:00"]),
        "zone": st.sampled_from(["UTC", "Europe/Berlin"]),
    },
).filter(lambda window: bool(set(window) - {"zone"}))
LIMIT: Final = st.fixed_dictionaries(
    {"per": st.sampled_from(["job", "day"]), "calls": st.integers(1, 9)},
    optional={"by": st.sampled_from(["principal", ["tool", "principal"]])},
) | st.just({"per": "day", "sum": "amount", "max": 12.5})
WHEN: Final = st.sampled_from(
    [
        {"path": {"glob": ["notes/**", "*.md"]}},
        {"amount": {"min": 1, "max": 2.5, "optional": True}},
        {"to": {"in": ["a", 1, None, True]}, "cc": {"absent": True}},
        {"a.b": {"not_in": ["x"]}, "url": {"prefix": "https://a.example/"}},
        {"text": {"max_length": 9, "present": True}},
    ]
)
COMMON: Final[dict[str, st.SearchStrategy[Any]]] = {
    "tools": TOOL | st.lists(TOOL, min_size=1, max_size=2, unique=True),
    "levels": st.sampled_from(["L0", ["L2", "L1"]]),
    "providers": st.just("mcp_*"),
    "callers": st.sampled_from(["alice", "job:triage/alice", "principal:a:b", ["session:*", "mcp:bob"]]),
    "when": WHEN,
    "unless": WHEN,
    "during": WINDOW,
    "outside": WINDOW,
    "limit": LIMIT,
    "where": st.sampled_from(
        ['args.amount < 10 and principal == "bob"', "age(args.at) > 60", 'seen("fs.read").x == 1']
    ),
    "reason": st.sampled_from(["Because.", ""]),
}
ALLOW: Final = st.fixed_dictionaries(
    {"effect": st.just("allow")},
    optional={
        **COMMON,
        "only": st.sampled_from([[], ["path", "a"]]),
        "taint": st.sampled_from(["allow", "ask", "strict"]),
    },
)
ASK: Final = st.fixed_dictionaries(
    {"effect": st.just("ask"), "approvers": st.just(["alice", "bob", "carol"])},
    optional={
        **COMMON,
        "approvals": st.integers(1, 3),
        "expires": st.sampled_from(["90s", "1d12h", 7]),
        "taint": st.sampled_from(["ask", "deny", "strict"]),
        "default": st.booleans(),
    },
)
DENY: Final = st.fixed_dictionaries({"effect": st.just("deny")}, optional={**COMMON, "default": st.booleans()})
RULES: Final = st.lists(ALLOW | ASK | DENY, max_size=4)
RESTRICTING: Final = st.lists(ASK | DENY, max_size=2)


def parsed(rules: list[dict[str, Any]], **more: Any) -> Policy | None:
    """The policy, unless the rules are ones that nobody could write."""
    try:
        return Policy.parse(rules, **more)
    except PolicyError:
        return None


@given(
    RULES,
    st.sampled_from(["ask", "allow", "strict", "deny"]),
    RESTRICTING,
    st.none() | st.lists(TOOL, max_size=2, unique=True),
)
def test_a_kept_text_becomes_the_same_policy(
    rules: list[dict[str, Any]], taint: Any, added: list[dict[str, Any]], tools: list[str] | None
) -> None:
    policy = parsed(rules, taint=taint)
    if policy is None or parsed(added) is None:
        return
    assert policy_of(policy.text).hash == policy.hash
    overlay = parse_overlay("job", added, tools)
    assert overlay_of_text(overlay.text).key == overlay.key
    under = policy.under([overlay])
    assert overlays_named(under.text) == (overlay.key,)
    again = policy_of(under.text, [overlay.text])
    assert again.hash == under.hash
    for tool in TOOLS:
        asked = query(tool, path="notes/a.md", now=1_800_000_000_000_000)
        assert again.decide(asked) == under.decide(asked)


def rules_of(**said: Any) -> bytes:
    return canonical({"defaults": 1, "rules": [], **said})


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        rules_of(defaults=2),
        rules_of(rules=[1]),
        rules_of(rules=[{"id": "a", "effect": "burn"}]),
        rules_of(rules=[{"id": "a", "effect": "allow", "reason": "", "during": {"days": [9]}}]),
        rules_of(rules=[{"id": "a", "effect": "allow", "reason": "", "during": {"since": 10**30}}]),
        rules_of(rules=[{"id": "a", "effect": "allow", "reason": "", "new": 1}]),
        rules_of(more=True),
        rules_of(taint="burn"),
    ],
)
def test_a_text_that_another_remit_wrote_is_refused_and_says_so(text: bytes) -> None:
    with pytest.raises(PolicyError):
        policy_of(text)


def test_the_texts_are_plain_json_that_other_programs_read() -> None:
    policy = Policy.parse([{"id": "no", "effect": "deny", "tools": ["a.*"]}])
    assert msgspec.json.decode(policy.text)["rules"] == [{"id": "no", "effect": "deny", "tools": ["a.*"], "reason": ""}]
