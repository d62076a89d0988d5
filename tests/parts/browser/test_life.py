"""How browsers start, are told apart, end, and fail."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from remit import Remit
from remit.capability import Look
from remit.codes import Code
from remit.errors import ProviderError
from remit.journal.event import HeadQuery
from remit.parts.browser import conversation, program, provider
from remit.parts.browser.browsers import Browsers
from remit.parts.browser.launch import SandboxedBrowser
from remit.parts.browser.provider import BrowserProvider
from remit.parts.browser.settings import BrowserSettings
from remit.parts.sandbox.wiring import open_enclosures
from remit.settings import load
from remit_testing.clock import ManualClock
from remit_testing.providers import PROVIDER_CHECKS, Check, Sample
from tests.parts.browser.conftest import Driver, Open
from tests.parts.browser.site import Site


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with Site().serve() as site:
        yield site


@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_promises_of_a_provider(opened: Open, check: Check) -> None:
    await check(opened, Sample("browser.close", {}))


async def test_every_tool_is_level_2_and_untrusted(opened: Open) -> None:
    metas = await opened().list_tools()
    assert {(int(meta.capability_level), meta.output_trusted, meta.isolation) for meta in metas} == {
        (2, False, "sandbox")
    }
    [url] = [meta.input_schema for meta in metas if meta.name == "browser.navigate"]
    assert url is not None
    assert url["properties"]["url"]["x-remit-role"] == "url"


async def test_a_question_names_the_secret_that_is_typed_and_that_enter_sends_it(tmp_path: Path) -> None:
    [made] = provider.open_browser(Opening(load(cwd=tmp_path, env={})))  # type: ignore[arg-type]
    shown = await made.preview("browser.type", {"ref": "p1:e4", "secret": "shop", "submit": True})
    assert shown is not None
    assert "the secret shop into p1:e4" in shown.what
    assert "Enter" in shown.what
    shown = await made.preview("browser.type", {"ref": "p1:e4", "text": "{lamp}"})
    assert shown is not None
    assert not {"secret", "Enter"} & set(shown.what.split())


# --- what is missing


async def failure(made: BrowserProvider, site: Site) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await Driver(made, site, "job/one").open("/form")
    await made.close()
    return caught.value


async def test_without_a_browser_it_says_what_to_install(opened: Open, site: Site) -> None:
    error = await failure(opened(program="/nowhere/chromium"), site)
    assert error.cause is Code.SpawnFailed
    assert "none at /nowhere/chromium. Install chromium-headless-shell" in str(error)


async def test_without_playwright_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, site: Site, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    for name in ("browsers", "acts", "conversation", "launch"):
        monkeypatch.delitem(sys.modules, f"remit.parts.browser.{name}", raising=False)
    opening = Opening(load(cwd=tmp_path, env={}))
    [made] = provider.open_browser(opening)  # type: ignore[arg-type]
    error = await failure(made, site)
    assert str(error) == "playwright.async_api is not installed: pip install 'remit[browser]'"
    assert error.cause is Code.SpawnFailed


class Opening:
    """As much of one as the provider looks at."""

    part = None
    clock = None
    enclosures = None

    def __init__(self, settings: Any) -> None:
        self.settings = settings


async def test_without_a_sandbox_nothing_is_started(site: Site, tmp_path: Path) -> None:
    enclosures = open_enclosures(load(cwd=tmp_path, env={}, flags={"sandbox.bwrap": "/nowhere/bwrap"}))
    error = await failure(BrowserProvider(lambda: Browsers(enclosures, BrowserSettings(), ManualClock())), site)
    assert error.code is Code.SANDBOX_UNAVAILABLE
    assert "Install bubblewrap" in str(error)


@pytest.mark.slow
async def test_without_namespaces_within_it_names_the_setting(
    opened: Open, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    specified = SandboxedBrowser._spec
    monkeypatch.setattr(SandboxedBrowser, "_spec", lambda *args: replace(specified(*args), rules="program"))
    made = opened()
    error = await failure(made, site)
    assert made._browsers is not None
    assert made._browsers._playwright is None
    assert error.code is Code.SANDBOX_UNAVAILABLE
    assert "Set browser.inner_sandbox = false" in str(error)


async def test_doctor_says_which_browser_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def given(**flags: str) -> Any:
        env = {f"REMIT_BROWSER_{key}".upper(): one for key, one in flags.items()}
        return Look(load(cwd=tmp_path, env=env), lambda: None)  # type: ignore[arg-type, return-value]

    shell = Path("/bin/sh").resolve()
    monkeypatch.setattr(program, "_PLACES", (str(Path(__file__)),))
    [none] = await program.check_browser(given())
    assert (none.verdict, none.detail) == ("ok", "none is installed")
    [found] = await program.check_browser(given(program=str(shell), inner_sandbox="false"))
    assert (found.verdict, found.detail) == ("ok", f"{shell}, Remit's sandbox alone")
    monkeypatch.setattr(program, "find_spec", lambda _: None)
    assert [one.detail for one in await program.check_browser(given())] == ["playwright is not installed"]
    assert [one.verdict for one in await program.check_browser(given(pages="3"))] == ["fail"]


# --- one browser for each job or session


@pytest.mark.slow
async def test_browsers_are_capped_told_apart_and_closed_when_idle(opened: Open, site: Site) -> None:
    clock = ManualClock()
    made = opened(clock, private=(site.host,), browsers=1, idle_seconds=100)
    one, other = Driver(made, site, "job/one"), Driver(made, site, "job/other/within")
    await one.open("/form")
    browsers = made._browsers
    assert browsers is not None
    first = browsers._conversations["job/one"]
    await other.open("/form")
    assert not first.browser.lives
    assert list(browsers._conversations) == ["job/other"]
    async with browsers._conversations["job/other"].turn:
        with pytest.raises(ProviderError, match="1 browsers are in use"):
            await one.open("/form")
    watching = browsers._watching
    assert watching is not None
    for _ in range(4):
        await clock.until_asleep()
        clock.advance(25)
    await watching
    assert browsers._playwright is None
    with pytest.raises(ProviderError, match=r"Call browser\.navigate"):
        await other("snapshot")
    await made.close()


@pytest.mark.slow
async def test_playwright_makes_no_folder_that_nobody_would_delete_for_it(
    opened: Open, site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tempfile.gettempdir()  # ours stay where they are: they go with a runtime that is killed
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    made = opened(private=(site.host,))
    await Driver(made, site, "job/one").open("/form")
    assert list(tmp_path.iterdir()) == []
    await made.close()


@pytest.mark.slow
async def test_a_browser_that_is_killed_is_said_so_and_replaced(
    opened: Open, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = opened(private=(site.host,))
    driver = Driver(made, site, "job/one")
    monkeypatch.setattr(conversation, "ACT_S", 1.0)
    await driver.open("/changing")
    with pytest.raises(ProviderError) as caught:
        await driver("click", ref=await driver.ref("Hang"))
    assert caught.value.cause is Code.Timeout
    assert (await driver.open("/form", new_page=True))["title"] == "Form"
    assert made._browsers is not None
    run = made._browsers._conversations["job/one"].browser._run
    assert run is not None
    run.cancel()
    with pytest.raises(ProviderError) as caught:
        await driver("wait_for", text="never", seconds=30)
    assert "No page is open" in str(caught.value)
    assert (await driver.open("/form"))["page"] == "p1"
    await made.close()


@pytest.mark.slow
async def test_what_a_person_approves_is_done_in_the_browser_of_its_session(
    site: Site, tmp_path: Path, opened: Open
) -> None:
    opened()  # or skip
    settings = load(cwd=tmp_path, env={"REMIT_BROWSER_PRIVATE": site.host, "REMIT_JOURNAL": ":memory:"})
    rules = [{"effect": "allow", "tools": ["browser.navigate", "browser.snapshot"]}]
    async with Remit(settings=settings, policy=rules) as remit:
        await remit.call("browser.navigate", {"url": site.url("/files")})
        snapshot = (await remit.call("browser.snapshot", {})).value["snapshot"]
        click = {"ref": snapshot.partition('"File" [ref=')[2].partition("]")[0]}
        asked = await remit.call("browser.click", click)
        assert asked.confirmation
        await remit.service.confirmations.decide(asked.confirmation, "approve", by="ann")
        assert (await remit.call("browser.click", click)).value["title"] == "Files"


# --- the record


@pytest.mark.slow
async def test_a_secret_is_nowhere_in_the_journal(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, opened: Open
) -> None:
    monkeypatch.setenv("TEST_BROWSER_SECRET", "correct horse")
    written = {
        "REMIT_BROWSER_PRIVATE": site.host,
        "REMIT_BROWSER_SECRETS": f"shop=TEST_BROWSER_SECRET@{site.host}",
        "REMIT_JOURNAL": str(tmp_path / "journal.db"),
    }
    rules = [{"effect": "allow", "tools": ["browser.*"]}]
    settings = load(cwd=tmp_path, env=written)
    async with Remit(settings=settings, policy=rules) as remit:
        await _log_in(remit, site)
        [session] = await remit.runtime.journal.heads(HeadQuery(kind="session"))
        artifacts = await remit.service.artifacts.rows(session.stream.partition("/")[2])
    assert [(row.path, row.media_type) for row in artifacts] == [("screenshot-1.png", "image/png")]
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"Password" in kept
    assert b"horse" not in kept


async def _log_in(remit: Remit, site: Site) -> None:
    await remit.call("browser.navigate", {"url": site.url("/login")})
    snapshot = (await remit.call("browser.snapshot", {})).value["snapshot"]
    ref = snapshot.partition('"Password" [ref=')[2].partition("]")[0]
    typed = await remit.call("browser.type", {"ref": ref, "secret": "shop", "submit": True})
    assert typed.ok
    assert site.posted[-1]["password"] == "correct horse"
    for word in ("snapshot", "extract", "screenshot"):
        assert (await remit.call(f"browser.{word}", {})).ok


def test_the_stub_needs_no_package() -> None:
    source = Path(importlib.import_module("remit.parts.browser.stub").__file__ or "").read_text(encoding="utf-8")
    assert "remit." not in source.replace("remit.connect", "").replace("remit.recv", "")
