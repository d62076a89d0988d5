"""The comment that the control plane writes of a run (contract: executors, "Outbox"). Pure."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from remit.parts.work.order import NO_CONTRACTS, WorkOrder
from remit.parts.work.result import ABSENT, Changes, Test, WorkResult

Action = Literal["claim", "update", "proposal", "accept", "reject", "blocked", "unblock", "done"]
BodyStatus = Literal["todo", "doing", "blocked", "review", "done"]

MAX_BODY: Final = 65_536
"""Characters of a comment that forges take."""
_CUT: Final = "\n\n[cut: the whole text stands in the run's context pack]"
RUN_TRIGGER: Final = "workrun:"
"""The beginning of the triggers of runs' results."""
PULL_TRIGGER: Final = "pull:"
"""The beginning of the triggers of pull requests, which take no comment."""
_MARKER_BEGIN: Final = "<!-- remit:"
_MARKER: Final = f"{_MARKER_BEGIN}{{trigger}} -->"


class Comment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A structured event of an issue's thread."""

    role: str
    repo: str
    issue_ref: str
    run_id: str = ""
    spec_ref: str = ""
    contracts_ref: str = NO_CONTRACTS
    action: Action
    status: BodyStatus
    read_up_to: str = ""
    """The newest event of the thread that was taken into account."""
    trigger: str
    """The reason that it is written for, once."""
    summary: str = ""
    changes: Changes = Changes()
    tests: tuple[Test, ...] = ()
    blocked_by: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    next: str = ""
    """The next step, and the one who takes it."""

    @property
    def marker(self) -> str:
        """The text by which the comment is found among those of a thread."""
        return marker_of(self.trigger)

    @property
    def body(self) -> str:
        """The comment as Markdown; it ends with the marker, however long the rest is."""
        rows = [
            ("Role", self.role),
            ("Repo", self.repo),
            ("IssueRef", self.issue_ref),
            ("RunId", self.run_id or ABSENT),
            ("SpecRef", self.spec_ref or ABSENT),
            ("ContractsRef", self.contracts_ref or NO_CONTRACTS),
            ("Action", self.action),
            ("Status", self.status),
            ("ReadUpTo", self.read_up_to or ABSENT),
            ("Trigger", self.trigger),
        ]
        blocks = [
            "\n".join(f"{name}: {_inline(value)}" for name, value in rows),
            _block("Summary", [self.summary] if self.summary else []),
            _block("Changes", [f"PR: {self.changes.pr or ABSENT}", f"Commit: {self.changes.commit or ABSENT}"]),
            _block("Tests", [line for test in self.tests for line in _test_lines(test)] or ["Result: n/a"]),
            _block("BlockedBy", list(self.blocked_by) or [ABSENT]),
            _block("OpenQuestions", list(self.open_questions) or [ABSENT]),
            _block("Next", [self.next or ABSENT]),
        ]
        text = "\n\n".join(block for block in blocks if block)
        room = MAX_BODY - len(self.marker) - 2
        return f"{text if len(text) <= room else text[: room - len(_CUT)] + _CUT}\n\n{self.marker}"


def marker_of(trigger: str) -> str:
    """Return the text by which the comment of a trigger is found. A trigger ends no HTML comment."""
    return _MARKER.format(trigger=trigger.replace("--", "- -").replace(">", ""))


def marked(body: str, trigger: str) -> str:
    """Return a comment's text with the marker of its trigger at the end, and with that of no other."""
    marker = marker_of(trigger)
    text = body.replace(marker, "").rstrip().replace(_MARKER_BEGIN, _MARKER_BEGIN.replace("<!", "< !"))
    return f"{text}\n\n{marker}"


def trigger_of(run_id: str) -> str:
    """Return what the comment of a run's result is written for."""
    return f"{RUN_TRIGGER}{run_id}"


def comment_on(
    order: WorkOrder, result: WorkResult, status: BodyStatus, *, previous: str, read_up_to: str, then: str
) -> Comment:
    """Return the comment that says how a run ended; `previous` is the run whose place it took."""
    actions: dict[BodyStatus, Action] = {"review": "proposal", "blocked": "blocked"}
    action = actions.get(status, "update")
    followed = f" (took the place of {previous})" if previous else ""
    return Comment(
        role=order.role,
        repo=order.issue.project,
        issue_ref=order.issue_ref,
        run_id=order.run_id,
        spec_ref=order.spec_ref,
        contracts_ref=order.contracts_ref,
        action=action,
        status=status,
        read_up_to=read_up_to,
        trigger=trigger_of(order.run_id),
        summary=f"{result.summary}{followed}",
        changes=result.changes,
        tests=result.tests,
        blocked_by=result.blocked_by,
        open_questions=result.questions,
        next=then,
    )


def comment_on_switch(order: WorkOrder, executor: str, *, previous: str, reason: str, read_up_to: str) -> Comment:
    """Return the comment that says why a run takes the place of one that gave no result, and who goes on."""
    return Comment(
        role=order.role,
        repo=order.issue.project,
        issue_ref=order.issue_ref,
        run_id=order.run_id,
        spec_ref=order.spec_ref,
        contracts_ref=order.contracts_ref,
        action="claim",
        status="doing",
        read_up_to=read_up_to,
        trigger=f"switch:{order.run_id}",
        summary=f"Takes the place of {previous}: {reason}",
        next=f"{executor} works on it from what {previous} left.",
    )


def _test_lines(test: Test) -> list[str]:
    rows = (("Command", test.command), ("Result", test.result), ("Evidence", test.evidence))
    return [f"{name}: {_inline(value)}" for name, value in rows if value]


def _block(name: str, lines: list[str]) -> str:
    return f"{name}:\n" + "\n".join(f"- {_inline(line)}" for line in lines) if lines else ""


def _inline(text: str) -> str:
    """Return a text in one line, so that what an executor wrote makes no key of its own."""
    return " ".join(text.split()).replace("<!--", "< !--")
