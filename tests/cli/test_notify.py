from __future__ import annotations

import signal
import sys

import pytest

from tests.cli.conftest import Project, lines_until
from tests.parts.notify.servers import Hook, running_hook
from tests.patience import PATIENCE_S

HOOK = """
[[notify]]
name = "oncall"
url = "${HOOK}"
on = ["question", "failed"]
"""
PAGER = f"""
[[notify]]
name = "pager"
command = [{sys.executable!r}, "-c", "import sys; sys.exit('the pager is off')"]
"""


def test_a_test_message_says_what_came_back(project: Project) -> None:
    project.configure(HOOK + PAGER)
    with running_hook() as hook:
        project.env["HOOK"] = hook.url
        done = project.here("notify", "test", "oncall")
        assert (done.status, done.out) == (0, "ok    oncall: HTTP 200 OK\n")
        both = project.here("notify", "test", "--json")
    assert both.status == 1
    assert both.json == [
        {"target": "oncall", "ok": True, "said": "HTTP 200 OK"},
        {"target": "pager", "ok": False, "said": "its process ended with exit code 1: the pager is off"},
    ]
    assert [posted.json["event"] for posted in hook.posted] == ["test", "test"]


def test_an_unknown_target_is_refused_with_the_nearest(project: Project) -> None:
    project.configure(PAGER)
    refused = project.here("notify", "test", "pagr", "--json")
    assert (refused.status, refused.error["code"]) == (2, "TARGET_NOT_FOUND")
    assert refused.error["remedy"] == "Did you mean pager?"


@pytest.mark.parametrize("command", ["list", "test"])
def test_without_targets_no_one_is_told(project: Project, command: str) -> None:
    done = project.here("notify", command)
    assert (done.status, done.out) == (0, "")
    assert "no one is told" in done.err


def test_a_folder_that_is_not_trusted_tells_no_one(project: Project) -> None:
    project.configure(HOOK + PAGER)
    del project.env["REMIT_TRUST"]
    refused = project.here("notify", "test", "--json")
    assert refused.error["code"] == "FOLDER_NOT_TRUSTED"
    listed = project.here("notify", "list", "--json")
    assert (listed.status, listed.json) == (0, [])
    asked = project.here("trust")
    assert "tell oncall of questions and jobs at ${HOOK}" in asked.out + asked.err
    assert "the pager is off" in asked.out + asked.err, "a command is shown whole"


@pytest.mark.slow
@pytest.mark.parametrize("words", [("worker",), ("serve", "--port", "0")], ids=["worker", "serve"])
def test_a_worker_and_a_server_tell_and_stop_when_told(project: Project, words: tuple[str, ...]) -> None:
    project.configure(HOOK + PAGER)
    with running_hook() as hook:
        job = project.here("run", "fails", "--detach").out.strip()
        with project.start(*words, env={"HOOK": hook.url}) as process:
            assert _arrived(hook)
            lines_until(process, lambda line: "the pager is off" in line)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert (hook.posted[0].json["event"], hook.posted[0].json["job"]) == ("failed", job)
    oncall, pager = project.here("notify", "list", "--json").json
    assert (oncall["sent"], oncall["waiting"], oncall["last"][0]["state"]) == (1, 0, "sent")
    assert (pager["sent"], pager["waiting"], pager["failing"], pager["last"][0]["attempts"]) == (0, 1, 1, 1)
    listed = project.here("notify", "list").out
    assert job in listed
    assert "0 sent, 1 waiting (1 failing), 0 failed" in listed
    found = {check["detail"]: check for check in project.here("doctor", "--json").json if check["name"] == "notify"}
    assert [check["verdict"] for check in found.values()] == ["ok", "fail"]
    assert "pager does not take messages" in list(found)[1]


def _arrived(hook: Hook) -> bool:
    with hook.arrived:
        return hook.arrived.wait_for(lambda: bool(hook.posted), PATIENCE_S)


def test_a_table_that_means_nothing_stops_a_worker_and_doctor_names_it(project: Project) -> None:
    project.configure('[[notify]]\nname = "a"\n')
    done = project.here("worker")
    assert done.status != 0
    assert "none of url, email, command, slack, telegram and push is given" in done.err
    checks = project.here("doctor", "--json").json
    assert [check["verdict"] for check in checks if check["name"] == "notify"] == ["fail"]
