"""Names of issues, events and runs."""

from __future__ import annotations

import re
from datetime import date
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.codes import Code
from remit.errors import UsageError
from remit.parts.work.references import EventRef, IssueRef, RunId, require_role

CONTRACT = re.compile(r"^\d{4}-\d{2}-\d{2}-[a-z][a-z0-9-]*-\d{4,}$")


@pytest.mark.parametrize(
    "text", ["org/contracts#123", "local#12", "group/sub/deep/project#7", "a/b.c_d-e#1", "o/r#9999999999"]
)
def test_a_reference_is_read_and_written_as_it_stands_and_is_a_file_name(text: str) -> None:
    issue = IssueRef.parse(text)
    assert str(issue) == text
    assert "/" not in issue.file_name
    assert unquote(issue.file_name) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#1",
        "org/repo",
        "org/repo#",
        "org/repo#0",
        "org/repo#01",
        "org/repo#1a",
        "org/repo#-1",
        "org/repo#12345678901",
        "org//repo#1",
        "/org/repo#1",
        "org/repo/#1",
        "../repo#1",
        "org/..#1",
        "org/repo.#1",
        ".org/repo#1",
        "org/re po#1",
        "org/repo#1\n",
        "org/repo##1",
        "repo#1",
        "I_kwDOABCD",
        "123456789",
        "gid://gitlab/Issue/1",
        "local#\u0661",
        "örg/repo#1",
        "org/" + "r" * 600 + "#1",
    ],
)
def test_nothing_else_is_a_reference(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        IssueRef.parse(text)
    assert refused.value.code is Code.WORK_INVALID


def test_an_event_of_a_local_issue() -> None:
    assert str(EventRef.parse("local#12/e34")) == "local#12/e34"
    for text in ("org/repo#1/e2", "local#12/e0", "local#12", "local#12/34"):
        with pytest.raises(UsageError):
            EventRef.parse(text)


@given(
    st.dates(min_value=date(1000, 1, 1)),
    st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True),
    st.integers(1, 10**9),
)
def test_every_run_id_that_is_drawn_is_one_by_the_contract_and_reads_back(day: date, role: str, number: int) -> None:
    run = RunId.draw(day, role, number)
    assert CONTRACT.fullmatch(str(run))
    assert RunId.parse(str(run)) == run
    assert int(run.sequence) == number


@pytest.mark.parametrize(
    "text", ["2026-02-14-backend-1", "2026-2-14-backend-0001", "2026-02-14-Backend-0001", "2026-02-14--0001", "", "x"]
)
def test_what_breaks_the_form_is_no_run(text: str) -> None:
    with pytest.raises(UsageError):
        RunId.parse(text)


def test_a_run_keeps_its_zeros() -> None:
    assert str(RunId.parse("2026-02-14-qa-00012")) == "2026-02-14-qa-00012"


@pytest.mark.parametrize("role", ["", "1st", "QA", "front_end", "a" * 64, "-x"])
def test_a_role_that_no_run_can_carry(role: str) -> None:
    with pytest.raises(UsageError):
        require_role(role)
