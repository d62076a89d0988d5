from __future__ import annotations

import json
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Project

SUPPORT = "Library/Application Support" if sys.platform == "darwin" else ".config"
VSCODE = """{
  // what the team uses
  "inputs": [{ "type": "promptString", "id": "gh-token", "description": "GitHub token", "password": true }],
  "servers": {
    "GitHub": {
      "type": "http", "url": "https://h/mcp", "headers": { "Authorization": "Bearer ${input:gh-token}" },
    },
    "old": { "type": "sse", "url": "https://h/sse" }, /* not any more */
  },
}
"""
DESKTOP = {
    "mcpServers": {
        "My Files": {"command": "npx", "args": ["-y", "files"], "env": {"API_KEY": "swordfish", "MODE": "fast"}},
        "other": {"command": "uvx", "args": ["other", "--token", "swordfish"], "alwaysAllow": ["swordfish"]},
    }
}


@pytest.fixture
def clients(project: Project) -> Project:
    """A project whose person uses every client."""
    home = project.folder
    files: dict[str, Any] = {
        ".vscode/mcp.json": VSCODE,
        f"{SUPPORT}/Claude/claude_desktop_config.json": DESKTOP,
        ".mcp.json": {"mcpServers": {"web": {"type": "http", "url": "https://h/${PART:-x}"}}},
        ".claude.json": {
            "mcpServers": {"mine": {"type": "stdio", "command": "mine"}},
            "projects": {str(home): {"mcpServers": {"here": {"command": "here"}}}},
        },
        ".cursor/mcp.json": {"mcpServers": {"other": {"command": "elsewhere", "env": {"D": "${workspaceFolder}"}}}},
    }
    for name, value in files.items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    project.configure("# mine\n", modules=False)
    return project


def written(project: Project) -> dict[str, dict[str, Any]]:
    data = tomllib.loads((project.folder / "remit.toml").read_text(encoding="utf-8"))
    return {server.pop("name"): server for server in data.get("mcp", {}).get("servers", [])}


def test_all_that_the_clients_know_is_taken_over_without_secrets(clients: Project) -> None:
    done = clients.here("mcp", "import", "--all")
    assert done.status == 0
    assert written(clients) == {
        "web": {"url": "https://h/${PART:-x}"},
        "other": {"command": ["elsewhere"], "env": {"D": str(clients.folder)}},
        "github": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer ${GH_TOKEN}"}},
        "mine": {"command": ["mine"]},
        "here": {"command": ["here"]},
        "my_files": {"command": ["npx", "-y", "files"], "env": {"API_KEY": "${API_KEY}", "MODE": "fast"}},
        "other_2": {"command": ["uvx", "other", "--token", "${OTHER_TOKEN}"]},
    }
    for line in (
        "my_files: renamed to my_files: names are lower-case letters, digits and single underscores",
        "other_2: the name other is taken: renamed to other_2",
        "other_2: not carried over: alwaysAllow",
        "old: its transport is sse, which is not supported; ask whether the server also speaks streamable HTTP",
        "set GH_TOKEN in the environment: GitHub token",
        "set API_KEY in the environment: the secret in env API_KEY",
        "set OTHER_TOKEN in the environment: the secret in argument token",
    ):
        assert line in done.out.splitlines()
    assert "swordfish" not in done.out + done.err
    assert (clients.folder / "remit.toml").read_text(encoding="utf-8").startswith("# mine\n")
    assert [one["name"] for one in clients.here("mcp", "list", "--json").json["servers"]] == list(written(clients))


def test_a_second_import_changes_nothing(clients: Project) -> None:
    clients.here("mcp", "import", "--all")
    before = written(clients)
    servers = clients.here("mcp", "import", "--all", "--json").json["servers"]
    assert {one["status"] for one in servers} == {"known", "skipped"}
    assert written(clients) == before


@pytest.mark.parametrize("words", [(), ("--all", "--dry-run")])
def test_without_a_choice_or_in_a_dry_run_nothing_is_written(clients: Project, words: tuple[str, ...]) -> None:
    done = clients.here("mcp", "import", *words)
    assert (done.status, written(clients)) == (0, {})
    assert "set API_KEY in the environment" in done.out
    assert ("nothing was written: name servers, or use --all" in done.err) is (words == ())
    shown = clients.here("mcp", "import", *words, "--json")
    assert (shown.json["written"], shown.err) == (False, "")
    assert {one["status"] for one in shown.json["servers"]} == {"found", "skipped"}
    assert "swordfish" not in shown.out


def test_only_what_is_named_is_taken_from_only_the_client_that_is_named(clients: Project) -> None:
    assert clients.here("mcp", "import", "--from", "claude-desktop", "My Files").status == 0
    assert list(written(clients)) == ["my_files"]
    done = clients.here("mcp", "import", "--from", "cursor", "nope")
    assert done.status == 2
    assert "no server nope was found" in done.err
    assert "Found: other." in done.err
    assert clients.here("mcp", "import", "--all", "other").status == 2


def test_kept_secrets_are_readable_by_nobody_else_and_not_printed(clients: Project) -> None:
    done = clients.here("mcp", "import", "--keep-secrets", "my_files")
    assert written(clients)["my_files"]["env"]["API_KEY"] == "swordfish"
    assert stat.S_IMODE((clients.folder / "remit.toml").stat().st_mode) == 0o600
    for one in (done, clients.here("mcp", "list"), clients.here("config"), clients.here("config", "--json")):
        assert one.status == 0
        assert "swordfish" not in one.out + one.err


def test_a_file_may_be_named(clients: Project, tmp_path: Path) -> None:
    file = tmp_path / "some.json"
    file.write_text('{"mcpServers": {"only": {"command": "x"}}}', encoding="utf-8")
    shown = clients.here("mcp", "import", "some.json", "--all", "--json").json
    assert [(one["name"], one["status"], one["file"]) for one in shown["servers"]] == [
        ("only", "imported", "some.json")
    ]
    assert list(written(clients)) == ["only"]


def test_bad_json_is_an_error_with_its_place_in_a_named_file_and_a_note_elsewhere(clients: Project) -> None:
    (clients.folder / ".mcp.json").write_text('{\n "mcpServers": swordfish}', encoding="utf-8")
    done = clients.here("mcp", "import", ".mcp.json", "--all")
    assert done.status == 2
    assert ".mcp.json:2:16: Expecting value" in done.err
    assert "swordfish" not in done.err
    done = clients.here("mcp", "import", "--all")
    assert done.status == 0
    assert ".mcp.json:2:16: Expecting value" in done.out
    assert "mine" in written(clients)


def test_where_no_client_is_used_that_is_said(project: Project) -> None:
    done = project.here("mcp", "import")
    assert (done.status, done.out) == (0, "")
    assert "no servers were found in the usual places; name a FILE" in done.err


def test_a_server_of_the_projects_file_that_is_disabled_in_claude_code_stays_so(project: Project) -> None:
    entry = {"command": "x"}
    (project.folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"shared": entry}}), encoding="utf-8")
    off = {
        "mcpServers": {"mine": {"command": "y"}},
        "projects": {str(project.folder): {"disabledMcpjsonServers": ["shared"]}},
    }
    (project.folder / ".claude.json").write_text(json.dumps(off), encoding="utf-8")
    assert project.here("mcp", "import", "--all").status == 0
    assert written(project) == {"mine": {"command": ["y"]}, "shared": {"command": ["x"], "disabled": True}}
