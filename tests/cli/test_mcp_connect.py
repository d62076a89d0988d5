"""`remit mcp connect` and `disconnect`: what is shown, asked, written and taken back."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from remit import atomic
from tests.cli.conftest import Project

CURSOR = """{
  // mine
  "mcpServers": {
    "notes": { "command": "python3", "args": ["notes.py"], "env": { "API_KEY": "swordfish-swordfish" } }, // a
    "far": { "url": "https://far.example/mcp", /* why */ "headers": { } },
    "old": { "url": "https://old.example/sse", "type": "sse" },
  },
}
"""
CODEX = '# mine\nmodel = "x"\n\n[mcp_servers.notes]\ncommand = "python3" # the program\nargs = ["notes.py"]\n'


@pytest.fixture
def cursor(project: Project) -> Path:
    """The configuration of a person's Cursor."""
    project.configure(modules=False)
    file = project.folder / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(CURSOR, encoding="utf-8")
    return file


def test_the_difference_is_shown_and_nothing_written_without_a_yes(project: Project, cursor: Path) -> None:
    shown = project.here("mcp", "connect", "cursor")
    assert shown.status == 2
    assert '+    "remit": {' in shown.out
    assert "--yes" in shown.err
    assert "swordfish" not in shown.out
    as_json = project.here("mcp", "connect", "cursor", "--json").json
    assert (as_json["written"], as_json["servers"]) == (False, ["remit"])
    assert cursor.read_text(encoding="utf-8") == CURSOR
    assert project.here("mcp", "disconnect", "cursor").status == 2


def test_remit_is_served_and_taken_out_byte_for_byte(project: Project, cursor: Path) -> None:
    done = project.here("mcp", "connect", "cursor", "--yes")
    assert (done.status, "connected cursor: remit" in done.out) == (0, True)
    text = cursor.read_text(encoding="utf-8")
    assert str(project.folder / "remit.toml") in text
    assert '"mcp",\n' in text
    assert project.here("mcp", "connect", "cursor", "--yes").status == 2
    assert project.here("mcp", "disconnect", "cursor", "--yes").status == 0
    assert cursor.read_text(encoding="utf-8") == CURSOR
    assert project.here("mcp", "disconnect", "cursor", "--yes").status == 2


def test_servers_are_wrapped_and_those_that_cannot_be_are_named(project: Project, cursor: Path) -> None:
    done = project.here("mcp", "connect", "cursor", "--all", "--level", "read_*=L0", "--yes", "--json").json
    assert done["servers"] == ["notes", "far"]
    assert "remit mcp login --url https://far.example/mcp --name far" in done["notes"][0]
    assert "old speaks SSE" in done["notes"][1]
    text = cursor.read_text(encoding="utf-8")
    assert '"--name",' in text
    assert "// mine" in text
    again = project.here("mcp", "connect", "cursor", "--all", "--yes", "--json").json
    assert (again["written"], again["notes"][0]) == (False, "notes: Remit is there already")
    assert project.here("mcp", "connect", "cursor", "--wrap", "other").status == 2
    cursor.write_text(text.replace("mine", "yours"), encoding="utf-8")
    project.here("mcp", "disconnect", "cursor", "--yes")
    assert cursor.read_text(encoding="utf-8") == CURSOR.replace("mine", "yours")


def test_codex_keeps_its_comments(project: Project) -> None:
    project.configure(modules=False)
    file = project.folder / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(CODEX, encoding="utf-8")
    assert project.here("mcp", "connect", "codex", "--wrap", "notes", "--yes").status == 0
    text = file.read_text(encoding="utf-8")
    entry = tomllib.loads(text)["mcp_servers"]["notes"]
    assert "# the program" in text
    assert entry["args"][-3:] == ["--", "python3", "notes.py"]
    assert (entry["required"], entry["default_tools_approval_mode"]) == (True, "approve")
    project.here("mcp", "disconnect", "codex", "--yes")
    assert file.read_text(encoding="utf-8") == CODEX


