from __future__ import annotations

import os
from pathlib import Path

import pytest

from remit.files.index.store import Indexed, IndexFile, IndexPassage, IndexStore
from remit.threads import StopEvent, StoppedError


@pytest.fixture
def index(tmp_path: Path) -> IndexFile:
    return IndexFile(tmp_path / "index", tmp_path)


def file(path: str, *bodies: str) -> Indexed:
    passages = [(IndexPassage(n, n + 1, "", f"name{n}"), body) for n, body in enumerate(bodies)]
    return Indexed(path, 1, 2, "text", "sha256:1", "A title", passages)


def found(store: IndexStore, expression: str) -> list[tuple[str, int]]:
    return [(hit.path, hit.start) for hit in store.hits(expression, 10)]


def test_only_one_holds_an_index_at_a_time(index: IndexFile) -> None:
    nobody_waits = StopEvent()
    nobody_waits.set()
    with index.opened(StopEvent()):
        with pytest.raises(StoppedError), index.opened(nobody_waits):
            pass
        with pytest.raises(StoppedError):
            index.remove(nobody_waits)
    with index.opened(nobody_waits):
        pass


def test_the_time_is_the_file_systems_own(index: IndexFile, tmp_path: Path) -> None:
    with index.opened(StopEvent()):
        pass
    os.utime(index.path.with_suffix(".lock"), ns=(0, 0))
    fresh = tmp_path / "fresh"
    fresh.touch()
    with index.opened(StopEvent()) as (_, now_ns):
        assert now_ns >= fresh.stat().st_mtime_ns


def test_an_index_keeps_what_was_added_until_it_is_forgotten(index: IndexFile) -> None:
    with index.opened(StopEvent()) as (store, _), store.transaction():
        store.add(file("a.md", "whale", "egg"), "folder")
        store.add(file("b.md", "whale whale"), "folder")
    with index.opened(StopEvent()) as (store, _):
        assert sorted(found(store, '"whale"')) == [("a.md", 0), ("b.md", 0)]
        assert found(store, '"egg"') == [("a.md", 1)]
        assert store.counts() == ({"text": 2}, 3)
        store.forget(store.known()["a.md"].id)
        assert found(store, '"whale"') == [("b.md", 0)]
        assert store.counts() == ({"text": 1}, 1)
        store.add(file("c.md", "egg"), "folder")
        assert found(store, '"egg"') == [("c.md", 0)]


def test_what_failed_half_way_is_not_kept(index: IndexFile) -> None:
    def fail(store: IndexStore) -> None:
        with store.transaction():
            store.add(file("a.md", "whale"), "folder")
            raise ValueError("no")

    with index.opened(StopEvent()) as (store, _):
        with pytest.raises(ValueError, match="no"):
            fail(store)
        assert store.known() == {}
        assert found(store, '"whale"') == []


def test_names_are_found_whole_and_in_parts(index: IndexFile) -> None:
    with index.opened(StopEvent()) as (store, _):
        store.add(file("src/userName.py", "nothing"), "MyProject")
        for word in ("username", "user", "name0", "src", "project", "myproject", "title"):
            assert found(store, f'"{word}"') == [("src/userName.py", 0)]


def test_removed_is_gone(index: IndexFile) -> None:
    with index.opened(StopEvent()) as (store, _):
        store.add(file("a.md", "whale"), "folder")
    index.remove(StopEvent())
    with index.opened(StopEvent()) as (store, _):
        assert store.known() == {}


def test_nobody_else_may_look_into_an_index_folder(index: IndexFile) -> None:
    with index.opened(StopEvent()):
        assert index.path.parent.stat().st_mode & 0o077 == 0


def test_every_folder_has_an_index_of_its_own(tmp_path: Path) -> None:
    assert IndexFile(tmp_path, Path("/a")).path != IndexFile(tmp_path, Path("/b")).path
