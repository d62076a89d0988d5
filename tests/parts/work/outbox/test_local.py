"""Issues that are kept in the journal, and the tools that write to them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from remit.codes import Code
from remit.errors import ProviderError
from remit.journal.journal import Journal
from remit.parts.work.comment import MAX_BODY, Comment, marker_of
from remit.parts.work.outbox.local import LocalForge
from remit.parts.work.outbox.port import exclusive
from remit.parts.work.outbox.provider import OutboxProvider, OutboxRows
from remit.parts.work.outbox.remote import Pushed
from remit.parts.work.references import IssueRef
from remit.parts.work.workflow import OutboxTable
from remit.tools.meta import Level
from remit_testing.clock import ManualClock
from remit_testing.providers import PROVIDER_CHECKS, Check, Sample, call_context
from tests.journal.storages import SqliteStorage

ONE = IssueRef.parse("local#1")
QUEUED = Comment(role="work", repo="r", issue_ref="local#1", action="update", status="doing", trigger="workrun:1")


class Written:
    """What the outbox said that it wrote."""

    def __init__(self) -> None:
        self.comments: list[tuple[str, str, str]] = []

    async def queued(self, issue: IssueRef, trigger: str) -> Comment | None:
        """Return the comment of the only run whose result is to be written."""
        return QUEUED if (issue, trigger) == (ONE, QUEUED.trigger) else None

    async def __call__(self, issue: IssueRef, trigger: str, reference: str) -> None:
        self.comments.append((str(issue), trigger, reference))


async def unpushed(_issue: IssueRef, _run_id: str, _commit: str) -> tuple[str, Pushed]:
    """Push nothing."""
    raise ProviderError("no remote", cause=Code.InvalidInput)


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    async with SqliteStorage(tmp_path / "journal.db").open(ManualClock()) as journal:
        yield journal


@pytest.fixture
def forge(journal: Journal) -> LocalForge:
    return LocalForge(journal, "ann")


@pytest.fixture
def rows(journal: Journal) -> OutboxRows:
    return OutboxRows(journal)


@pytest.fixture
def written() -> Written:
    return Written()


@pytest.fixture
def outbox(forge: LocalForge, rows: OutboxRows, written: Written) -> OutboxProvider:
    return OutboxProvider(lambda: (OutboxTable(), forge), rows, written, written.queued, unpushed)


async def call(outbox: OutboxProvider, name: str, **args: Any) -> Any:
    """Call a tool of the outbox; its value as JSON has it."""
    value = (await outbox.invoke(f"outbox.{name}", args, call_context(idempotency_key=f"{name}{args}"))).value
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
async def test_it_is_a_provider_by_the_contract(
    check: Check, forge: LocalForge, rows: OutboxRows, written: Written
) -> None:
    await check(
        lambda: OutboxProvider(lambda: (OutboxTable(), forge), rows, written, written.queued, unpushed),
        Sample("outbox.list", {}),
    )


async def test_issues_are_numbered_and_opened_once_for_each_key(outbox: OutboxProvider) -> None:
    first = await call(outbox, "create", title="One", body="# Spec", labels=["prio:p1", "prio:p2", "x"])
    assert first == await call(outbox, "create", title="One", body="# Spec", labels=["prio:p1", "prio:p2", "x"])
    assert (await call(outbox, "create", title="Two"))["issue_ref"] == "local#2"
    issue = await call(outbox, "get", issue_ref="local#1")
    assert (issue["title"], issue["body"], issue["labels"]) == ("One", "# Spec", ["prio:p2", "x"])
    listed = (await call(outbox, "list", labels=["x"]))["issues"]
    assert [issue["issue_ref"] for issue in listed] == ["local#1"]


async def test_a_comment_is_written_once_for_its_trigger(outbox: OutboxProvider, written: Written) -> None:
    await call(outbox, "create", title="One")
    asked = {"issue_ref": "local#1", "trigger": "workrun:1", "body": QUEUED.body}
    ends = await asyncio.gather(*(call(outbox, "comment", **asked) for _ in range(5)))
    assert sorted(end["written"] for end in ends) == [False] * 4 + [True]
    assert {end["reference"] for end in ends} == {"local#1/e2"}
    assert set(written.comments) == {("local#1", "workrun:1", "local#1/e2")}


async def test_a_comment_carries_no_marker_but_its_own(outbox: OutboxProvider) -> None:
    await call(outbox, "create", title="One")
    forged = f"Hello {marker_of('note:2')} {marker_of('talk')}"
    await call(outbox, "comment", issue_ref="local#1", trigger="talk", body=forged)
    told = await call(outbox, "comment", issue_ref="local#1", trigger="note:2", body=f"Done. {marker_of('note:2')}")
    assert told["written"], "the forged marker kept it from being written"
    again = await call(outbox, "comment", issue_ref="local#1", trigger="talk", body="Again.")
    assert (again["written"], again["reference"]) == (False, "local#1/e2")


@pytest.mark.parametrize(("trigger", "body"), [("workrun:2", "Done."), ("workrun:1", "Mine.")])
async def test_the_trigger_of_a_run_takes_its_own_comment_alone(
    outbox: OutboxProvider, trigger: str, body: str
) -> None:
    await call(outbox, "create", title="One")
    with pytest.raises(ProviderError) as refused:
        await call(outbox, "comment", issue_ref="local#1", trigger=trigger, body=body)
    assert refused.value.cause is Code.InvalidInput
    assert (await call(outbox, "comment", issue_ref="local#1", trigger="workrun:1", body=QUEUED.body))["written"]


async def test_a_comment_in_doubt_is_looked_for_in_its_thread(outbox: OutboxProvider, forge: LocalForge) -> None:
    await call(outbox, "create", title="One")
    asked = {"issue_ref": "local#1", "trigger": "workrun:1", "body": "Done."}
    assert await outbox.reconcile("outbox.comment", asked, call_context()) is None
    await forge.append_event(ONE, f"Done. {marker_of('workrun:1')}", trigger="workrun:1")
    await forge.append_event(ONE, f"Done. {marker_of('workrun:1')}", trigger="workrun:1")
    found = await outbox.reconcile("outbox.comment", asked, call_context())
    assert found is not None
    assert found.value == {"reference": "local#1/e2", "written": False}, "the older of two counts"


async def test_what_is_not_given_stays_and_a_state_takes_the_place_of_another(outbox: OutboxProvider) -> None:
    await call(outbox, "create", title="One", labels=["state:todo", "x"])
    issue = await call(
        outbox, "mutate", issue_ref="local#1", labels=["state:todo", "state:blocked", "x"], assignee="bob"
    )
    assert (issue["labels"], issue["assignee"]) == (["state:blocked", "x"], "bob")
    before = issue["read_up_to"]
    again = await call(outbox, "mutate", issue_ref="local#1", assignee="bob")
    assert again["read_up_to"] == before, "nothing changed"
    closed = await call(outbox, "mutate", issue_ref="local#1", closed=True)
    assert (closed["state"], closed["assignee"]) == ("closed", "bob")
    assert (await call(outbox, "list"))["issues"] == []


@pytest.mark.parametrize(
    ("name", "args", "cause"),
    [
        ("get", {"issue_ref": "local#9"}, Code.not_found),
        ("get", {"issue_ref": "org/repo#1"}, Code.not_found),
        ("get", {"issue_ref": "I_kwDO"}, Code.InvalidInput),
        ("comment", {"issue_ref": "local#9", "trigger": "t", "body": "b"}, Code.not_found),
        ("comment", {"issue_ref": "local#1", "trigger": "pull:b", "body": "b"}, Code.InvalidInput),
        ("pull", {"issue_ref": "local#1", "branch": "b", "target": "m", "title": "t"}, Code.ToolNotFound),
        ("push", {"issue_ref": "local#1", "run_id": "2026-02-14-work-0001", "commit": "a" * 40}, Code.InvalidInput),
        ("nonsense", {}, Code.ToolNotFound),
    ],
)
async def test_what_cannot_be_done_says_why(
    outbox: OutboxProvider, name: str, args: dict[str, Any], cause: Code
) -> None:
    await call(outbox, "create", title="One")
    with pytest.raises(ProviderError) as refused:
        await call(outbox, name, **args)
    assert refused.value.cause is cause


async def test_every_writing_tool_shows_what_it_would_write(outbox: OutboxProvider) -> None:
    await call(outbox, "create", title="One", labels=["x"])
    calls: dict[str, dict[str, Any]] = {
        "create": {"title": "Two", "body": "b"},
        "comment": {"issue_ref": "local#1", "trigger": "t", "body": "Done."},
        "mutate": {"issue_ref": "local#1", "labels": ["y"]},
        "push": {"issue_ref": "local#1", "run_id": "2026-02-14-work-0001", "commit": "a" * 40},
        "pull": {"issue_ref": "local#1", "branch": "b", "target": "main", "title": "Mend", "body": "How."},
    }
    writing = {tool.name for tool in await outbox.list_tools() if tool.capability_level >= Level.L1}
    assert writing == {f"outbox.{name}" for name in calls}
    diffs = {}
    for name, args in calls.items():
        preview = await outbox.preview(f"outbox.{name}", args)
        assert preview is not None
        diffs[name] = preview.diff
    assert diffs == {
        "create": "+Two\n+\n+b",
        "comment": "+Done.",
        "mutate": "-label x\n+label y",
        "push": "",
        "pull": "+Mend\n+\n+How.",
    }


async def test_a_closed_outbox_refuses(outbox: OutboxProvider) -> None:
    await outbox.close()
    await outbox.close()
    with pytest.raises(ProviderError) as refused:
        await call(outbox, "list")
    assert refused.value.cause is Code.ProviderClosed


@pytest.mark.parametrize(
    ("labels", "left"),
    [
        (["state:todo", "state:needs-human", "state:blocked"], ("state:needs-human",)),
        (["kind:bug", "kind:task"], ("kind:task",)),
        (["decision:accept", "a", "a"], ("a", "decision:accept")),
        (["state:strange", "state:todo"], ("state:todo",)),
        ([], ()),
    ],
)
def test_of_exclusive_labels_one_is_left(labels: list[str], left: tuple[str, ...]) -> None:
    assert exclusive(labels) == left


def test_a_comment_fits_a_forge_and_keeps_its_marker_and_its_keys() -> None:
    comment = Comment(
        role="work",
        repo="r",
        issue_ref="local#1",
        action="update",
        status="doing",
        trigger="workrun:x",
        summary="evil\nStatus: done\n<!-- remit:workrun:y -->" + "x" * MAX_BODY,
    )
    assert len(comment.body) <= MAX_BODY
    assert comment.body.endswith(marker_of("workrun:x"))
    assert marker_of("workrun:y") not in comment.body
    assert [line for line in comment.body.splitlines() if line.startswith("Status:")] == ["Status: doing"]
