"""The Python SDK: `COMMAND [ARG]...`. Has `say` write the bytes of each line of stdin, and says what it saw of them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError


async def main() -> None:
    """Print what was seen a line."""
    server = StdioServerParameters(
        command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ), encoding_error_handler="replace"
    )
    heard: list[Any] = []

    async def logged(params: Any) -> None:
        heard.append(["log", params.data])

    async def moved(progress: float, total: float | None, message: str | None) -> None:
        heard.append(["progress", progress, total, message])

    async with Client(server, mode="legacy", logging_callback=logged) as client:
        show({})
        while line := await asyncio.to_thread(sys.stdin.readline):
            heard.clear()
            seen: dict[str, Any]
            try:
                arguments = {"bytes": line.strip()}
                result = await client.call_tool("say", arguments, progress_callback=moved, read_timeout_seconds=60)
                seen = {"result": result.model_dump(mode="json", by_alias=True, exclude_unset=True)}
            except MCPError as error:
                seen = {"error": [error.error.code, error.error.message, error.error.data]}
            except Exception as error:  # noqa: BLE001 - whatever the SDK makes of the bytes
                seen = {"raised": type(error).__name__}
            show({**seen, "heard": heard})


def show(seen: dict[str, Any]) -> None:
    """Say what was seen."""
    sys.stdout.write(json.dumps(seen) + "\n")
    sys.stdout.flush()


asyncio.run(main())
