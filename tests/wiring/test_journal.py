from __future__ import annotations

from pathlib import Path

import pytest

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import SettingsError
from remit.wiring.journal import open_store


async def test_a_journal_is_a_path_a_url_or_memory(tmp_path: Path) -> None:
    for url in (str(tmp_path / "a.db"), f"sqlite:///{tmp_path}/b.db", ":memory:"):
        store = open_store(url, SystemClock())
        assert await store.head("job/none") is None
        await store.close()
    assert (tmp_path / "a.db").exists()
    assert (tmp_path / "b.db").exists()


async def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(SettingsError) as raised:
        open_store("mysql://somewhere/db", SystemClock())
    assert raised.value.code is Code.SETTINGS_INVALID
