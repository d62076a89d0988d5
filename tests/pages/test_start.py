"""A job is started by a form made from its recipe, empty or filled with an earlier job's input."""

from __future__ import annotations

from io import BytesIO
from typing import Literal

import aiohttp
import pytest

from remit import Remit, Run, recipe
from remit.api.route import MAX_BODY
from remit.service.options import Options
from tests.pages.browsing import browsing, window
from tests.pages.conftest import Served, token

pytestmark = pytest.mark.slow


@recipe("greets")
async def greets(
    run: Run,
    name: str,
    times: int = 1,
    tone: Literal["kind", "short"] = "kind",
    loud: bool = False,
    note: str | None = None,
    more: dict[str, int] | None = None,
) -> dict[str, object]:
    """Greet somebody.

    As often as one likes.
    """
    run.progress("greeting")
    return {"name": name, "times": times, "tone": tone, "loud": loud, "note": note, "more": more}


@recipe("rests")
async def rests(run: Run) -> str:
    """Do nothing."""
    run.progress("resting")
    return "done"


@recipe("scans")
async def scans(run: Run, scan: bytes, note: str = "", second: bytes | None = None) -> list[object]:
    """Look at files."""
    run.progress("scanning")
    return [scan.hex(), note, second and second.hex()]


def remit() -> Remit:
    return Remit(":memory:", recipes=[greets, rests, scans])


def filled(csrf: str, job: str = "", **values: str) -> list[tuple[str, str]]:
    given = {"name": "", "times": "1", "tone": "kind", "loud": "false", "note": "", "more": "", **values}
    pairs = [pair for name, value in given.items() for pair in (("name", name), ("value", value))]
    return [("csrf", csrf), ("job", job), *pairs, ("title", "")]


async def test_every_recipe_is_listed_with_what_it_does(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        page = (await server.get("/start")).text
        assert page.index('href="/start/greets"') < page.index('href="/start/agent"')
        assert "Greet somebody." in page
        assert "ticket_run" not in page
        assert 'href="/start"' in (await server.get("/jobs")).text


async def test_the_form_knows_types_defaults_and_words(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        page = (await server.get("/start/greets")).text
        assert 'name="value" value="1"' in page
        assert '<option value="kind" selected>' in page
        assert '<option value="short">' in page
        assert '<option value="false" selected>' in page
        assert "As often as one likes." in page
        assert (await server.get("/start/none")).status == 404


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"name": "Ada"}, {"name": "Ada"}),
        ({"name": "5", "times": "3", "tone": "short", "loud": "true"}, {"times": 3, "tone": "short", "loud": True}),
        ({"name": "Ada", "note": "why", "more": '{"a": 1}'}, {"note": "why", "more": {"a": 1}}),
    ],
    ids=["only what is required", "numbers, words and choices", "what may be none"],
)
async def test_a_job_begins_with_what_was_filled_in(
    served: Served, values: dict[str, str], wanted: dict[str, object]
) -> None:
    async with remit() as opened, served(opened) as server:
        page = await server.get("/start/greets")
        sent = await server.send("/start/greets", filled(page.csrf, **values))
        job = sent.headers["location"].removeprefix("/jobs/")
        await opened.service.jobs.settled([job])
        result = await opened.service.jobs.result(job)
        assert {name: result[name] for name in wanted} == wanted


@pytest.mark.parametrize("values", [{}, {"name": "Ada", "times": "often"}, {"name": "Ada", "more": "{"}])
async def test_a_form_that_does_not_fit_comes_back_as_it_was_filled(served: Served, values: dict[str, str]) -> None:
    async with remit() as opened, served(opened) as server:
        page = await server.get("/start/greets")
        again = await server.send("/start/greets", filled(page.csrf, tone="short", **values))
        assert again.status == 400
        assert 'role="alert"' in again.text
        assert '<option value="short" selected>' in again.text
        assert await opened.service.jobs.rows() == []


async def test_a_recipe_without_parameters_is_started_too(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        page = await server.get("/start/rests")
        sent = await server.send("/start/rests", [("csrf", page.csrf), ("title", "a rest")])
        row = await opened.service.jobs.row(sent.headers["location"].removeprefix("/jobs/"))
        assert row.title == "a rest"


async def test_an_earlier_job_fills_the_form(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        job = await opened.start(greets(name="Grace", times=7), Options())
        await job
        assert f'href="/start/greets?job={job.id}"' in (await server.get(f"/jobs/{job.id}")).text
        page = await server.get(f"/start/greets?job={job.id}")
        assert 'value="Grace"' in page.text
        sent = await server.send("/start/greets", filled(page.csrf, job.id, name="Grace", times="8"))
        made = sent.headers["location"].removeprefix("/jobs/")
        await opened.service.jobs.settled([made])
        assert (await opened.service.jobs.result(made))["times"] == 8


ODD = b"\x00\xff\r\n--b\r\n\xe9 a+b=&" + bytes(range(256))


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
async def test_a_file_is_chosen_sent_and_kept_for_the_next_start(served: Served, *, scripts: bool) -> None:
    async with (
        remit() as opened,
        served(opened) as server,
        browsing() as chromium,
        window(chromium, server.url, java_script_enabled=scripts) as shown,
    ):
        page = await shown.open("/start/scans")
        await page.get_by_label("scan").set_input_files({"name": 'a";\r\nb.pdf', "mimeType": "a/b", "buffer": ODD})
        await page.get_by_label("note").fill("erste Ü & 二")
        await page.get_by_role("button", name="Start").click()
        await page.wait_for_url("**/jobs/*")
        first = page.url.rpartition("/")[2]
        await opened.service.jobs.settled([first])
        assert await opened.service.jobs.result(first) == [ODD.hex(), "erste Ü & 二", None]
        await shown.open(f"/start/scans?job={first}")
        await page.get_by_label("second").set_input_files({"name": "c", "mimeType": "", "buffer": b"yo"})
        await page.get_by_role("button", name="Start").click()
        await page.wait_for_url("**/jobs/*")
        second = page.url.rpartition("/")[2]
        await opened.service.jobs.settled([second])
        assert await opened.service.jobs.result(second) == [ODD.hex(), "erste Ü & 二", b"yo".hex()]


async def test_files_beyond_the_size_of_a_request_are_refused(served: Served) -> None:
    async with remit() as opened, served(opened) as server:
        page = await server.get("/start/scans")
        form = aiohttp.FormData()
        form.add_field("csrf", page.csrf)
        form.add_field("scan", BytesIO(bytes(MAX_BODY)), filename="large")
        given = {"origin": server.url, "sec-fetch-site": "same-origin"}
        async with server.session.post(f"{server.url}/start/scans", data=form, headers=given) as answer:
            assert (answer.status, "REQUEST_TOO_LARGE" in await answer.text()) == (413, True)
        assert await opened.service.jobs.rows() == []


async def test_starting_needs_the_scope_call_and_bears_the_name_of_who_starts(served: Served) -> None:
    async with remit() as opened, served(opened, [token("ann", "read"), token("bob", "read", "call")]) as server:
        await server.log_in("secret-ann")
        assert 'href="/start"' not in (await server.get("/jobs")).text
        page = await server.get("/start/rests")
        assert "Your token lacks the scope call." in page.text
        assert (await server.send("/start/rests", [("csrf", page.csrf)])).status == 403
        await server.log_in("secret-bob")
        page = await server.get("/start/rests")
        sent = await server.send("/start/rests", [("csrf", page.csrf)])
        assert await opened.service.jobs.principal(sent.headers["location"].removeprefix("/jobs/")) == "bob"
