from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.codes import Code
from remit.errors import ProviderError
from remit.files import directory
from remit.files.directory import MAX_DEPTH, ConfinedDirectory, WalkEntry, parts_of, read_at, translated

CAP = 1_000


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    secret = tmp_path / "outside"
    secret.mkdir()
    (secret / "secret.txt").write_text("secret")
    return secret


@pytest.fixture
def root(tmp_path: Path) -> ConfinedDirectory:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.txt").write_text("hello")
    return ConfinedDirectory(folder)


def refusal(root: ConfinedDirectory, path: str, cap: int = CAP) -> Code | None:
    with pytest.raises(ProviderError) as refused:
        root.read(path, cap)
    return refused.value.code


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def everything(root: ConfinedDirectory, path: str = "") -> list[tuple[str, str]]:
    return [(entry.path, entry.kind) for entry in root.walk(path, enter=lambda _: True)]


def test_a_file_below_the_root_is_read(root: ConfinedDirectory) -> None:
    assert root.read("sub/a.txt", CAP).data == b"hello"
    assert root.read("./sub//a.txt", CAP).data == b"hello"


@pytest.mark.parametrize("path", ["../outside/secret.txt", "sub/../../outside/secret.txt", "..", "sub/.."])
def test_a_path_that_climbs_is_refused(root: ConfinedDirectory, outside: Path, path: str) -> None:
    assert refusal(root, path) is Code.PATH_NOT_ALLOWED


def test_an_absolute_path_is_refused_even_if_it_lies_inside(root: ConfinedDirectory) -> None:
    assert refusal(root, str(root.root / "sub" / "a.txt")) is Code.PATH_NOT_ALLOWED


@pytest.mark.parametrize("path", ["sub/a.txt\0", "\0", "a\udcff.txt"])
def test_a_name_that_no_file_system_or_json_can_hold_is_refused(root: ConfinedDirectory, path: str) -> None:
    assert refusal(root, path) is Code.PATH_NOT_ALLOWED


def test_a_link_that_leads_out_is_refused(root: ConfinedDirectory, outside: Path) -> None:
    (root.root / "link.txt").symlink_to(outside / "secret.txt")
    assert refusal(root, "link.txt") is Code.PATH_NOT_ALLOWED


def test_a_folder_that_is_a_link_is_refused_and_named_as_one(root: ConfinedDirectory, outside: Path) -> None:
    (root.root / "linked").symlink_to(outside)
    with pytest.raises(ProviderError, match="symbolic link") as refused:
        root.read("linked/secret.txt", CAP)
    assert refused.value.code is Code.PATH_NOT_ALLOWED


def test_a_link_within_the_root_is_refused_too(root: ConfinedDirectory) -> None:
    (root.root / "alias.txt").symlink_to("sub/a.txt")
    assert refusal(root, "alias.txt") is Code.PATH_NOT_ALLOWED


