"""The same commands here and through a server: the same output, the same exit status."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.conftest import Finished, Project, lines_until
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

TICKET = {"type": "TRIAGE", "event": {"type": "message", "thread_id": "t1", "content": "hello"}}
CHANGING: list[tuple[str, ...]] = [
    ("run", "greet", "--name", "x", "--times", "2", "--loud"),
    ("run", "greet", "--name", "x", "--json"),
    ("run", "greet", "--name", "x", "--label", "team=b", "--title", "hello", "--detach"),
    ("run", "greet", "--nam", "x"),
    ("run", "greet", "--input", '{"name": 5}'),
    ("run", "greet", "--help"),
    ("run", "report"),
    ("run", "fails"),
    ("run", "fails", "--json"),
    ("run", "waits"),
    ("run", "notes", "--path", "n.txt"),
    ("run", "asks", "--json"),
    ("run", "naps"),
    ("run", "plan.yaml", "--name", "x"),
    ("run", "plan.yaml", "--help"),
    ("run", "wrong.yaml"),
    ("run", "none"),
    ("-q", "run", "greet", "--name", "x"),
    ("tickets", "create", "--thread", "t2", "--content", "hello"),
    ("tickets", "create", '{"type": "ODD"}'),
    ("tickets", "create", json.dumps(TICKET), "--json"),
]
"""Commands that each make something of their own."""
LOOKING: list[tuple[str, ...]] = [
    ("jobs",),
    ("jobs", "--json"),
    ("jobs", "--state", "failed", "--state", "waiting"),
    ("jobs", "--label", "team=a"),
    ("jobs", "--label", "team=none"),
    ("jobs", "--limit", "2", "--json"),
    ("jobs", "--recipe", "fails", "--since", "1h", "--limit", "3"),
    ("jobs", "--state", "stuck"),
    ("show", "last"),
    ("show", "{completed}"),
    ("show", "{completed}", "--json"),
    ("show", "{waiting}"),
    ("show", "{asking}"),
    ("show", "{failed}"),
    ("show", "{completed}", "1"),
    ("show", "{failed}", "1", "--json"),
    ("show", "{failed}", "99"),
    ("show", "job_none"),
    ("show", "job_none", "--json"),
    ("show", "a/../b"),
    ("trace", "{completed}"),
    ("trace", "{asking}", "--json"),
    ("trace", "{completed}", "--events"),
    ("trace", "{failed}", "--events", "--json"),
    ("trace", "{completed}", "--follow"),
    ("trace", "{failed}", "--follow", "--json"),
    ("trace", "job_none", "--follow"),
    ("replay", "{completed}"),
    ("replay", "{waiting}", "--json"),
    ("replay", "--all"),
    ("replay", "--state", "completed", "--json"),
    ("retry", "{completed}"),
    ("retry", "{waiting}", "--json"),
    ("retry", "job_none"),
    ("verify", "{completed}"),
    ("verify", "{asking}", "--json"),
    ("tools",),
    ("tools", "--json"),
    ("tools", "note.write"),
    ("tools", "none.at_all"),
    ("policy", "explain", "note.write", "--live", "--args", '{"path": "x", "text": "y"}'),
    ("policy", "explain", "risky.write", "--live", "--recipe", "risky", "--json"),
    ("chat", "{completed}"),
    ("chat", "{completed}", "--json"),
    ("chat", "{completed}", "go on"),
    ("chat", "job_none", "go on"),
    ("conversation", "export", "{completed}"),
    ("sessions",),
    ("sessions", "--json"),
    ("confirm",),
    ("confirm", "--json"),
    ("confirm", "{question}"),
    ("confirm", "{question}", "--json"),
    ("confirm", "{question}", "--approve", "--digest", "sha256:0"),
    ("confirm", "{question}", "--edit", '{"path": 1}'),
    ("confirm", "c_none"),
    ("decide", "{completed}", "1", "--retry"),
    ("decide", "{waiting}", "1", "--fail"),
    ("signal", "{completed}", "go"),
    ("signal", "{waiting}", ""),
    ("cancel", "{failed}"),
    ("resume", "{completed}"),
    ("resume", "job_none"),
    ("tickets", "list"),
    ("tickets", "list", "--type", "TRIAGE", "--state", "pending", "--json"),
    ("tickets", "list", "--thread", "none"),
    ("tickets", "show", "{ticket}"),
    ("tickets", "show", "{ticket}", "--json"),
    ("tickets", "show", "{ticket}", "--report"),
    ("tickets", "show", "tkt_none", "--json"),
    ("tickets", "fill", "{ticket}", "--outputs", "{}", "--by", "stranger"),
    ("tickets", "retry", "{ticket}"),
]
"""Commands that change nothing: what they print is the same to the letter."""
HERE_ALONE: list[tuple[str, ...]] = [
    ("worker",),
    ("serve",),
    ("usage",),
    ("verify",),
    ("doctor",),
    ("policy", "rules"),
    ("tickets", "work", "--once", "--no-mcp"),
    ("mcp", "serve"),
    ("mcp", "test"),
    ("confirm", "{question}", "--approve", "--as", "bob"),
]
PLAN = """
version: taskgraph-v1
name: hello
inputs: {name: {type: string}}
nodes:
  - {id: greeted, recipe: greet, input: {name: "${inputs.name}"}}
