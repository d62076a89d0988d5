"""The list of jobs: saved views, and the same done to many jobs at once."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urlencode

import pytest

from remit import Remit, Run, recipe, tool
from remit.pages import bulk
from remit.service.options import Options
from tests.pages.conftest import Got, Served, token

pytestmark = pytest.mark.slow


@tool("shop.break", level="L0")
def broken() -> str:
    """Fail."""
    raise ValueError("no")


@recipe("waits")
async def waits(run: Run, name: str) -> str:
    """Wait for a signal."""
    await run.wait_signal("go")
    return name


@recipe("fails")
async def fails(run: Run) -> None:
    """Fail."""
    await run.call("shop.break", {})


@recipe("naps")
async def naps(run: Run) -> None:
    """Wait for a time."""
    await run.sleep(3_600)


def remit() -> Remit:
    return Remit(":memory:", tools=[broken], recipes=[waits, fails, naps])


async def waiting(opened: Remit, *names: str, principal: str = "") -> list[str]:
    jobs = [(await opened.start(waits(name=name), Options(principal=principal))).id for name in names]
    await opened.service.jobs.settled(jobs)
    return jobs


async def test_jobs_are_found_by_labels_and_saved_as_a_table(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        for size in ("9", "10"):
            labels = {"team": "a,b", "size": size}
            await opened.service.jobs.settled([(await opened.start(waits(name=size), Options(labels=labels))).id])
        query = urlencode({"label": "team=a,b, size>=10"})
        page = await browser.get(f"/jobs?{query}")
        assert "size=10" in page.text
        assert "size=9" not in page.text
        table = await browser.get(f"/jobs.csv?{query}")
        assert len(table.text.splitlines()) == 2


def hidden(page: Got) -> list[tuple[str, str]]:
    """The hidden fields of the form that confirms."""
    form = page.text.partition('action="/bulk/')[2].partition("</form>")[0]
    found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', form)
    return [(name, unescape(value)) for name, value in found if name != "csrf"]


async def test_the_page_of_a_job_says_until_when_it_waits(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        job = (await opened.start(naps())).id
        async for event in opened.service.streams.follow(f"job/{job}"):
            if event.kind == "job_waiting":
                break
        page = await server.get(f"/jobs/{job}")
        assert re.search(r"waits for a timer\. Until <time ", page.text)


async def test_a_view_is_saved_found_and_removed(served: Served) -> None:
    async with remit() as opened, served(opened, [token("ann", "read"), token("bob", "read")]) as server:
        await server.log_in("secret-ann")
        page = await server.get("/jobs?state=failed&text=a%26b")
        assert "Save this view" in page.text
        fields = [("csrf", page.csrf), ("query", "state=failed&text=a%26b"), ("name", "Broken ones")]
        saved = await server.send("/views/save", fields)
        assert saved.headers["location"] == "/jobs?state=failed&text=a%26b"
        shown = await server.get("/jobs?state=failed&text=a%26b")
        assert re.search(
            r'<a href="/jobs\?state=failed&amp;text=a%26b" aria-current="page">Broken ones</a>', shown.text
        )
        await server.log_in("secret-bob")
        assert "Broken ones" not in (await server.get("/jobs")).text
        (view,) = await opened.service.saved_views.of("ann")
        page = await server.get("/jobs?state=failed")
        refused = await server.send("/views/remove", [("csrf", page.csrf), ("view", view.view)])
        assert refused.status == 404
        await server.log_in("secret-ann")
        page = await server.get("/jobs?state=failed")
        removed = await server.send("/views/remove", [("csrf", page.csrf), ("view", view.view)])
        assert removed.status == 303
        assert "Broken ones" not in (await server.get("/jobs")).text


async def test_a_view_has_a_name_and_replaces_one_of_the_same_name(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        page = await server.get("/jobs?state=failed")
        for name in ("", " ", "x" * 61):
            refused = await server.send("/views/save", [("csrf", page.csrf), ("query", "state=failed"), ("name", name)])
            assert refused.status == 400
        for query in ("state=failed", "state=waiting"):
            await server.send("/views/save", [("csrf", page.csrf), ("query", query), ("name", "Mine")])
        assert [(one.name, one.query) for one in await opened.service.saved_views.of()] == [("Mine", "state=waiting")]


async def test_jobs_are_found_by_who_asked_for_them(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        (hers,) = await waiting(opened, "milk", principal="ann")
        (his,) = await waiting(opened, "tea", principal="bob")
        page = await server.get("/jobs?principal=ann")
        assert hers in page.text
        assert his not in page.text


async def test_many_jobs_are_cancelled_as_they_were_shown(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        jobs = await waiting(opened, "milk", "tea", "bread")
        (other,) = await waiting(opened, "soap")
        await opened.service.jobs.signal(other, "go")
        await opened.service.jobs.settled([other])
        page = await server.get("/bulk?action=cancel")
        assert "Cancel 3 jobs" in page.text
        assert all(job in page.text for job in jobs)
        assert other not in page.text
        done = await server.send("/bulk/cancel", [("csrf", page.csrf), *hidden(page), ("reason", "not now")])
        assert "Cancel: 3 of 3 jobs" in done.text
        rows = await opened.service.jobs.settled(jobs)
        assert {row.state for row in rows} == {"cancelled"}
        told = await opened.service.jobs.view(jobs[0])
        assert told.error is not None
        assert "not now" in told.error.message


async def test_many_jobs_are_sent_a_signal_with_its_payload(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        jobs = await waiting(opened, "milk", "tea")
        page = await server.get("/bulk?action=signal&recipe=waits")
        assert "Signal 2 jobs" in page.text
        fields = [("csrf", page.csrf), *hidden(page), ("signal", "go")]
        refused = await server.send("/bulk/signal", [*fields, ("payload", "{")])
        assert "Signal: 0 of 2 jobs" in refused.text
        assert "Signal: 2 of 2 jobs" in (await server.send("/bulk/signal", [*fields, ("payload", "1")])).text
        assert {row.state for row in await opened.service.jobs.settled(jobs)} == {"completed"}


async def test_jobs_that_came_since_are_shown_before_anything_happens(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        jobs = await waiting(opened, "milk")
        page = await server.get("/bulk?action=cancel&recipe=waits")
        jobs += await waiting(opened, "tea")
        again = await server.send("/bulk/cancel", [("csrf", page.csrf), *hidden(page)])
        assert again.status == 409
        assert "Other jobs match by now" in again.text
        assert "Cancel 2 jobs" in again.text
        assert [(await opened.service.jobs.row(job)).state for job in jobs] == ["waiting", "waiting"]
        done = await server.send("/bulk/cancel", [("csrf", again.csrf), *hidden(again)])
        assert "Cancel: 2 of 2 jobs" in done.text


async def test_what_was_typed_stays_where_it_has_to_be_confirmed_again(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        await waiting(opened, "milk")
        page = await server.get("/bulk?action=signal&recipe=waits")
        await waiting(opened, "tea")
        typed = [("signal", "go"), ("payload", '{"a": "<1>"}')]
        again = await server.send("/bulk/signal", [("csrf", page.csrf), *hidden(page), *typed])
        assert again.status == 409
        assert 'name="signal" value="go"' in again.text
        assert "{&#34;a&#34;: &#34;&lt;1&gt;&#34;}</textarea>" in again.text


async def test_a_large_number_has_to_be_typed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "TYPED", 1)
    async with remit() as opened, served(opened) as server:
        jobs = await waiting(opened, "milk", "tea")
        page = await server.get("/bulk?action=cancel")
        assert "Type 2 to confirm" in page.text
        for number in ("", "3"):
            refused = await server.send("/bulk/cancel", [("csrf", page.csrf), *hidden(page), ("number", number)])
            assert refused.status == 400
        assert (await opened.service.jobs.row(jobs[0])).state == "waiting"
        done = await server.send("/bulk/cancel", [("csrf", page.csrf), *hidden(page), ("number", "2")])
        assert "Cancel: 2 of 2 jobs" in done.text


async def test_a_round_takes_no_more_than_it_shows(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MOST", 2)
    async with remit() as opened, served(opened) as server:
        jobs = await waiting(opened, "milk", "tea", "bread")
        page = await server.get("/bulk?action=cancel")
        assert "There are more: one round takes the newest 2" in page.text
        await server.send("/bulk/cancel", [("csrf", page.csrf), *hidden(page)])
        await opened.service.jobs.settled(jobs[1:])
        assert [(await opened.service.jobs.row(job)).state for job in jobs] == ["waiting", "cancelled", "cancelled"]


async def test_failed_jobs_are_retried_and_each_refusal_is_told(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        failed = [(await opened.start(fails())).id for _ in range(2)]
        await opened.service.jobs.settled(failed)
        page = await server.get("/bulk?action=retry&" + urlencode({"recipe": "fails"}))
        assert "Retry 2 jobs" in page.text
        fields = hidden(page)
        await opened.service.jobs.retry(failed[0])
        rows = await opened.service.jobs.rows(("failed", "pending", "running"))
        assert len(rows) == 3
        await opened.service.jobs.settled([row.job for row in rows])
        again = await server.send("/bulk/retry", [("csrf", page.csrf), *fields])
        assert again.status == 409
        done = await server.send("/bulk/retry", [("csrf", again.csrf), *hidden(again)])
        assert "Retry: 2 of 3 jobs" in done.text
        assert "JOB_NOT_RETRYABLE" in done.text


async def test_who_may_not_decide_can_look_and_not_confirm(served: Served) -> None:
    async with remit() as opened, served(opened, [token("ann", "read")]) as server:
        jobs = await waiting(opened, "milk")
        await server.log_in("secret-ann")
        page = await server.get("/bulk?action=cancel")
        assert "Your token lacks the scope decide." in page.text
        assert "Cancel…" not in (await server.get("/jobs?recipe=waits")).text
        seen = bulk._seen("cancel", [await opened.service.jobs.row(jobs[0])])
        refused = await server.send("/bulk/cancel", [("csrf", page.csrf), ("seen", seen)])
        assert refused.status == 403
        assert (await opened.service.jobs.row(jobs[0])).state == "waiting"


async def test_a_job_is_retried_from_its_page_and_each_leads_to_the_other(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        job = await opened.start(fails())
        await opened.service.jobs.settled([job.id])
        page = await server.get(f"/jobs/{job.id}")
        sent = await server.send(f"/jobs/{job.id}/retry", [("csrf", page.csrf), ("step", ""), ("reason", "again")])
        made = sent.headers["location"].removeprefix("/jobs/")
        assert (sent.status, made != job.id) == (303, True)
        again = (await server.get(f"/jobs/{made}")).text
        assert f'<dt>Retry of</dt><dd><a href="/jobs/{job.id}">' in again
        first = (await server.get(f"/jobs/{job.id}")).text
        assert f'<dt>Retried as</dt><dd><a href="/jobs/{made}">' in first


async def test_the_page_of_a_job_has_its_title(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        jobs = [await opened.start(fails(), Options(title=title)) for title in ("refund <ada>", "")]
        await opened.service.jobs.settled([job.id for job in jobs])
        titled, bare = [(await server.get(f"/jobs/{job.id}")).text for job in jobs]
    assert "</span> refund &lt;ada&gt;</h1>" in titled
    assert '<a href="/jobs?recipe=fails">fails</a>' in titled
    assert "</span> fails</h1>" in bare


async def test_a_line_filters_the_list_and_stands_in_its_box(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        (milk, tea) = await waiting(opened, "milk", "tea")
        page = (await server.get("/jobs?" + urlencode({"q": "state:waiting recipe:waits since:1h milk"}))).text
        assert milk in page
        assert tea not in page
        assert 'value="state:waiting recipe:waits since:1h milk"' in page
        assert "/bulk?action=cancel&amp;state=waiting&amp;recipe=waits&amp;text=milk&amp;within=1h" in page
        assert "/jobs.csv?state=waiting&amp;recipe=waits&amp;text=milk&amp;within=1h" in page
        for line in ("state:odd", "since:never"):
            assert (await server.get("/jobs?" + urlencode({"q": line}))).status == 400


async def test_a_line_is_counted_and_completed_as_it_is_typed(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        await waiting(opened, "milk", "tea")
        for line, words in (("state:waiting", "2 jobs"), ("state:odd", "no state"), ("milk", "")):
            text = (await server.get("/hints/jobs?" + urlencode({"q": line}))).text
            assert f"<output>{words}" in text or words in text.partition("</output>")[0]
        text = (await server.get("/hints/jobs?" + urlencode({"q": "recipe:"}))).text
        assert '<option value="recipe:waits">' in text


async def test_columns_are_taken_from_input_result_and_labels(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        job = await opened.start(waits(name="milk"), Options(title="shopping", labels={"team": "pay"}))
        await opened.service.jobs.settled([job.id])
        address = "/jobs?" + urlencode({"col": ["input.name", "team", "result", "input.none"]}, doseq=True)
        cells = re.compile(r'<td class="about(?: none)?" data-label="([^"]+)">([^<]*)</td>')
        before = dict(cells.findall((await server.get(address)).text))
        assert before == {"input.name": "milk", "team": "pay", "result": "", "input.none": ""}
        await opened.service.jobs.signal(job.id, "go")
        await opened.service.jobs.settled([job.id])
        assert dict(cells.findall((await server.get(address)).text))["result"] == "milk"


async def test_a_page_has_as_many_jobs_as_one_likes(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        await waiting(opened, *(str(number) for number in range(21)))
        page = (await server.get("/jobs?size=20")).text
        assert page.count('<tr id="rows-') == 20
        assert 'rel="next"' in page
        assert (await server.get("/jobs?size=7")).status == 400