def test_a_root_reached_through_a_link_is_fine(root: ConfinedDirectory, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(root.root)
    assert ConfinedDirectory(tmp_path / "way").read("sub/a.txt", CAP).data == b"hello"


def test_a_folder_swapped_for_a_link_while_it_is_open_leads_nowhere_else(
    root: ConfinedDirectory, outside: Path
) -> None:
    (outside / "a.txt").write_text("secret")
    with root.folder(["sub"], "sub/a.txt") as fd:
        (root.root / "sub").rename(root.root / "moved")
        (root.root / "sub").symlink_to(outside)
        assert read_at(fd, "a.txt", "sub/a.txt", CAP).data == b"hello"
    assert refusal(root, "sub/a.txt") is Code.PATH_NOT_ALLOWED


def test_a_file_swapped_for_a_link_after_it_was_listed_is_refused(root: ConfinedDirectory, outside: Path) -> None:
    [entry] = [entry for entry in root.walk(enter=lambda _: True) if entry.kind == "file"]
    (root.root / entry.path).unlink()
    (root.root / entry.path).symlink_to(outside / "secret.txt")
    assert refusal(root, entry.path) is Code.PATH_NOT_ALLOWED


def test_a_pipe_is_refused_without_waiting_for_its_writer(root: ConfinedDirectory) -> None:
    os.mkfifo(root.root / "pipe")
    assert refusal(root, "pipe") is Code.PATH_NOT_ALLOWED


def test_a_socket_is_refused(root: ConfinedDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.root)  # the path of a socket may only be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        assert refusal(root, "s") is Code.PATH_NOT_ALLOWED


def test_a_device_is_refused() -> None:
    assert refusal(ConfinedDirectory(Path("/dev")), "null") is Code.PATH_NOT_ALLOWED


def test_a_folder_is_no_file(root: ConfinedDirectory) -> None:
    assert refusal(root, "sub") is Code.FILE_IS_FOLDER
    assert refusal(root, "") is Code.FILE_IS_FOLDER
    assert refusal(root, ".") is Code.FILE_IS_FOLDER


def test_a_file_is_no_folder(root: ConfinedDirectory) -> None:
    assert refusal(root, "sub/a.txt/b") is Code.FOLDER_NOT_FOUND


def test_what_is_not_there_is_told_apart(root: ConfinedDirectory) -> None:
    assert refusal(root, "sub/none.txt") is Code.FILE_NOT_FOUND
    assert refusal(root, "none/a.txt") is Code.FOLDER_NOT_FOUND
    assert refusal(ConfinedDirectory(root.root / "none"), "a.txt") is Code.FOLDER_NOT_FOUND


def test_a_file_over_the_cap_is_refused_and_one_at_it_is_read(root: ConfinedDirectory) -> None:
    (root.root / "big").write_bytes(b"x" * 11)
    assert refusal(root, "big", cap=10) is Code.FILE_TOO_LARGE
    assert len(root.read("big", 11).data) == 11


def test_a_file_whose_size_only_reading_tells_is_capped_as_well() -> None:
    assert Path("/proc/self/stat").stat().st_size == 0
    assert refusal(ConfinedDirectory(Path("/proc/self")), "stat", cap=10) is Code.FILE_TOO_LARGE


def test_a_name_that_is_too_long_is_refused(root: ConfinedDirectory) -> None:
    assert refusal(root, "x" * 300) is Code.PATH_NOT_ALLOWED


def test_a_path_through_too_many_folders_is_refused(root: ConfinedDirectory) -> None:
    assert refusal(root, "/".join(["d"] * (MAX_DEPTH + 1))) is Code.PATH_NOT_ALLOWED


def test_a_name_with_a_line_end_is_a_name_like_any_other(root: ConfinedDirectory) -> None:
    (root.root / "two\nlines").write_text("x")
    assert root.read("two\nlines", CAP).data == b"x"
    assert ("two\nlines", "file") in everything(root)


def test_an_error_of_the_system_gets_its_code() -> None:
    with pytest.raises(ProviderError) as refused, translated("a.txt"):
        raise OSError(28, "No space left on device")
    assert refused.value.code is Code.DISK_FULL
    with pytest.raises(ProviderError) as refused, translated("a.txt"):
        raise PermissionError(13, "Permission denied")
    assert refused.value.code is Code.FILE_ACCESS_DENIED
    with pytest.raises(ProviderError) as refused, translated("a.txt"):
        raise OSError(5, "Input/output error")
    assert refused.value.code is Code.FILE_IO_FAILED


def test_a_walk_meets_everything_by_name_and_follows_no_link(root: ConfinedDirectory, outside: Path) -> None:
    (root.root / "b.txt").write_text("")
    (root.root / "out").symlink_to(outside)
    os.mkfifo(root.root / "pipe")
    assert everything(root) == [
        ("b.txt", "file"),
        ("out", "link"),
        ("pipe", "other"),
        ("sub", "folder"),
        ("sub/a.txt", "file"),
    ]


def test_a_walk_can_begin_below_the_root_and_stay_out_of_folders(root: ConfinedDirectory) -> None:
    assert everything(root, "sub") == [("sub/a.txt", "file")]
    assert [entry.path for entry in root.walk(enter=lambda _: False)] == ["sub"]


def test_a_walk_that_cannot_begin_says_why(root: ConfinedDirectory, outside: Path) -> None:
    (root.root / "out").symlink_to(outside)
    for path, code in {
        "none": Code.FOLDER_NOT_FOUND,
        "out": Code.PATH_NOT_ALLOWED,
        "..": Code.PATH_NOT_ALLOWED,
    }.items():
        with pytest.raises(ProviderError) as refused:
            everything(root, path)
        assert refused.value.code is code


def test_a_walk_reports_names_that_are_not_utf8_without_giving_them_out(root: ConfinedDirectory) -> None:
    descriptor = os.open(os.fsencode(root.root) + b"/caf\xe9", os.O_CREAT | os.O_WRONLY)
    os.close(descriptor)
    [name] = [path for path, kind in everything(root) if kind == "unnamed"]
    assert name == "caf\\xe9"
    name.encode()


def test_a_walk_reports_a_folder_it_cannot_enter(root: ConfinedDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        directory, "_FOLDER", os.O_RDONLY | os.O_CREAT | os.O_EXCL
    )  # as if it had vanished or was locked
    with os.scandir(root.root), pytest.raises(ProviderError):
        root.read("sub/a.txt", CAP)
    assert everything(root) == [("sub", "closed")]


def test_a_walk_ends_where_folders_are_too_deep(tmp_path: Path) -> None:
    deepest = tmp_path.joinpath(*["d"] * (MAX_DEPTH + 5))
    deepest.mkdir(parents=True)
    found = everything(ConfinedDirectory(tmp_path))
    assert len(found) == MAX_DEPTH + 1


def test_a_walk_keeps_no_descriptor_open(root: ConfinedDirectory) -> None:
    before = open_descriptors()
    walk = root.walk(enter=lambda _: True)
    next(walk)
    walk.close()
    for path in ("sub", "none/x", "sub/a.txt"):
        try:
            root.read(path, CAP)
        except ProviderError:
            continue
    assert open_descriptors() == before


@given(st.text(st.sampled_from("a./\\\0~ \n"), max_size=12))
def test_no_path_that_is_accepted_can_leave(path: str) -> None:
    try:
        parts = parts_of(path)
    except ProviderError:
        return
    assert all(part not in {"", ".", ".."} and "/" not in part and "\0" not in part for part in parts)


def test_an_entry_knows_its_name() -> None:
    assert WalkEntry("a/b/c.txt", "file", 1, 2).name == "c.txt"