output: ${greeted.greeting}
"""
_MASKS = (
    (r"\b(job|c|ses|tkt|call|inv|s|rule)_[0-9a-z]{26}\b", r"\1_ID"),
    (r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b", "UUID"),
    (r"\b[0-9a-f]{32,64}\b", "HEX"),
    (r"\b\d{16}\b", "MICROS"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?", "MOMENT"),
    (r"\d+(\.\d+)? (ms|s)\b|\(in \d+ [^)]*\)", "TIME"),
    (r'"duration_(ms|us)":[\d.]+', "DURATION"),
    (r'"worker":"[^"]*"', "WORKER"),
)


class Stage(NamedTuple):
    """A project with a server, and what there is in its journal."""

    folder: Path
    url: str
    names: dict[str, str]

    def words(self, words: tuple[str, ...]) -> list[str]:
        return [self.names.get(word.strip("{}"), word) if word.startswith("{") else word for word in words]


def _project(folder: Path) -> Project:
    """One for a module: it cannot run commands in this process."""
    unused: Any = None
    return Project(folder, unused, unused)


@contextmanager
def serving(one: Project, *words: str, port: str = "0") -> Iterator[str]:
    """A server of the project's journal; yields its address."""
    with one.start("serve", "--port", port, *words) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()
            server.communicate(timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    one = _project(tmp_path_factory.mktemp("remote"))
    (one.folder / "plan.yaml").write_text(PLAN, encoding="utf-8")
    (one.folder / "wrong.yaml").write_text("version: taskgraph-v1\nname: x\nnodes: 1\n", encoding="utf-8")
    names = {
        "completed": one.apart("run", "greet", "--name", "x", "--label", "team=a", "--json").json["job"],
        "failed": one.apart("run", "fails", "--json").json["job"],
        "waiting": one.apart("run", "waits", "--json").json["job"],
        "asking": one.apart("run", "notes", "--path", "n.txt", "--json").json["job"],
        "ticket": one.apart("tickets", "create", json.dumps(TICKET), "--json").json["id"],
    }
    names["question"] = one.apart("confirm", "--json").json[0]["confirmation"]
    with serving(one) as url:
        call = {"tool_name": "note_read", "args": {"path": "none.txt"}}
        asked = ["curl", "-s", f"{url}/v1/tools/execute", "--json", json.dumps(call)]
        assert json.loads(subprocess.run(asked, capture_output=True, check=True).stdout)["status"] == "failed"
        yield Stage(one.folder, url, names)


@pytest.fixture
def project(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Project:
    one = Project(stage.folder, monkeypatch, capsys)
    one.env["HOME"] = str(tmp_path)
    return one


def far(project: Project, stage: Stage, *words: str) -> Finished:
    """Send a command to the server; the journal here is another one."""
    project.env |= {"REMIT_SERVER": stage.url, "REMIT_JOURNAL_URL": str(stage.folder / "other.db")}
    try:
        return project.here(*words)
    finally:
        del project.env["REMIT_SERVER"], project.env["REMIT_JOURNAL_URL"]


def masked(done: Finished) -> Finished:
    out, err = done.out, done.err
    for pattern, mask in _MASKS:
        out, err = re.sub(pattern, mask, out), re.sub(pattern, mask, err)
    return Finished(done.status, out, err)


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_what_looks_prints_the_same_to_the_letter(project: Project, stage: Stage, words: tuple[str, ...]) -> None:
    given = stage.words(words)
    if words[0] == "confirm":
        project.here("tools")  # a server knows its tools; here they are known once they were listed
    assert far(project, stage, *given) == project.here(*given)


@pytest.mark.parametrize("words", CHANGING, ids=" ".join)
def test_what_changes_something_prints_the_same(project: Project, stage: Stage, words: tuple[str, ...]) -> None:
    assert masked(far(project, stage, *words)) == masked(project.here(*words))


def both(project: Project, stage: Stage, *words: str) -> Finished:
    """Run a command here on the first of two alike, and send it for the second; `@` stands for their identifiers."""
    first, second = ([word.replace("@", name) for word in words] for name in _two)
    here, there = project.here(*first), far(project, stage, *second)
    assert masked(there) == masked(here)
    return there


_two: list[str] = []


def two(project: Project, *words: str, field: str = "job") -> None:
    """Two things that are alike."""
    _two[:] = [project.here(*words, "--json").json[field] for _ in range(2)]


def test_a_signal_a_cancellation_and_a_resumption_are_the_same(project: Project, stage: Stage) -> None:
    two(project, "run", "waits")
    assert both(project, stage, "resume", "@").status == 4
    assert both(project, stage, "signal", "@", "go", '{"n": 1}').status == 0
    two(project, "run", "waits")
    assert both(project, stage, "cancel", "@", "--reason", "enough").err.endswith("is cancelled\n")
    assert both(project, stage, "show", "@").status == 0
    assert both(project, stage, "resume", "@").status == 1


def test_a_failed_job_is_retried_the_same(project: Project, stage: Stage) -> None:
    two(project, "run", "fails")
    done = both(project, stage, "retry", "@", "--reason", "again")
    assert (done.status, "retrying job_" in done.err) == (3, True)
    assert both(project, stage, "retry", "@").status == 1


def questions(project: Project) -> None:
    """The questions of the two jobs."""
    by_job = {one["caller"].removeprefix("job/"): one["confirmation"] for one in project.here("confirm", "--json").json}
    _two[:] = [by_job[job] for job in _two]


@pytest.mark.parametrize(
    "answer",
    [
        ("--approve", "--reason", "fine"),
        ("--deny", "--reason", "no"),
        ("--edit", '{"path": "m.txt", "text": "y"}'),
        ("--approve", "--remember", "job", "--for", "30m", "--json"),
    ],
    ids=" ".join,
)
def test_a_question_is_answered_the_same(project: Project, stage: Stage, answer: tuple[str, ...]) -> None:
    two(project, "run", "notes", "--path", "n.txt")
    questions(project)
    assert both(project, stage, "confirm", "@", *answer).status == 0


def test_an_approval_is_taken_back_the_same(project: Project, stage: Stage) -> None:
    _two.clear()
    for path in ("one.txt", "two.txt"):  # calls outside jobs: no worker uses the approval meanwhile
        call = json.dumps({"tool_name": "note_write", "args": {"path": path, "text": "x"}})
        asked = ["curl", "-s", f"{stage.url}/v1/tools/execute", "--json", call]
        _two.append(json.loads(subprocess.run(asked, capture_output=True, check=True).stdout)["confirmation"])
    assert both(project, stage, "confirm", "@", "--revoke").status == 1
    assert both(project, stage, "confirm", "@", "--approve").status == 0
    assert both(project, stage, "confirm", "@", "--revoke", "--reason", "no").status == 0


def test_a_remembered_approval_is_revoked_the_same(project: Project, stage: Stage) -> None:
    two(project, "run", "notes", "--path", "n.txt")
    questions(project)
    found = [
        project.here("confirm", one, "--approve", "--remember", "job", "--json").json["remembered"] for one in _two
    ]
    _two[:] = found
    assert both(project, stage, "policy", "revoke", "@", "--reason", "over").status == 0
    assert both(project, stage, "policy", "revoke", "rem_none").status == 2


def test_a_ticket_goes_its_way_the_same(project: Project, stage: Stage) -> None:
    two(project, "tickets", "create", json.dumps({**TICKET, "type": "REPLY"}), field="id")
    assert both(project, stage, "tickets", "block", "@", "--code", "X", "--reason", "why", "--json").status == 0
    both(project, stage, "tickets", "retry", "@")
    tickets = list(_two)
    (here,) = project.here("tickets", "lease", tickets[0], "--owner", "me", "--json").json
    (there,) = far(project, stage, "tickets", "lease", tickets[1], "--owner", "me", "--json").json
    assert sorted(here) == sorted(there)
    both(project, stage, "tickets", "release", "@", "--owner", "me", "--token", "0.x")
    for ticket, lease, sent in ((tickets[0], here, False), (tickets[1], there, True)):
        proof = ("--owner", "me", "--token", lease["lease_token"])
        words = ("tickets", "fill", ticket, "--outputs", '{"reply": "hi"}', *proof)
        done = far(project, stage, *words) if sent else project.here(*words)
        assert (done.status, done.out) == (0, f"{ticket}  REPLY  done\n")


def test_tickets_are_worked_on_through_a_server_that_goes_away_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = Project(tmp_path, monkeypatch, capsys)
    (project.folder / "a.txt").write_text("hello", encoding="utf-8")
    steps = {"tool_steps": [{"tool_name": "fs_read", "args": {"path": "a.txt"}}]}
    document = json.dumps({**TICKET, "type": "TOOL", "tool_input": steps})
    with serving(project, "--no-work") as url:
        port = url.rpartition(":")[2]
        worker = project.start("--server", url, "tickets", "work", "--owner", "far")
        lines_until(worker, lambda line: "waits for tickets" in line)
    with worker:
        lines_until(worker, lambda line: "SERVER_UNREACHABLE" in line)
        with serving(project, "--no-work", port=port) as url:
            ticket = project.here("--server", url, "tickets", "create", document, "--json").json["id"]
            lines_until(worker, lambda line: f"{ticket} is done" in line)
            worker.send_signal(signal.SIGTERM)
            out, _ = worker.communicate(timeout=PATIENCE_S)
    report = json.loads(out)
    assert (report["worker"], report["counters"]["ok"]) == ("far", 1)


@pytest.mark.parametrize("words", HERE_ALONE, ids=" ".join)
def test_what_works_only_here_says_so(project: Project, stage: Stage, words: tuple[str, ...]) -> None:
    done = far(project, stage, *stage.words(words))
    assert (done.status, done.out) == (2, "")
    assert "LOCAL_ONLY" in done.err
    assert "  -> " in done.err


def test_the_option_wins_and_stands_in_the_hints(project: Project, stage: Stage) -> None:
    done = project.here("--server", stage.url, "show", stage.names["waiting"])
    assert f"-> remit --server {stage.url} signal {stage.names['waiting']} go" in done.err
    both_given = project.here("--server", stage.url, "--journal", "j.db", "jobs")
    assert (both_given.status, "exclude each other" in both_given.err) == (2, True)
    project.env["REMIT_SERVER"] = "http://127.0.0.1:1"
    assert project.here("--journal", ":memory:", "jobs").err == "no jobs in :memory:\n"
    assert project.here("--server", stage.url, "jobs", "--limit", "1").status == 0
    own = project.here("--server", stage.url, "--as", "bob", "jobs", "--json")
    assert (own.status, own.error["code"]) == (2, "LOCAL_ONLY")


def test_a_server_that_is_not_there_is_an_error_with_a_code(project: Project) -> None:
    done = project.here("--server", "http://127.0.0.1:1", "jobs", "--json")
    assert (done.status, done.error["code"]) == (1, "SERVER_UNREACHABLE")
    wrong = project.here("--server", "127.0.0.1:8320", "jobs", "--json")
    assert (wrong.status, wrong.error["code"]) == (2, "USAGE")


def test_ctrl_c_stops_watching_and_the_server_goes_on(project: Project, stage: Stage) -> None:
    with project.start("run", "forever", env={"REMIT_SERVER": stage.url}) as watching:
        job = re.findall(r"job_\w{26}", "".join(lines_until(watching, lambda line: line.startswith("job "))))[0]
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=PATIENCE_S)
    assert watching.returncode == 130
    assert f"the server continues with {job}" in err
    assert f"watch with: remit resume {job}" in err
    assert far(project, stage, "jobs", "--limit", "1", "--json").json[0]["state"] in {"pending", "running"}
    assert far(project, stage, "cancel", job).status == 0


def test_a_person_at_a_terminal_answers_a_question_of_a_job_at_the_server(project: Project, stage: Stage) -> None:
    with project.terminal("run", "notes", "--path", "n.txt", env={"REMIT_SERVER": stage.url}) as screen:
        screen.expect(r"approve, deny, edit or later\? ")
        screen.type("a\r")
        screen.expect("approved")
        screen.expect('"HELLO"')
        assert screen.end() == 0
