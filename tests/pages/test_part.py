from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from remit import Remit, Run, recipe, tool
from remit.api.table import ROUTES
from remit.http.problem import HttpProblem
from remit.mcp_server.request import PATH as ENDPOINT
from remit.pages.page import SAFE
from remit.pages.part import STRANGERS, parts_of
from remit.pages.table import PAGES
from remit_testing.clock import ManualClock
from tests.jobs.bank import NOW, Crash, in_doubt, pay
from tests.opened import OpenRemit, until_waiting
from tests.pages.conftest import Browser, Served, token

pytestmark = pytest.mark.slow

HOSTILE = "<script>alert(1)</script>{{ 7*7 }}\u202e\u200b'\"&</pre>"


@tool("probe.echo", level="L0")
def echo(text: str) -> str:
    """Say it again."""
    return text


@recipe("echoing")
async def echoing(run: Run, text: str) -> Any:
    """Say something again."""
    return (await run.call("probe.echo", {"text": text})).value


@recipe("waiting")
async def waiting(run: Run) -> Any:
    """Wait for a signal."""
    return await run.wait_signal("go")


@recipe("many")
async def many(run: Run, count: int) -> int:
    """Make many calls."""
    for number in range(count):
        await run.call("probe.echo", {"text": str(number)})
    return count


def remit(**more: Any) -> Remit:
    return Remit(":memory:", tools=[echo], recipes=[echoing, waiting, many], **more)


async def test_pages_need_no_login_where_the_api_needs_no_token(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        assert (await browser.get("/")).status == 200
        assert (await browser.get("/v1/jobs")).status == 200
        assert (await browser.get("/health/live")).headers["content-type"] == "application/json"


async def test_every_answer_says_what_a_browser_may_do_with_it(served: Served) -> None:
    async with remit() as opened, served(opened, [token("ann", "read", "tickets")]) as browser:
        for path in ("/", "/none", "/static/0/console.css"):
            got = await browser.get(path)
            assert {name: got.headers.get(name) for name in SAFE} == SAFE, path
            assert got.headers["cache-control"] == "no-store", path
        await browser.log_in("secret-ann")
        for page in PAGES:
            if page.method == "GET" and "{" not in page.path:
                got = await browser.get(page.path)
                assert (got.status, got.headers["cache-control"]) == (200, "no-store"), page.path
                assert "'unsafe" not in got.headers["content-security-policy"]


async def test_a_stranger_gets_a_form_to_log_in_and_learns_no_path(served: Served) -> None:
    async with remit() as opened, served(opened, [token("ann", "read")]) as browser:
        known, unknown = await browser.get("/jobs"), await browser.get("/nothing")
        assert (known.status, unknown.status) == (401, 401)
        assert known.text.replace("/jobs", "") == unknown.text.replace("/nothing", "")
        fragment = await browser.get("/jobs", {"hx-request": "true"})
        assert (fragment.status, fragment.text, fragment.headers["hx-refresh"]) == (401, "", "true")


async def test_logging_in_leads_to_the_page_that_was_wanted_and_out_again(served: Served) -> None:
    async with remit() as opened, served(opened, [token("ann", "read")]) as browser:
        assert (await browser.log_in("wrong")).status == 401
        entered = await browser.log_in("secret-ann")
        assert (entered.status, entered.headers["location"]) == (303, "/jobs")
        page = await browser.get("/jobs")
        assert page.status == 200
        assert "ann" in page.text
        left = await browser.send("/logout", [("csrf", page.csrf)])
        assert left.status == 303
        assert (await browser.get("/jobs")).status == 401


async def test_strangers_who_never_end_their_forms_lock_nobody_out(served: Served) -> None:
    async with remit() as opened, served(opened, [token("ann", "read")]) as browser:
        csrf = (await browser.get("/login")).csrf
        end = asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            yield b"csrf="
            await end.wait()

        headers = {"content-type": "application/x-www-form-urlencoded"}
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as crowd:
            held = [
                asyncio.create_task(crowd.post(f"{browser.url}/login", data=slow(), headers=headers))
                for _ in range(STRANGERS + 4)
            ]
            for _ in range(4):
                over, _ = await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED)
                for answered in over:
                    assert answered.result().status == 429
                    held.remove(answered)
                if len(held) <= STRANGERS:
                    break
            entered = await browser.send("/login", [("csrf", csrf), ("token", "secret-ann"), ("to", "/jobs")])
            assert entered.status == 303
            end.set()
            for answer in await asyncio.gather(*held):
                answer.close()


