from __future__ import annotations

import html
import re
from typing import Any

import pytest
from msgspec import structs

from remit import Remit, tool
from remit.pages import tool as pages_of_tool
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.provider import CallContext, ToolResult
from tests.pages.conftest import Got, Served, token

pytestmark = pytest.mark.slow

HOSTILE = "<script>alert(1)</script>{{ 7*7 }}\u202e\u200b'\"&</pre>"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["text"],
    "properties": {
        "text": {"type": "string", "description": HOSTILE, "maxLength": 99},
        "unit": {"type": "string", "enum": ["kg", "lb"], "default": HOSTILE},
        "count": {"type": "integer", "minimum": 1},
        "fast": {"type": "boolean"},
        "where": {"$ref": "#/$defs/place"},
    },
    "$defs": {"place": {"type": "object", "properties": {"city": {"type": ["string", "null"]}}}},
}


class Shop:
    """A provider whose words are hostile, and which counts what it is asked."""

    provider_id = "shop"

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    async def list_tools(self) -> list[ToolMeta]:
        reads: dict[str, Any] = {"capability_level": Level.L0, "risk_level": Risk.READ_ONLY, "side_effects": False}
        plain: dict[str, Any] = {"provider_id": "shop", "description": HOSTILE, "input_schema": SCHEMA}
        return [
            ToolMeta(name="shop.weigh", requires_confirm=False, **reads, **plain),
            ToolMeta(name="shop.sell", capability_level=Level.L1, **plain),
            ToolMeta(name="shop.gone", withheld=f"{HOSTILE} changed. Look at it.", **plain),
        ]

    async def invoke(self, _name: str, args: dict[str, Any], _ctx: CallContext) -> ToolResult:
        self.calls.append(args)
        return ToolResult({"said": HOSTILE, "args": args})

    async def close(self) -> None:
        """Nothing is held."""


@tool("pad.read", level="L0")
def read() -> str:
    """Read."""
    return ""


def form(page: Got, do: str, **given: str) -> list[tuple[str, str]]:
    """The fields of the page's form as a browser sends them, with some filled."""
    text = page.text.partition('class="sheet try"')[2]
    key, before = (re.search(f'name="{name}" value="([^"]*)"', text) for name in ("key", "before"))
    assert key is not None
    assert before is not None
    fields = [("csrf", page.csrf), ("key", key[1]), ("before", html.unescape(before[1])), ("do", do)]
    for name in re.findall(r'<input type="hidden" name="name" value="([^"]*)"', text):
        fields += [("name", name), ("value", given.get(name, ""))]
    return fields


async def test_the_catalog_stands_by_provider_and_is_searched(served: Served) -> None:
    async with Remit(":memory:", tools=[read], providers=[Shop()]) as opened, served(opened) as browser:
        page = (await browser.get("/tools")).text
        assert all(f'href="/tools/{name}"' in page for name in ("shop.weigh", "shop.sell", "pad.read"))
        assert "withheld" in page
        found = (await browser.get("/tools?find=weigh&provider=shop")).text
        assert 'href="/tools/shop.weigh"' in found
        assert 'href="/tools/shop.sell"' not in found
        assert "No tool matches" in (await browser.get("/tools?find=no-such-tool")).text


@pytest.mark.parametrize(("name", "isolation"), [("pad.read", "this process"), ("sandbox.exec", "sandbox")])
async def test_a_tools_page_and_the_list_say_how_it_is_kept_apart(served: Served, name: str, isolation: str) -> None:
    async with Remit(":memory:", tools=[read]) as opened, served(opened) as browser:
        assert f"<dt>Isolation</dt><dd>{isolation}</dd>" in (await browser.get(f"/tools/{name}")).text
        line = (await browser.get(f"/tools?find={name}")).text.partition('data-label="Isolation"')[2]
        assert line.partition("</td>")[0].endswith(f">{isolation}")


async def test_a_token_shows_the_tools_it_is_for(served: Served) -> None:
    narrow = token("ann", "read", "call")
    narrow = structs.replace(narrow, access=structs.replace(narrow.access, tools=("pad.*",)))
    async with Remit(":memory:", tools=[read], providers=[Shop()]) as opened, served(opened, [narrow]) as browser:
        await browser.log_in("secret-ann")
        page = (await browser.get("/tools")).text
        assert "pad.read" in page
        assert "shop." not in page
        assert (await browser.get("/tools/shop.weigh")).status == 404
        mine = await browser.get("/tools/pad.read")
        refused = await browser.send("/tools/shop.weigh/try", form(mine, "call"))
        assert refused.status == 404


