"""`remit api`: operations by their names, here and through a server."""

from __future__ import annotations

import json

import pytest

from remit.api.calls import operations_of
from remit.cli import complete
from tests.cli.conftest import Project
from tests.patience import PATIENCE_S

EVENT = '{"type": "message", "thread_id": "t1", "content": "hello"}'


def test_every_operation_is_listed_with_what_it_takes(project: Project) -> None:
    rows = {row["name"]: row for row in json.loads(project.here("api", "--json").out)}
    assert sorted(rows) == sorted(operations_of())
    assert rows["tickets.block"]["parameters"][:4] == ["ticket", "code", "reason", "source"]
    assert rows["tickets.block"]["scope"] == "work"
    listed = project.here("api").out
    assert all(name in listed for name in rows)


def test_an_operation_is_called_on_the_journal_here(project: Project) -> None:
    made = json.loads(project.here("api", "tickets.create", "type=TRIAGE", f"event={EVENT}", "--json").out)
    assert (made["type"], made["event"]["content"]) == ("TRIAGE", "hello")
    found = json.loads(project.here("api", "tickets.page", "state=pending", "state=done", "limit=5", "--json").out)
    assert [ticket["id"] for ticket in found["items"]] == [made["id"]]
    blocked = project.here(
        "api", "tickets.block", f"ticket={made['id']}", "code=12", "reason=no", "source=me", "--json"
    )
    assert json.loads(blocked.out)["metadata"]["block"]["code"] == "12"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("tickets.vieuw",), "PATH_UNKNOWN"),
        (("tickets.view",), "INVALID_INPUT"),
        (("tickets.view", "ticket=x", "odd=1"), "INVALID_INPUT"),
        (("tickets.view", "ticket=none"), "not_found"),
        (("tickets.page", "limit=many"), "INVALID_INPUT"),
        (("tickets.lease", "kind=ODD", "owner=me"), "INVALID_INPUT"),
        (("jobs.follow", "job=last"), "PATH_UNKNOWN"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_code(project: Project, words: tuple[str, ...], code: str) -> None:
    done = project.here("api", *words, "--json")
    assert done.status != 0
    assert json.loads(done.err)["code"] == code


@pytest.mark.slow
def test_an_operation_is_called_through_a_server(project: Project) -> None:
    with project.start("serve", "--port", "0") as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            made = json.loads(
                project.here("--server", url, "api", "tickets.create", "type=TRIAGE", f"event={EVENT}", "--json").out
            )
            shown = project.here("--server", url, "api", "tickets.view", f"ticket={made['id']}", "--json")
            assert json.loads(shown.out) == made
            assert project.here("--server", url, "api", "tickets.view", "ticket=none", "--json").status != 0
        finally:
            server.terminate()
            server.communicate(timeout=PATIENCE_S)


def test_names_of_operations_are_completed() -> None:
    items = complete.operations(None, None, "tickets.l")  # type: ignore[arg-type]
    assert [item.value for item in items] == ["tickets.lease", "tickets.lease_one"]
