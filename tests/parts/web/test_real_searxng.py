"""web.search and a whole report with SearXNG itself, which searches a web on loopback with one engine.

Another of its engines does not answer.

It is large, so it is installed and tested only if that is asked for: `make searxng`, REMIT_TEST_SEARXNG=1.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from examples.web.town import Town
from remit import JobEndedError
from remit.codes import Code
from remit.parts.recipes.research_report import research_report
from remit.parts.web import search
from remit.parts.web.fetcher import Fetcher, WebError
from tests.opened import OpenRemit
from tests.patience import PATIENCE_S
from tests.ports import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("REMIT_TEST_SEARXNG"), reason="140 MB: `make searxng` installs it"),
]
PYTHON = Path(__file__).parents[3] / "build/frameworks/searxng/bin/python"
ENGINE = """
  - {{name: {name}, engine: json_engine, enable_http: true, shortcut: {shortcut}, categories: general,
     search_url: "{base}/search?q={{query}}&format=json", results_query: results, url_query: url,
     title_query: title, content_query: content}}
"""
SETTINGS = """
use_default_settings: {{engines: {{keep_only: []}}}}
search: {{formats: [html, json]}}
server: {{secret_key: loopback, limiter: false, bind_address: 127.0.0.1, port: {port}}}
plugins: {{searx.plugins.tracker_url_remover.SXNGPlugin: {{active: false}}}}
engines:
"""


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    town = Town()
    runner = await town.start()
    yield town
    await runner.cleanup()


@pytest.fixture
async def instance(town: Town, tmp_path: Path) -> AsyncIterator[str]:
    port = free_port()
    engines = ENGINE.format(name="town", shortcut="tw", base=town.base)
    engines += ENGINE.format(name="closed", shortcut="cl", base="http://127.0.0.1:1")
    (tmp_path / "settings.yml").write_text(SETTINGS.format(port=port) + engines)
    env = {**os.environ, "SEARXNG_SETTINGS_PATH": str(tmp_path / "settings.yml")}
    with (tmp_path / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(PYTHON), "-m", "searx.webapp", cwd=tmp_path, env=env, stdout=log, stderr=log
        )
        try:
            await answering(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            await process.wait()


async def answering(base: str, process: asyncio.subprocess.Process) -> None:
    """Wait until the instance answers."""
    async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession() as session:
        while process.returncode is None:
            try:
                async with session.get(f"{base}/healthz"):
                    return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.05)  # noqa: TID251 - another process tells nobody that it listens
    pytest.fail("SearXNG ended")


async def test_its_answers_are_read_and_engines_that_fail_are_no_empty_list(instance: str) -> None:
    fetcher = Fetcher(private=(instance.removeprefix("http://"),))
    backend = search.searxng(instance)
    hits = await backend.ask(fetcher, "swimming pool prices", 5)
    assert len(hits) == 5
    assert "/swimming-pool/prices" in " ".join(hit.url for hit in hits)
    with pytest.raises(WebError) as caught:
        await backend.ask(fetcher, "!cl swimming pool prices", 5)
    assert caught.value.cause is Code.WebProviderError
    assert "closed" in str(caught.value)
    assert await backend.ask(fetcher, "!tw zzzz", 5) == []
    await fetcher.close()


async def test_a_report_quotes_what_it_finds_and_fails_where_its_engines_do(
    town: Town, instance: str, remit_in: OpenRemit
) -> None:
    web = {"search": ("searxng",), "searxng_url": instance, "private": (town.base.removeprefix("http://"),)}
    flags = {f"web.{name}": value for name, value in (web | {"pause_ms": 1}).items()}
    async with remit_in(flags=flags | {"documents.seconds": int(PATIENCE_S)}) as remit:
        job = await remit.start(research_report("What does the swimming pool cost?", web=True, max_sources=3))
        report = await job
        assert "A ticket for the swimming pool costs 4 euros" in " ".join(each["text"] for each in report["evidence"])
        assert all(source["path"].startswith(town.base) for source in report["sources"])
        assert (await remit.replay(job.id)).verdict == "same"
        with pytest.raises(JobEndedError, match="its engines did not answer: closed"):
            await remit.run(research_report("!cl swimming pool", web=True))
