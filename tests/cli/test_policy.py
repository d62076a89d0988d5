from __future__ import annotations

from tests.cli.conftest import Project

RULES = """
[[policy.rules]]
id = "notes"
effect = "allow"
tools = ["note.write"]
when = { path = { glob = "n*.txt" } }

[[policy.rules]]
id = "never"
effect = "deny"
tools = ["note.write"]
when = { path = { glob = "no.txt" } }
reason = "No means no."
"""
TEST = """
[[policy.tests]]
tool = "note.write"
args = { path = "n.txt", text = "x" }
expect = "%s"
"""


def test_explain_says_what_decides_and_what_part_every_rule_has(project: Project) -> None:
    project.configure(RULES)
    done = project.here("policy", "explain", "--live", "note.write", "--args", '{"path": "no.txt"}')
    assert done.out.startswith("deny  note.write\n")
    assert "No means no." in done.out
    parts = {line.split()[0]: line.split()[1:3] for line in done.out.splitlines()[-3:]}
    assert parts["never"] == ["deny", "decided"]
    assert parts["notes"] == ["allow", "overruled"]
    found = project.here("policy", "explain", "--live", "note.write", "--args", '{"path": "n.txt"}', "--json").json
    assert (found["decision"]["effect"], found["decision"]["rule_id"]) == ("allow", "notes")


def test_explain_asks_for_whoever_is_named(project: Project) -> None:
    project.configure('[[policy.rules]]\nid = "bobs"\neffect = "deny"\ncallers = ["session:bob"]\n')

    def effect(*words: str) -> str:
        return str(
            project.here("policy", "explain", "--live", "note.read", *words, "--json").json["decision"]["effect"]
        )

    assert effect() == "allow"
    assert effect("--as", "bob") == "deny"
    assert effect("--as", "bob", "--recipe", "notes") == "allow", "that is a job's call"
    assert effect("--as", "bob", "--recipe", "notes", "--kind", "session") == "deny"
    assert project.here("--as", "bob", "policy", "explain", "--live", "note.read").out.startswith("deny")


def test_explain_of_an_unknown_tool_is_a_denial(project: Project) -> None:
    done = project.here("policy", "explain", "--live", "note.raed")
    assert (done.status, done.out.startswith("deny  note.raed")) == (2, True)
    assert "no tool is called 'note.raed'. Did you mean note.read" in done.out


def test_explain_names_arguments_that_the_tool_could_not_take(project: Project) -> None:
    done = project.here("policy", "explain", "--live", "fs.search", "--args", '{"pattern": "x"}', "--json")
    assert (done.status, done.json["problems"]) == (2, ["pattern is not a known field"])
    assert project.here("policy", "explain", "--live", "fs.search").status == 0, "arguments may be left out"


def test_rules_are_tested_with_an_exported_catalog_where_the_modules_are_not(project: Project) -> None:
    assert project.here("tools", "--export", "catalog.json").status == 0
    assert project.here("tools", "--export", "-").out == (project.folder / "catalog.json").read_text()
    other = project.folder / "elsewhere"
    other.mkdir()
    (other / "remit.toml").write_text(
        '[[policy.rules]]\nid = "notes"\neffect = "allow"\ntools = ["note.write"]\n'
        '[[policy.tests]]\ntool = "note.write"\nexpect = "allow"\n'
        '[[policy.tests]]\ntool = "note.write"\nargs = { wrong = 1 }\nexpect = "allow"\n'
        '[[policy.tests]]\ntool = "note.wirte"\nexpect = "deny"\n'
    )
    words = ("--config", str(other / "remit.toml"), "policy", "test", "--catalog", str(project.folder / "catalog.json"))
    done = project.here(*words, "--json")
    assert done.status == 1
    problems = [one["problem"] for one in done.json]
    assert problems == ["", "wrong is not a known field", 'no tool has this name. Did you mean "note.write"?']
    assert "is not a tool catalog" in project.here(*words[:4], "--catalog", str(other / "remit.toml")).err


def test_rules_are_listed_with_what_they_are_about(project: Project) -> None:
    assert (
        "everything else is asked about" in project.here("policy", "rules").err or project.here("policy", "rules").out
    )
    project.configure(RULES)
    lines = project.here("policy", "rules").out.splitlines()
    assert any(line.split()[:3] == ["notes", "allow", "note.write"] for line in lines)
    assert any(line.split()[:3] == ["never", "deny", "note.write"] for line in lines)
    assert {rule["id"] for rule in project.here("policy", "rules", "--json").json["rules"]} >= {"notes", "never"}


def test_lint_of_good_rules_has_nothing_to_say(project: Project) -> None:
    project.configure(RULES)
    done = project.here("policy", "lint", "--live")
    assert (done.status, done.out) == (0, "ok 3 rules, no findings\n")


