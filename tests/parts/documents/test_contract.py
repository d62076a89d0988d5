from __future__ import annotations

from pathlib import Path

import pytest

from remit.canonical import sha256
from remit.tools.meta import Level
from remit_testing.providers import PROVIDER_CHECKS, Check, Sample
from tests.parts.documents.shelf import made

TEXT = "one\ntwo\n"
SAMPLES = [
    Sample("doc.read", {"path": "a.md"}),
    Sample("doc.search", {"query": "two"}),
    Sample("doc.propose_edit", {"path": "a.md", "edits": [{"search": "one", "replace": "1"}]}),
    Sample("doc.apply_edit", {"path": "a.md", "sha256": sha256(TEXT.encode()), "content": "1\n"}),
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
async def test_the_provider_keeps_the_contract(check: Check, sample: Sample, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text(TEXT)
    await check(lambda: made(folder, tmp_path), sample)


async def test_what_writes_says_so_and_asks_and_what_reads_is_untrusted(tmp_path: Path) -> None:
    metas = {meta.name: meta for meta in await made(tmp_path, tmp_path).list_tools()}
    writing = {"doc.apply_edit", "doc.undo_edit"}
    for name, meta in metas.items():
        assert (meta.capability_level is Level.L1) == meta.requires_confirm == meta.side_effects == (name in writing)
        assert meta.output_trusted == (name in writing)
