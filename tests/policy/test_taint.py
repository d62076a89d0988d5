"""What the rules make of a call whose arguments come from untrusted text."""

from typing import Any

import pytest

from remit import tool
from remit.errors import PolicyError
from remit.policy.cases import run_tests
from remit.policy.decision import Decision
from remit.policy.explain import explain
from remit.policy.lint import lint
from remit.policy.overlay import parse_overlay
from remit.policy.rules import TAINT_ID, Policy
from tests.policy.samples import EXEC, PUSH, READ, TOOLS, WRITE, query, rule

ALLOW: dict[str, Any] = {"effect": "allow", "id": "ok", "tools": ["fs.write"]}
CALL = query(WRITE, path="docs/a.md", text="x")


def tainted(
    *rules: dict[str, Any], paths: tuple[str, ...] = ("path",), taint: Any = "ask", asked: Any = CALL
) -> Decision:
    policy = Policy.parse(rules, taint=taint)
    return policy.tainted(asked, policy.decide(asked), paths)


@pytest.mark.parametrize("taint", ["ask", "deny", "allow"])
def test_without_a_word_of_a_rule_the_setting_decides(taint: Any) -> None:
    decision = tainted(ALLOW, taint=taint)
    assert decision.effect == taint
    assert decision.rule_id == ("ok" if taint == "allow" else TAINT_ID)


@pytest.mark.parametrize("taint", ["ask", "deny", "allow"])
def test_a_rule_decides_before_the_setting(taint: Any) -> None:
    decision = tainted(ALLOW | {"taint": taint}, taint="deny")
    assert (decision.effect, decision.rule_id) == (taint, "ok" if taint == "allow" else "taint:ok")


def test_of_several_rules_the_strictest_counts_in_any_order() -> None:
    others = [{"effect": "allow", "id": f"r{number}", "taint": said} for number, said in enumerate(("allow", "deny"))]
    for rules in ([ALLOW, *others], [*others[::-1], ALLOW]):
        assert (tainted(*rules).effect, tainted(*rules).rule_id) == ("deny", "taint:r1")


def test_a_rule_that_does_not_match_has_no_say() -> None:
    elsewhere = {"effect": "allow", "id": "x", "when": {"path": {"glob": "src/**"}}, "taint": "deny"}
    assert tainted(ALLOW, elsewhere).rule_id == TAINT_ID


def test_it_only_gets_stricter() -> None:
    asks = {"effect": "ask", "id": "ask", "approvals": 2}
    assert tainted(ALLOW | {"taint": "allow"}, asks).rule_id == "ask"
    assert tainted(ALLOW, {"effect": "deny", "id": "no"}).rule_id == "no"
    assert (tainted(asks).rule_id, tainted(asks).approvals) == ("ask", 2)
    assert tainted(asks | {"taint": "deny"}).effect == "deny"


@pytest.mark.parametrize(
    "operators",
    [{"equals": "docs/a.md"}, {"in": ["docs/a.md"]}, {"glob": "docs/**"}, {"prefix": "docs/"}],
    ids=["equals", "in", "glob", "prefix"],
)
def test_an_argument_that_an_allow_rule_limits_itself_is_decided_by_it(operators: dict[str, Any]) -> None:
    bounded = ALLOW | {"when": {"path": operators}}
    assert tainted(bounded, taint="deny").effect == "allow"
    assert tainted(bounded, paths=("path", "content")).effect == "ask"
    assert tainted(bounded | {"taint": "ask"}).rule_id == "taint:ok"


@pytest.mark.parametrize(
    "operators", [{"glob": "**"}, {"glob": ["docs/**", "**/*"]}, {"max_length": 99}, {"present": True}]
)
def test_a_limit_that_names_nothing_limits_nothing(operators: dict[str, Any]) -> None:
    assert tainted(ALLOW | {"when": {"path": operators}}).effect == "ask"