async def test_a_stranger_s_form_is_small(served: Served) -> None:
    async with remit() as opened, served(opened, [token("ann", "read")]) as browser:
        csrf = (await browser.get("/login")).csrf
        assert (await browser.send("/login", [("csrf", csrf), ("token", "x" * 20_000)])).status == 413


@pytest.mark.parametrize("to", ["https://evil.example/", "//evil.example", "/\\evil.example", "/login", "x\r\ny"])
async def test_logging_in_leads_nowhere_else(served: Served, to: str) -> None:
    async with remit() as opened, served(opened, [token("ann", "read")]) as browser:
        page = await browser.get("/")
        fields = [("csrf", page.csrf), ("token", "secret-ann"), ("to", to)]
        assert (await browser.send("/login", fields)).headers["location"] == "/"


async def test_a_link_from_elsewhere_loads_the_page_once_more_with_its_cookie(served: Served) -> None:
    async with remit() as opened, served(opened, [token("ann", "read")]) as browser:
        given = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
        got = await browser.get("/jobs?state=failed", given)
        assert got.status == 200
        assert 'http-equiv="refresh"' in got.text
        assert 'name="token"' not in got.text


async def test_a_session_cannot_be_used_for_the_api(served: Served) -> None:
    async with remit() as opened, served(opened, [token("ann", "read")]) as browser:
        await browser.log_in("secret-ann")
        assert (await browser.get("/v1/jobs")).status == 401


async def test_rights_are_those_of_the_token(served: Served) -> None:
    async with remit() as opened, served(opened, [token("ann", "read")]) as browser:
        job = await opened.start(waiting())
        await browser.log_in("secret-ann")
        page = await browser.get(f"/jobs/{job.id}")
        assert "/cancel" not in page.text
        refused = await browser.send(f"/jobs/{job.id}/cancel", [("csrf", page.csrf), ("reason", "")])
        assert refused.status == 403
        assert "SCOPE_REQUIRED" in refused.text
        assert (await job.row()).state != "cancelled"


async def test_a_session_ends_with_its_token(served: Served) -> None:
    clock = ManualClock(1_000_000_000_000_000)
    short = token("ann", "read", expires=clock.now() + 10_000_000)
    async with remit(clock=clock) as opened, served(opened, [short], clock) as browser:
        await browser.log_in("secret-ann")
        assert (await browser.get("/")).status == 200
        clock.advance(11)
        assert (await browser.get("/")).status == 401


