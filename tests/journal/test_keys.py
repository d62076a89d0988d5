"""Files of keys: what is one, and who may read it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from remit.errors import SettingsError
from remit.journal.seals import load, make, read


@pytest.mark.parametrize("content", [b"", b"abcd\n", b"not hexadecimal\n", b"\xff\xfe", b"00" * 31])
def test_a_file_of_something_else_is_no_key(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "keys"
    place.write_bytes(content)
    place.chmod(0o600)
    with pytest.raises(SettingsError, match="does not contain keys"):
        load(place)


def test_a_pipe_a_link_that_leads_out_and_one_to_nothing_are_no_keys(tmp_path: Path) -> None:
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    os.mkfifo(mounted / "pipe", 0o600)
    make(tmp_path / "keys")
    (mounted / "out").symlink_to("../keys")
    (mounted / "hop").symlink_to("out")
    (mounted / "nothing").symlink_to("no-file")
    (mounted / "round").symlink_to("round")
    for name in ("pipe", "out", "hop", "nothing", "round"):
        with pytest.raises(SettingsError):
            load(mounted / name)


def test_a_mounted_secret_of_kubernetes_is_a_key(tmp_path: Path) -> None:
    for version in ("..2026_1", "..2026_2"):
        make(tmp_path / version / "keys")
    (tmp_path / "..data").symlink_to("..2026_1")
    (tmp_path / "keys").symlink_to("..data/keys")
    before = read(tmp_path / "keys")
    assert before == read(tmp_path / "..2026_1/keys") != []
    (tmp_path / "..new").symlink_to("..2026_2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    assert read(tmp_path / "keys") == read(tmp_path / "..2026_2/keys") != before
    (tmp_path / "..2026_2/keys").chmod(0o644)
    with pytest.raises(SettingsError, match="others may read"):
        load(tmp_path / "keys")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_key_of_roots_may_be_readable_by_a_group_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "keys")
    os.chown(tmp_path / "keys", 0, 4321)
    monkeypatch.setattr(os, "getgroups", lambda: [4321])
    (tmp_path / "keys").chmod(0o440)
    assert read(tmp_path / "keys")
    (tmp_path / "keys").chmod(0o460)
    with pytest.raises(SettingsError, match="others may read"):
        read(tmp_path / "keys")
    (tmp_path / "keys").chmod(0o440)
    monkeypatch.setattr(os, "getgroups", lambda: [1])
    with pytest.raises(SettingsError, match="others may read"):
        read(tmp_path / "keys")
