"""A guard that does not answer as it should."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

ANSWERS: Final = {
    "hung": None,
    "silent": b"",
    "junk": b"\x00\xff nonsense",
    "another": b'{"decision": "allow"}\n',
    "unknown": b"1\n",
    "cut": b'0{"hookSpecificOutput": {"hookEventName": "PreToo',
}
"""What it says: None waits for ever."""


@asynccontextmanager
async def answering(path: Path, answer: bytes | None) -> AsyncIterator[list[bytes]]:
    """Serve on a socket within the block; the requests that came."""
    came: list[bytes] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            tag, length = await reader.readline(), await reader.readexactly(8)
            came.append(tag.strip() + b" " + await reader.readexactly(int.from_bytes(length, "little")))
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client gave up
        finally:
            writer.close()

    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    before = asyncio.all_tasks()
    async with await asyncio.start_unix_server(take, path, limit=2**24):
        yield came
    accepted = asyncio.Event()  # a connection that came last has a task by then
    asyncio.get_running_loop().call_soon(accepted.set)
    await accepted.wait()
    rest = asyncio.all_tasks() - before
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
