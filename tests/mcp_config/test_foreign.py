from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remit.errors import SettingsError
from remit.mcp_config.foreign import FileContent, read_foreign
from remit.mcp_config.plan import carry

ENTRY = {"command": "x"}


def read(folder: Path, name: str, value: Any, *projects: str) -> FileContent:
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


def test_servers_that_claude_code_disabled_stay_disabled(tmp_path: Path) -> None:
    off = {"disabledMcpServers": ["here", "mine"], "disabledMcpjsonServers": ["shared"], "mcpServers": {"here": ENTRY}}
    found = read(tmp_path, ".claude.json", {"mcpServers": {"mine": ENTRY, "on": ENTRY}, "projects": {"/p": off}}, "/p")
    assert {one.name: one.disabled for one in found.servers} == {"mine": True, "on": False, "here": True}
    assert found.off == {"here", "mine", "shared"}
    assert not any(one.disabled for one in read(tmp_path, ".claude.json", {"mcpServers": {"mine": ENTRY}}).servers)


def test_a_name_that_is_there_twice_is_noted(tmp_path: Path) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text('{"mcpServers": {"db": {"command": "a"}, "db": {"command": "b"}, /* why */ }}', encoding="utf-8")
    found = read_foreign(file, None, [])
    assert [one.entry for one in found.servers] == [{"command": "b"}]
    assert found.notes == [f"{file}: db is there twice in one object; only the last one counts"]


@pytest.mark.parametrize(
    ("name", "project"), [(".mcp.json", ""), (".cursor/mcp.json", ""), (".vscode/mcp.json", ""), ("some.json", None)]
)
def test_a_server_knows_the_project_that_it_is_of(tmp_path: Path, name: str, project: str | None) -> None:
    (server,) = read(tmp_path, name, {"servers" if "vscode" in name else "mcpServers": {"a": ENTRY}}).servers
    assert server.project == (None if project is None else tmp_path)


CODEX = """
model = "x"

[mcp_servers.files]
command = "npx"
args = ["-y", "files"]
env = { MODE = "fast" }
env_vars = ["API_KEY"]
enabled = false

[mcp_servers.web]
url = "https://h/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { A = "b" }
env_http_headers = { C = "D" }
"""


def test_the_servers_of_codex_are_read(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(CODEX, encoding="utf-8")
    files, web = map(carry, read_foreign(file, None, []).servers)
    env = {"MODE": "fast", "API_KEY": "${API_KEY}"}
    assert files.table == {"command": ["npx", "-y", "files"], "env": env, "disabled": True}
    headers = {"A": "b", "C": "${D}", "Authorization": "Bearer ${TOKEN}"}
    assert web.table == {"url": "https://h/mcp", "headers": headers}
    assert (files.notes, web.notes) == ((), ())
    file.write_text("not toml", encoding="utf-8")
    with pytest.raises(SettingsError, match="is not TOML"):
        read_foreign(file, None, [])
