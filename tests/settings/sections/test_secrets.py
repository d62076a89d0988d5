from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit.errors import SettingsError
from remit.settings import load
from remit.settings.sections.secrets import SecretSettings, secret_tables
from remit.trust.claims import claims


@pytest.mark.parametrize(
    "table", [{}, {"env": "A", "file": "a"}, {"environ": "A"}, {"env": "A", "seconds": -1}, {"command": "vault"}]
)
def test_a_secret_has_one_source_and_known_keys(table: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as caught:
        secret_tables({"BANK": table})
    assert caught.value.message.startswith("secrets.BANK")


def test_files_count_from_the_project_folder_and_the_words_of_commands_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "remit.toml").write_text(
        '[secrets.A]\nfile = "a.txt"\n[secrets.B]\ncommand = ["vault", "hidden"]\ntools = ["pay.*"]\n'
    )
    settings = load(cwd=tmp_path, env={})
    assert settings.secrets.named["A"]["file"] == str(tmp_path / "a.txt")
    shown = settings.secrets.shown("named")
    assert shown["B"] == {"command": ["vault", "…"], "tools": ["pay.*"]}
    acts = [str(claim) for claim in claims(settings, {})]
    assert any("give pay.* the secret B: what this prints: vault hidden" in act for act in acts)
    assert any(f"give * the secret A: {tmp_path / 'a.txt'}" in act for act in acts)


def test_where_none_is_declared_there_is_none() -> None:
    assert secret_tables(SecretSettings().named) == {}
