"""Results in JSON and in text: what is read, what is refused, and what a result lacks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.codes import Code
from remit.errors import UsageError
from remit.parts.work.document import MAX_DOCUMENT, write_document
from remit.parts.work.envelope import belongs_to_a_run, open_envelope, read_envelope, write_envelope
from remit.parts.work.order import Command, Constraints, WorkOrder, read_order
from remit.parts.work.result import RESULT_CODES, Changes, Test, WorkResult, read_result

ISSUE, RUN = "org/contracts#123", "2026-02-14-backend-0003"
SEED = f"""IssueRef: {ISSUE}
RunId: {RUN}
Status: ok
PR: https://git.example/org/backend/pull/45
Commit: none
Tests: go test ./... => pass
Evidence: https://git.example/org/backend/actions/runs/123456

Notes:
I updated the handler. Status: fail
"""


def test_the_example_of_the_protocol_is_read() -> None:
    result = read_envelope(SEED.encode())
    assert (result.issue_ref, result.run_id, result.status) == (ISSUE, RUN, "ok")
    assert result.changes == Changes(pr="https://git.example/org/backend/pull/45")
    (test,) = result.tests
    assert (test.command, test.result) == ("go test ./...", "pass")
    assert test.evidence.endswith("123456")
    assert result.summary == "Notes:"
    assert list(result.missing()) == []


@pytest.mark.parametrize(
    ("header", "lacks"),
    [
        (f"RunId: {RUN}\nStatus: ok", "IssueRef"),
        (f"IssueRef: {ISSUE}\nStatus: ok", "RunId"),
        (f"IssueRef: {ISSUE}\nRunId: {RUN}", "Status"),
        (f"IssueRef: none\nRunId: {RUN}\nStatus: ok", "IssueRef"),
    ],
)
def test_a_missing_anchor_is_named(header: str, lacks: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_envelope(f"{header}\n\nbody".encode())
    assert refused.value.code is Code.output_unparseable
    assert lacks in refused.value.message
    assert lacks in open_envelope(header.encode()).missing
    assert belongs_to_a_run(header.encode()) == (lacks != "RunId")


@pytest.mark.parametrize("key", ["IssueRef", "issue_ref", "issue-ref", "ISSUE REF", " issueref "])
def test_keys_are_known_in_every_spelling(key: str) -> None:
    assert read_envelope(f"{key}: {ISSUE}\r\nrun_id: {RUN}\r\nstatus: OK\r\n\r\nDone.".encode()).issue_ref == ISSUE


def test_none_means_absent_and_then_there_is_no_change_to_look_at() -> None:
    result = read_envelope(f"IssueRef: {ISSUE}\nRunId: {RUN}\nStatus: ok\nPR: none\nCommit: NONE\nTests: n/a".encode())
    assert not result.changes
    assert list(result.missing()) == ["changes", "summary"]
    assert [test.result for test in result.tests] == ["n/a"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe\x00",
        b"IssueRef: x\nRunId: y\nStatus: ok",
        b"x" * (MAX_DOCUMENT + 1),
        f"IssueRef: {ISSUE}\nRunId: {RUN}\nStatus: perhaps".encode(),
        f"IssueRef: {ISSUE}\nRunId: {RUN}\nStatus: ok\nResultCode: nope".encode(),
    ],
)
def test_a_text_that_is_no_result_is_unparseable(data: bytes) -> None:
    with pytest.raises(UsageError) as refused:
        read_envelope(data)
    assert refused.value.code is Code.output_unparseable


_LINE = st.text(st.characters(blacklist_categories=("C", "Zl", "Zp"), blacklist_characters="\n\r"), max_size=40).map(
    str.strip
)
_WORD = _LINE.filter(lambda text: text and "," not in text and text.lower() not in {"none", "n/a"} and "=>" not in text)
RESULTS = st.builds(
    WorkResult,
    issue_ref=st.just(ISSUE),
    run_id=st.just(RUN),
    status=st.sampled_from(["ok", "fail", "blocked"]),
    changes=st.builds(Changes, pr=_WORD, commit=_WORD | st.just("")),
    tests=st.lists(
        st.builds(Test, command=_WORD, result=st.sampled_from(["pass", "fail", "n/a"]), evidence=_WORD | st.just("")),
        min_size=1,
        max_size=3,
    ).map(tuple),
    summary=_WORD,
    blocked_by=st.lists(_WORD, max_size=2).map(tuple),
    questions=st.lists(_WORD, max_size=2).map(tuple),
    result_code=st.sampled_from(["", *sorted(RESULT_CODES)]),
)


@given(RESULTS)
def test_a_result_is_the_same_after_every_form(result: WorkResult) -> None:
    assert read_result(write_document(result)) == result
    assert read_envelope(write_envelope(result, "the log")) == result


ORDER = WorkOrder(
    issue_ref=ISSUE,
    run_id=RUN,
    role="backend",
    repo_dir="/srv/tree",
    spec_snapshot="# Do it",
    constraints=Constraints(forbidden_paths=("migrations/**",), commands=(Command(args=("make", "test")),)),
    depends_on=("local#3",),
)


def test_an_order_reads_back_and_camel_case_is_read_too() -> None:
    assert read_order(write_document(ORDER)) == ORDER
    camel = {
        "issueRef": ISSUE,
        "runId": RUN,
        "role": "backend",
        "repoDir": "/x",
        "specRef": "s",
        "leaseTtl": 5,
        "later": 1,
    }
    order = read_order(json.dumps(camel).encode())
    assert (order.issue_ref, order.repo_dir, order.lease_ttl) == (ISSUE, "/x", 5)
    assert list(order.warnings()) == []
    assert list(read_order(json.dumps(camel | {"specRef": ""}).encode()).warnings())


@pytest.mark.parametrize(
    "change",
    [
        {"issue_ref": "I_kwDO"},
        {"run_id": "1"},
        {"role": "QA"},
        {"role": "qa"},
        {"repo_dir": ""},
        {"depends_on": ["x"]},
        {"constraints": {"commands": [{"args": []}]}},
        {"issue_ref": 1},
        {"lease_ttl": "5"},
    ],
)
def test_a_malformed_order_is_refused(change: dict[str, Any]) -> None:
    fields = {"issue_ref": ISSUE, "run_id": RUN, "role": "backend", "repo_dir": "/x"} | change
    with pytest.raises(UsageError) as refused:
        read_order(json.dumps(fields).encode())
    assert refused.value.code is Code.WORK_INVALID


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"null",
        b"{",
        b'{"status":"ok"}',
        b"[" * 100_000,
        b'{"issue_ref":"a","issueRef":"b"}',
        b" " * (MAX_DOCUMENT + 1),
    ],
)
def test_json_that_is_no_result_is_unparseable(data: bytes) -> None:
    with pytest.raises(UsageError) as refused:
        read_result(data)
    assert refused.value.code is Code.output_unparseable


def test_a_result_of_another_run_does_not_echo_its_order() -> None:
    result = WorkResult(issue_ref=ISSUE, run_id=RUN, status="ok")
    result.require_echo(ISSUE, RUN)
    for issue, run in ((ISSUE, "2026-02-14-backend-0004"), ("local#1", RUN)):
        with pytest.raises(UsageError):
            result.require_echo(issue, run)