def test_nested_arguments_are_limited_by_their_path() -> None:
    said = {"effect": "allow", "id": "push", "when": {"files.path": {"glob": "docs/**"}}}
    asked = query(PUSH, repo="a", files=[{"path": "docs/a"}])
    assert tainted(said, asked=asked, paths=("files.path",)).effect == "allow"
    assert tainted(said, asked=asked, paths=("repo",)).effect == "ask"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"effect": "deny", "taint": "deny"}, 'has no meaning where the effect is "deny"'),
        ({"effect": "ask", "taint": "allow"}, "asks in any case"),
        ({"effect": "allow", "taint": "never"}, "does not know 'never'"),
    ],
)
def test_a_taint_that_makes_no_sense_is_refused(said: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        rule(**said)


def test_the_hash_tells_rules_and_settings_apart_and_stays_what_it_was_without_them() -> None:
    plain = Policy.parse([ALLOW])
    hashes = {plain.hash, Policy.parse([ALLOW | {"taint": "ask"}]).hash, Policy.parse([ALLOW], taint="deny").hash}
    assert len(hashes) == 3
    assert Policy.parse([ALLOW], taint="ask").hash == plain.hash


def test_a_job_may_add_that_untrusted_arguments_are_denied() -> None:
    overlay = parse_overlay("job", [{"id": "strict", "effect": "ask", "taint": "deny"}])
    policy = Policy.parse([ALLOW], taint="allow").under((overlay,))
    assert policy.tainted(CALL, policy.decide(CALL), ("path",)).rule_id == "taint:job:strict"


def test_a_policy_that_cannot_be_evaluated_denies() -> None:
    policy = Policy.parse([ALLOW])
    assert policy.tainted(CALL, policy.decide(CALL), 5).rule_id == "default:error"  # type: ignore[arg-type]


# --- tests, explain, lint


def problem(policy: Policy, **said: Any) -> str:
    (result,) = run_tests(policy, TOOLS, [said])
    return result.problem


def test_a_test_says_which_arguments_are_untrusted() -> None:
    policy = Policy.parse([ALLOW | {"taint": "deny"}])
    args = {"path": "a", "content": "b"}
    assert problem(policy, tool="fs.write", args=args, expect="allow", rule="ok") == ""
    assert problem(policy, tool="fs.write", args=args, untrusted=["path"], expect="deny", rule="taint:ok") == ""
    assert problem(policy, tool="fs.write", args=args, untrusted=["path"], expect="allow").startswith("expected allow")


def test_a_test_with_an_argument_that_is_not_looked_at_fails() -> None:
    policy = Policy.parse([ALLOW])
    args = {"path": "a", "content": "b"}
    idle = "'content' in untrusted is no argument of this call that decides what it reaches"
    assert problem(policy, tool="fs.write", args=args, untrusted="content", expect="ask") == idle
    reads = "fs.read only reads: where its arguments come from is not looked at"
    assert problem(policy, tool="fs.read", args={"path": "a"}, untrusted="path", expect="ask") == reads


def test_an_explanation_says_what_untrusted_arguments_would_change() -> None:
    found = explain(Policy.parse([ALLOW]), CALL)
    assert [(one.path, one.role) for one in found.authority] == [("path", "path")]
    assert found.tainted is not None
    assert (found.decision.effect, found.tainted.effect, found.tainted.rule_id) == ("allow", "ask", TAINT_ID)


def test_an_explanation_of_what_only_reads_or_has_no_such_argument_says_nothing() -> None:
    for asked in (query(READ, path="a"), query(WRITE, text="b"), query(EXEC)):
        assert explain(Policy.parse([ALLOW]), asked).tainted is None


def kinds(*raw: dict[str, Any]) -> list[tuple[str, str]]:
    return [(finding.rule_id, finding.kind) for finding in lint(raw, TOOLS)]


def test_letting_untrusted_text_choose_anything_is_a_warning() -> None:
    assert kinds(ALLOW | {"taint": "allow"}) == [("ok", "open-taint")]
    assert kinds(ALLOW | {"taint": "allow", "when": {"path": {"glob": "docs/**"}}}) == []


def test_a_taint_that_is_never_looked_at_is_a_warning() -> None:
    assert kinds({"effect": "ask", "id": "r", "tools": ["fs.read"], "taint": "deny"}) == [("r", "idle-taint")]


@tool("notes.add", level="L1")
async def add_note(title: str, words: str) -> str:
    """Add a note."""
    return title + words


@tool("notes.send", level="L1")
async def send_note(to: str, words: str) -> str:
    """Send a note."""
    return to + words


@pytest.mark.parametrize(
    ("taint", "name", "found"),
    [
        ("ask", "notes.add", ["idle-taint"]),
        ("deny", "notes.*", ["idle-taint"]),
        ("ask", "notes.send", []),
        ("strict", "notes.add", []),
        (None, "notes.add", []),
    ],
)
def test_so_is_one_of_a_tool_that_writes_and_has_no_argument_with_a_role(
    taint: str | None, name: str, found: list[str]
) -> None:
    raw = {"effect": "allow", "id": "r", "tools": [name], **({"taint": taint} if taint else {})}
    assert [one.kind for one in lint([raw], [add_note.meta, send_note.meta])] == found


@pytest.mark.parametrize(
    ("taint", "callers", "found"),
    [
        ("deny", ["mcp:*"], ["partial-taint"]),
        ("ask", ["job:triage", "http:ann"], ["partial-taint"]),
        ("strict", ["mcp:*"], []),
        ("deny", ["job:triage", "ann"], []),
    ],
)
def test_so_is_one_for_agents_of_whom_less_is_known(taint: str, callers: list[str], found: list[str]) -> None:
    raw = {"effect": "allow", "id": "r", "tools": ["notes.send"], "taint": taint, "callers": callers}
    assert [one.kind for one in lint([raw], [send_note.meta])] == found


SEND = query(send_note.meta, to="ann@x.org", words="hello")


@pytest.mark.parametrize(
    ("rules", "strict"),
    [
        ([{"taint": "strict"}], True),
        ([{"taint": "ask"}], False),
        ([{}, {"id": "s", "taint": "strict"}], True),
        ([{"taint": "deny"}, {"id": "s", "taint": "strict"}], True),
        ([{"tools": ["fs.write"], "taint": "strict"}], False),
        ([{"when": {"to": {"equals": "bob@x.org"}}, "taint": "strict"}], False),
    ],
)
def test_a_strict_rule_looks_at_every_argument_of_its_tools(rules: list[dict[str, Any]], strict: bool) -> None:
    base = {"effect": "allow", "id": "r", "tools": ["notes.*"]}
    policy = Policy.parse([base | rule for rule in rules])
    assert policy.is_strict(SEND) is strict
    paths = [one.path for one in explain(policy, SEND).authority]
    assert paths == (["to", "words"] if strict else ["to"])


def test_the_setting_is_strict_for_tools_without_a_word_of_a_rule() -> None:
    policy = Policy.parse([ALLOW, {"effect": "allow", "id": "r", "tools": ["notes.*"], "taint": "ask"}], taint="strict")
    assert policy.is_strict(CALL)
    assert not policy.is_strict(SEND)
    assert policy.tainted(CALL, policy.decide(CALL), ["text"]).effect == "ask"


def test_a_rule_with_a_taint_counts_beside_one_that_decides() -> None:
    assert kinds(ALLOW, ALLOW | {"id": "too", "taint": "deny"}) == []
    assert ("ok", "shadowed") in kinds({"effect": "deny", "id": "no"}, ALLOW | {"taint": "deny"})
