"""The user of the sandbox passes folders of ours, and no other user does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from remit.parts.sandbox.identity import UserIdentity, identity, reachable

USER, OTHER = 60_900, 65_534
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user for its sandboxes")


@root
def test_a_folder_is_open_to_the_sandbox_and_to_nobody_else(tmp_path: Path) -> None:
    place = tmp_path / "ours" / "deep"
    identity().make(place)
    state = place.stat()
    assert (state.st_uid, state.st_mode & 0o777) == (0, 0o710)
    assert [UserIdentity(user, user).may(state, 1) for user in (USER, OTHER)] == [True, False]
    assert not UserIdentity(USER, USER).may(state, 4)


@root
@pytest.mark.parametrize(
    ("owner", "group", "mode", "expected"),
    [
        (USER, 0, 0o400, True),
        (USER, 0, 0o044, False),
        (0, USER, 0o040, True),
        (0, USER, 0o404, False),
        (0, 0, 0o004, True),
        (0, 0, 0o440, False),
    ],
)
def test_the_bits_of_a_file_that_count_are_those_of_the_user(
    owner: int, group: int, mode: int, expected: bool, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    os.chown(file, owner, group)
    file.chmod(mode)
    assert identity().may(file.stat(), 4) is expected


def test_who_runs_as_we_do_reaches_what_we_reach(tmp_path: Path) -> None:
    if identity().uid is None:
        assert reachable(tmp_path)
    else:
        (tmp_path / "closed").mkdir(0o700)
        assert not reachable(tmp_path / "closed")


def test_without_another_user_a_folder_is_closed_to_all(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    UserIdentity().admit(tmp_path / "ours")
    assert (tmp_path / "ours").stat().st_mode & 0o777 == 0o700