@pytest.mark.parametrize("client", ["claude-code", "claude-desktop", "cursor", "vscode", "codex"])
def test_a_file_that_was_not_there_is_gone_again(project: Project, client: str) -> None:
    project.configure(modules=False)
    made = project.here("mcp", "connect", client, "--yes", "--json").json
    file = Path(made["file"])
    assert "mcp" in file.read_text(encoding="utf-8")
    imported = project.here("mcp", "import", str(file), "--from", client, "--json").json
    assert [server["original"] for server in imported["servers"]] == ["remit"]
    assert project.here("mcp", "disconnect", client, "--yes").status == 0
    assert not file.exists()


def test_a_project_has_a_file_of_its_own_where_its_client_reads_one(project: Project) -> None:
    project.configure(modules=False)
    made = project.here("mcp", "connect", "claude-code", "--project", "--json").json
    assert made["file"] == str(project.folder / ".mcp.json")
    refused = project.here("mcp", "connect", "codex", "--project")
    assert (refused.status, "has no file for projects" in refused.err) == (2, True)


def test_a_file_of_another_shape_is_refused_with_a_code_and_left_as_it_is(project: Project, cursor: Path) -> None:
    cursor.write_text('{"mcpServers": [1]}', encoding="utf-8")
    refused = project.here("mcp", "connect", "cursor", "--yes", "--json")
    assert refused.status == 2
    assert refused.error["code"] == "SETTINGS_INVALID"
    assert cursor.read_text(encoding="utf-8") == '{"mcpServers": [1]}'


def test_a_write_that_fails_leaves_the_file_as_it_was(
    project: Project, cursor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = atomic.written_beside

    def broken(place: Path, data: bytes, *, mode: int = 0o600) -> Path:
        if place.name == "mcp.json":
            raise OSError(28, "No space left on device")
        return whole(place, data, mode=mode)

    monkeypatch.setattr(atomic, "written_beside", broken)
    failed = project.here("mcp", "connect", "cursor", "--yes")
    assert (failed.status, "No space left" in failed.err) == (2, True)
    assert cursor.read_text(encoding="utf-8") == CURSOR
    monkeypatch.undo()
    assert project.here("mcp", "disconnect", "cursor", "--yes").status == 0
    assert cursor.read_text(encoding="utf-8") == CURSOR


def test_a_file_and_a_link_to_it_are_the_same(project: Project, cursor: Path) -> None:
    link = project.folder / "link.json"
    link.symlink_to(cursor)
    shown = project.here("mcp", "connect", "cursor", "--file", str(link), "--yes").out
    assert shown.startswith(f"--- a{link}\n+++ b{link}\n")
    assert link.is_symlink()
    assert project.here("mcp", "disconnect", "cursor", "--yes").status == 0
    assert cursor.read_text(encoding="utf-8") == CURSOR


def test_a_folder_that_cannot_be_made_is_refused_with_what_to_do(project: Project, cursor: Path) -> None:
    refused = project.here("mcp", "connect", "cursor", "--file", str(cursor / "mcp.json"), "--yes", "--json")
    assert (refused.status, refused.error["code"]) == (2, "USAGE")
    assert refused.error["remedy"] == "Make it and its folder writable."


def test_levels_without_servers_to_wrap_are_refused(project: Project, cursor: Path) -> None:
    refused = project.here("mcp", "connect", "cursor", "--level", "get_*=L0", "--yes")
    assert (refused.status, "--wrap or --all" in refused.err) == (2, True)
    assert cursor.read_text(encoding="utf-8") == CURSOR


def test_a_person_at_a_terminal_is_asked(project: Project, cursor: Path) -> None:
    with project.terminal("mcp", "connect", "cursor") as screen:
        screen.expect(r"Change .*mcp.json\? \[y/N\]")
        screen.type("n\r")
        screen.expect("nothing was written")
        assert screen.end() == 0
    assert cursor.read_text(encoding="utf-8") == CURSOR
