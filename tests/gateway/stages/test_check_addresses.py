"""An agent's reading of addresses from untrusted text."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest

from remit import tool
from tests.gateway.stages.test_check_origins import Talk
from tests.gateway.world import opened

PAGE = "https://evil.example/?to=secret"
ADDRESS = Annotated[str, msgspec.Meta(extra_json_schema={"x-remit-role": "url"})]


@tool("page.read", level="L0", output_trusted=False)
async def read_page(url: ADDRESS) -> str:
    """Read a page."""
    return f"See {PAGE}"


@pytest.mark.parametrize(
    ("rule", "url", "status"),
    [
        ({}, PAGE, "pending"),
        ({}, "https://a.example/start", "ok"),
        ({}, "https://a.example/secret", "pending"),
        ({"taint": "allow"}, PAGE, "ok"),
        ({"when": {"host": {"glob": "*.example"}}}, PAGE, "ok"),
        ({"when": {"host": {"glob": "b.example"}}}, PAGE, "pending"),
    ],
)
async def test_an_address_that_only_a_page_named_is_asked_about_before_it_is_read(
    rule: dict[str, Any], url: str, status: str
) -> None:
    async with opened(read_page, rules=({"effect": "allow", "id": "pages", "tools": ["page.*"], **rule},)) as each:
        talk = Talk(each, "Read https://a.example/start and what it names.")
        assert (await talk.use("page.read", {"url": "https://a.example/start"})).ok
        outcome = await talk.use("page.read", {"url": url})
        assert outcome.status == status
        if (status, url) == ("pending", PAGE):
            (one,) = (await each.question(outcome)).untrusted
            assert (one.path, one.role, one.tool, one.span) == ("url", "url", "page.read", PAGE)
