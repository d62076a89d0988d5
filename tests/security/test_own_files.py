"""Remit's own files: no tool reads keys and logins, and nothing is written or trusted through a link or a race."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit.cli.file_writer import place_below
from remit.errors import SettingsError, UsageError
from remit.journal.seals import load as load_keys
from remit.journal.seals import make as make_key
from remit.settings import load
from remit.trust.state import Register, TrustedFile, standing, trust
from tests.opened import OpenRemit
from tests.security.conftest import Folder

ALLOW = [{"effect": "allow", "tools": ["*"]}]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder that is open to agents, with what Remit keeps there."""
    kept = tmp_path / "home/.local/share/remit"
    monkeypatch.setenv("XDG_DATA_HOME", str(kept.parent))
    for name in ("journal-keys/j.keys", "mcp-auth/web.json", "trust/file-1.json"):
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        (kept / name).write_text("TOPSECRET", encoding="utf-8")
    (tmp_path / "home/seal.keys").write_text("TOPSECRET", encoding="utf-8")
    (tmp_path / "home/notes.txt").write_text("notes", encoding="utf-8")
    return tmp_path / "home"


def flags(home: Path) -> dict[str, Any]:
    return {"fs.roots": [str(home)], "policy.rules": ALLOW, "serve.tls_key": str(home / "seal.keys")}


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("fs.read", {"path": ".local/share/remit/journal-keys/j.keys"}),
        ("fs.read", {"path": ".LOCAL/share/../share/remit/mcp-auth/web.json"}),
        ("fs.read", {"path": ".local/share/remit/trust/file-1.json"}),
        ("fs.read", {"path": "seal.keys"}),
        ("fs.read", {"path": "./SEAL.keys"}),
        ("fs.search", {"query": "TOPSECRET"}),
        ("fs.search", {"query": "TOPSECRET", "path": ".local/share/remit/mcp-auth"}),
        ("fs.list", {"path": ".local/share/remit/trust"}),
        ("fs.write", {"path": "seal.keys", "content": "mine"}),
        ("fs.write", {"path": ".local/share/remit/trust/file-2.json", "content": "{}"}),
        ("fs.edit", {"path": "seal.keys", "edits": [{"search": "TOP", "replace": "x"}]}),
        ("doc.read", {"path": "seal.keys"}),
        ("doc.read", {"path": ".local/share/remit/trust/file-1.json", "source": True}),
        ("doc.search", {"query": "TOPSECRET"}),
        ("doc.propose_edit", {"path": "seal.keys", "content": ""}),
        ("doc.apply_edit", {"path": ".local/share/remit/trust/file-2.json", "sha256": None, "content": "{}"}),
        ("folder.read", {"folder": "HOME", "path": "seal.keys"}),
        ("folder.search", {"folder": "HOME", "query": "TOPSECRET"}),
    ],
)
async def test_no_tool_reads_or_changes_keys_logins_and_what_is_trusted(
    home: Path, remit_in: OpenRemit, tool: str, args: dict[str, Any]
) -> None:
    given = {name: str(home) if value == "HOME" else value for name, value in args.items()}
    async with remit_in(flags=flags(home), work=False) as remit:
        outcome = await remit.call(tool, given)
    assert "file-1.json" not in str(outcome.value)
    assert "TOPSECRET" not in str(outcome.value).replace("'query': 'TOPSECRET'", "")
    assert (home / "seal.keys").read_text(encoding="utf-8") == "TOPSECRET"
    assert not (home / ".local/share/remit/trust/file-2.json").exists()


async def test_what_lies_beside_them_is_read(home: Path, remit_in: OpenRemit) -> None:
    async with remit_in(flags=flags(home), work=False) as remit:
        assert (await remit.call("fs.read", {"path": "notes.txt"})).ok
        listed = (await remit.call("fs.list", {"path": "."})).value
    assert {one["path"] for one in listed["items"]} == {".local", "notes.txt"}


@pytest.mark.parametrize("tool", ["fs.write", "fs.edit"])
async def test_a_file_of_several_names_is_changed_under_one_alone(
    home: Path, remit_in: OpenRemit, tool: str
) -> None:  # F18: what lies outside stays as it is
    outside = home.parent / "outside.txt"
    outside.write_text("before", encoding="utf-8")
    (home / "inside.txt").hardlink_to(outside)
    more = {"content": "after"} if tool == "fs.write" else {"edits": [{"search": "before", "replace": "after"}]}
    async with remit_in(flags=flags(home), work=False) as remit:
        assert (await remit.call(tool, {"path": "inside.txt", **more})).ok
    assert (home / "inside.txt").read_text(encoding="utf-8") == "after"
    assert outside.read_text(encoding="utf-8") == "before"


