from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from remit.errors import UsageError
from remit.mcp_config.config_file import read_text, replace_text


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_a_file_that_is_not_there_is_empty_and_is_made_as_any_other(tmp_path: Path) -> None:
    file, other = tmp_path / "remit.toml", tmp_path / "other"
    assert read_text(file) == ""
    replace_text(file, "a = 1\r\n")
    other.touch()
    assert read_text(file) == "a = 1\r\n"
    assert mode(file) == mode(other)


def test_a_replaced_file_keeps_its_mode_and_nothing_else_is_left_behind(tmp_path: Path) -> None:
    file = tmp_path / "remit.toml"
    file.write_text("a", encoding="utf-8")
    file.chmod(0o640)
    replace_text(file, "b")
    assert (read_text(file), mode(file)) == ("b", 0o640)
    replace_text(file, "c", private=True)
    assert mode(file) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("a", encoding="utf-8")
    link = tmp_path / "remit.toml"
    link.symlink_to("real")
    replace_text(link, "b")
    assert link.is_symlink()
    assert (tmp_path / "real").read_text(encoding="utf-8") == "b"


def test_when_writing_fails_the_file_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "remit.toml"
    file.write_text("a", encoding="utf-8")

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(UsageError, match="cannot be written: No space left"):
        replace_text(file, "b")
    assert read_text(file) == "a"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "remit.toml"
    file.write_text("a", encoding="utf-8")
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    with pytest.raises(UsageError, match="it is not writable"):
        replace_text(file, "b")
    assert read_text(file) == "a"


def test_a_text_that_is_no_unicode_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is not UTF-8"):
        replace_text(tmp_path / "x", "\udcff")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_text_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="it is not UTF-8"):
        read_text(tmp_path / "x")
    with pytest.raises(UsageError, match="Is a directory"):
        read_text(tmp_path)
