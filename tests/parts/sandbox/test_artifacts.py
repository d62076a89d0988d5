from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec
import pytest

from remit.parts.sandbox.artifacts import DEPTH, collect
from remit.process.enclosure import RunLimits

LIMITS = RunLimits()


def test_regular_files_are_taken_with_their_digests(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.bin").write_bytes(b"\xff\x00")
    found = collect(tmp_path, LIMITS)
    assert [(one.path, one.data) for one in found.artifacts] == [("a.txt", b"a"), ("b/c.bin", b"\xff\x00")]
    assert found.artifacts[0].sha256 == "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    assert found.left_out == ()


def test_nothing_else_is_taken_and_each_has_its_reason(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    work = tmp_path / "work"
    work.mkdir()
    (work / "link").symlink_to(secret)
    (work / "up").symlink_to("..")
    os.link(secret, work / "hard")
    os.mkfifo(work / "pipe")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(work / "socket"))
        found = collect(work, LIMITS)
    assert found.artifacts == ()
    assert {one.path: one.why for one in found.left_out} == {
        "link": "a symbolic link",
        "up": "a symbolic link",
        "hard": "it has more than one name (hard link)",
        "pipe": "a named pipe",
        "socket": "a socket",
    }


def test_names_that_are_not_utf_8_are_written_with_their_bytes(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"d\xff")
    folder.mkdir()
    (folder / os.fsdecode("caf\u00e9".encode("latin-1"))).write_text("x")
    (folder / "caf\u00e9").symlink_to("x")
    found = collect(tmp_path, LIMITS)
    assert [(one.path, one.data) for one in found.artifacts] == [("d\\xff/caf\\xe9", b"x")]
    assert [one.path for one in found.left_out] == ["d\\xff/caf\u00e9"]
    assert collect(tmp_path, LIMITS, ("d\\xff/caf\\xe9",)) == msgspec.structs.replace(found, left_out=())
    assert collect(tmp_path, LIMITS, ("other",)).artifacts == ()


def test_a_folder_in_place_of_which_a_link_is_put_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    work = tmp_path / "work"
    work.mkdir()
    (work / "folder").symlink_to(tmp_path / "outside")
    assert collect(work, LIMITS).artifacts == ()


def test_number_and_size_are_capped(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}").write_bytes(b"x" * 10)
    found = collect(tmp_path, RunLimits(artifact_files=2))
    assert [one.path for one in found.artifacts] == ["0", "1"]
    assert {one.why for one in found.left_out} == {"more than 2 files"}
    found = collect(tmp_path, RunLimits(artifact_bytes=25))
    assert [one.path for one in found.artifacts] == ["0", "1"]
    assert {one.why for one in found.left_out} == {"more than 25 bytes in all"}


def test_a_sparse_file_of_a_terabyte_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2**40)
    found = collect(tmp_path, LIMITS)
    assert [one.path for one in found.left_out] == ["huge"]


def test_folders_without_end_are_given_up(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    for _ in range(DEPTH + 5):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    found = collect(tmp_path, LIMITS)
    assert found.left_out[0].why == f"folders are nested more than {DEPTH} deep"


def test_only_what_matches_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"a")
    (tmp_path / "[x].txt").write_bytes(b"b")
    (tmp_path / "pipe").mkdir()
    assert [one.path for one in collect(tmp_path, LIMITS, ("*.png",)).artifacts] == ["a.png"]
    assert [one.path for one in collect(tmp_path, LIMITS, ("[x].txt",)).artifacts] == ["[x].txt"]


def test_what_is_left_out_is_listed_so_far(tmp_path: Path) -> None:
    for number in range(250):
        (tmp_path / f"{number:03}").symlink_to("nowhere")
    found = collect(tmp_path, LIMITS)
    assert (len(found.left_out), found.more_left_out) == (200, 50)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "closed").write_text("x")
    (tmp_path / "closed").chmod(0)
    assert collect(tmp_path, LIMITS).left_out[0].why == "cannot be read: Permission denied"
