from typing import Any

import pytest

from remit.errors import PolicyError
from remit.policy.rule import parse_rule, parse_rules
from remit.tools.meta import Level, Risk
from tests.policy.samples import ALICE, COMMENT, EXEC, READ, WRITE, job, query, rule, tool


def refused(raw: Any, number: int = 3) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        parse_rule(raw, number)
    return caught.value


def test_a_rule_is_named_by_its_place_unless_it_has_an_id() -> None:
    assert parse_rule({"effect": "deny"}, 3).id == "rule-3"
    assert parse_rule({"effect": "deny", "id": "no-secrets"}, 3).id == "no-secrets"


def test_a_whole_rule() -> None:
    parsed = rule(
        "ask",
        id="x",
        tools=["fs.*", "github"],
        levels=["L1", "L0"],
        providers="builtin",
        callers=["alice"],
        approvals=2,
        approvers=["carol", "bob"],
        expires="2h",
        reason="because",
    )
    assert (parsed.tools, parsed.levels, parsed.providers) == (("fs.*", "github"), (Level.L0, Level.L1), ("builtin",))
    assert (parsed.callers, parsed.approvals, parsed.approvers) == (("alice",), 2, ("bob", "carol"))
    assert (parsed.expires_s, parsed.reason) == (7200, "because")


@pytest.mark.parametrize(
    ("expires", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1d12h", 129_600), (60, 60), ("1h30m", 5400)]
)
def test_a_time_is_a_number_of_seconds_or_is_written_with_units(expires: str | int, seconds: int) -> None:
    assert rule("ask", expires=expires).expires_s == seconds


@pytest.mark.parametrize("expires", ["", "soon", "2 h", "h", "0s", 0, -1, True, 1.5, "400d", "30m1h"])
def test_any_other_time_is_refused(expires: object) -> None:
    error = refused({"effect": "ask", "expires": expires})
    assert error.message.startswith('rule 3, key "expires" is ')


@pytest.mark.parametrize(
    ("raw", "message", "remedy"),
    [
        ({"effct": "allow"}, 'rule 3, key "effct" is not a known key', 'Did you mean "effect"?'),
        ({"id": "x"}, 'rule 3 (x), key "effect" is missing', "Use one of: allow, ask, deny."),
        ({"effect": "denny"}, "rule 3, key \"effect\" does not know 'denny'", 'Did you mean "deny"?'),
        ({"effect": "deny", "tools": []}, 'rule 3, key "tools" names nothing', "Leave"),
        ({"effect": "deny", "tools": 5}, 'rule 3, key "tools" must be a string or a list of strings, not 5', ""),
        ({"effect": "deny", "tools": ["fs/*"]}, "rule 3, key \"tools\" holds 'fs/*'", "Use letters"),
        ({"effect": "deny", "tools": ["mcp__x__y"]}, "rule 3, key \"tools\" holds 'mcp__x__y'", "Write 'mcp.x.y'."),
        ({"effect": "deny", "levels": ["L3"]}, "rule 3, key \"levels\" does not know 'L3'", "Use L0, L1 or L2."),
        ({"effect": "deny", "reason": 1}, 'rule 3, key "reason" must be a string, not 1', ""),
        ({"effect": "deny", "id": "default:x"}, "rule 3, key \"id\" is 'default:x'", "Use at most 64"),
        ({"effect": "deny", "approvals": 2}, 'rule 3, key "approvals" has no meaning', 'It belongs to effect = "ask".'),
        ({"effect": "ask", "approvals": 0}, 'rule 3, key "approvals" must be a whole number from 1, not 0', ""),
        ({"effect": "ask", "approvals": True}, 'rule 3, key "approvals" must be a whole number from 1, not True', ""),
        ({"effect": "ask", "approvals": 2, "approvers": ["a"]}, 'rule 3, key "approvals" asks for 2 of 1', ""),
        ({"effect": "ask", "approvers": ["team-*"]}, "rule 3, key \"approvers\" holds the glob 'team-*'", "Name every"),
        ("deny", "rule 3 is not a table but 'deny'", ""),
    ],
)
def test_an_error_names_the_rule_the_key_and_a_way_out(raw: Any, message: str, remedy: str) -> None:
    error = refused(raw)
    assert error.message.startswith(message)
    assert error.remedy.startswith(remedy)


@pytest.mark.parametrize("prefix", ["https://api.example.org", ["docs/", "https://api.example.org"]])
def test_an_allow_rule_must_end_the_host_of_a_prefix(prefix: str | list[str]) -> None:
    raw = {"effect": "allow", "when": {"url": {"prefix": prefix}}}
    assert "does not end the host" in refused(raw).message
    assert parse_rule(raw | {"effect": "deny"}, 1).when


def test_two_rules_with_one_id_are_refused() -> None:
    with pytest.raises(PolicyError, match='rule 2, key "id" is "rule-1", as is that of rule 1'):
        parse_rules([{"effect": "deny"}, {"effect": "deny", "id": "rule-1"}])


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        (["fs.write"], True),
        (["fs.*"], True),
        (["fs_write"], True),
        (["*"], True),
        (["fs.read", "fs.write"], True),
        (["fs"], False),
        (["fs.w"], False),
    ],
)
@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
def test_tools_are_full_names_globs_or_keys(effect: str, tools: list[str], expected: bool) -> None:
    assert rule(effect, tools=tools).matches(query()) is expected


