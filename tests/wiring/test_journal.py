from __future__ import annotations

from pathlib import Path

import pytest

from remit.clock import SystemClock
from remit.codes import Code
from remit.errors import SettingsError
from remit.settings import load
from remit.wiring.journal import open_store


async def test_a_journal_is_a_path_a_url_or_memory(tmp_path: Path) -> None:
    for url in (str(tmp_path / "a.db"), f"sqlite:///{tmp_path}/b.db", ":memory:"):
        store = open_store(url, SystemClock())
        assert await store.head("job/none") is None
        await store.close()
    assert (tmp_path / "a.db").exists()
    assert (tmp_path / "b.db").exists()


async def test_packages_offer_journals_by_the_scheme_of_their_urls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "memoir.py").write_text(
        "from remit.journal.sqlite.store import SqliteStore\n"
        "class Memoir(SqliteStore):\n"
        "    def __init__(self, url, clock):\n"
        "        super().__init__(':memory:', clock)\n"
        "        self.given = url\n"
    )
    (tmp_path / "memoir-1.dist-info").mkdir()
    (tmp_path / "memoir-1.dist-info/METADATA").write_text("Name: memoir\nVersion: 1\n")
    (tmp_path / "memoir-1.dist-info/entry_points.txt").write_text("[remit.journals]\nmemoir = memoir:Memoir\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = load(cwd=tmp_path, env={}, file=None, flags={"journal.url": "memoir://host/db"})
    assert settings.journal.file is None
    store = open_store(settings.journal.url, SystemClock())
    assert (type(store).__name__, vars(store)["given"]) == ("Memoir", "memoir://host/db")
    await store.close()


async def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(SettingsError) as raised:
        open_store("mysql://somewhere/db", SystemClock())
    assert raised.value.code is Code.SETTINGS_INVALID
