"""A head that says something else than the events of its stream."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from remit.errors import ChainBrokenError
from remit.journal.event import HeadPatch, StreamHead
from remit.journal.examination import contradiction
from remit.journal.journal import Journal
from remit.journal.kinds import (
    ApprovalRemembered,
    ApprovalRevoked,
    ConfirmationDecided,
    ConfirmationRequested,
    ConfirmationUsed,
    ErrorInfo,
    JobCompleted,
    JobCreated,
    JobFailed,
    Payload,
)
from remit.journal.sqlite.store import MEMORY, SqliteStore
from remit_testing.clock import ManualClock

CREATED = JobCreated(kind="recipe", name="go")
DONE, FAILED = JobCompleted(), JobFailed(error=ErrorInfo(code="X"))
NAMED = {"remit.name": "go", "mine": "anything"}
ASKED = ConfirmationRequested(confirmation="c_1", step="1", digest="d", approvals=2)
KEPT, REVOKED = ApprovalRemembered(rule={"tool": "x.y"}), ApprovalRevoked()


def decided(decision: Any, by: str = "ann", **more: Any) -> ConfirmationDecided:
    return ConfirmationDecided(confirmation="c_1", decision=decision, by=by, **more)


BOTH = (ASKED, decided("approve"), decided("approve", "bob"))


def head(kind: str, state: str, *, closed: bool, labels: dict[str, str]) -> StreamHead:
    rest: dict[str, Any] = dict.fromkeys(("lease_owner", "lease_until", "due_at"))
    rest |= dict.fromkeys(("seq", "epoch", "priority", "wakes", "created_at", "updated_at"), 0)
    return StreamHead(
        stream="s/1",
        kind=kind,
        state=state,
        hash=b"",
        closed=closed,
        route="",
        subject="",
        title="",
        labels=labels,
        **rest,
    )


def said(head: StreamHead, *payloads: Payload) -> str:
    return contradiction(head, payloads)


@pytest.mark.parametrize(
    ("kind", "state", "closed", "labels", "payloads"),
    [
        ("job", "pending", False, NAMED, (CREATED,)),
        ("job", "waiting", False, NAMED, (CREATED,)),
        ("job", "completed", True, NAMED, (CREATED, DONE)),
        ("job", "failed", True, NAMED, (CREATED, FAILED)),
        ("confirmation", "pending", False, {"id": "c_1"}, (ASKED, decided("approve"), decided("approve"))),
        ("confirmation", "approved", False, {"id": "c_1"}, BOTH),
        ("confirmation", "used", True, {"id": "c_1"}, (*BOTH, ConfirmationUsed(confirmation="c_1", invocation_id="i"))),
        ("confirmation", "denied", True, {"id": "c_1"}, (ASKED, decided("deny"))),
        ("confirmation", "withdrawn", True, {"id": "c_1"}, (*BOTH, decided("revoke"))),
        ("confirmation", "replaced", True, {"id": "c_1"}, (ASKED, decided("revoke", replaced_by="c_2"))),
        ("approval", "active", False, {"tool": "x.y"}, (KEPT,)),
        ("approval", "revoked", True, {"tool": "x.y"}, (KEPT, REVOKED)),
    ],
)
def test_what_agrees_is_right_and_any_change_of_it_is_named(
    kind: str, state: str, closed: bool, labels: dict[str, str], payloads: tuple[Payload, ...]
) -> None:
    right = head(kind, state, closed=closed, labels=labels)
    assert said(right, *payloads) == ""
    other = {"job": "cancelled", "confirmation": "expired", "approval": "asleep"}[kind]
    assert "state" in said(msgspec.structs.replace(right, state=other), *payloads)
    assert "its events say" in said(msgspec.structs.replace(right, closed=not closed), *payloads)
    name = next(iter(labels))
    assert name in said(msgspec.structs.replace(right, labels={**labels, name: "another"}), *payloads)
    assert name in said(msgspec.structs.replace(right, labels={}), *payloads)


@pytest.mark.parametrize("kind", ["job", "confirmation", "approval", "session"])
def test_a_stream_whose_events_say_nothing_contradicts_nothing(kind: str) -> None:
    assert said(head(kind, "any", closed=False, labels={}), DONE) == ""


async def test_verification_names_the_head_that_was_changed() -> None:
    journal = Journal(SqliteStore(MEMORY, ManualClock()), ManualClock())
    patch = HeadPatch(state="failed", closed=True, labels={"remit.name": "go"})
    await journal.create("job/a", "job", CREATED, FAILED, patch=patch)
    assert await journal.verify("job/a") == 2
    await journal.create("job/b", "job", CREATED, FAILED, patch=HeadPatch(state="completed", closed=True))
    with pytest.raises(ChainBrokenError, match="job/b: the head is not what its events say: its state is completed"):
        await journal.verify("job/b")
    await journal.close()
