from __future__ import annotations

import os
from pathlib import Path

import pytest

from remit.errors import SettingsError
from remit.settings import load
from remit.settings.file import MAX_BYTES, find, read


def write(folder: Path, text: str | bytes = b"") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "remit.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def pretend(monkeypatch: pytest.MonkeyPatch, *, owner: int, user: int) -> None:
    """All files belong to `owner`, and this process runs as `user`."""
    real = Path.lstat

    def lstat(path: Path) -> os.stat_result:
        fields = list(real(path))
        fields[4] = owner
        return os.stat_result(fields)

    monkeypatch.setattr(Path, "lstat", lstat)
    monkeypatch.setattr(os, "getuid", lambda: user)


def test_the_nearest_file_upwards_is_found(tmp_path: Path) -> None:
    far = write(tmp_path)
    near = write(tmp_path / "a/b")
    (tmp_path / "a/b/c").mkdir()
    assert find(tmp_path / "a/b/c", None) == near
    assert find(tmp_path / "a/b", None) == near
    assert find(tmp_path / "a", None) == far


def test_the_search_ends_at_home_which_it_includes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(tmp_path)
    (home / "work").mkdir(parents=True)
    assert find(home / "work", home) is None
    file = write(home)
    assert find(home / "work", home) == file


def test_home_and_the_working_folder_may_be_named_by_links(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "home/work").mkdir(parents=True)
    (tmp_path / "link").symlink_to("home")
    assert load(cwd=tmp_path / "home/work", env={"HOME": str(tmp_path / "link")}).file is None
    assert load(cwd=tmp_path / "link/work", env={"HOME": str(tmp_path / "home")}).file is None


def test_a_working_folder_with_dots_is_the_folder_they_lead_to(tmp_path: Path) -> None:
    write(tmp_path / "a")
    file = write(tmp_path)
    settings = load(cwd=tmp_path / "a/..", env={})
    assert (settings.file, settings.folder) == (file, tmp_path)


def test_the_project_folder_of_a_linked_file_is_the_one_that_holds_the_link(tmp_path: Path) -> None:
    shared = write(tmp_path / "shared")
    project = tmp_path / "project"
    project.mkdir()
    (project / "remit.toml").symlink_to(shared)
    assert load(cwd=project, env={}).folder == project
    assert load(cwd=tmp_path, env={"REMIT_CONFIG": "shared/../project/remit.toml"}).folder == project


@pytest.mark.parametrize(("owner", "user"), [(1001, 1000), (1000, 0)])
def test_a_file_of_another_user_further_up_is_refused_until_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int, user: int
) -> None:
    file = write(tmp_path, "[jobs]\nconcurrency = 3")
    below = tmp_path / "a"
    below.mkdir()
    pretend(monkeypatch, owner=owner, user=user)
    with pytest.raises(SettingsError, match=f"belongs to another user .uid {owner}.") as caught:
        load(cwd=below, env={})
    assert f"Set REMIT_CONFIG={file}" in caught.value.remedy
    assert load(cwd=below, env={"REMIT_CONFIG": str(file)}).jobs.concurrency == 3
    assert load(cwd=tmp_path, env={}).jobs.concurrency == 3


@pytest.mark.parametrize(("owner", "user"), [(1000, 1000), (0, 1000)])
def test_a_file_of_one_s_own_or_of_root_further_up_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int, user: int
) -> None:
    file = write(tmp_path)
    pretend(monkeypatch, owner=owner, user=user)
    assert find(tmp_path / "a/b", None) == file


def test_the_file_given_wins_over_remit_config_over_the_one_found(tmp_path: Path) -> None:
    found = write(tmp_path)
    named = write(tmp_path / "a")
    given = write(tmp_path / "b")
    env = {"REMIT_CONFIG": "a/remit.toml"}
    assert load(cwd=tmp_path, env={}).file == found
    assert load(cwd=tmp_path, env=env).file == named
    settings = load(cwd=tmp_path, env=env, file=Path("b/remit.toml"))
    assert (settings.file, settings.folder) == (given, given.parent)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[jobs]\nconcurrency = = 4", "2:15: Invalid value"),
        ("[jobs]\n\nconcurrency", "3:12: "),
        ("a = 1\na = 2", "2:6: Cannot overwrite a value"),
        (b"a = 1\nb = '\xc3\xbc\xff'", "2:7: is not UTF-8"),
        ("\ufeffa = = 1", "1:5: Invalid value"),
    ],
)
def test_bad_toml_is_refused_with_file_line_and_column(tmp_path: Path, text: str | bytes, place: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        load(cwd=tmp_path, env={})
    assert caught.value.message.startswith(f"{file}:{place}")
    assert "at line" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (".".join("a" * 50_000) + " = 1", "1:1"),
        ("x = 1\n[" + " . ".join("a" * 50_000) + "]", "2:2"),
        ("x = {" + ".".join(['"a b"'] * 50_000) + " = 1}", "1:6"),
    ],
    ids=["key", "table", "inline table"],
)
def test_a_key_of_too_many_parts_is_refused(tmp_path: Path, text: str, place: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        load(cwd=tmp_path, env={})
    assert caught.value.message == f"{file}:{place}: a key has more than 32 parts"


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "1" * 10_000])
def test_toml_made_to_break_the_reader_is_refused(tmp_path: Path, text: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(SettingsError, match="nested too deeply or contains too long a number"):
        read(file)


def test_a_file_beyond_the_limit_is_refused_without_being_read_whole(tmp_path: Path) -> None:
    file = write(tmp_path, b"#" * MAX_BYTES)
    assert read(file) == {}
    with file.open("ab") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(SettingsError, match="is larger than 1048576 bytes"):
        read(file)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.toml: cannot be read: No such file"):
        load(cwd=tmp_path, env={}, file=Path("nowhere.toml"))
    (tmp_path / "remit.toml").mkdir()
    with pytest.raises(SettingsError, match="cannot be read: Is a directory"):
        load(cwd=tmp_path, env={})


def test_a_link_to_nowhere_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "remit.toml").symlink_to("nowhere")
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        load(cwd=tmp_path, env={})


def test_policy_rules_stay_as_they_were_written(tmp_path: Path) -> None:
    rules = "[[policy.rules]]\nid = 'a'\ntools = ['fs.*']\n[[policy.rules]]\nid = 'b'\ndeep = {x = 1}"
    (tmp_path / "remit.toml").write_text(rules)
    assert load(cwd=tmp_path, env={}).policy.rules == ({"id": "a", "tools": ["fs.*"]}, {"id": "b", "deep": {"x": 1}})
