from __future__ import annotations

from pathlib import Path

import pytest

from remit.providers.folder.provider import FolderSearchProvider
from remit.tools.meta import Level
from remit_testing.providers import PROVIDER_CHECKS, Check, Sample


@pytest.mark.parametrize("name", ["folder.search", "folder.read"])
@pytest.mark.parametrize("check", PROVIDER_CHECKS, ids=lambda check: check.__name__)
async def test_the_provider_keeps_the_contract(check: Check, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "a.txt").write_text("one task\n")
    more = {"query": "task"} if name == "folder.search" else {"path": "a.txt"}
    await check(lambda: FolderSearchProvider(tmp_path / "index"), Sample(name, {"folder": str(folder), **more}))


async def test_the_tools_only_read_and_run_without_asking(tmp_path: Path) -> None:
    for meta in await FolderSearchProvider(tmp_path).list_tools():
        assert meta.capability_level is Level.L0
        assert not meta.side_effects
        assert not meta.requires_confirm
