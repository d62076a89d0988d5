from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remit.mcp_config.foreign import Foreign
from remit.mcp_config.places import Client
from remit.mcp_config.plan import Carried, carry


def carried(entry: dict[str, Any], client: Client = "claude-code", **inputs: dict[str, Any]) -> Carried:
    folder = {"cursor": ".cursor", "vscode": ".vscode"}.get(client, "")
    return carry(Foreign("a", entry, client, Path("/p", folder, "mcp.json"), inputs))


def test_a_server_on_stdio_is_carried_over() -> None:
    entry = {"type": "stdio", "command": "npx", "args": ["-y", 8, True], "env": {"A": "b", "N": 5}, "cwd": "/c"}
    table = {"command": ["npx", "-y", "8", "true"], "env": {"A": "b", "N": "5"}, "cwd": "/c"}
    assert carried(entry) == Carried(table, "", (), {})
    assert carried({"command": "npx", "args": [], "env": {}}).table == {"command": ["npx"]}
    assert carried({"command": "npx", "disabled": True}).table == {"command": ["npx"], "disabled": True}


@pytest.mark.parametrize("kind", [{"type": "http"}, {"type": "streamable-http"}, {"transport": "streamableHttp"}, {}])
def test_a_server_on_http_is_carried_over(kind: dict[str, str]) -> None:
    entry = {**kind, "url": "https://h", "headers": {"A": "b"}}
    assert carried(entry) == Carried({"url": "https://h", "headers": {"A": "b"}}, "", (), {})


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"type": "sse", "url": "https://h"}, "its transport is sse, which is not supported"),
        ({"type": "ws", "url": "wss://h"}, "its type ws is not supported"),
        ({"type": "http"}, "it has no command and no url"),
        ({"serverUrl": "https://h"}, "it has no command and no url, only serverUrl"),
        ({}, "it has no command and no url"),
        ({"command": " "}, "it has no command"),
        ({"command": ["x"]}, "it has no command"),
        ({"command": "x", "args": "y"}, "its args are not a list of texts"),
        ({"command": "x", "args": [{}]}, "its args are not a list of texts"),
        ({"command": "x", "env": ["y"]}, "its env is not an object"),
        ({"command": "x", "cwd": 5}, "its cwd is not text"),
    ],
)
def test_what_cannot_be_used_is_skipped_with_the_reason(entry: dict[str, Any], why: str) -> None:
    found = carried(entry)
    assert found.table == {}
    assert found.skipped.startswith(why)


def test_what_cannot_be_carried_over_is_listed_without_its_value() -> None:
    found = carried(
        {"command": "x", "envFile": "swordfish", "alwaysAllow": ["t"], "env": {"A": None}, "url": "https://h"}
    )
    assert found.notes == (
        "not carried over: env A, which is not text",
        "not carried over: envFile, alwaysAllow, url",
    )


@pytest.mark.parametrize(
    ("client", "text", "ours"),
    [
        ("claude-code", "${A}-${B:-c}", "${A}-${B:-c}"),
        ("claude-desktop", "${A}", "$${A}"),
        ("cursor", "${env:A}${/}${pathSeparator}", "${env:A}//"),
        ("cursor", "${userHome}/x", "${HOME}/x"),
        ("cursor", "${workspaceFolder}/x ${workspaceFolderBasename}", "/p/x p"),
        ("vscode", "${workspaceFolder}", "/p"),
        ("vscode", "${input:my-key}", "${MY_KEY}"),
        ("vscode", "${input:region}", "${REGION:-eu}"),
        ("vscode", "${config:a.b}", "${CONFIG_A_B}"),
    ],
)
def test_references_become_ours(client: Client, text: str, ours: str) -> None:
    inputs: dict[str, dict[str, Any]] = {
        "my-key": {"password": True, "description": "The key"},
        "region": {"default": "eu"},
    }
    assert carried({"command": "x", "args": [text]}, client, **inputs).table["command"] == ["x", ours]


def test_variables_to_set_are_listed_with_what_they_stand_for() -> None:
    entry = {"command": "x", "args": ["${input:my-key}", "${input:other}", "${config:a}"]}
    found = carried(entry, "vscode", **{"my-key": {"description": "The key", "default": "d", "password": True}})
    assert found.variables == {
        "MY_KEY": "The key",
        "OTHER": "what VS Code asks for as other",
        "CONFIG_A": "what ${config:a} stood for",
    }


def test_a_plain_opening_of_claude_desktop_is_told() -> None:
    assert carried({"command": "x", "args": ["${A}"]}, "claude-desktop").notes == (
        "Claude Desktop does not expand ${…}, so it is kept as it is",
    )


def test_a_folder_in_the_home_folder_is_written_with_a_tilde() -> None:
    assert carried({"command": "x", "cwd": "${userHome}/n"}, "cursor").table["cwd"] == "~/n"


def test_the_words_of_gemini_for_http_are_understood() -> None:
    assert carried({"httpUrl": "https://h", "timeout": 5}).table == {"url": "https://h"}


@pytest.mark.parametrize(
    ("entry", "cwd"),
    [
        ({"command": "python", "args": ["./server.py"]}, "/p"),
        ({"command": "../run"}, "/p"),
        ({"command": "npx", "args": ["-y", "files", "."]}, "/p"),
        ({"command": "x", "env": {"DATA": "./data"}}, "/p"),
        ({"command": "x", "args": ["./a"], "cwd": "sub"}, "/p/sub"),
        ({"command": "x", "args": ["./a"], "cwd": "/abs"}, "/abs"),
        ({"command": "npx", "args": ["-y", "@scope/files"]}, None),
    ],
)
def test_relative_paths_of_another_folders_file_count_from_there(entry: dict[str, Any], cwd: str | None) -> None:
    foreign = Foreign("a", entry, "claude-code", Path("/p/.mcp.json"), project=Path("/p"))
    assert carry(foreign, Path("/elsewhere")).table.get("cwd") == cwd
    assert carry(foreign, Path("/p")).table.get("cwd") == entry.get("cwd")


def test_a_server_that_its_client_does_not_start_is_imported_as_disabled() -> None:
    found = carry(Foreign("a", {"command": "x"}, "claude-code", Path("/p/.claude.json"), disabled=True))
    assert found.table["disabled"]
    assert found.notes == ("it is disabled there, so it is imported as disabled",)
