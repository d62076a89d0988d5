"""`remit tickets`."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import StateError
from remit.parts.tickets.tickets import Tickets
from tests.cli.conftest import Project, lines_until
from tests.patience import PATIENCE_S

TOOL = {
    "type": "TOOL",
    "event": {"type": "message", "thread_id": "t1", "content": "x"},
    "tool_input": {"tool_steps": [{"tool_name": "fs_read", "args": {"path": "a.txt"}}]},
}


def create(project: Project, document: Any = TOOL) -> str:
    identifier: str = project.here("tickets", "create", json.dumps(document), "--json").json["id"]
    return identifier


def test_work_prints_its_report_and_nothing_else_to_stdout(project: Project) -> None:
    (project.folder / "a.txt").write_text("hello", encoding="utf-8")
    create(project)
    done = project.apart("tickets", "work", "--once", "--owner", "me")
    assert done.status == 0
    assert done.json["counters"]["ok"] == 1
    assert done.json["worker"] == "me"


@pytest.mark.parametrize(("tool", "status"), [("fs_none", 2), ("fs_read", 3)])
def test_the_exit_status_of_work_is_the_contracts(project: Project, tool: str, status: int) -> None:
    create(project, {**TOOL, "tool_input": {"tool_steps": [{"tool_name": tool, "args": {"path": "missing"}}]}})
    assert project.here("tickets", "work", "--once").status == status


def test_work_that_cannot_begin_exits_with_one(project: Project) -> None:
    (project.folder / "journal.db").write_text("no journal", encoding="utf-8")
    done = project.here("--journal", "journal.db", "tickets", "work", "--once")
    assert (done.status, done.out) == (1, "")


def test_what_was_done_before_a_fatal_error_is_reported(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_args: object, **_given: object) -> None:
        raise StateError("not this worker", code=Code.SCOPE_REQUIRED)

    monkeypatch.setattr(Tickets, "lease", broken)
    done = project.here("tickets", "work")
    assert done.status == 1
    assert done.json["stable_codes"] == ["EXECUTOR_FATAL", "LEASE_FAILED"]
    assert "SCOPE_REQUIRED" in done.err


def test_work_goes_on_with_what_comes_until_it_is_stopped(project: Project) -> None:
    (project.folder / "a.txt").write_text("hello", encoding="utf-8")
    with project.start("-v", "tickets", "work") as worker:
        ticket = create(project)
        lines_until(worker, lambda line: "is done" in line)
        worker.send_signal(signal.SIGTERM)
        out, _ = worker.communicate(timeout=PATIENCE_S)
    assert json.loads(out)["counters"]["ok"] == 1
    assert project.here("tickets", "show", ticket, "--json").json["status"] == "done"


def test_a_document_that_is_no_ticket_is_refused_with_its_code(project: Project) -> None:
    done = project.here("tickets", "create", '{"type": "TRIAGE"}', "--json")
    assert done.status == 2
    assert done.error["code"] == "SCHEMA_VALIDATION_FAILED"


def test_half_a_proof_is_refused(project: Project) -> None:
    done = project.here("tickets", "fill", create(project), "--outputs", "{}", "--owner", "me")
    assert done.status == 2
    assert "--token" in done.err


def test_a_ticket_that_does_not_exist_is_not_found(project: Project) -> None:
    done = project.here("tickets", "show", "tkt_none", "--json")
    assert done.error["code"] == "not_found"


def test_a_leased_ticket_is_released_and_blocked_and_retried(project: Project) -> None:
    ticket = create(project)
    (lease,) = project.here("tickets", "lease", ticket, "--owner", "me", "--json").json
    proof = ["--owner", "me", "--token", lease["lease_token"]]
    assert project.here("tickets", "release", ticket, *proof, "--json").json["status"] == "pending"
    again = project.here("tickets", "release", ticket, *proof, "--json")
    assert again.error["code"] == "lease_owner_mismatch"
    blocked = project.here("tickets", "block", ticket, "--code", "X", "--reason", "why", "--json").json
    assert blocked["metadata"]["block"] == {"code": "X", "reason": "why", "source": "manual"}
    assert project.here("tickets", "retry", ticket, "--json").json["metadata"]["retry_count"] == 1


def test_a_ticket_is_shown_with_all_that_it_holds(project: Project) -> None:
    shown = project.here("tickets", "show", create(project)).out
    assert "pending" in shown
    assert '"tool_name": "fs_read"' in shown
    assert project.here("tickets", "list", "--state", "done").err == "no tickets\n"


def test_a_ticket_that_was_done_before_is_said_to_be_unchanged(project: Project) -> None:
    ticket = create(project)
    first = project.here("tickets", "fill", ticket, "--by", "manual", "--outputs", "{}")
    again = project.here("tickets", "fill", ticket, "--by", "nobody", "--outputs", '{"tool_context": {}}')
    assert "unchanged" not in first.err
    assert (again.status, "unchanged: it was done before" in again.err) == (0, True)
    assert project.here("tickets", "fill", ticket, "--by", "x", "--outputs", "{}", "--json").json["changed"] is False


def test_work_leases_ten_for_five_minutes_unless_told_otherwise(project: Project) -> None:
    plain = project.here("tickets", "work", "--once").json
    assert (plain["executor_config"]["limit"], plain["executor_config"]["lease_sec"]) == (10, 30)
    words = ("--limit", "3", "--lease-sec", "60", "--owner", "me", "--no-mcp")
    told = project.here("tickets", "work", "--once", *words).json
    assert told["executor_config"] == {**told["executor_config"], "limit": 3, "lease_sec": 60, "no_mcp": True}
    assert told["worker"] == "me"
