from __future__ import annotations

from tests.cli.conftest import Project

ALLOWED = """
[[policy.rules]]
id = "notes"
effect = "allow"
tools = ["note.*"]
"""
STRICTER = """
[policy]
taint = "deny"

[policy.groups]
writers = ["note.write", "risky.*"]

[[policy.rules]]
id = "asked"
effect = "ask"
tools = ["@writers"]
"""


def test_drift_says_that_nothing_differs_and_then_what_does(project: Project) -> None:
    project.configure(ALLOWED)
    assert project.here("run", "notes", "--path", "n.txt").status == 0
    done = project.here("drift", "--all")
    assert (done.status, done.out.startswith("same  nothing differs")) == (0, True)
    project.configure(modules=False)
    gone = project.here("drift", "last")
    assert gone.status == 6
    assert "gone  note." in gone.out
    assert "gone  recipe notes" in gone.out
    found = project.here("drift", "--tool", "note.write", "--since", "1h", "--json")
    assert [(one["tool"], one["drift"]) for one in found.json["tools"]] == [("note.write", "gone")]


def test_drift_wants_to_know_of_what(project: Project) -> None:
    done = project.here("drift")
    assert (done.status, "--all" in done.err) == (2, True)
    missing = project.here("drift", "job_none", "--json")
    assert missing.error["code"] == "JOB_NOT_FOUND"


def test_versions_lists_what_an_open_job_needs(project: Project) -> None:
    assert project.here("run", "waits").status == 4
    done = project.here("versions")
    assert (done.status, "recipe waits" in done.out, "missing" in done.out) == (1, True, True)
    found = project.here("versions", "--live", "--json").json
    assert [(one["kind"], one["served"]) for one in found["needs"]] == [("recipe", "no")]


def test_a_backtest_shows_what_other_rules_would_have_asked(project: Project) -> None:
    project.configure(ALLOWED)
    assert project.here("run", "notes", "--path", "n.txt").status == 0
    rules = project.folder / "new.toml"
    rules.write_text(STRICTER, encoding="utf-8")
    words = ("policy", "backtest", "--policy", "new.toml")
    found = project.here(*words, "--json")
    assert [(one["direction"], one["tool"], one["rule"]) for one in found.json["changes"]] == [
        ("stricter", "note.write", "asked")
    ]
    assert found.status == 6
    assert project.here(*words, "--fail-on", "looser").status == 0
    assert project.here(*words, "--fail-on", "never").status == 0
    assert "decision" in project.here(*words, "--since", "90d").out


def test_a_backtest_of_a_file_without_rules_says_so(project: Project) -> None:
    assert project.here("policy", "backtest", "--policy", "none.toml", "--json").status == 2
    (project.folder / "empty.toml").write_text("[policy]\n", encoding="utf-8")
    assert "holds no [[policy.rules]]" in project.here("policy", "backtest", "--policy", "empty.toml").err
    (project.folder / "wrong.toml").write_text('[[policy.rules]]\neffect = "burn"\n', encoding="utf-8")
    wrong = project.here("policy", "backtest", "--policy", "wrong.toml", "--json")
    assert wrong.error["code"] == "POLICY_INVALID"
