"""The result of a run, by what the adapter saw; and what the flow makes of it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from remit.parts.work.executors.adapter import SeenFacts, judge
from remit.parts.work.executors.port import AgentTurn, ProgramEnding
from remit.parts.work.executors.publication import PublishedRun
from remit.parts.work.executors.worktree import paths_of
from remit.parts.work.order import WorkOrder
from remit.parts.work.result import RESULT_CODES, Changes, Test, WorkResult
from remit.parts.work.unit import LACKING, MAX_RETRIES, step_after

ORDER = WorkOrder(issue_ref="local#1", run_id="2026-02-14-work-0001", role="work", repo_dir="/x")
ENDED = ProgramEnding(program="make", args=("test",), timeout=9, started=1, finished=2, exit_code=0)
FACTS = SeenFacts(ENDED, "aaa", "bbb", commits=True)
CLAIM = WorkResult(
    issue_ref="local#1", run_id=ORDER.run_id, status="ok", summary="Mended.", changes=Changes(pr="https://x/1")
)
PASS, FAIL = Test(command="t", result="pass"), Test(command="t", result="fail")

ENDS: list[tuple[str, dict[str, Any], str, str]] = [
    ("committed", {}, "ok", ""),
    ("said so", {"claim": CLAIM}, "ok", ""),
    ("proved", {"tests": (PASS,)}, "ok", ""),
    ("lied about tests", {"tests": (PASS, FAIL), "claim": CLAIM}, "fail", "test_failed"),
    ("exit code", {"ending": replace(ENDED, exit_code=1)}, "fail", ""),
    ("exit code, and it says ok", {"ending": replace(ENDED, exit_code=1), "claim": CLAIM}, "fail", ""),
    ("not started", {"ending": replace(ENDED, exit_code=None, error="no such file")}, "fail", "env_unavailable"),
    ("hangs", {"ending": replace(ENDED, exit_code=None, timed_out=True)}, "fail", "outcome_unknown"),
    (
        "hangs, but says ok",
        {"ending": replace(ENDED, exit_code=0, timed_out=True), "claim": CLAIM},
        "fail",
        "outcome_unknown",
    ),
    ("stopped by us and exits 0", {"ending": replace(ENDED, stopped=True), "claim": CLAIM}, "fail", "outcome_unknown"),
    ("ended with Remit", {"ending": replace(ENDED, stopped=True, exit_code=None)}, "fail", "env_unavailable"),
    ("no terminal event", {"ending": replace(ENDED, turn=AgentTurn(terminal=False))}, "fail", "outcome_unknown"),
    ("denied calls", {"ending": replace(ENDED, turn=AgentTurn(denied=2))}, "fail", "permission_denied"),
    ("its event says error, and it exits 0", {"ending": replace(ENDED, turn=AgentTurn(fault="HTTP 401"))}, "fail", ""),
    ("forbidden path", {"forbidden": ("migrations/1.sql",)}, "fail", "permission_denied"),
    ("says it failed", {"claim": replace(CLAIM, status="fail", result_code="ci_failed")}, "fail", "ci_failed"),
    ("says it is blocked", {"claim": replace(CLAIM, status="blocked", blocked_by=("local#2",))}, "blocked", ""),
]


@pytest.mark.parametrize(("facts", "status", "code"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_what_is_seen_decides(facts: dict[str, Any], status: str, code: str) -> None:
    result = judge(ORDER, FACTS._replace(**facts))
    assert (result.status, result.result_code) == (status, code)
    assert (result.issue_ref, result.run_id) == (ORDER.issue_ref, ORDER.run_id)
    assert result.summary
    assert result.tests


def test_the_commit_that_was_seen_counts_and_not_one_that_was_named() -> None:
    claim = replace(CLAIM, changes=Changes(commit="ffff", pr="https://x/1"))
    assert judge(ORDER, FACTS._replace(claim=claim)).changes == Changes(commit="bbb")
    assert judge(ORDER, FACTS._replace(head="aaa")).changes == Changes()
    published = FACTS._replace(published=PublishedRun(url="https://x/2"), claim=claim)
    assert judge(ORDER, published).changes == Changes(pr="https://x/2", commit="bbb")


NOTHING = FACTS._replace(head="aaa")
FAILED = NOTHING._replace(ending=replace(ENDED, exit_code=1))
CLAIMED: dict[str, tuple[Any, ...]] = {
    "issue_ref": ("local#2",),
    "run_id": ("2026-02-14-work-0002",),
    "status": ("ok", "fail", "blocked"),
    "changes": (Changes(pr="https://x/1", commit="ffff"), Changes(pr="https://x/1"), Changes(commit="ffff")),
    "tests": ((PASS,), (PASS, replace(PASS, evidence="https://x/log"))),
    "summary": ("All is done.",),
    "blocked_by": (("local#2",),),
    "questions": (("May I?",),),
    "artifacts": (("session/other", "https://x/1", "report.txt"),),
    "result_code": tuple(sorted(RESULT_CODES)),
    "schema_version": (9,),
    "unknown_json": ('{"verdict":"pass"}',),
    "unknown_fields": (b"x",),
}
"""By field of a claim, values that would be welcome if they were facts."""


@pytest.mark.parametrize("facts", [NOTHING, FAILED], ids=["did nothing", "failed"])
@pytest.mark.parametrize("field", WorkResult.__struct_fields__)
@pytest.mark.parametrize("status", ["ok", "fail", "blocked"])
@pytest.mark.parametrize("failures", [0, MAX_RETRIES])
def test_no_field_of_a_claim_raises_anything(facts: SeenFacts, field: str, status: Any, failures: int) -> None:
    seen = judge(ORDER, facts)
    for value in CLAIMED[field]:
        claim = replace(CLAIM, changes=Changes(), status=status)
        result = judge(ORDER, facts._replace(claim=replace(claim, **{field: value})))
        assert step_after(result, failures).state != "review", value
        assert seen.status != "fail" or result.status != "ok", value
        assert (result.issue_ref, result.run_id, result.changes, result.tests) == (
            (ORDER.issue_ref, ORDER.run_id, seen.changes, seen.tests)
        )
        assert (result.unknown_json, result.unknown_fields) == ("", b"")
        assert not any(name.startswith("session/") for name in result.artifacts)


def test_a_run_that_says_that_it_lacked_something_counts_as_failed() -> None:
    claim = replace(CLAIM, status="fail", result_code=LACKING)
    result = judge(ORDER, FACTS._replace(claim=claim))
    assert (result.status, step_after(result, MAX_RETRIES).state) == ("fail", "blocked")
    assert LACKING in result.summary


@pytest.mark.parametrize(("exit_code", "verdict", "status"), [(0, "pass", "ok"), (1, "fail", "fail")])
def test_a_test_suite_is_its_own_evidence(exit_code: int, verdict: str, status: str) -> None:
    facts = FACTS._replace(ending=replace(ENDED, exit_code=exit_code), head="aaa", commits=False)
    result = judge(ORDER, facts)
    assert (result.status, [test.result for test in result.tests]) == (status, [verdict])
    assert result.changes.commit == "aaa", "what was tested"


@pytest.mark.parametrize(
    ("result", "failures", "state"),
    [
        (replace(CLAIM, tests=(PASS,)), 0, "review"),
        (replace(CLAIM, tests=(PASS,), changes=Changes()), 0, "blocked"),
        (replace(CLAIM, tests=()), 0, "blocked"),
        (replace(CLAIM, status="blocked"), 0, "blocked"),
        (replace(CLAIM, status="fail"), 0, "doing"),
        (replace(CLAIM, status="fail"), MAX_RETRIES, "blocked"),
        (replace(CLAIM, status="fail", result_code=LACKING), MAX_RETRIES, "doing"),
    ],
)
def test_a_result_moves_its_issue(result: WorkResult, failures: int, state: str) -> None:
    step = step_after(result, failures)
    assert step.state == state
    assert step.next


def test_patterns_name_paths_and_all_that_is_below_them() -> None:
    paths = ["migrations/1.sql", "migrations/a/2.sql", "src/x.py", "Makefile", "migration"]
    assert paths_of(paths, ["migrations/**", "Makefile"]) == ["migrations/1.sql", "migrations/a/2.sql", "Makefile"]
    assert paths_of(paths, ["src"]) == ["src/x.py"]
    assert paths_of(paths, []) == []
