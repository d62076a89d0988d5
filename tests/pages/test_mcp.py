from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from playwright.async_api import expect

from remit import Remit, Run, recipe, tool
from remit.codes import Code
from remit.errors import ProviderError
from remit.tools.remote import RemoteStatus
from tests.mcp_server.upstream import Upstream, offered
from tests.pages.browsing import browsing, window
from tests.pages.conftest import Served, token

pytestmark = pytest.mark.slow

HOSTILE = "<script>alert(1)</script>{{ 7*7 }}\u202e\u200b'\"&</pre>"
READ: dict[str, Any] = {
    "name": "read",
    "description": "Reads.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
}


class Far(Upstream):
    """A server whose definitions the test sets."""

    def __init__(self) -> None:
        super().__init__(offered(READ))
        self.worded: dict[str, dict[str, Any]] = {"read": READ}
        self.down = False

    async def definitions(self) -> Mapping[str, dict[str, Any]]:
        if self.down:
            raise ProviderError(HOSTILE, cause=Code.ConnectionError)
        return self.worded

    async def status(self) -> RemoteStatus:
        await self.definitions()
        return RemoteStatus(
            name=HOSTILE,
            version="1",
            protocol="2025-11-25",
            era="legacy",
            instructions=HOSTILE,
            tools=1,
            capabilities={},
        )

    async def relay(self, method: str, params: Mapping[str, Any], peer: Any, principal: str) -> dict[str, Any]:
        raise ProviderError(f"{method} is not asked here", cause=Code.ToolNotFound)

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        raise NotImplementedError

    async def restart(self, by: str) -> None:
        """It is up."""

    async def become(self, other: Any) -> None:
        raise NotImplementedError

    async def retire(self) -> None:
        raise NotImplementedError

    def serve_only(self, peer: Any) -> None:
        """It serves no one in particular."""

    def subscribe(self, listener: Any) -> None:
        """It tells nothing."""


@tool("pad.read", level="L0")
def read(text: str = "") -> str:
    """Read."""
    return text


@recipe("idle", version="1")
async def idle(run: Run) -> None:
    """Do nothing."""


async def test_each_part_that_changed_has_a_diff_of_its_own_and_is_approved_as_shown(served: Served) -> None:
    far = Far()
    async with Remit(":memory:", providers=[far]) as opened, served(opened) as browser:
        assert "never pinned" in (await browser.get("/servers/far")).text
        await opened.service.servers.pin("far", by="ada")
        assert "its tools are as they were pinned" in (await browser.get("/servers/far")).text
        far.worded = {"read": {**READ, "description": f"Reads all. {HOSTILE}"}, HOSTILE: {"name": HOSTILE}}
        page = await browser.get("/servers/far")
        changed = page.text.partition("<code>read</code>")[2].partition("</div>")[0]
        assert re.findall(r"<h4>(.*?)</h4>", changed) == ["Description, which models read"]
        assert "- Reads." in changed
        assert "+ Reads all. &lt;script&gt;" in changed
        assert "<script>alert" not in page.text
        assert "\u202e" not in page.text
        digest = re.search(r'name="digest" value="([^"]+)"', page.text)
        assert digest is not None
        far.worded = {"read": {**READ, "description": "Reads more."}}
        late = await browser.send("/servers/far/approve", [("csrf", page.csrf), ("digest", digest[1])])
        assert late.status == 409
        far.worded = {"read": {**READ, "description": f"Reads all. {HOSTILE}"}, HOSTILE: {"name": HOSTILE}}
        done = await browser.send("/servers/far/approve", [("csrf", page.csrf), ("digest", digest[1])])
        assert (done.status, done.headers["location"]) == (303, "/servers/far")
        pin = await opened.service.servers.pin_of("far")
        assert pin is not None
        assert pin.how == "approve"


async def test_only_an_admin_approves(served: Served) -> None:
    far = Far()
    tokens = [token("ann", "read", "decide", "call"), token("bob", "admin")]
    async with Remit(":memory:", providers=[far]) as opened, served(opened, tokens) as browser:
        await opened.service.servers.pin("far")
        far.worded = {"read": {**READ, "description": "Reads all."}}
        shown = (await opened.service.servers.diff("far")).digest
        await browser.log_in("secret-ann")
        page = await browser.get("/servers/far")
        assert "Reads all." not in page.text
        assert "/approve" not in page.text
        fields = [("csrf", page.csrf), ("digest", shown)]
        assert (await browser.send("/servers/far/approve", fields)).status == 403
        await browser.log_in("secret-bob")
        page = await browser.get("/servers/far")
        assert "Reads all." in page.text
        assert "/servers/far/approve" in page.text


async def test_a_server_is_pinned_once_by_a_form(served: Served) -> None:
    async with Remit(":memory:", providers=[Far()]) as opened, served(opened) as browser:
        page = await browser.get("/servers/far")
        assert "Pin its tools" in page.text
        assert (await browser.send("/servers/far/pin", [("csrf", page.csrf)])).status == 303
        assert "Pin its tools" not in (await browser.get("/servers/far")).text
        shown = (await browser.get("/tools/mcp.far.read")).text
        assert 'href="/servers/far"' in shown
        assert re.search(r"<dt>Pinned</dt><dd><time .*?</time> by ", shown)
        late = await browser.send("/servers/far/pin", [("csrf", page.csrf)])
        assert (late.status, "pinned meanwhile" in late.text) == (409, True)
        found = await opened.service.servers.pin_of("far")
        assert found is not None
        assert found.seq == 1


