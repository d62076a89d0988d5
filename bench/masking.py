"""Masking of what people are shown: a megabyte of each kind of text, beside the least that looking at it can take."""

from __future__ import annotations

import json
from typing import Final

from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from remit.redact import mask

SIZE: Final = 1_000_000
_LINE: Final = "2026-11-29T07:01:{0:02d}Z INFO request id={0} path=/v1/items/{0} status=200\n"
_ROW: Final = {"mail": "ann@example.org", "note": "pays late, but pays", "cents": 700}


def texts() -> dict[str, str]:
    """A megabyte of each kind."""
    logs = "".join([_LINE.format(number % 60) for number in range(SIZE // 50)])
    rows = json.dumps([{"id": number, **_ROW} for number in range(SIZE // 60)])
    secrets = json.dumps([{"id": number, "token": f"abc{number}"} for number in range(SIZE // 30)])
    return {
        "prose": ("A quick answer keeps few people waiting, and a slow one is read by few. " * (SIZE // 60))[:SIZE],
        "log lines": logs[:SIZE],
        "JSON": rows[:SIZE],
        "JSON, a secret in each row": secrets[:SIZE],
        'hostile: {"token{"token': ('{"token' * (SIZE // 7 + 1))[:SIZE],
    }


async def masked(_lab: Lab) -> list[Result]:
    """One megabyte of each kind, masked; the floor looks for one word in it, in any case."""
    results: list[Result] = []
    for kind, text in texts().items():

        async def sample(text: str = text) -> Reading:
            watch = Watch()
            mask(text)
            return watch.processor_millis(1)

        async def floor(text: str = text) -> Reading:
            watch = Watch()
            assert "credential" not in text.lower()
            return watch.processor_millis(1)

        mark = Mark(50) if kind in {"prose", "log lines", "JSON"} else None
        results += await against(f"masking 1 MB: {kind}", "ms", sample, floor, "processor time", mark=mark)
    return results
