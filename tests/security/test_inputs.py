"""Files that never end, and files that are none: refused at once, whoever names them (reviews s09/Y21, T02)."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest

from remit.errors import SettingsError
from remit.jobs.plans.problem import InvalidPlanError
from remit.jobs.plans.source import load_plan
from remit.journal.seals import load as load_keys
from remit.settings import load

KINDS = ("pipe", "device", "socket", "folder", "link to a pipe", "link to itself", "absent")


def made(folder: Path, kind: str) -> Path:
    """Something of this kind that is not a regular file."""
    place = folder / "odd"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "device":
        place.symlink_to("/dev/zero")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(place))
    elif kind == "folder":
        place.mkdir()
    elif kind == "link to a pipe":
        os.mkfifo(folder / "target")
        place.symlink_to("target")
    elif kind == "link to itself":
        place.symlink_to("odd")
    return place


@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_a_plain_file(tmp_path: Path, kind: str) -> None:
    with pytest.raises(SettingsError):
        load(cwd=tmp_path, env={}, file=made(tmp_path, kind))


@pytest.mark.parametrize("kind", ["pipe", "device", "socket", "link to a pipe"])
def test_so_is_what_a_folder_brings_as_remit_toml(tmp_path: Path, kind: str) -> None:
    made(tmp_path, kind).rename(tmp_path / "remit.toml")
    below = tmp_path / "below"
    below.mkdir()
    for folder in (tmp_path, below):
        with contextlib.suppress(SettingsError):
            assert load(cwd=folder, env={}).file is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["plan.yaml", "plan.json"])
def test_so_is_a_plan(tmp_path: Path, kind: str, name: str) -> None:
    place = tmp_path / name
    if kind != "absent":
        place.symlink_to(made(tmp_path, kind))
    with pytest.raises(InvalidPlanError):
        load_plan(place)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "absent"])
def test_so_is_a_file_of_keys(tmp_path: Path, kind: str) -> None:
    with pytest.raises(SettingsError):
        load_keys(made(tmp_path, kind))


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100 + "." * 50,
        "[" * 3_000,
        "x = " + "[" * 3_000,
        'x = "\\uD800"',
        "\x00",
        "x = 1" + "0" * 10_000,
        "\ufeff[",
        "=" * 9,
    ],
)
def test_settings_that_are_no_toml_are_an_error_with_a_place(tmp_path: Path, text: str) -> None:
    (tmp_path / "remit.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"remit\.toml"):
        load(cwd=tmp_path, env={})
