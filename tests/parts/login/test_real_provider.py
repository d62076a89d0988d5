"""People at a real provider of identities (npm's oidc-provider), in a real browser, at a real server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.pages.browsing import browsing, window
from tests.peers.servers import NODE22, ROOT
from tests.ports import free_port

pytestmark = pytest.mark.slow

MODULES = ROOT / "build" / "peers-login"
PROGRAM = Path(__file__).parent / "provider.mjs"
APP = '''
from remit import Run, recipe, tool

@tool("pay.wire")
def wire(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"

@recipe("pays")
async def pays(run: Run, amount: int) -> str:
    return (await run.call("pay.wire", {"amount": amount})).value
'''
SETTINGS = """
[app]
modules = ["app.py"]
[login]
issuer = "{issuer}"
client_id = "remit"
client_secret = "${{LOGIN_SECRET}}"
principal = "corp:{{sub}}"
[[login.grants]]
scopes = ["read", "decide"]
[[policy.rules]]
id = "wires"
tools = ["pay.*"]
effect = "ask"
approvers = ["@idp:payments"]
"""


class World:
    """A project, its server and the provider."""

    def __init__(self, folder: Path) -> None:
        if not (MODULES / "node_modules/oidc-provider").exists():
            pytest.skip("needs npm's oidc-provider: make peers")
        self.folder, self.port = folder, free_port()
        self.url, self.issuer = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{free_port()}"
        (folder / "app.py").write_text(APP, encoding="utf-8")
        (folder / "remit.toml").write_text(SETTINGS.format(issuer=self.issuer), encoding="utf-8")
        (MODULES / "provider.mjs").write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
        self.env = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "src"),
            "LANG": "C.UTF-8",
            "REMIT_TRUST": "1",
            "LOGIN_SECRET": "a secret of the test & more",
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "remit", *words]
        return subprocess.Popen(
            command, cwd=self.folder, env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def run(self, *words: str) -> tuple[int, str]:
        with self.start(*words) as process:
            out: str = process.communicate()[0]
            return process.returncode, out

    @contextmanager
    def provider(self) -> Iterator[None]:
        command = [NODE22, str(MODULES / "provider.mjs"), self.issuer.rpartition(":")[2], self.url]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.env
        ) as process:
            try:
                line_of(process, "http://")
                yield
            finally:
                process.kill()

    @contextmanager
    def server(self) -> Iterator[subprocess.Popen[str]]:
        with self.start("serve", "--port", str(self.port)) as process:
            try:
                line_of(process, "http://")
                yield process
            finally:
                process.kill()

    def question(self, amount: int) -> str:
        """A question to the group payments; its id."""
        self.run("run", "pays", "--amount", str(amount))
        asked: list[dict[str, Any]] = json.loads(self.run("confirm", "--json")[1])
        found: str = next(one["confirmation"] for one in asked if one["args"] == {"amount": amount})
        return found

    def answers(self, confirmation: str) -> list[dict[str, Any]]:
        """The recorded answers to a question."""
        script = (
            "import asyncio, json, sys, msgspec\nfrom remit import Remit\n"
            "async def main():\n"
            "    async with Remit('.remit/journal.db') as remit:\n"
            "        record = await remit.service.confirmations.answers(sys.argv[1])\n"
            "        print(msgspec.json.encode(record.decisions).decode())\n"
            "asyncio.run(main())\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, confirmation], cwd=self.folder, env=self.env, capture_output=True, check=True
        )
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found


def line_of(process: subprocess.Popen[str], beginning: str) -> str:
    assert process.stdout is not None
    read = ""
    for line in process.stdout:
        read += line
        if beginning in line:
            return line
    raise AssertionError(read)


async def log_in(page: Page, name: str) -> None:
    """Go through the provider's pages, from our form to log in to where the browser wanted to go."""
    await page.click("#provider")
    await at_provider(page, name)


async def at_provider(page: Page, name: str) -> None:
    if await page.locator("input[name=login]").count():
        await page.fill("input[name=login]", name)
        await page.fill("input[name=password]", "x")
        await page.click("button[type=submit]")
    await page.click("button[type=submit]")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_ann_approves_and_her_logout_at_the_provider_ends_it_all(world: World) -> None:
    with world.provider():
        first, second = world.question(1), world.question(2)
        async with browsing() as browser, window(browser, world.url) as tab:
            with world.server() as server:
                await tab.open(f"/inbox/{first}")
                await log_in(tab.page, "ann")
                await tab.arrived(f"/inbox/{first}")
                server.kill()
            with world.server():
                await tab.open(f"/inbox/{first}")
                await tab.page.click(f"form[action$='{first}/approve'] button")
                await expect(tab.page).to_have_url(re.compile("done="))
                (answer,) = world.answers(first)
                assert (answer["by"], answer["decision"]) == ("corp:ann", "approve")
                await tab.open(f"/inbox/{second}")
                await logged_out(tab.page, world)
                await tab.page.click(f"form[action$='{second}/approve'] button")
                await expect(tab.page.locator("#provider")).to_be_visible()
                assert world.answers(second) == []


async def logged_out(page: Page, world: World) -> None:
    """Log out at the provider, in another tab of the same browser."""
    other = await page.context.new_page()
    await other.goto(f"{world.issuer}/session/end")
    await other.click("button[type=submit] >> nth=0")
    await other.wait_for_load_state()
    await other.close()


async def test_bob_sees_no_button_and_the_device_flow_carries_ann(world: World) -> None:
    world.env["USERINFO"] = "1"  # groups stand in no ID token, as with most providers
    with world.provider(), world.server():
        question = world.question(3)
        async with browsing() as browser:
            async with window(browser, world.url) as tab:
                await tab.open(f"/inbox/{question}")
                await log_in(tab.page, "bob")
                await tab.arrived(f"/inbox/{question}")
                await expect(tab.page.locator("main")).to_contain_text("Only @idp:payments may answer")
                assert await tab.page.locator("form[action$='/approve']").count() == 0
            await at_a_terminal(browser, world, "bob")
            status, out = world.run("--server", world.url, "confirm", question, "--approve")
            assert status != 0
            assert "DECIDER_NOT_ALLOWED" in out
            await at_a_terminal(browser, world, "ann")
            status, out = world.run("--server", world.url, "confirm", question, "--approve")
            assert status == 0, out
            assert [answer["by"] for answer in world.answers(question)] == ["corp:ann"]
            assert world.run("login", world.url, "--logout")[0] == 0
            status, out = world.run("--server", world.url, "jobs")
            assert status != 0
            assert "UNAUTHENTICATED" in out


async def at_a_terminal(browser: Browser, world: World, name: str) -> None:
    """Log in with `remit login`: the code is entered in a browser elsewhere."""
    with world.start("login", world.url) as process:
        place = re.search(r"open (\S+) and", line_of(process, "enter the code"))
        assert place is not None
        async with window(browser, world.url) as tab:
            await tab.page.goto(place[1])
            await tab.page.click("button[type=submit]")
            await at_provider(tab.page, name)
            await expect(tab.page.locator("body")).to_contain_text("success", ignore_case=True)
        assert process.wait() == 0, process.communicate()[0]