async def test_every_form_is_refused_without_its_token_or_from_elsewhere(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        job = await opened.start(waiting())
        csrf = (await browser.get(f"/jobs/{job.id}")).csrf
        forms = [page.path for page in PAGES if page.method == "POST"]
        assert forms
        for form in forms:
            path = form.replace("{job}", job.id).replace("{step}", "1")
            for fields, headers in (
                ([], {}),
                ([("csrf", "0" * 64)], {}),
                ([("csrf", csrf)], {"origin": "http://127.0.0.1:1"}),
                ([("csrf", csrf)], {"origin": "null"}),
                ([("csrf", csrf)], {"sec-fetch-site": "same-site"}),
            ):
                got = await browser.send(path, [*fields, ("reason", "x")], headers)
                assert got.status == 403, (path, fields, headers, got.text)
        assert (await job.row()).state in {"pending", "running", "waiting"}


async def test_somebody_elses_cookie_does_not_open_their_forms(served: Served) -> None:
    async with remit() as opened, served(opened, [token("ann", "read", "decide")]) as browser:
        job = await opened.start(waiting())
        await browser.log_in("secret-ann")
        cookie = "; ".join(f"{one.key}={one.value}" for one in browser.session.cookie_jar)
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as other:
            thief = Browser(other, browser.url, browser.stop)
            got = await thief.send(f"/jobs/{job.id}/cancel", [("csrf", ""), ("reason", "")], {"cookie": cookie})
            assert got.status == 403
            assert "FORM_OUTDATED" in got.text
        assert (await job.row()).state in {"pending", "running", "waiting"}


async def test_what_others_wrote_is_never_markup_and_hides_nothing(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        job = await opened.start(echoing(text=HOSTILE))
        await job
        for path in ("/", "/jobs", f"/jobs/{job.id}", f"/jobs/{job.id}?step=1", f"/jobs/{job.id}/events"):
            text = (await browser.get(path)).text
            assert "<script>alert" not in text, path
            assert "\u202e" not in text
            assert "\u200b" not in text
        whole = (await browser.get(f"/jobs/{job.id}?step=1")).text
        assert "⟨U+202E⟩⟨U+200B⟩" in whole
        assert "&lt;script&gt;alert(1)&lt;/script&gt;{{ 7*7 }}" in whole


async def test_a_job_is_signalled_and_cancelled_by_forms(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        job = await opened.start(waiting())
        await opened.service.jobs.settled([job.id])
        page = await browser.get(f"/jobs/{job.id}")
        assert "waits for the signal go" in page.text
        wrong = await browser.send(f"/jobs/{job.id}/signal", [("csrf", page.csrf), ("name", "go"), ("payload", "{")])
        assert wrong.status == 400
        sent = await browser.send(f"/jobs/{job.id}/signal", [("csrf", page.csrf), ("name", "go"), ("payload", "[1]")])
        assert (sent.status, sent.headers["location"]) == (303, f"/jobs/{job.id}")
        assert await job == [1]
        late = await browser.send(f"/jobs/{job.id}/cancel", [("csrf", page.csrf), ("reason", "")])
        assert late.status == 409
        assert "JOB_FINISHED" in late.text
        again = await browser.send(f"/jobs/{job.id}/replay", [("csrf", page.csrf)])
        assert "does the same today" in again.text
        verified = await browser.send(f"/jobs/{job.id}/verify", [("csrf", page.csrf)])
        assert "Nothing that is recorded was changed" in verified.text


async def test_a_step_that_nobody_saw_the_end_of_is_decided_by_a_form(served: Served, remit_in: OpenRemit) -> None:
    bank = Crash(idempotent=False)
    job = await in_doubt(remit_in, bank)
    async with remit_in(tools=[bank.tool], recipes=[pay], flags=NOW) as opened, served(opened) as browser:
        await until_waiting(opened, job)
        page = await browser.get(f"/jobs/{job}")
        assert "The outcome of step 2 is unknown." in page.text
        assert re.search("the idempotency key <code>[0-9a-f]{64}</code>", page.text)
        assert "uncertain" in (await browser.get("/")).text
        form = f"/jobs/{job}/steps/2/decide"
        late = await browser.send(form, [("csrf", page.csrf), ("attempt", "7"), ("decision", "retry")])
        assert (late.status, "STEP_NOT_WAITING" in late.text) == (409, True)
        fields = [("csrf", page.csrf), ("attempt", "1"), ("value", "5"), ("reason", ""), ("decision", "done")]
        assert (await browser.send(form, fields)).status == 303
        assert await opened.job(job) == 5


async def test_alike_successes_fold_and_open_by_their_address(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        job = await opened.start(many(count=12))
        await job
        assert "12 \N{MULTIPLICATION SIGN} probe.echo" in (await browser.get(f"/jobs/{job.id}")).text
        whole = (await browser.get(f"/jobs/{job.id}?open=1")).text
        assert "12 \N{MULTIPLICATION SIGN}" not in whole
        assert whole.count('<tr id="s-') == 12
        assert (await browser.get(f"/jobs/{job.id}?find=%2211%22")).text.count('<tr id="s-') == 1


async def test_a_call_can_be_copied_as_curl_and_as_python(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        job = await opened.start(echoing("it's <b> \u202e"))
        await job
        text = html.unescape((await browser.get(f"/jobs/{job.id}?step=1")).text)
        assert """await remit.call('probe.echo', {'text': "it's <b> \\u202e"})""" in text
        assert "curl -X POST" in text
        assert "it'\\''s <b> ⟨U+202E⟩" in text


async def test_large_values_are_files_that_no_browser_shows(served: Served) -> None:
    async with remit() as opened, served(opened) as browser:
        job = await opened.start(echoing(text="é" * 1_000_000))
        await job
        page = await browser.get(f"/jobs/{job.id}?step=1")
        assert len(page.text) < 60_000
        for path in (f"/jobs/{job.id}/kept/result", f"/jobs/{job.id}/steps/1/kept/args"):
            assert path in page.text
            got = await browser.get(path)
            assert got.headers["content-disposition"].startswith("attachment")
            assert got.headers["content-type"] == "application/octet-stream"
            assert len(got.text) > 1_000_000


async def test_the_list_keeps_its_filter_over_pages(served: Served) -> None:
    async with remit(work=False) as opened, served(opened) as browser:
        for _ in range(60):
            _ = await opened.start(waiting())
        _ = await opened.start(echoing(text=""))
        page = await browser.get("/jobs?recipe=waiting&state=pending&text=WAIT&within=1h&label=")
        assert page.text.count('<tr id="rows-') == 50
        following = page.text.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
        assert "recipe=waiting" in following
        assert "state=pending" in following
        assert "text=WAIT" in following
        assert "within=1h" in following
        assert "No job matches." in (await browser.get("/jobs?text=elsewhere")).text
        second = await browser.get(following)
        assert second.text.count('<tr id="rows-') == 10
        assert 'rel="next"' not in second.text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/jobs/job_none", 404),
        ("/jobs?state=odd", 400),
        ("/jobs?label=odd", 400),
        ("/jobs?odd=1", 400),
        ("/jobs/" + "%00%0d%0a", 404),
        ("/jobs/a%2Fb", 404),
        ("/static/..%2fentry.py", 404),
    ],
)
async def test_a_wrong_address_gets_a_page_that_says_what_to_do(served: Served, path: str, status: int) -> None:
    async with remit() as opened, served(opened) as browser:
        got = await browser.get(path)
        assert got.status == status
        assert 'role="alert"' in got.text


async def test_times_stand_in_the_readers_zone(served: Served) -> None:
    clock = ManualClock(1_767_225_600_000_000)  # 2026-01-01T00:00:00Z
    async with remit(clock=clock, work=False) as opened, served(opened, clock=clock) as browser:
        _ = await opened.start(waiting())
        assert "00:00:00" in (await browser.get("/jobs")).text
        there = await browser.get("/jobs", {"cookie": "remit-zone=Asia%2FTokyo"})
        assert "09:00:00" in there.text
        assert "JST" in there.text
        wrong = await browser.get("/jobs", {"cookie": "remit-zone=../../etc/passwd"})
        assert "00:00:00" in wrong.text


def test_no_page_lies_where_another_part_of_the_server_answers() -> None:
    taken = {path.split("/")[1] for path in (*(route.path for route in ROUTES), ENDPOINT)}
    assert {page.path.split("/")[1] for page in PAGES}.isdisjoint(taken)


@pytest.mark.parametrize(
    ("parameter", "body"),
    [
        ("", b"--b\r\n\r\n--b--"),
        (" boundary=", b"--\r\n"),
        (" boundary=b", b""),
        (" boundary=b", b"--b--"),
        (" boundary=b", b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--"),
        (" boundary=b", b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx'),
        (" boundary=b", b'x\r\n--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--b--'),
        (" boundary=b", b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n' * 1_300 + b"--b--"),
    ],
)
def test_a_form_with_files_that_cannot_be_read_is_refused(parameter: str, body: bytes) -> None:
    with pytest.raises(HttpProblem, match="The form"):
        parts_of(body, parameter)


def test_the_parts_of_a_form_are_its_fields_and_its_files_as_base64() -> None:
    head = b"Content-Disposition: form-data; name="
    body = b'--b\r\n%b"csrf"\r\n\r\nc\r\n--b\r\n%b"value"; filename="x"\r\nContent-Type: a/b\r\n\r\nhi\r\n--b--\r\n'
    assert parts_of(body % (head, head), " boundary=b") == [("csrf", "c"), ("value", "aGk=")]
