"""The console runs a step again with something changed, and lays two runs beside each other."""

from __future__ import annotations

import pytest

from remit import Remit, Run, recipe, tool
from tests.pages.conftest import serving, token


@tool("f.look", level="L0")
def look(word: str) -> int:
    """Look."""
    return len(word)


@recipe("twice")
async def twice(run: Run, word: str) -> int:
    """Look twice."""
    first = await run.call("f.look", {"word": word})
    return int(first.value) + int((await run.call("f.look", {"word": word})).value)


async def test_a_step_is_run_again_from_its_page_and_both_runs_are_compared() -> None:
    async with Remit(":memory:", tools=[look], recipes=[twice]) as remit, serving(remit) as browser:
        job = await remit.service.jobs.start_named("twice", {"word": "<b>a</b>"})
        await remit.ended(job)
        assert f'href="/jobs/{job}/steps/2/fork"' in (await browser.get(f"/jobs/{job}?step=2")).text
        page = await browser.get(f"/jobs/{job}/steps/2/fork")
        assert "&lt;b&gt;a&lt;/b&gt;" in page.text
        fields = [("csrf", page.csrf), ("args", '{"word": "four"}'), ("input", ""), ("result", ""), ("tool", "f.look")]
        sent = await browser.send(f"/jobs/{job}/steps/2/fork", fields)
        made = sent.headers["location"].removeprefix("/jobs/")
        await remit.ended(made)
        assert await remit.service.jobs.result(made) == 12
        assert f'<dt>Fork of</dt><dd><a href="/jobs/{job}">' in (await browser.get(f"/jobs/{made}")).text
        assert f'href="/jobs/{made}/compare"' in (await browser.get(f"/jobs/{made}")).text
        compared = (await browser.get(f"/jobs/{job}/compare?other={made}")).text
        assert "<strong>1</strong> changed" in compared
        assert "&lt;b&gt;" in compared
        assert "<b>a" not in compared
        assert "The other run" not in (await browser.get(f"/jobs/{job}/compare")).text


@pytest.mark.parametrize("fields", [[("result", "{")], [("args", "[]")], [("input", "1")]])
async def test_a_form_that_is_no_json_says_so(fields: list[tuple[str, str]]) -> None:
    async with Remit(":memory:", tools=[look], recipes=[twice]) as remit, serving(remit) as browser:
        job = await remit.service.jobs.start_named("twice", {"word": "a"})
        await remit.ended(job)
        page = await browser.get(f"/jobs/{job}/steps/1/fork")
        sent = await browser.send(f"/jobs/{job}/steps/1/fork", [("csrf", page.csrf), *fields])
        assert (sent.status, "FORK_INVALID" in sent.text) == (400, True)


async def test_who_may_only_read_is_offered_no_fork() -> None:
    async with Remit(":memory:", tools=[look], recipes=[twice]) as remit:
        job = await remit.service.jobs.start_named("twice", {"word": "a"})
        await remit.ended(job)
        async with serving(remit, [token("eve", "read")]) as browser:
            await browser.log_in("secret-eve")
            page = (await browser.get(f"/jobs/{job}?step=1")).text
            assert ("/compare" in page, "/fork" in page) == (True, False)
            assert (await browser.get(f"/jobs/{job}/steps/1/fork")).status == 403
