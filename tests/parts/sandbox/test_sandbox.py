"""A run that was cut short is run again on the workspace as it was before it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.parts.sandbox.artifacts import SnapshotLostError
from remit.parts.sandbox.sandbox import RunHistory
from remit.parts.sandbox.scratch import scratch
from remit.parts.sandbox.snapshots import Snapshots
from remit.parts.sandbox.workspaces import Workspace, Workspaces

NOW = 2**62


def workspace(folder: Path) -> Workspace:
    return Workspaces(folder).of("job/job_1")


def content(work: Path) -> dict[str, str]:
    return {str(path.relative_to(work)): path.read_text() for path in sorted(work.rglob("*")) if path.is_file()}


def test_a_run_with_the_key_of_an_earlier_one_finds_the_workspace_as_that_did(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    place.put("a/one.txt", b"1", inputs=False)
    before, restored = RunHistory(place).begin("k1", NOW)
    assert not restored
    (place.work / "a" / "one.txt").write_text("changed")
    (place.work / "a").chmod(0o500)
    (place.work / "new").mkdir()
    (place.work / "new" / "two.txt").write_text("2")
    again, restored = RunHistory(place).begin("k1", NOW)
    assert restored
    assert again.digest == before.digest
    assert content(place.work) == {"a/one.txt": "1"}


def test_names_that_are_not_utf_8_are_restored_as_well(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    folder = place.work / os.fsdecode(b"d\xff")
    folder.mkdir()
    latin, escaped = folder / os.fsdecode(b"caf\xe9"), folder / "caf\\xe9"
    latin.write_text("1")
    escaped.write_text("2")
    (folder / "link").symlink_to(latin.name)
    before, _ = RunHistory(place).begin("k1", NOW)
    latin.unlink()
    (folder / "link").unlink()
    again, restored = RunHistory(place).begin("k1", NOW)
    assert restored
    assert again.digest == before.digest == RunHistory(place).end(NOW).digest
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        latin.name: "1",
        escaped.name: "2",
        "link": "1",
    }


def test_another_run_finds_what_the_one_before_left(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    history = RunHistory(place)
    history.begin("k1", NOW)
    (place.work / "x").write_text("1")
    _, restored = history.begin("k2", NOW)
    assert not restored
    assert content(place.work) == {"x": "1"}


def test_the_earlier_of_two_runs_can_still_be_undone(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    history = RunHistory(place)
    for number in range(3):
        history.begin(f"k{number}", NOW)
        (place.work / str(number)).write_text("x")
    history.begin("k1", NOW)
    assert content(place.work) == {"0": "x"}
    _, restored = history.begin("k2", NOW)
    assert not restored, "what came after the run that was undone never was"


def test_only_bytes_that_are_needed_are_kept(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    history = RunHistory(place)
    for number in range(30):
        (place.work / "x").write_text(str(number))
        history.begin(f"k{number}", NOW)
    assert len(list((place.state / "objects").iterdir())) == 8


def test_a_snapshot_whose_bytes_are_damaged_is_not_restored(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    place.put("a", b"1", inputs=False)
    RunHistory(place).begin("k", NOW)
    [kept] = (place.state / "objects").iterdir()
    kept.write_text("2")
    with pytest.raises(SnapshotLostError):
        RunHistory(place).begin("k", NOW)
    assert content(place.work) == {"a": "1"}


names = st.text("abc", min_size=1, max_size=2)
trees = st.recursive(st.binary(max_size=20), lambda inner: st.dictionaries(names, inner, max_size=4), max_leaves=12)


def plant(folder: Path, tree: dict[str, object]) -> None:
    for name, value in tree.items():
        if isinstance(value, bytes):
            (folder / name).write_bytes(value)
        elif isinstance(value, dict):
            (folder / name).mkdir()
            plant(folder / name, value)


@given(st.dictionaries(names, trees, max_size=4), st.dictionaries(names, trees, max_size=4))
def test_any_workspace_comes_back_whole(before: dict[str, object], after: dict[str, object]) -> None:
    with scratch() as folder:
        work, other = folder / "work", folder / "other"
        work.mkdir()
        other.mkdir()
        plant(work, before)
        plant(other, after)
        snapshots = Snapshots(folder / "objects")
        taken = snapshots.take(work, NOW, keep=True)
        snapshots.restore(taken, other)
        assert snapshots.take(other, NOW, keep=False).digest == taken.digest


def test_links_come_back_as_links(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    (place.work / "link").symlink_to("/etc/passwd")
    history = RunHistory(place)
    history.begin("k", NOW)
    (place.work / "link").unlink()
    history.begin("k", NOW)
    assert (place.work / "link").readlink() == Path("/etc/passwd")
