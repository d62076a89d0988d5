"""A model that thinks for a while and then says a token every 20 ms.

`python -m bench.token_server [TOKENS]` prints its URL. How long it thought stands in the first token, so that the
reader can tell it from what came on top.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from typing import Final

from aiohttp import web

from remit.clock import SystemClock

TOKENS: Final = int(sys.argv[1]) if len(sys.argv) > 1 else 50
_PAUSE_S: Final = 0.02
_THOUGHT_S: Final = (0.2, 0.8)
_PAUSES: Final = random.Random(5)


async def answer(request: web.Request) -> web.StreamResponse:
    """Stream one answer in the form of Chat Completions."""
    begun = time.perf_counter()
    await request.read()
    sent = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await sent.prepare(request)
    await SystemClock().sleep(_PAUSES.uniform(*_THOUGHT_S))
    await sent.write(_chunk({"role": "assistant", "content": f"{(time.perf_counter() - begun) * 1_000:.3f} "}))
    for _ in range(TOKENS):
        await SystemClock().sleep(_PAUSE_S)
        await sent.write(_chunk({"content": "word "}))
    await sent.write(_chunk({}, "stop"))
    await sent.write(b"data: [DONE]\n\n")
    await sent.write_eof()
    return sent


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


async def main() -> None:
    """Serve until the process ends."""
    app = web.Application()
    app.router.add_post("/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    print(f"http://{host}:{port}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
