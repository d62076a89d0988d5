"""Files that are replaced whole or not at all."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from remit.atomic import replace_file, written_beside


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    place = tmp_path / "a.json"
    for data in (b"one", b"two"):
        replace_file(place, data)
        assert place.read_bytes() == data
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_it_has_the_mode_that_was_asked_for(tmp_path: Path, mode: int) -> None:
    place = tmp_path / "a.json"
    replace_file(place, b"", mode=mode)
    assert stat.S_IMODE(place.stat().st_mode) == mode


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(tmp_path: Path) -> None:
    place = tmp_path / "a.json"
    (place / "below").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        replace_file(place, b"new")
    assert list(tmp_path.iterdir()) == [place]


def test_what_is_written_beside_it_is_for_its_owner_alone(tmp_path: Path) -> None:
    place = tmp_path / "a.keys"
    beside = written_beside(place, b"key")
    assert (beside.parent, beside.read_bytes()) == (tmp_path, b"key")
    assert stat.S_IMODE(beside.stat().st_mode) == 0o600
    assert not place.exists()
