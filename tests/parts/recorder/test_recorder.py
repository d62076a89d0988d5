"""The recorder as people run it: beside a worker, by a command, killed, and beside another one."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from remit.evidence.note import notes_in
from tests.cli.conftest import Project, lines_until, project  # noqa: F401 - a fixture
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow
ORIGIN = "log.example/agents"


@pytest.fixture
def recording(project: Project) -> Project:  # noqa: F811 - the fixture
    """A project whose journal is recorded, with its key and a second place."""
    project.env["XDG_DATA_HOME"] = str(project.folder / "data")
    project.env["REMIT_RECORDER_ORIGIN"] = ORIGIN
    project.env["REMIT_RECORDER_EVERY_SECONDS"] = "1"
    project.env["REMIT_RECORDER_FILE"] = str(project.folder / "second.notes")
    return project


def held(project: Project) -> list[int]:  # noqa: F811 - the same
    """Leaves of the checkpoints in the second place."""
    place = project.folder / "second.notes"
    return [note.checkpoint.size for note in notes_in(place.read_text())] if place.exists() else []


def wait_until(met: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not met():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < ends
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.02)


def test_a_command_signs_once_and_verify_says_what_it_shows(recording: Project) -> None:
    key = recording.here("recorder", "key", "--json").json
    assert recording.here("recorder", "key").out.strip() == key["key"]
    assert Path(key["file"]).stat().st_mode & 0o077 == 0
    recording.job("greet", "--name", "ann")
    assert recording.here("verify", "--json").json["state"] == "prefix"
    signed = recording.here("recorder", "sign")
    (note,) = notes_in(signed.out)
    assert note.checkpoint.origin == ORIGIN
    assert held(recording) == [note.checkpoint.size]
    assert signed.out.strip() == "\n".join(recording.here("recorder", "checkpoints", "--json").json).strip()
    elsewhere = ("--checkpoints", str(recording.folder / "second.notes"))
    report = recording.here("verify", *elsewhere, "--json").json
    assert (report["state"], report["keys"], report["checkpoints"], report["uncovered"]) == ("whole", "given", 1, 0)
    assert recording.here("verify", *elsewhere).out.splitlines()[1].startswith("whole 1 signed checkpoint")
    recording.job("greet", "--name", "bob")
    after = recording.here("verify", *elsewhere, "--json").json
    assert (after["state"], after["ok"], after["uncovered"] > 0) == ("prefix", True, True)
    assert f"ok    recorder   {ORIGIN}: " in recording.here("doctor").out


def test_where_nothing_is_recorded_nothing_is_signed(recording: Project) -> None:
    recording.here("recorder", "key")
    done = recording.here("recorder", "sign", "--json")
    assert (done.status, done.json) == (0, {"checkpoint": "", "failures": {}})
    assert held(recording) == []
    recording.job("greet", "--name", "ann")
    assert recording.here("recorder", "sign").status == 0
    elsewhere = ("--checkpoints", str(recording.folder / "second.notes"))
    report = recording.here("verify", *elsewhere, "--json").json
    assert (report["state"], report["checkpoints"]) == ("whole", 1)


def test_a_key_that_no_one_gave_and_a_journal_that_was_put_back_are_said(recording: Project) -> None:
    recording.here("recorder", "key")
    recording.job("greet", "--name", "ann")
    recording.here("recorder", "sign")
    kept = (recording.folder / ".remit/journal.db").read_bytes()
    recording.job("greet", "--name", "bob")
    recording.here("recorder", "sign")
    for part in (recording.folder / ".remit").glob("journal.db*"):
        part.unlink()
    (recording.folder / ".remit/journal.db").write_bytes(kept)
    assert recording.here("verify").status == 0
    done = recording.here("verify", "--checkpoints", str(recording.folder / "second.notes"), "--json")
    assert (done.status, done.json["state"], done.json["codes"]) == (7, "rejected", ["CHECKPOINT_MISSING"])
    other = recording.here("witness", "--folder", str(recording.folder), "--name", ORIGIN).out.strip()
    recording.env.pop("REMIT_RECORDER_ORIGIN")
    assert recording.here("verify", "--json").json["keys"] == "named"
    assert recording.here("verify", "--key", "nonsense").status == 2
    assert recording.here("verify", "--key", other, "--json").json["keys"] == "named", "a witness's key signs no log"


def test_what_is_missing_is_said_with_what_to_do(recording: Project) -> None:
    recording.job("greet", "--name", "ann")
    none = recording.here("recorder", "checkpoints")
    assert (none.status, none.out, "nothing is signed yet" in none.err) == (0, "", True)
    assert "remit recorder key" in recording.here("recorder", "sign").err
    recording.env["REMIT_RECORDER_KEY"] = "${NO_SUCH_KEY}"
    assert "NO_SUCH_KEY" in recording.here("recorder", "sign").err
    recording.env["NO_SUCH_KEY"] = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"
    assert "no Ed25519 key" in recording.here("recorder", "sign").err
    recording.env |= {"REMIT_RECORDER_KEY": "", "REMIT_RECORDER_KEY_COMMAND": json.dumps(["false"])}
    assert "recorder.key_command" in recording.here("recorder", "sign").err
    recording.env.pop("REMIT_RECORDER_ORIGIN")
    assert "recorder.origin is empty" in recording.here("recorder", "key").err


def test_the_key_may_come_from_the_environment_or_a_program(recording: Project) -> None:
    file = recording.here("recorder", "key", "--json").json["file"]
    recording.job("greet", "--name", "ann")
    recording.env |= {"REMIT_RECORDER_KEY": "${SIGNER}", "SIGNER": Path(file).read_text()}
    assert len(notes_in(recording.here("recorder", "sign").out)) == 1
    recording.env |= {"REMIT_RECORDER_KEY": "", "REMIT_RECORDER_KEY_COMMAND": json.dumps(["/bin/cat", file])}
    recording.job("greet", "--name", "bob")
    assert len(notes_in(recording.here("recorder", "sign").out)) == 1
    assert len(set(held(recording))) == 2


class Receiver(BaseHTTPRequestHandler):
    """Takes checkpoints by HTTP, from who has the token."""

    taken: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        known = self.headers.get("Authorization") == "Bearer s3cret"
        self.taken.extend([body] * known)
        self.send_response(204 if known else 401)
        self.end_headers()

    def log_request(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/notes"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_program_and_a_url_take_checkpoints_and_what_fails_is_said(recording: Project, receiver: str) -> None:
    recording.here("recorder", "key")
    recording.job("greet", "--name", "ann")
    copy = recording.folder / "copy.notes"
    recording.env |= {
        "REMIT_RECORDER_COMMAND": json.dumps(["/usr/bin/tee", "-a", str(copy)]),
        "REMIT_RECORDER_URL": receiver,
        "REMIT_RECORDER_TOKEN": "${TOKEN}",
        "TOKEN": "wr0ng",
        "REMIT_RECORDER_WITNESS": "http://127.0.0.1:9",
    }
    done = recording.here("recorder", "sign")
    assert done.status == 1
    assert "the URL: HTTP 401" in done.err
    assert "the witness: " in done.err
    assert copy.read_text() == done.out
    recording.env |= {"TOKEN": "s3cret", "REMIT_RECORDER_URL": "http://192.0.2.1/notes"}
    recording.job("greet", "--name", "bob")
    assert "by https only" in recording.here("recorder", "sign").err
    recording.env["REMIT_RECORDER_URL"] = receiver
    recording.job("greet", "--name", "cyd")
    for name, wrong in (("WITNESS_KEY", "rubbish"), ("STAMP_ROOTS", "nowhere.pem")):
        recording.env[f"REMIT_RECORDER_{name}"] = wrong
        done = recording.here("doctor")
        assert (done.status, f"SETTINGS_INVALID: recorder.{name.lower()}" in done.out) == (1, True)
        del recording.env[f"REMIT_RECORDER_{name}"]
    done = recording.here("recorder", "sign", "--json")
    assert list(done.json["failures"]) == ["the witness"]
    assert "the witness did not cosign" in recording.here("doctor").out
    assert [text.strip() for text in Receiver.taken] == [done.json["checkpoint"].strip()]


def test_a_worker_that_is_killed_leaves_a_log_that_the_next_one_goes_on_with(recording: Project) -> None:
    recording.here("recorder", "key")
    for number in range(4):
        with recording.start("worker") as worker:
            before = len(held(recording)) + 1
            recording.job("greet", "--name", str(number))
            wait_until(lambda before=before: len(held(recording)) > before, worker)  # type: ignore[misc] # bound
            worker.send_signal(signal.SIGKILL)
    with recording.start("worker") as one:
        before = len(held(recording))
        wait_until(lambda: len(held(recording)) > before, one)
        with recording.start("worker") as two:
            lines_until(two, lambda line: "runs jobs of" in line)
            assert "another process signs" in recording.here("recorder", "sign").err
            one.send_signal(signal.SIGTERM)
            one.wait(PATIENCE_S)
            before = len(held(recording))
            wait_until(lambda: len(held(recording)) > before, two)
            two.send_signal(signal.SIGTERM)
            two.wait(PATIENCE_S)
    report = recording.here("verify", "--checkpoints", str(recording.folder / "second.notes"), "--json").json
    assert (report["state"], report["problems"], report["uncovered"]) == ("whole", [], 0)
    trace = recording.here("recorder", "checkpoints", "--limit", "3").out
    assert len(re.findall(rf"^{ORIGIN}$", trace, re.MULTILINE)) == 3


def test_a_witness_that_runs_cosigns_and_ends_when_told(recording: Project) -> None:
    key = recording.here("recorder", "key").out.strip()
    words = ("witness", "--folder", str(recording.folder / "w"), "--name", "witness.example")
    own = recording.here(*words).out.strip()
    with recording.start(*words, "--log", key, "--port", "0") as witness:
        (*_, line) = lines_until(witness, lambda line: "listens on" in line)
        recording.env |= {"REMIT_RECORDER_WITNESS": line.split()[-1], "REMIT_RECORDER_WITNESS_KEY": own}
        recording.job("greet", "--name", "ann")
        assert "— witness.example " in recording.here("recorder", "sign").out
        assert "— witness.example " in recording.here("recorder", "checkpoints").out
        journal = recording.folder / ".remit/journal.db"
        kept = journal.read_bytes()
        recording.job("greet", "--name", "bob")
        assert recording.here("recorder", "sign").status == 0
        second = journal.read_bytes()
        journal.write_bytes(kept)
        recording.job("greet", "--name", "cyd")
        forked = recording.here("recorder", "sign")
        assert (forked.status, "the log has two ends" in forked.err) == (1, True)
        assert "the witness did not cosign" in recording.here("doctor").out
        journal.write_bytes(second)
        witness.send_signal(signal.SIGTERM)
        assert witness.wait(PATIENCE_S) == 0
    assert "ok    recorder" in recording.here("doctor").out
    (note,) = (recording.folder / "w").glob("*.note")
    report = recording.here("verify", "--checkpoints", str(note), "--key", own, "--json").json
    assert (report["state"], report["cosigned"]) == ("whole", notes_in(note.read_text())[0].checkpoint.size)