def test_a_key_covers_every_tool_of_its_server() -> None:
    assert rule(tools=["github"]).matches(query(COMMENT))


def test_only_a_rule_that_restricts_takes_a_glob_for_a_key() -> None:
    assert rule("deny", tools=["git*"]).matches(query(COMMENT))
    assert not rule("allow", tools=["git*"]).matches(query(COMMENT))


def test_providers_are_globs_of_provider_ids() -> None:
    assert rule(providers=["mcp_*"]).matches(query(COMMENT))
    assert not rule(providers=["mcp_*"]).matches(query(WRITE))


def test_levels_are_those_a_tool_is_treated_as() -> None:
    assert rule(levels=["L1"]).matches(query(WRITE))
    assert not rule(levels=["L1"]).matches(query(EXEC))
    assert not rule("deny", levels=["L1"]).matches(query(READ))


def test_a_tool_of_unknown_risk_is_not_allowed_as_the_level_it_claims_but_denied_as_either() -> None:
    claims = tool("x.y", Level.L0, risk_level=Risk.UNKNOWN)
    assert not rule("allow", levels=["L0", "L1"]).matches(query(claims))
    assert rule("allow", levels=["L2"]).matches(query(claims))
    assert rule("deny", levels=["L0"]).matches(query(claims))
    assert rule("deny", levels=["L2"]).matches(query(claims))


def test_every_part_has_to_match() -> None:
    both = rule(tools=["fs.*"], callers=["job:triage"], when={"path": {"glob": "docs/**"}})
    assert both.matches(query(WRITE, job("triage"), path="docs/a"))
    assert not both.matches(query(WRITE, ALICE, path="docs/a"))
    assert not both.matches(query(WRITE, job("triage"), path="src/a"))
    assert not both.matches(query(COMMENT, job("triage"), path="docs/a"))


def test_a_doubt_keeps_an_allow_rule_from_matching_and_not_a_deny_rule() -> None:
    when = {"path": {"glob": "docs/**"}}
    assert not rule("allow", when=when).matches(query(WRITE))
    assert rule("deny", when=when).matches(query(WRITE))
    assert rule("ask", when=when).matches(query(WRITE))


def test_a_deny_rule_about_an_argument_is_not_about_tools_without_it() -> None:
    assert not rule("deny", when={"path": {"glob": "docs/**"}}).matches(query(COMMENT))


def test_a_deny_rule_can_be_about_calls_that_name_the_argument() -> None:
    named = rule("deny", when={"path": {"present": True, "glob": "docs/**"}})
    assert named.matches(query(WRITE, path="docs/a"))
    assert not named.matches(query(WRITE))


@pytest.mark.parametrize(
    ("only", "args", "expected"),
    [
        (["to", "body"], {"to": "bob", "body": "x"}, True),
        (["to", "body"], {"to": "bob"}, True),
        (["to", "body"], {"to": "bob", "cc": "eve"}, False),
        (["to", "body"], {"to": "bob", "cc": None}, False),
        ([], {}, True),
        ([], {"to": "bob"}, False),
    ],
)
def test_an_allow_rule_can_list_the_only_arguments(only: list[str], args: dict[str, Any], expected: bool) -> None:
    assert rule(only=only).matches(query(**args)) == expected


@pytest.mark.parametrize("effect", ["ask", "deny"])
def test_only_belongs_to_rules_that_allow(effect: str) -> None:
    with pytest.raises(PolicyError, match="only"):
        rule(effect, only=["to"])
