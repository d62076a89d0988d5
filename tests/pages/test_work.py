from __future__ import annotations

import re

import pytest

from remit import Remit
from remit.parts.work.order import WorkOrder
from remit.parts.work.references import IssueRef
from remit.parts.work.result import Changes, Test, WorkResult
from tests.pages.conftest import Served, token
from tests.parts.work.test_store import order_of

pytestmark = pytest.mark.slow

HOSTILE = "<script>alert(1)</script>{{ 7*7 }}\u202e"
ISSUE = "org/repo#7"


async def prepare(opened: Remit) -> str:
    """An issue with a run that was switched, its late result, and a run under way; the first run."""
    store = opened.service.work._store
    issue = IssueRef.parse(ISSUE)
    await store.open(issue, HOSTILE, "alice")
    await store.open(IssueRef.parse("local#1"), "Waits", "alice")
    await store.move(IssueRef.parse("local#1"), "blocked", reason="waits for local#2", blocked_by=("local#2",))
    first: WorkOrder = await store.start(issue, order_of, role="work", executor="old", job="job_1")
    await store.start(
        issue, order_of, role="work", executor="new", previous=first.run_id, reason="timeout", instead=True
    )
    result = WorkResult(
        issue_ref=ISSUE,
        run_id=first.run_id,
        status="ok",
        summary=HOSTILE,
        changes=Changes(commit="abc123"),
        tests=(Test(result="pass", command="make test"),),
    )
    assert not (await store.accept(first, result)).accepted
    return first.run_id


async def test_issues_stand_by_state_and_each_has_its_page(served: Served) -> None:
    async with Remit(":memory:", work=False) as opened, served(opened) as browser:
        assert "remit work issue" in (await browser.get("/work")).text
        first = await prepare(opened)
        page = (await browser.get("/work")).text
        columns = dict(re.findall(r'<section aria-labelledby="c-([\w-]+)">(.*?)</section>', page, re.DOTALL))
        assert list(columns) == ["todo", "doing", "review", "blocked", "needs-human", "done"]
        assert "/work/org%2Frepo%237" in columns["doing"]
        assert "new works on it" in columns["doing"]
        assert "waits for local#2" in columns["blocked"]
        assert "local#1" in (await browser.get("/work?state=blocked")).text
        assert "No issue is done" in (await browser.get("/work?state=done")).text
        unit = (await browser.get("/work/org%2Frepo%237")).text
        for text in (first, "took the place of", "timeout", "1 late result, archived", "make test", "abc123"):
            assert text in unit
        for text in (page, unit):
            assert "<script>alert" not in text
            assert "\u202e" not in text
        assert (await browser.get("/work/local%2399")).status == 404
        assert (await browser.get("/work/nonsense")).status == 400


async def test_an_issue_is_stopped_and_decided_by_who_may(served: Served) -> None:
    tokens = [token("ann", "read"), token("bob", "read", "decide")]
    async with Remit(":memory:", work=False) as opened:
        await prepare(opened)
        async with served(opened, tokens) as browser:
            await browser.log_in("secret-ann")
            page = await browser.get("/work/org%2Frepo%237")
            fields = [("csrf", page.csrf)]
            assert (await browser.send("/work/org%2Frepo%237/stop", fields)).status == 403
            await browser.log_in("secret-bob")
            fields = [
                ("csrf", (await browser.get("/work/local%231")).csrf),
                ("state", "todo"),
                ("reason", "it is there"),
            ]
            assert (await browser.send("/work/local%231/decide", fields)).status == 303
        view = await opened.service.work.view("local#1")
        assert (view.state, view.reason) == ("todo", "it is there")


async def test_a_person_hands_in_the_result_of_a_run_and_an_issue_shows_its_parts(served: Served) -> None:
    async with Remit(":memory:", work=False) as opened, served(opened) as browser:
        await prepare(opened)
        store = opened.service.work._store
        await store.open(IssueRef.parse("local#2"), "A part", "alice", parent=ISSUE)
        page = await browser.get("/work/org%2Frepo%237")
        run = (await opened.service.work.view(ISSUE)).active
        assert f"Hand in the result of {run}" in page.text
        assert "0 of 1 parts done" in page.text
        assert "Part of" in (await browser.get("/work/local%232")).text
        fields = [
            ("csrf", page.csrf),
            ("run", run),
            ("status", "ok"),
            ("commit", "4f2c1d9"),
            ("tests", "make test => pass\r\n\r\nmake lint => fail"),
            ("summary", "Mended\nStatus: fail"),
        ]
        assert (await browser.send("/work/org%2Frepo%237/result", fields)).status == 303
        view = await opened.service.work.view(ISSUE)
        result = view.results[run]
        assert (view.state, result.status, result.changes.commit) == ("review", "ok", "4f2c1d9")
        assert result.summary == "Mended Status: fail"
        assert [(test.command, test.result) for test in result.tests] == [("make test", "pass"), ("make lint", "fail")]
        assert f"workrun:{run}" in view.unwritten, "nothing here could write it"
        bad = [("csrf", page.csrf), ("run", "x"), ("status", "ok")]
        assert (await browser.send("/work/org%2Frepo%237/result", bad)).status == 400
