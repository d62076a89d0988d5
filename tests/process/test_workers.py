"""Workers answer jobs, whatever lies in the folder that Remit was started in."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit.parts.web.engine import Extractors


@pytest.mark.slow
async def test_no_module_of_the_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("resource", "struct", "msgspec", "remit"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'caught')!r}, 'w').close()\nraise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    extractors = Extractors(1, seconds=60)
    try:
        await extractors.extract("<p>The committee meets.</p>", "https://a.example/")
    finally:
        await extractors.close()
    assert not (tmp_path / "caught").exists()