def test_lint_warns_of_useless_rules_and_fails_for_wrong_ones(project: Project) -> None:
    project.configure('[[policy.rules]]\nid = "dead"\neffect = "deny"\ntools = ["note.wrote"]\n')
    done = project.here("policy", "lint", "--live")
    assert done.status == 0
    assert "warning dead: rule dead matches no tool of the catalog" in done.out
    assert "note.write" in done.out
    project.configure('[[policy.rules]]\nid = "x"\neffect = "perhaps"\n')
    done = project.here("policy", "lint", "--live", "--json")
    assert done.status == 2
    assert [one["kind"] for one in done.json["findings"]] == ["invalid"]


def test_tests_pass_or_fail(project: Project) -> None:
    assert "no tests: add" in project.here("policy", "test", "--live").err
    project.configure(RULES + TEST % "allow")
    assert project.here("policy", "test", "--live").out == "1 of 1 tests passed\n"
    project.configure(RULES + TEST % "allow" + TEST % "deny")
    for command in ("test", "lint"):
        done = project.here("policy", command, "--live")
        assert done.status == 1
        assert "failed test 2 (note.write): expected deny" in done.out
        assert done.out.endswith("1 of 2 tests passed\n")
    results = project.here("policy", "test", "--live", "--json").json
    assert [one["passed"] for one in results] == [True, False]


def test_revoking_what_is_not_there_is_an_error(project: Project) -> None:
    done = project.here("policy", "revoke", "rule_nothing")
    assert (done.status, "`remit policy rules`" in done.err) == (2, True)


PAID = """
[policy.groups]
friends = ["bob", "ann"]

[[policy.rules]]
id = "after-reading"
effect = "allow"
tools = ["note.write"]
callers = ["@friends"]
where = 'seen("note.read") == args.text and age(input.asked) < 3600'
limit = { per = "day", calls = 2 }
"""


def test_explain_says_which_condition_failed_with_what_is_given(project: Project) -> None:
    project.configure(PAID)
    words = ("policy", "explain", "--live", "note.write", "--as", "bob", "--args", '{"path": "n.txt", "text": "x"}')
    given = '{"seen": {"note.read": "x"}, "input": {"asked": "2026-05-01T12:00:00Z"}, "at": "2026-05-01T12:59:00Z"}'
    assert project.here(*words, "--given", given).out.startswith("allow  note.write\n")
    *_, unknown = project.here(*words, "--json").json["considered"]
    assert unknown["why"] == (
        'where seen("note.read") == args.text: unknown, seen("note.read") is not there: '
        "this job has no result of it, args.text is 'x'"
    )
    spent = given.replace('"at"', '"taken": {"after-reading": {"calls": 2}}, "at"')
    *_, reached = project.here(*words, "--given", spent, "--json").json["considered"]
    assert reached["why"] == "limit 2 calls per day: is reached, 2 calls so far"
    assert project.here(*words, "--given", '{"sen": {}}').status == 2


def test_rules_shows_all_that_a_rule_asks_for(project: Project) -> None:
    project.configure(PAID)
    shown = project.here("policy", "rules", "--json").json["rules"][-1]
    assert shown["callers"] == ["ann", "bob"]
    assert shown["limit"] == {"per": "day", "by": [], "calls": 2}
    assert "limit 2 calls per day" in " ".join(project.here("policy", "rules").out.split())


def test_a_group_that_there_is_not_is_found_by_lint(project: Project) -> None:
    project.configure(PAID.replace("@friends", "@freinds"))
    done = project.here("policy", "lint")
    assert done.status == 2
    assert "@freinds" in done.out
    assert 'Did you mean "friends"?' in done.out


def test_pots_are_shown_with_what_is_taken(project: Project) -> None:
    project.configure(
        '[models]\nday_tokens = 9\n[limits."note.*"]\nrate = "1/h"\nburst = 700\n'
        '[policy.pots.notes]\nper = "day"\ncalls = 3\n[[policy.rules]]\nid = "n"\neffect = "allow"\n'
        'tools = ["note.write"]\nlimit = { pot = "notes" }\n'
    )
    project.job("notes", "--path", "n.txt")
    assert "1 of 3 calls taken today" in project.here("policy", "pots").out
    lines = [line.split(None, 2) for line in project.here("budgets").out.splitlines()[1:]]
    assert lines == [["pot", "notes", "1 of 3 calls taken today"], ["limit", "note.*", "1/h, 700 at once (0.1 %)"]]
    assert project.here("budgets", "--json").json["budgets"] == []
    (pot,) = project.here("policy", "pots", "--json").json
    assert (pot["pot"], pot["calls"], pot["most_calls"]) == ("notes", 1, 3)
