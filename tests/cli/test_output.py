"""`--jq`: choosing from what a command prints as JSON."""

from __future__ import annotations

import sys

import pytest

from tests.cli.conftest import Project


def test_what_jq_makes_of_the_json_is_printed_a_line_for_each_result(project: Project) -> None:
    first, second = project.job("report"), project.job("report")
    assert project.here("jobs", "--jq", ".[].job").out.splitlines() == [second, first]
    assert project.here("jobs", "--jq", "map(.state) | unique").out == '["completed"]\n'
    assert project.here("jobs", "--jq", '.[] | select(.state == "failed")').out == ""


def test_text_is_printed_without_quotes_as_it_is(project: Project) -> None:
    assert project.here("jobs", "--jq", '"ü\\n\\u0000" + "x"').out == "ü\n\0x\n"


def test_the_job_runs_and_only_the_part_is_printed(project: Project) -> None:
    done = project.here("run", "report", "--jq", ".state")
    assert (done.status, done.out) == (0, "completed\n")


@pytest.mark.parametrize("expression", [".[", "nosuch", ""])
def test_what_is_not_jq_is_refused_before_anything_runs(project: Project, expression: str) -> None:
    done = project.here("run", "report", "--jq", expression)
    assert (done.status, done.out, '"USAGE"' in done.err) == (2, "", True)
    assert project.here("jobs", "--json").json == []


def test_an_expression_that_does_not_fit_says_so(project: Project) -> None:
    done = project.here("jobs", "--jq", ".a.b")
    assert (done.status, "--json" in done.err) == (2, True)


def test_without_the_package_the_remedy_is_to_install_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jq", None)
    done = project.here("jobs", "--jq=.")
    assert (done.status, "remit[jq]" in done.err) == (2, True)


def test_errors_stay_json_and_are_not_filtered(project: Project) -> None:
    done = project.here("show", "nope", "--jq", ".steps")
    assert (done.status, '"JOB_NOT_FOUND"' in done.err) == (2, True)
