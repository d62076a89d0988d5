from __future__ import annotations

from pathlib import Path

import pytest

from remit.parts.sandbox.leftovers import delete
from remit.parts.sandbox.workspaces import Workspaces


def test_each_conversation_has_a_folder_of_its_own(tmp_path: Path) -> None:
    found = Workspaces(tmp_path)
    folders = {found.of(name).folder for name in ("job/job_1", "job/job_2", "session/s", "job/../x", "a" * 500, "ü/ü")}
    assert len(folders) == 6
    assert {folder.parent for folder in folders} == {tmp_path / "projects"}
    assert found.of("job/job_1/confirmation/c").folder == found.of("job/job_1").folder


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/.", "a\0b", "x" * 300, "a/" * 70 + "b"]
)
def test_a_path_that_is_not_plain_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match=r"not a plain relative path|folders deep"):
        Workspaces(tmp_path).of("job/j").put(path, b"x", inputs=False)


def test_no_link_that_a_program_left_is_followed(tmp_path: Path) -> None:
    place = Workspaces(tmp_path / "boxes").of("job/j")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    (place.work / "folder").symlink_to(outside)
    (place.work / "file").symlink_to(outside / "file")
    with pytest.raises(NotADirectoryError):
        place.put("folder/file", b"theirs", inputs=False)
    place.put("file", b"theirs", inputs=False)
    assert (outside / "file").read_text() == "mine"
    assert not (place.work / "file").is_symlink()


def test_a_folder_that_a_program_closed_is_deleted_all_the_same(tmp_path: Path) -> None:
    inner = tmp_path / "top" / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "x").write_text("x")
    inner.chmod(0)
    (tmp_path / "top" / "a").chmod(0)
    delete(tmp_path / "top")
    assert not (tmp_path / "top").exists()
