"""Remit as a client of the conformance suite: `python -m tests.peers.conformance_client URL`.

Connects to the server at the URL as the scenario in the environment wants it, and makes the calls that it is about.
Where the server wants somebody to log in, nobody is needed: the suite's page leads straight back.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import httpx2
import msgspec

from remit.clock import SystemClock
from remit.errors import ProviderError
from remit.journal.journal import Journal
from remit.journal.sqlite.store import SqliteStore
from remit.providers.mcp.oauth import LoginOrigins, ServerLogin
from remit.providers.mcp.provider import McpProvider
from remit.randomness import SystemRandomSource
from remit.settings.mcp import McpServer
from remit.settings.sections.mcp import McpSettings
from remit.tools.pins import Pins
from remit.tools.remote import Authorized
from remit_testing.providers import call_context

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
MODERN = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "") >= "2026"
CONTEXT = msgspec.json.decode(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
REGISTERED = "https://conformance-test.local/client-metadata.json"
"""The identity of a client that does not register, as the suite knows it."""


class Straight:
    """Goes where it is sent, and takes what the answer leads back with."""

    def __init__(self) -> None:
        self._back = ""

    async def redirect(self, url: str) -> None:
        """Ask for the page."""
        async with httpx2.AsyncClient() as client:
            self._back = (await client.get(url)).headers["location"]

    async def callback(self) -> Authorized:
        """What the address of the way back says."""
        given = {name: values[0] for name, values in parse_qs(urlsplit(self._back).query).items()}
        return Authorized(given.get("code", ""), given.get("state"), given.get("iss"))


def calls(names: list[str], definitions: dict[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """What is called; where the scenario asks for nothing in particular, every tool, without arguments."""
    match SCENARIO:
        case "tools_call":
            return [("add_numbers", {"a": 5, "b": 3})]
        case "http-custom-headers":
            return [(call["name"], call["arguments"]) for call in CONTEXT["toolCalls"]]
        case "http-invalid-tool-headers":
            return [("valid_tool", {})]
        case "json-schema-2020-12-preservation":
            return [("json_schema_echo", {"schema": definitions["json_schema_2020_12_tool"]["inputSchema"]})]
        case "json-schema-ref-no-deref" | "initialize":
            return []
        case _:
            return [(name, {}) for name in names]


def oauth() -> dict[str, str] | None:
    """How the scenario wants us to log in."""
    if not SCENARIO.startswith("auth/"):
        return None
    known = {key: CONTEXT[key] for key in ("client_id", "client_secret") if key in CONTEXT}
    return known or {"client_metadata_url": REGISTERED}


async def main(url: str) -> None:
    """Connect, list, call."""
    # The server of this scenario announces the newer protocol and then speaks the older one.
    modern = MODERN and SCENARIO != "json-schema-ref-no-deref"
    server = McpServer(name="suite", url=url, level="L0", era="auto" if modern else "legacy", oauth=oauth())
    clock = SystemClock()
    journal = Journal(SqliteStore(":memory:", clock), clock)
    with tempfile.TemporaryDirectory() as folder:
        provider = McpProvider(
            server,
            McpSettings(elicitation="defaults"),
            Pins(journal, trust=True, principal="suite"),
            clock=clock,
            chance=SystemRandomSource(),
            login=ServerLogin(Path(folder), Straight()),
        )
        try:
            await provider.list_tools()
            definitions = dict(await provider.definitions())
            for name, args in calls(list(definitions), definitions):
                result = await provider.invoke(f"mcp.suite.{name}", args, call_context())
                sys.stdout.write(f"{name}: {result.value}\n")  # the suite keeps it beside its results
        except ProviderError as error:
            sys.stdout.write(f"{error}\n")
        finally:
            await provider.close()
            await journal.close()


if __name__ == "__main__":
    # The suite's authorization servers listen at ports that no `issuer` can name beforehand.
    with patch.object(LoginOrigins, "check"):
        asyncio.run(main(sys.argv[-1]))
