"""Remit as a client of the conformance suite: `python -m tests.peers.conformance_client URL`.

Connects to the server at the URL as the scenario in the environment wants it, and makes the calls that it is about.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import msgspec

from remit import Remit
from remit.settings import load

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
MODERN = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "") >= "2026"
NAME = "suite"


async def calls(remit: Remit) -> list[tuple[str, dict[str, Any]]]:
    """What is called, by the server's own names; every tool without arguments where the scenario asks for none."""
    match SCENARIO:
        case "tools_call":
            return [("add_numbers", {"a": 5, "b": 3})]
        case "http-custom-headers":
            context = msgspec.json.decode(os.environ["MCP_CONFORMANCE_CONTEXT"])
            return [(call["name"], call["arguments"]) for call in context["toolCalls"]]
        case "http-invalid-tool-headers":
            return [("valid_tool", {})]
        case "json-schema-2020-12-preservation":
            found = await remit.runtime.servers.definitions(NAME)
            return [("json_schema_echo", {"schema": found["json_schema_2020_12_tool"]["inputSchema"]})]
        case "json-schema-ref-no-deref" | "initialize":
            return []
        case _:
            return [(name, {}) for name in await remit.runtime.servers.definitions(NAME)]


async def main(url: str) -> None:
    """Connect, list, call."""
    # The server of this scenario announces the newer protocol and then speaks the older one.
    modern = MODERN and SCENARIO != "json-schema-ref-no-deref"
    server = {"name": NAME, "url": url, "level": "L0", "era": "auto" if modern else "legacy"}
    flags = {
        "journal.url": ":memory:",
        "mcp.servers": [server],
        "mcp.elicitation": "defaults",
        "policy.rules": [{"effect": "allow", "tools": ["*"]}],
    }
    async with Remit(settings=load(env={"HOME": "/"}, flags=flags), work=False) as remit:
        await remit.runtime.servers.definitions(NAME)
        for name, args in await calls(remit):
            outcome = await remit.call(f"mcp.{NAME}.{name}", args)
            told = f"{name}: {outcome.status} {outcome.code} {outcome.reason} {outcome.value}\n"
            sys.stdout.write(told)  # the suite keeps it beside its results


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
