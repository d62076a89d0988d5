"""What jobs, show, trace, replay, verify, tools and config say of what happened."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from remit.journal.event import HeadPatch
from remit.journal.kinds import JobCancelled
from remit.record.story import Narrative
from remit.record.views import JobView
from remit.service.jobs import Jobs
from remit.service.streams import Streams
from tests.cli.conftest import MODULE, Project


@pytest.fixture
def asked(project: Project) -> str:
    """A job that wrote a note after bob approved it."""
    job = project.job("notes", "--path", "n.txt")
    (question,) = project.here("confirm", "--json").json
    assert project.here("confirm", question["confirmation"], "--approve", "--as", "bob").status == 0
    assert project.here("resume", job).status == 0
    return job


async def end(noun: Jobs | Streams, job: str) -> None:
    """Cancel a job as another process would: right now."""
    journal, stream = noun._journal, f"job/{job}"
    ends = journal.writer(stream, "job", await journal.head(stream))
    await journal.append(ends, JobCancelled(), synced=True, patch=HeadPatch(state="cancelled", closed=True))


# --- jobs


def test_jobs_are_listed_newest_first_with_whole_ids(project: Project) -> None:
    first, second = project.job("report"), project.job("fails")
    out = project.here("jobs").out
    lines = out.splitlines()
    assert lines[0].split() == ["JOB", "STATE", "CREATED", "NAME", "ABOUT"]
    assert [line.split()[0] for line in lines[1:]] == [second, first]
    assert "failed" in lines[1]
    assert "TOOL_EXEC_FAILED" in lines[1]


def test_jobs_can_be_chosen_by_state_and_label(project: Project) -> None:
    labelled = project.job("report", "--label", "team=a")
    failed = project.job("fails")
    assert [row["job"] for row in project.here("jobs", "--state", "failed", "--json").json] == [failed]
    assert [row["job"] for row in project.here("jobs", "--label", "team=a", "--json").json] == [labelled]
    assert len(project.here("jobs", "--limit", "1", "--json").json) == 1
    assert project.here("jobs", "--state", "cancelled").err == "no such jobs\n"


def test_no_jobs_is_said(project: Project) -> None:
    done = project.here("jobs")
    assert (done.status, done.out) == (0, "")
    assert done.err == f"no jobs in {project.folder}/.remit/journal.db\n"
    assert project.here("--journal", ":memory:", "jobs").err == "no jobs in :memory:\n"


LOOKS = (
    "jobs",
    "show last",
    "trace last",
    "replay last",
    "replay --all",
    "verify",
    "verify --all",
    "confirm",
    "usage",
    "workers",
    "sessions",
    "artifacts last",
    "chat last",
    "conversation export last",
    "cancel last",
    "retry last",
    "resume --all",
    "signal last go",
    "policy rules",
    "tickets list",
    "sandbox clean --unknown",
)
"""Commands that look into a journal, or change what stands in one."""


@pytest.mark.parametrize("words", LOOKS)
def test_a_named_journal_that_is_not_there_is_an_error(project: Project, words: str) -> None:
    wrong = project.folder / "wrong.db"
    done = project.here("--journal", str(wrong), *words.split())
    assert (done.status, done.out) == (2, "")
    assert f"JOURNAL_MISSING: there is no journal {wrong} (--journal)" in done.err
    assert not wrong.exists()


def test_a_journal_of_the_environment_that_is_not_there_is_an_error(project: Project) -> None:
    project.env["REMIT_JOURNAL"] = "wrong.db"
    assert "JOURNAL_MISSING" in project.here("jobs").err
    assert [project.here(*words.split()).status for words in ("recipes", "tools", "doctor")] == [0, 0, 0]
    assert project.here("run", "report").status == 0
    assert project.here("jobs").status == 0


# --- show


def test_a_job_answers_to_its_id_an_ending_of_it_and_last(project: Project) -> None:
    job = project.job("report")
    shown = project.here("show", job).out
    assert shown.startswith(f"{job}  report  completed\n")
    assert project.here("show", job[-12:]).out == shown
    assert project.here("show", "last").out == shown


def test_show_has_input_steps_and_result(project: Project, asked: str) -> None:
    out = project.here("show", asked).out
    assert '"path": "n.txt"' in out
    assert [line.split()[:3] for line in out.splitlines() if "note.write" in line] == [["1", "note.write", "ok"]]
    assert '"HELLO"' in out


def test_what_an_input_leaves_out_is_not_shown_as_null(project: Project) -> None:
    (project.folder / "mine.py").write_text(
        "from remit import Run, recipe\n@recipe\n"
        "async def goes(run: Run, to: str, via: str | None = None) -> str:\n    return to\n"
    )
    assert project.here("run", "mine.py", "--to", "Rome").status == 0
    for command in ("show", "trace"):
        out = project.here(command, "last").out
        assert '"to"' in out
        assert "null" not in out
    assert project.here("show", "last", "--json").json["input"] == {"to": "Rome", "via": None}


def test_show_masks_secrets_and_json_does_not(project: Project) -> None:
    job = project.job("notes", "--path", "n", "--text", "api_key=sk-live-0123456789abcdef0123")
    assert "sk-live" not in project.here("show", job).out
    assert "sk-live-0123456789abcdef0123" in project.here("show", job, "--json").out


def test_show_of_a_failed_job_names_the_error(project: Project) -> None:
    job = project.job("fails")
    done = project.here("show", job)
    assert done.status == 0
    assert f"error: TOOL_EXEC_FAILED: {job} step 1: bad.always: ValueError: no luck today" in done.err


def test_secrets_in_an_error_are_masked(project: Project) -> None:
    job = project.job("fails", "--why", "api_key=sk-live-0123456789abcdef0123")
    for words in (("show", job), ("trace", job), ("run", "fails", "--why", "token=ghp_0123456789abcdef0123456789")):
        done = project.here(*words)
        assert "ValueError" in done.out + done.err
        assert "0123456789" not in done.out + done.err


def test_show_of_a_waiting_job_says_how_to_go_on(project: Project) -> None:
    job = project.job("waits")
    assert f"-> remit signal {job} go [PAYLOAD]" in project.here("show", job).err


def test_show_of_a_job_that_ends_meanwhile_says_what_it_waited_for(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, read = project.job("waits"), Jobs.view

    async def cancelled_next(self: Jobs, job: str) -> JobView:
        view = await read(self, job)
        await end(self, job)
        return view

    monkeypatch.setattr(Jobs, "view", cancelled_next)
    shown = project.here("show", job)
    assert f"{job} waits for the signal go" in shown.err
    assert f"remit signal {job} go" in shown.err


# --- trace


def test_trace_tells_who_allowed_what_with_which_versions(project: Project, asked: str) -> None:
    out = project.here("trace", asked).out
    assert out.startswith(f"{asked}  notes  completed\n")
    assert "asked by  alice" in out
    assert "approved by bob at " in out
    assert "local, schema in " in out
    assert "rule default:L1" in out
    assert "write: it happened, key " in out
    assert [line.split()[1] for line in out.splitlines() if "  waiting  " in line] == ["waiting"]


def test_trace_of_a_job_that_ends_meanwhile_has_the_state_of_its_end(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, read = project.job("waits"), Streams.narrative

    async def cancelled_first(self: Streams, job: str) -> Narrative:
        await end(self, job)
        return await read(self, job)

    async def cancelled_next(self: Streams, job: str) -> Narrative:
        told = await read(self, job)
        await end(self, job)
        return told

    for patched, state in ((cancelled_next, "waiting"), (cancelled_first, "cancelled")):
        monkeypatch.setattr(Streams, "narrative", patched)
        shown = project.here("trace", job).out
        assert shown.partition("\n")[0].endswith(f"  {state}")
        assert ("cancelled by" in shown) is (state == "cancelled")
        job = project.job("waits")


def test_trace_as_json_is_the_story(project: Project, asked: str) -> None:
    told = project.here("trace", asked, "--json").json
    (step,) = (step for step in told["steps"] if step["name"] == "tool.note.write")
    assert (told["job"], told["kind"], step["principal"], step["rule_id"]) == (asked, "recipe", "alice", "default:L1")
    assert (step["capability_level"], step["risk_level"]) == ("L1", "write")
    assert step["policy_hash"].startswith("sha256:")
    assert step["approval"] == step["confirmations"][0]["confirmation"]
    assert set(step["tool_invocation"]) == {
        "tool",
        "provider",
        "version",
        "request_schema_hash",
        "response_schema_hash",
    }


def test_trace_events_as_json_are_one_a_line(project: Project, asked: str) -> None:
    lines = [json.loads(line) for line in project.here("trace", asked, "--events", "--json").out.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    kinds = [line["kind"] for line in lines]
    assert kinds[0] == "job_created"
    assert kinds[-1] == "job_completed"
    started = next(line["data"] for line in lines if line["kind"] == "tool_invocation_started")
    assert started["args"] == {"path": "n.txt", "text": "hello"}


def test_trace_follows_a_job_to_its_end(project: Project, asked: str) -> None:
    told = project.here("trace", asked, "--follow")
    lines = [line.strip() for line in told.out.splitlines()]
    story = [line.strip() for line in project.here("trace", asked).out.splitlines()]
    assert told.status == 0
    assert lines[0] == f"{asked}  notes"
    assert not any(line.endswith("waiting") for line in lines), "each step is told once, as it stands"
    assert [line for line in lines if "bob" in line] == [line for line in story if "bob" in line] != []
    assert lines[-1] == story[-1]
    assert not any("tool_invocation" in line for line in lines)
    done = project.here("trace", asked, "--follow", "--events")
    words = [line.split()[1] for line in done.out.splitlines()]
    assert (done.status, words[0], words[-1]) == (0, "job_created", "job_completed")
    assert (
        project.here("trace", asked, "--follow", "--json").out == project.here("trace", asked, "--events", "--json").out
    )
    assert [line.split()[1] for line in project.here("trace", asked, "--events").out.splitlines()] == words


# --- replay


def test_replay_of_unchanged_code_is_the_same(project: Project, asked: str) -> None:
    done = project.here("replay", asked)
    assert done.status == 0
    assert f"{asked}  same" in done.out
    assert project.here("replay", asked, "--json").json["verdict"] == "same"


def test_replay_of_a_job_under_way_is_incomplete(project: Project) -> None:
    job = project.job("waits")
    assert project.here("replay", job, "--json").json["verdict"] == "incomplete"
    assert project.here("replay", job).status == 0


@pytest.mark.slow
def test_replay_shows_both_sides_of_the_first_difference_and_exits_with_6(project: Project) -> None:
    changed = use_own_module(project.folder, 'await run.call("own.tool", {"n": 1})')
    project.configure(f'[app]\nmodules = ["{changed}"]\n', modules=False)
    job = project.job("own")
    use_own_module(project.folder, 'await run.call("own.tool", {"n": 2})')
    done = project.here("replay", job)
    assert done.status == 6
    assert 'recorded  own.tool {"n":1}' in done.out
    assert 'now       own.tool {"n":2}' in done.out
    assert "changed since execution" in done.out
    report = project.here("replay", job, "--json").json
    assert report["divergence"]["step"] == "1"
    assert report["drifts"][0]["subject"] == "execution"


def use_own_module(folder: Path, body: str) -> Path:
    path = folder / "own_module.py"
    text = f"""