# --- keys


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o620])
def test_a_key_that_others_may_read_or_change_is_none(tmp_path: Path, mode: int) -> None:
    place = tmp_path / "j.keys"
    make_key(place)
    assert load_keys(place) is not None
    place.chmod(mode)
    with pytest.raises(SettingsError, match="others may read or change it"):
        load_keys(place)


def test_a_key_behind_a_link_out_of_its_folder_is_not_read_and_none_is_made_behind_a_link(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    make_key(elsewhere / "real.keys")
    before = (elsewhere / "real.keys").read_bytes()
    (project / "j.keys").symlink_to(elsewhere / "real.keys")
    (elsewhere / "j.keys").symlink_to("real.keys")
    (project / "new.keys").symlink_to(project / "made.keys")
    make_key(project / "j.keys")
    make_key(project / "new.keys")
    assert (elsewhere / "real.keys").read_bytes() == before
    assert not (project / "made.keys").exists()
    with pytest.raises(SettingsError):
        load_keys(project / "j.keys")
    assert load_keys(elsewhere / "j.keys") is not None  # as Kubernetes mounts a secret


# --- what is trusted


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder whose settings import a module."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "remit.toml").write_text('[app]\nmodules = ["desk.py"]\n', encoding="utf-8")
    (folder / "desk.py").write_text("A = 1\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("changed", ["desk.py", "remit.toml"])
def test_what_changes_while_someone_looks_at_it_is_not_trusted(tmp_path: Path, project: Path, changed: str) -> None:
    found = standing(load(cwd=project, env={}), Register(tmp_path / "trust"), {})
    found.unchanged({})
    with (project / changed).open("a", encoding="utf-8") as file:
        file.write("# later\n")
    with pytest.raises(SettingsError, match="changed while you looked"):
        found.unchanged({})


@pytest.mark.parametrize("how", ["folder for others", "file for others", "link", "another path", "not JSON"])
def test_an_entry_that_others_could_have_written_trusts_nothing(tmp_path: Path, project: Path, how: str) -> None:
    register, settings = Register(tmp_path / "trust"), load(cwd=project, env={})
    trust(standing(settings, register, {}), register, edits=True, now=1)
    assert standing(settings, register, {}).trusted
    (entry,) = register.folder.iterdir()
    if how == "folder for others":
        register.folder.chmod(0o777)
    elif how == "file for others":
        entry.chmod(0o666)
    elif how == "link":
        entry.rename(tmp_path / "elsewhere.json")
        entry.symlink_to(tmp_path / "elsewhere.json")
    elif how == "another path":
        kept = register.file(project / "remit.toml")
        assert isinstance(kept, TrustedFile)
        other = tmp_path / "other"
        project.rename(other)
        settings = load(cwd=other, env={})
    else:
        entry.write_text("{", encoding="utf-8")
    assert not standing(settings, register, {}).trusted


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/x", "a/../../x", "a//x", "", ".", "a/./b", "a\nb", "a\x1b[2J", "link/x", "there", "\u202ea", "a/"],
)
def test_no_name_of_an_artifact_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    (folder / "there").symlink_to(tmp_path / "victim")
    with pytest.raises(UsageError):
        place_below(folder, name, force=True)


@pytest.fixture
def clone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Folder:
    return Folder(tmp_path, 1, capsys)


def test_init_writes_through_no_link(clone: Folder) -> None:
    (clone.path / "remit.toml").unlink()
    victim = clone.path.parent / "victim"
    victim.mkdir()
    (clone.path / ".remit").symlink_to(victim)
    done = clone.run("init", "--no-tool")
    assert done.status != 0
    assert "is a link" in done.err
    assert list(victim.iterdir()) == []
    assert not (clone.path / "remit.toml").exists()


def test_init_takes_no_file_for_its_own_that_was_there(clone: Folder) -> None:
    assert clone.run("init").status != 0
    assert "FOLDER_NOT_TRUSTED" in clone.run("run", "greet").err
    assert not clone.ran()