async def test_a_schema_is_a_table_and_never_markup(served: Served) -> None:
    async with Remit(":memory:", providers=[Shop()]) as opened, served(opened) as browser:
        for path in ("/tools", "/tools/shop.weigh", "/tools/shop.gone"):
            text = (await browser.get(path)).text
            assert "<script>alert" not in text
            assert "\u202e" not in text
            assert "\u200b" not in text
        text = (await browser.get("/tools/shop.weigh")).text
        for words in ("at most 99 characters", "one of", "at least 1", "<code>where.city</code>", "string or null"):
            assert words in text
        assert '<option value="kg">' in text
        kept = await browser.get("/tools/shop.weigh/schema")
        assert kept.headers["content-disposition"].startswith("attachment")
        assert '"maxLength": 99' in kept.text
        gone = await browser.get("/tools/shop.gone")
        assert "It is withheld:" in gone.text
        assert "/try" not in gone.text


async def test_a_call_is_looked_at_then_made_once_and_shows_its_result(served: Served) -> None:
    shop = Shop()
    async with Remit(":memory:", providers=[shop], policy=[]) as opened, served(opened) as browser:
        page = await browser.get("/tools/shop.weigh")
        filled = {"text": "a\r\nb", "unit": "lb", "count": "9007199254740991", "fast": "true"}
        looked = await browser.send("/tools/shop.weigh/try", form(page, "look", **filled))
        assert "Policy would <strong>let it run</strong>" in looked.text
        assert shop.calls == []
        fields = form(looked, "call", **filled)
        called = await browser.send("/tools/shop.weigh/try", fields)
        for got in (called, await browser.send("/tools/shop.weigh/try", fields)):
            assert "It ran" in got.text
            assert "&lt;script&gt;" in got.text
            assert "\u202e" not in got.text
        assert shop.calls == [{"text": "a\nb", "unit": "lb", "count": 9007199254740991, "fast": True}]
        again = await browser.send("/tools/shop.weigh/try", form(called, "call", **filled))
        assert "It ran" in again.text
        assert len(shop.calls) == 2
        assert "Call it" in (await browser.get("/tools/shop.weigh/try")).text, "a reader may come back to the address"
        (session,) = await opened.service.sessions.rows()
        assert f'href="/sessions/{session.session}"' in again.text


async def test_a_form_that_could_not_be_sent_again_is_not_looked_at(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages_of_tool, "_AGAIN", 50)
    shop = Shop()
    async with Remit(":memory:", providers=[shop], policy=[]) as opened, served(opened) as browser:
        page = await browser.get("/tools/shop.weigh")
        looked = await browser.send("/tools/shop.weigh/try", form(page, "look", text="x" * 60))
        assert (looked.status, "too large to be sent again" in looked.text) == (400, True)
        assert "It ran" in (await browser.send("/tools/shop.weigh/try", form(page, "call", text="x" * 60))).text


async def test_hidden_characters_survive_a_form_that_shows_them(served: Served) -> None:
    shop = Shop()
    async with Remit(":memory:", providers=[shop]) as opened, served(opened) as browser:
        page = await browser.get("/tools/shop.weigh")
        looked = await browser.send("/tools/shop.weigh/try", form(page, "look", text="a\u200bb"))
        assert "a⟨U+200B⟩b" in looked.text
        await browser.send("/tools/shop.weigh/try", form(looked, "call", text="a⟨U+200B⟩b"))
        assert shop.calls == [{"text": "a\u200bb"}]


async def test_a_call_that_asks_goes_on_once_it_is_approved(served: Served) -> None:
    shop = Shop()
    async with Remit(":memory:", providers=[shop]) as opened, served(opened) as browser:
        page = await browser.get("/tools/shop.sell")
        waiting = await browser.send("/tools/shop.sell/try", form(page, "call", text="x"))
        assert "It waits for a person" in waiting.text
        (question,) = await opened.service.confirmations.pending()
        assert f'href="/inbox/{question.confirmation}"' in waiting.text
        await opened.service.confirmations.decide(question.confirmation, "approve", by="bob")
        done = await browser.send("/tools/shop.sell/try", form(waiting, "call", text="x"))
        assert "It ran" in done.text
        assert shop.calls == [{"text": "x"}]


async def test_what_cannot_be_read_is_said_and_kept(served: Served) -> None:
    shop = Shop()
    async with Remit(":memory:", providers=[shop]) as opened, served(opened) as browser:
        page = await browser.get("/tools/shop.weigh")
        wrong = await browser.send("/tools/shop.weigh/try", form(page, "call", text="kept", count="many"))
        assert wrong.status == 400
        assert "count: this is not JSON" in wrong.text
        assert 'value="kept"' in wrong.text
        refused = await browser.send("/tools/shop.weigh/try", form(page, "call", text="x", count="0"))
        assert "It was refused" in refused.text
        assert "INVALID_TOOL_ARGS" in refused.text
        assert shop.calls == []


async def test_trying_needs_the_scope_call(served: Served) -> None:
    shop = Shop()
    async with Remit(":memory:", providers=[shop]) as opened, served(opened, [token("ann", "read")]) as browser:
        await browser.log_in("secret-ann")
        page = await browser.get("/tools/shop.weigh")
        assert "/try" not in page.text
        fields = [("csrf", (await browser.get("/tools")).csrf), ("key", "k"), ("do", "call")]
        assert (await browser.send("/tools/shop.weigh/try", fields)).status == 403
        assert shop.calls == []
