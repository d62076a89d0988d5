"""What people say to jobs: confirm, signal, decide, cancel, resume."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from remit.record.views import JobRow
from remit.service.jobs import Jobs
from tests.cli.conftest import Project, lines_until
from tests.patience import PATIENCE_S

DIGEST = "sha256:" + "0" * 64


@pytest.fixture
def question(project: Project) -> dict[str, Any]:
    """A question about a call of note.write."""
    project.job("notes", "--path", "n.txt")
    (found,) = project.here("confirm", "--json").json
    assert isinstance(found, dict)
    return found


def job_of(question: dict[str, Any]) -> str:
    return str(question["caller"]).removeprefix("job/")


# --- confirm


def test_open_questions_are_listed_with_their_arguments(project: Project, question: dict[str, Any]) -> None:
    lines = project.here("confirm").out.splitlines()
    assert lines[1].split() == [question["confirmation"], "note.write", "23", "h", job_of(question), "notes"]
    assert lines[2].strip() == "path: n.txt, text: hello"


def test_one_question_is_shown_whole_with_the_ways_to_answer(project: Project, question: dict[str, Any]) -> None:
    done = project.here("confirm", question["confirmation"])
    assert done.status == 0
    assert question["digest"] in done.out
    assert "level     L1, provider local" in done.out
    assert '"text": "hello"' in done.out
    assert "--approve | --deny" in done.err


def test_nothing_is_decided_if_it_cannot_be_remembered_as_asked(project: Project, question: dict[str, Any]) -> None:
    project.env["REMIT_POLICY_REMEMBERED"] = "false"
    name = question["confirmation"]
    done = project.here("confirm", name, "--approve", "--remember", "job")
    assert (done.status, "REMEMBERING_OFF" in done.err) == (1, True)
    assert project.here("confirm", name, "--json").json["state"] == "pending"


def test_the_newest_question_is_last_to_look_at_and_named_to_answer(project: Project, question: dict[str, Any]) -> None:
    project.job("notes", "--path", "m.txt")
    newest = project.here("confirm", "last", "--json").json
    assert (newest["args"]["path"], newest["confirmation"] != question["confirmation"]) == ("m.txt", True)
    blind = project.here("confirm", "last", "--approve")
    assert (blind.status, "may have changed" in blind.err) == (2, True)
    assert project.here("confirm", "last", "--deny", "--digest", newest["digest"]).status == 0
    project.here("confirm", question["confirmation"], "--deny")
    none = project.here("confirm", "last")
    assert (none.status, "no question is open" in none.err) == (2, True)


def test_an_approved_call_runs(project: Project, question: dict[str, Any]) -> None:
    answer = project.here("confirm", question["confirmation"], "--approve", "--digest", question["digest"])
    assert answer.status == 0
    assert f"remit resume {job_of(question)}" in answer.err
    done = project.here("resume", job_of(question), "--json")
    assert (done.status, done.json["result"]) == (0, "HELLO")
    assert (project.folder / "n.txt").read_text(encoding="utf-8") == "hello"


def test_a_denied_call_does_not_run_and_the_job_hears_why(project: Project, question: dict[str, Any]) -> None:
    assert project.here("confirm", question["confirmation"], "--deny", "--reason", "not today").status == 0
    done = project.here("resume", job_of(question))
    assert done.status == 3
    assert "CONFIRMATION_DENIED" in done.err
    assert "not today" in done.err
    assert not (project.folder / "n.txt").exists()


def test_an_answer_to_another_digest_is_refused(project: Project, question: dict[str, Any]) -> None:
    done = project.here("confirm", question["confirmation"], "--approve", "--digest", DIGEST)
    assert done.status == 1
    assert "CONFIRMATION_MISMATCH" in done.err
    assert len(project.here("confirm", "--json").json) == 1


def test_edited_arguments_are_asked_about_anew(project: Project, question: dict[str, Any]) -> None:
    edited = project.here(
        "confirm", question["confirmation"], "--edit", '{"path": "m.txt", "text": "bye"}', "--json"
    ).json
    assert edited["edited_from"] == question["confirmation"]
    assert edited["digest"] != question["digest"]
    assert project.here("resume", job_of(question)).status == 4
    assert project.here("confirm", edited["confirmation"], "--approve").status == 0
    assert project.here("resume", job_of(question), "--json").json["result"] == "BYE"
    assert (project.folder / "m.txt").exists()


def test_edited_arguments_must_fit_the_tool(project: Project, question: dict[str, Any]) -> None:
    done = project.here("confirm", question["confirmation"], "--edit", '{"path": 5}')
    assert done.status == 2
    assert "INVALID_TOOL_ARGS" in done.err


def test_a_closed_question_cannot_be_answered_again(project: Project, question: dict[str, Any]) -> None:
    project.here("confirm", question["confirmation"], "--deny")
    done = project.here("confirm", question["confirmation"], "--approve")
    assert (done.status, "CONFIRMATION_CLOSED" in done.err) == (1, True)
    assert "it is denied" in project.here("confirm", question["confirmation"]).err


def test_a_remembered_approval_covers_the_next_call_until_it_is_revoked(
    project: Project, question: dict[str, Any]
) -> None:
    options = ("--approve", "--remember", "everything", "--for", "2h")
    said = project.here("confirm", question["confirmation"], *options, "--json").json
    assert said["state"] == "approved"
    assert project.here("run", "notes", "--path", "n.txt").status == 0
    assert project.here("run", "notes", "--path", "other.txt").status == 4, "only for the same arguments"
    rules = project.here("policy", "rules")
    assert said["remembered"] in rules.out
    assert project.here("policy", "revoke", said["remembered"]).status == 0
    assert project.here("run", "notes", "--path", "n.txt").status == 4


def test_an_approval_is_remembered_where_the_tool_is_not(project: Project, question: dict[str, Any]) -> None:
    project.configure(modules=False)
    words = ("confirm", question["confirmation"], "--approve", "--remember", "everything", "--any-args", "--json")
    assert project.here(*words).json["remembered"]
    project.configure()
    assert project.here("run", "notes", "--path", "other.txt").status == 0


def test_an_approval_can_be_remembered_for_any_arguments(project: Project, question: dict[str, Any]) -> None:
    project.here("confirm", question["confirmation"], "--approve", "--remember", "everything", "--any-args")
    assert project.here("run", "notes", "--path", "other.txt").status == 0


def test_who_may_not_decide_is_told_who_may(project: Project) -> None:
    project.configure(
        '[[policy.rules]]\nid = "r"\neffect = "ask"\ntools = ["note.write"]\napprovers = ["bob", "eve"]\n'
    )
    project.job("notes", "--path", "n.txt")
    (question,) = project.here("confirm", "--json").json
    refused = project.here("confirm", question["confirmation"], "--approve")
    assert refused.status == 2
    assert "bob, eve may" in refused.err
    assert project.here("confirm", question["confirmation"], "--approve", "--as", "eve").status == 0


def test_two_approvals_take_two_people(project: Project) -> None:
    project.configure('[[policy.rules]]\nid = "r"\neffect = "ask"\ntools = ["note.write"]\napprovals = 2\n')
    job = project.job("notes", "--path", "n.txt")
    (question,) = project.here("confirm", "--json").json
    first = project.here("confirm", question["confirmation"], "--approve", "--as", "bob")
    assert "1 more must approve" in first.err
    assert project.here("resume", job).status == 4
    project.here("confirm", question["confirmation"], "--approve", "--as", "eve")
    assert project.here("resume", job).status == 0


def test_a_question_of_a_recipe_is_answered_like_an_approval(project: Project) -> None:
    job = project.job("asks")
    (question,) = project.here("confirm", "--json").json
    out = project.here("confirm", question["confirmation"]).out
    assert "Shall we go on?" in out
    assert '"cost": 5' in out
    project.here("--as", "bob", "confirm", question["confirmation"], "--approve", "--reason", "fine")
    done = project.here("resume", job, "--json").json
    assert done["result"] == {"approved": True, "by": "bob", "reason": "fine"}


@pytest.mark.parametrize(
    "words",
    [
        ("--approve", "--deny"),
        ("--approve", "--edit", "{}"),
        ("--remember", "job"),
        ("--approve", "--for", "2h"),
        ("--approve", "--remember", "job", "--for", "soon"),
    ],
)
def test_answers_that_contradict_each_other_are_refused(project: Project, words: tuple[str, ...]) -> None:
    assert project.here("confirm", "c_1", *words).status == 2


def test_an_answer_needs_a_question(project: Project) -> None:
    assert project.here("confirm", "--approve").status == 2
    done = project.here("confirm", "c_nothing", "--approve")
    assert (done.status, "CONFIRMATION_NOT_FOUND" in done.err) == (2, True)


def test_questions_of_a_cancelled_job_are_not_open(project: Project, question: dict[str, Any]) -> None:
    project.here("cancel", job_of(question))
    assert project.here("confirm", "--json").json == []


# --- signal


def test_a_signal_reaches_the_job_that_waits_for_it(project: Project) -> None:
    job = project.job("waits")
    assert project.here("signal", job, "go", '{"n": 1}').status == 0
    assert project.here("resume", job, "--json").json["result"] == {"n": 1}


def test_a_signal_without_a_payload_is_null_and_one_from_a_file_is_read(project: Project) -> None:
    first, second = project.job("waits"), project.job("waits")
    (project.folder / "p.json").write_text("[1, 2]", encoding="utf-8")
    project.here("signal", first, "go")
    project.here("signal", second, "go", "@p.json")
    done = project.here("resume", first, second, "--json")
    assert [one["result"] for one in done.json] == [None, [1, 2]]


def test_a_payload_that_is_not_json_is_refused(project: Project) -> None:
    done = project.here("signal", project.job("waits"), "go", "hello")
    assert done.status == 2
    assert "quotes" in done.err


# --- cancel


def test_cancel_ends_a_parked_job_here_and_now(project: Project) -> None:
    job = project.job("waits")
    done = project.here("cancel", job, "--reason", "no need")
    assert (done.status, done.err) == (0, f"{job} is cancelled\n")
    row = project.here("show", job, "--json").json["row"]
    assert row["state"] == "cancelled"


@pytest.mark.slow
def test_a_cancelled_job_exits_with_5(project: Project) -> None:
    job = project.here("run", "waits", "--detach").out.strip()
    with project.start("resume", job, "--wait") as process:
        lines_until(process, lambda line: "waits for" in line)
        assert project.here("cancel", job, "--reason", "no need").status == 0
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 5
    assert "JOB_CANCELLED" in err
    assert "cancelled by alice: no need" in err


def test_cancel_needs_no_code_of_the_job(project: Project) -> None:
    job = project.job("waits")
    project.configure(modules=False)
    assert project.here("cancel", job).status == 0


def test_cancel_of_an_ended_job_is_an_error(project: Project) -> None:
    done = project.here("cancel", project.job("report"))
    assert (done.status, "JOB_FINISHED" in done.err) == (1, True)


# --- resume


def test_resume_takes_jobs_or_all_of_them(project: Project) -> None:
    assert project.here("resume").status == 2
    assert project.here("resume", "last", "--all").status == 2
    assert "nothing to resume" in project.here("resume", "--all").err
    first, second = project.job("waits"), project.job("asks")
    project.here("signal", first, "go")
    done = project.here("resume", "--all", "--json")
    assert done.status == 4, "the worst of them"
    assert {one["job"]: one["state"] for one in done.json} == {first: "completed", second: "waiting"}


def test_resume_of_all_tells_how_a_job_ended_that_ended_since_it_was_listed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = Jobs.rows

    async def a_moment_ago(self: Jobs, _states: tuple[str, ...], *, limit: int) -> list[JobRow]:
        return await jobs(self, limit=limit)

    waits, ended = project.job("waits"), project.job("report")
    project.here("signal", waits, "go")
    monkeypatch.setattr(Jobs, "rows", a_moment_ago)
    done = project.here("resume", "--all", "--json")
    assert done.status == 0
    assert {one["job"]: one["state"] for one in done.json} == {waits: "completed", ended: "completed"}


def test_resume_of_an_ended_job_is_an_error(project: Project) -> None:
    assert project.here("resume", project.job("report")).status == 1


def test_resume_of_a_job_whose_recipe_is_gone_says_so_and_keeps_it(project: Project) -> None:
    job = project.job("waits")
    project.here("signal", job, "go", "1")
    project.configure(modules=False)
    done = project.here("resume", job)
    assert done.status == 1
    assert "UNKNOWN_RECIPE" in done.err
    assert "no recipe is named 'waits'" in done.err
    assert project.here("jobs", "--json").json[0]["code"] == "UNKNOWN_RECIPE"
    assert "stuck" in project.here("jobs").out
    project.configure()
    assert project.here("resume", job, "--json").json["result"] == 1


@pytest.mark.slow
def test_resume_takes_over_at_once_what_a_killed_process_held(project: Project) -> None:
    job = started(project, "forever", until="a read is under way")
    assert "stopped" in project.here("jobs").out
    with project.start("resume", job) as process:
        lines_until(process, lambda line: "a read is under way" in line)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert f"resume with: remit resume {job}" in err


@pytest.mark.slow
def test_resume_of_a_job_that_another_process_works_on_says_who_and_watches(project: Project) -> None:
    with project.start("run", "forever") as other:
        job = lines_until(other, lambda line: "a read is under way" in line)[0].split()[1]
        with project.start("resume", job) as process:
            lines = lines_until(process, lambda line: "is running" in line)
            assert f"process {other.pid} on " in lines[-1]
            assert project.here("cancel", job).status == 0
            process.communicate(timeout=PATIENCE_S)
        other.communicate(timeout=PATIENCE_S)
    assert (process.returncode, other.returncode) == (5, 5)


# --- decide


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "result"),
    [(("--done", '"by hand"'), 0, "by hand"), (("--retry",), 0, "done"), (("--fail", "--reason", "lost"), 3, None)],
)
def test_a_person_says_what_came_of_a_call_that_a_crash_cut_short(
    project: Project, words: tuple[str, ...], status: int, result: str | None
) -> None:
    fifo = project.folder / "done"
    os.mkfifo(fifo)
    job = started(project, "risky", "--done", "done", until="a write is under way")
    waiting = project.here("resume", job)
    assert waiting.status == 4
    assert "it was sent with the idempotency key" in waiting.err
    assert f"-> remit decide {job} 1 --attempt 1 --done VALUE | --retry | --fail" in waiting.err
    other = project.here("decide", job, "1", "--attempt", "2", *words)
    assert (other.status, "STEP_NOT_WAITING" in other.err) == (1, True)
    assert project.here("decide", job, "1", "--attempt", "1", *words).status == 0
    again = project.here("decide", job, "1", "--retry")
    assert (again.status, "decided already" in again.err) == (1, True)
    assert project.here("decide", job, "1", "--fail", "--replace").status == 0
    assert project.here("decide", job, "1", *words, "--replace").status == 0
    fifo.unlink()
    Path(fifo).write_text("done", encoding="utf-8")
    done = project.here("resume", job, "--json")
    assert (done.status, done.json.get("result")) == (status, result)
    story = project.here("trace", job).out
    why = ', "lost"' if "lost" in words else ""
    assert f": {words[0].removeprefix('--')}{why}\n" in story


def test_a_decision_is_one_of_three_and_only_where_one_is_needed(project: Project) -> None:
    job = project.job("report")
    assert project.here("decide", job, "1").status == 2
    assert project.here("decide", job, "1", "--retry", "--fail").status == 2
    absent = project.here("decide", project.job("waits"), "99", "--retry")
    assert (absent.status, "STEP_NOT_FOUND" in absent.err) == (2, True)
    done = project.here("decide", project.job("waits"), "1", "--retry")
    assert (done.status, "STEP_NOT_WAITING" in done.err) == (1, True)


def started(project: Project, *words: str, until: str) -> str:
    """A job whose process was killed in the middle of a call; its id."""
    with project.start("run", *words) as process:
        job = lines_until(process, lambda line: until in line)[0].split()[1]
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    return job


def test_a_signal_that_the_job_does_not_wait_for_is_sent_and_said(project: Project) -> None:
    job = project.job("waits")
    sent = project.here("signal", job, "og", "1")
    assert (sent.status, "it waits for another signal now: go" in sent.err) == (0, True)
    assert "another signal" not in project.here("signal", job, "go", "2").err
    assert project.here("resume", job, "--json").json["result"] == 2
