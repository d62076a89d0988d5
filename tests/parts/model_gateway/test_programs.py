"""The MCP servers outside, to which a program in the sandbox comes over a socket."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from remit.parts.model_gateway.programs import SERVERS, tools_within


async def test_a_server_ends_with_the_program_however_that_ends(tmp_path: Path) -> None:
    server = ("sh", "-c", "echo $$; exec sleep 600")  # it does not look at its stdin
    places = []

    async def run() -> None:
        async with tools_within(server, str(tmp_path)) as (command, _):
            reader, writer = await asyncio.open_unix_connection(command[-1])
            places.append(Path("/proc") / (await reader.readline()).decode().strip())
            assert places[0].exists()
            writer.close()
            raise RuntimeError("it cannot be started")

    with pytest.raises(RuntimeError, match="it cannot be started"):
        await run()
    assert not places[0].exists()


async def test_a_program_has_no_more_servers_than_this_machine_bears(tmp_path: Path) -> None:
    async with tools_within(("cat",), str(tmp_path)) as (command, _):
        connections = [await asyncio.open_unix_connection(command[-1]) for _ in range(SERVERS + 1)]
        for _, writer in connections[:-1]:
            writer.write(b"hi\n")
        answers = [await reader.readline() for reader, _ in connections[:-1]]
        assert answers == [b"hi\n"] * SERVERS
        assert await connections[-1][0].read() == b""
        for _, writer in connections:
            writer.close()
