"""`remit replay --live models` asks once the cost is confirmed; `--all` has sessions too."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Project

SETTINGS = """
[models]
default = "scripted:says.yaml"
prices = [{ model = "scripted:*", input = 2.0, output = 8.0 }]

[[policy.rules]]
effect = "allow"
tools = ["note.*"]
"""


@pytest.fixture
def job(project: Project) -> str:
    """A job whose model was asked once; its script says something else by now."""
    project.configure(SETTINGS)
    (project.folder / "says.yaml").write_text("[{say: Fine.}]")
    job = project.job("agent", "--task", "How are you?")
    assert project.here("replay", job, "--live", "models", "--yes").status == 0
    (project.folder / "says.yaml").write_text("[{say: Not well.}]")
    return job


@pytest.mark.slow
def test_no_model_is_asked_before_the_cost_is_confirmed(project: Project, job: str) -> None:
    before = project.here("trace", job, "--json").out
    done = project.here("replay", job, "--live", "models")
    assert (done.status, "1 question to scripted:says.yaml: " in done.err, "Give --yes" in done.err) == (2, True, True)
    assert " tokens and $0.00" in done.err
    assert len(project.here("api", "sessions.page").json) == 1

    done = project.here("replay", job, "--live", "models", "--yes")
    assert done.status == 6
    assert "changed  step 1 scripted:says.yaml (another answer)\n    recorded  Fine.\n    now  Not well." in done.out
    assert "1 question looked at" in done.err
    assert project.here("trace", job, "--json").out == before
    report = project.here("replay", job, "--live", "models", "--yes", "--json").json["live"]
    assert [(call["verdict"], call["drift"]) for call in report["calls"]] == [("changed", "output")]


@pytest.mark.slow
def test_at_a_terminal_a_person_confirms_it(project: Project, job: str) -> None:
    for answer, status in (("n", 130), ("y", 6)):
        with project.terminal("replay", job, "--live", "models", columns=200) as screen:
            screen.expect(r"at most [\d,]+ tokens and \$\d")
            screen.expect(r"Ask again\? \[y/N\]: ")
            screen.type(f"{answer}\r")
            if status == 6:
                screen.expect(r"another answer")
            assert screen.end() == status


@pytest.mark.slow
def test_sessions_are_replayed_with_all_jobs(project: Project) -> None:
    project.configure(SETTINGS)
    job = project.job("notes", "--path", "n.txt")
    project.here("api", "tools.execute", "tool_name=note__read", 'args={"path": "n.txt"}')
    (session,) = project.here("api", "sessions.page").json
    done = project.here("replay", "--all")
    assert (done.status, "1 job and 1 session: 2 same" in done.err) == (0, True)
    rows = project.here("replay", "--since", "1h", "--json").json
    assert [row["job"] for row in rows] == [job, session["session"]]
    assert "1 job: 1 same" in project.here("replay", "--state", "completed").err
    project.configure(SETTINGS + '\n[[policy.rules]]\neffect = "deny"\ntools = ["note.read"]\n')
    done = project.here("replay", "--all")
    assert (done.status, "1 job and 1 session: 1 refused, 1 same" in done.err) == (6, True)
