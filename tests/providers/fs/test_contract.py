from __future__ import annotations

from pathlib import Path

import pytest

from remit.providers.fs.provider import FsProvider
from remit.tools.meta import Level
from remit_testing.providers import PROVIDER_CHECKS, Check, Sample

SAMPLES = [
    Sample("fs.list", {"recursive": True}),
    Sample("fs.read", {"path": "a.txt"}),
    Sample("fs.search", {"query": "o"}),
    Sample("fs.write", {"path": "b.txt", "content": "text"}),
    Sample("fs.edit", {"path": "a.txt", "edits": [{"search": "one", "replace": "one"}]}),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
async def test_the_provider_keeps_the_contract(check: Check, sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    await check(lambda: FsProvider([tmp_path]), sample)


async def test_what_writes_says_so_and_asks(tmp_path: Path) -> None:
    metas = {meta.name: meta for meta in await FsProvider([tmp_path]).list_tools()}
    for name in ("fs.list", "fs.read", "fs.search"):
        assert metas[name].capability_level is Level.L0
        assert not metas[name].side_effects
        assert not metas[name].requires_confirm
    for name in ("fs.write", "fs.edit"):
        assert metas[name].capability_level is Level.L1
        assert metas[name].side_effects
        assert metas[name].requires_confirm
    assert metas["fs.write"].idempotent
    assert not metas["fs.edit"].idempotent
