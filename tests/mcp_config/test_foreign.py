from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remit.errors import SettingsError
from remit.mcp_config.foreign import Found, read_foreign

ENTRY = {"command": "x"}


def read(folder: Path, name: str, value: Any, *projects: str) -> Found:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")
    return read_foreign(file, None, [Path(one) for one in projects])


@pytest.mark.parametrize(
    ("name", "key", "client"),
    [
        ("claude_desktop_config.json", "mcpServers", "claude-desktop"),
        (".mcp.json", "mcpServers", "claude-code"),
        (".cursor/mcp.json", "mcpServers", "cursor"),
        (".vscode/mcp.json", "servers", "vscode"),
        ("some.json", "mcpServers", "claude-code"),
        ("some.json", "servers", "vscode"),
    ],
)
def test_every_clients_file_is_known(tmp_path: Path, name: str, key: str, client: str) -> None:
    found = read(tmp_path, name, {key: {"My A": ENTRY}})
    assert [(one.name, one.entry, one.client, one.file) for one in found.servers] == [
        ("My A", ENTRY, client, tmp_path / name)
    ]
    assert found.notes == []


def test_of_claude_codes_file_the_users_servers_and_those_of_this_project_are_taken(tmp_path: Path) -> None:
    projects = {"/p": {"mcpServers": {"b": ENTRY}}, "/q": {"mcpServers": {"c": ENTRY}}, "/r": {"mcpServers": {}}}
    found = read(tmp_path, ".claude.json", {"mcpServers": {"a": ENTRY}, "projects": projects, "history": []}, "/p")
    assert [one.name for one in found.servers] == ["a", "b"]
    assert found.notes == [f"{tmp_path / '.claude.json'}: left out 1 servers of the project /q; import them there"]


def test_inputs_come_with_the_servers_of_vs_code(tmp_path: Path) -> None:
    value = {"servers": {"a": ENTRY}, "inputs": [{"id": "k", "description": "Key"}, "odd", {"no": "id"}]}
    (server,) = read(tmp_path, ".vscode/mcp.json", value).servers
    assert server.inputs == {"k": {"id": "k", "description": "Key"}}


def test_what_is_no_server_is_noted(tmp_path: Path) -> None:
    found = read(tmp_path, ".mcp.json", {"mcpServers": {"a": "odd", "b": ENTRY}})
    assert [one.name for one in found.servers] == ["b"]
    assert found.notes == [f"{tmp_path / '.mcp.json'}: a is not a JSON object; it is skipped"]
    found = read(tmp_path, ".mcp.json", {"other": 1})
    assert found.notes == [f"{tmp_path / '.mcp.json'}: names no servers (it has no mcpServers)"]


@pytest.mark.parametrize("value", [[], "x", {"mcpServers": []}])
def test_what_is_no_clients_file_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(SettingsError, match=r"not a JSON object"):
        read(tmp_path, ".mcp.json", value)