from remit import Run, recipe, tool

@tool("own.tool", level="L0")
def own_tool(n: int) -> int:
    "Give back."
    return n

@recipe("own")
async def own(run: Run) -> int:
    {body}
    return 1
"""
    path.write_text(text, encoding="utf-8")
    return path


# --- verify


def test_verify_counts_what_it_checked(project: Project, asked: str) -> None:
    done = project.here("verify", asked)
    assert done.status == 0
    assert done.out.startswith("ok ")
    everything = project.here("verify", "--all", "--json").json
    assert everything["ok"] is True
    assert everything["problems"] == []
    assert everything["streams"] == 2


def test_verify_names_the_first_bad_event_and_exits_with_7(project: Project, asked: str) -> None:
    with sqlite3.connect(project.folder / ".remit" / "journal.db") as db:
        changed = "CAST(replace(data, 'n.txt', 'x.txt') AS BLOB)"
        sql = f"UPDATE events SET data = {changed} WHERE kind = 'tool_invocation_started'"
        assert db.execute(sql).rowcount == 1
    done = project.here("verify", asked)
    assert done.status == 7
    assert f"damaged CHAIN_BROKEN: job/{asked}: event 5 (tool_invocation_started) does not match its hash" in done.out
    assert project.here("verify", "--json").json["ok"] is False
    assert done.err == "1 of 2 streams damaged; the other 1 (3 events) intact\n"


def test_verify_names_the_stream_whose_kept_bytes_were_changed(project: Project, asked: str) -> None:
    with sqlite3.connect(project.folder / ".remit" / "journal.db") as db:
        assert db.execute("UPDATE blobs SET data = CAST(data || ' ' AS BLOB)").rowcount > 0
    done = project.here("verify", asked)
    assert done.status == 7
    assert f"damaged CHAIN_BROKEN: job/{asked}: the bytes kept as sha256:" in done.out


def test_verify_of_a_file_that_is_no_journal_is_damage(project: Project) -> None:
    (project.folder / "x.db").write_bytes(b"this is no database at all" * 100)
    done = project.here("--journal", "x.db", "verify")
    assert done.status == 7


def test_verify_takes_a_job_or_everything(project: Project) -> None:
    assert project.here("verify", "last", "--all").status == 2


# --- tools and config


def test_tools_are_listed_with_level_and_what_comes_first(project: Project) -> None:
    lines = {line.split()[0]: line.split()[1:4] for line in project.here("tools").out.splitlines()}
    assert lines["note.write"] == ["L1", "asks", "local"]
    assert lines["note.read"] == ["L0", "runs", "local"]
    assert lines["fs.read"] == ["L0", "runs", "builtin"]


def test_one_tool_is_shown_whole(project: Project) -> None:
    out = project.here("tools", "note.read").out
    assert "version       2" in out
    assert '"path"' in out
    view = project.here("tools", "note__read", "--json").json
    assert view["name"] == "note.read"
    assert view["input_schema"]["required"] == ["path"]


def test_an_unknown_tool_is_an_error_with_a_suggestion(project: Project) -> None:
    done = project.here("tools", "note.reed")
    assert done.status == 2
    assert "note.read" in done.err


def test_config_shows_every_setting_with_its_source(project: Project) -> None:
    lines = {line.split()[0]: line for line in project.here("config").out.splitlines()}
    assert lines["app.modules"].endswith(str(project.folder / "remit.toml"))
    assert str(MODULE) in lines["app.modules"]
    assert lines["app.principal"].endswith("REMIT_PRINCIPAL")
    assert lines["jobs.concurrency"].endswith("default")


def test_jobs_are_found_by_text_and_principal(project: Project) -> None:
    job = project.job("notes", "--path", "odd.txt")
    project.job("notes", "--path", "other.txt")
    found = [row["job"] for row in project.here("jobs", "--text", "ODD.txt", "--json").json]
    assert found == [job]
    assert len(project.here("jobs", "--principal", "alice", "--json").json) == 2
    assert project.here("jobs", "--text", "odd.txt", "--state", "completed", "--json").json == []
    assert "no such jobs" in project.here("jobs", "--principal", "bob").err