async def test_servers_stand_with_their_state_and_one_that_is_silent_says_why(served: Served) -> None:
    far = Far()
    async with Remit(":memory:", providers=[far]) as opened, served(opened) as browser:
        listed = (await browser.get("/servers")).text
        assert 'href="/servers/far"' in listed
        assert '<span class="badge quiet">up</span>' in listed
        far.down = True
        silent = (await browser.get("/servers/far")).text
        assert "&lt;script&gt;" in silent
        assert "<script>alert" not in silent
        assert (await browser.get("/servers/none")).status == 404


async def test_without_servers_and_clients_the_page_says_how_to_get_them(served: Served) -> None:
    async with Remit(":memory:") as opened, served(opened) as browser:
        text = (await browser.get("/servers")).text
        assert "remit mcp add" in text
        assert "No client has called yet" in (await browser.get("/sessions")).text


async def test_a_session_is_shaped_like_a_job(served: Served) -> None:
    async with Remit(":memory:", tools=[read], policy=[]) as opened, served(opened) as browser:
        session = await opened.service.sessions.open("mcp", principal="ada", client=HOSTILE)
        for text in ("a", "b", "c", "d", "e", "f"):
            await opened.service.sessions.call(session, "pad.read", {"text": text})
        await opened.service.sessions.call(session, "pad.read", {"text": 1, HOSTILE: HOSTILE})
        listed = (await browser.get("/sessions")).text
        assert f'href="/sessions/{session}"' in listed
        assert 'href="/more" aria-current="page"' in listed
        page = (await browser.get(f"/sessions/{session}")).text
        assert "6 \N{MULTIPLICATION SIGN} pad.read" in page
        assert "INVALID_TOOL_ARGS" in page
        for shown in (listed, page):
            assert "<script>alert" not in shown
            assert "\u202e" not in shown
        refused = re.findall(rf'href="/sessions/{session}\?step=([^"&]+)"', page)[-1]
        whole = (await browser.get(f"/sessions/{session}?step={refused}")).text
        assert '<h2 id="step-name">pad.read</h2>' in whole
        assert "<p>blocked: <code>INVALID_TOOL_ARGS</code>" in whole
        assert '<td data-label="Principal">ada</td>' in listed
        assert "<dt>Principal</dt><dd>ada</dd>" in page
        opened_row = re.search(r'href="(/sessions/[^"]*open=[^"]*)"', page)
        assert opened_row is not None
        assert (await browser.get(opened_row[1])).text.partition("</main>")[0].count('<th scope="row">') == 7
        assert (await browser.get("/sessions/ses_none")).status == 404
        assert (await browser.get("/sessions/job_none")).status == 404


async def test_a_session_shows_the_question_of_its_call_and_no_job_is_shown_as_one(served: Served) -> None:
    rules = [{"effect": "ask", "tools": ["pad.read"]}]
    async with Remit(":memory:", tools=[read], recipes=[idle], policy=rules) as opened, served(opened) as browser:
        session = await opened.service.sessions.open("mcp", principal="ada", client="c")
        await opened.service.sessions.call(session, "pad.read", {"text": "a"})
        (question,) = await opened.service.confirmations.pending()
        page = (await browser.get(f"/sessions/{session}")).text
        (step,) = re.findall(rf'href="/sessions/{session}\?step=([^"&]+)"', page)
        whole = (await browser.get(f"/sessions/{session}?step={step}")).text
        assert f'<a href="/inbox/{question.confirmation}">The question</a>' in whole
        job = await opened.start(idle())
        await job
        assert (await browser.get(f"/sessions/{job.id}")).status == 404


async def test_a_tool_and_its_server_show_what_becomes_of_them(served: Served) -> None:
    far = Far()
    async with (
        Remit(":memory:", providers=[far]) as opened,
        served(opened) as server,
        browsing() as browser,
        window(browser, server.url) as shown,
    ):
        page = await shown.open("/tools/mcp.far.read")
        await expect(page.locator("#live-state")).to_have_text("Live")
        await page.get_by_text("The schema").click()
        changed = {"type": "object", "properties": {"path": {"type": "string"}}}
        far.change(offered({"name": "read", "description": "Reads a file.", "inputSchema": changed}))
        await expect(page.get_by_text("Reads a file.")).to_be_visible()
        await expect(page.get_by_role("row", name="path")).to_be_visible()
        await expect(page.locator("#input")).to_be_visible()

        page = await shown.open("/servers/far")
        await expect(page.locator("#live-state")).to_have_text("Live")
        more = [offered({"name": name, "inputSchema": {"type": "object"}}) for name in ("read", "write")]
        far.change(*more)
        await expect(page.get_by_role("link", name="mcp.far.write")).to_be_visible()
