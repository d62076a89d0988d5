from __future__ import annotations

from pathlib import Path

import pytest

from remit.settings import load
from remit.settings.mcp_servers import Servers, mcp_servers

SINGLE = {"MCP_SERVER_NAME": "one", "MCP_SERVER_CMD": "npx"}


def found(folder: Path, **env: str) -> Servers:
    return mcp_servers(load(cwd=folder, env=env), env)


def commands(servers: Servers) -> dict[str, tuple[str, ...]]:
    return {server.name: server.command for server in servers.servers}


def test_a_single_server_is_named_piece_by_piece(tmp_path: Path) -> None:
    servers = found(tmp_path, **SINGLE, MCP_SERVER_ARGS_JSON='["-y", "a b"]', MCP_SERVER_CWD="sub")
    assert commands(servers) == {"one": ("npx", "-y", "a b")}
    assert servers.servers[0].cwd == str(tmp_path / "sub")
    assert (servers.origins, servers.warnings) == ({"one": "MCP_SERVER_NAME"}, ())


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("-y 'a b' c\\ d", ("-y", "a b", "c d")),
        ("$HOME `id` $(id) ; rm *", ("$HOME", "`id`", "$(id)", ";", "rm", "*")),
        ("# not a comment", ("#", "not", "a", "comment")),
    ],
)
def test_arguments_are_split_as_a_shell_would_and_no_shell_sees_them(
    tmp_path: Path, text: str, args: tuple[str, ...]
) -> None:
    assert commands(found(tmp_path, **SINGLE, MCP_SERVER_ARGS=text)) == {"one": ("npx", *args)}


def test_arguments_as_json_win_over_those_as_text(tmp_path: Path) -> None:
    servers = found(tmp_path, **SINGLE, MCP_SERVER_ARGS_JSON='["j"]', MCP_SERVER_ARGS="t")
    assert commands(servers) == {"one": ("npx", "j")}


def test_arguments_that_are_no_json_are_a_warning_and_then_the_text_counts(tmp_path: Path) -> None:
    servers = found(tmp_path, **SINGLE, MCP_SERVER_ARGS_JSON="nonsense", MCP_SERVER_ARGS="t")
    assert commands(servers) == {"one": ("npx", "t")}
    assert servers.warnings == ("MCP_SERVER_ARGS_JSON is not a JSON array: nonsense; it is ignored",)


def test_arguments_that_cannot_be_split_start_nothing(tmp_path: Path) -> None:
    servers = found(tmp_path, **SINGLE, MCP_SERVER_ARGS="'open")
    assert servers.servers == ()
    assert servers.warnings == (
        "MCP_SERVER_ARGS cannot be split as a shell would (No closing quotation); the server is skipped",
    )


def test_the_json_array_wins_over_the_single_server_also_when_it_is_empty(tmp_path: Path) -> None:
    text = '[{"name": "two", "cmd": "x"}]'
    assert commands(found(tmp_path, **SINGLE, MCP_SERVERS_JSON=text)) == {"two": ("x",)}
    assert found(tmp_path, **SINGLE, MCP_SERVERS_JSON="[]") == Servers()


@pytest.mark.parametrize("text", ["[{nonsense", '{"name": "two"}', '"x"', "[" * 100_000])
def test_json_that_is_no_array_is_a_warning_and_then_the_single_server_counts(tmp_path: Path, text: str) -> None:
    servers = found(tmp_path, **SINGLE, MCP_SERVERS_JSON=text)
    assert commands(servers) == {"one": ("npx",)}
    (warning,) = servers.warnings
    assert warning.startswith(f"MCP_SERVERS_JSON is not a JSON array: {text[:20]}")
    assert len(warning) < 160


def test_the_raw_text_of_a_warning_is_masked(tmp_path: Path) -> None:
    text = '[{"name":"a","token":"hunter1","cmd":"x","env":{"X":"hunter2"}'
    (warning,) = found(tmp_path, MCP_SERVERS_JSON=text).warnings
    assert "hunter" not in warning
    assert '"name":"a"' in warning


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"MCP_SERVER_CMD": "npx"}, "MCP_SERVER_CMD is set without MCP_SERVER_NAME"),
        ({"MCP_SERVER_NAME": "one"}, "MCP_SERVER_NAME is set without MCP_SERVER_CMD"),
        ({"MCP_SERVER_NAME": "One!", "MCP_SERVER_CMD": "x"}, "MCP_SERVER_NAME: name must be lower-case"),
    ],
)
def test_half_a_server_is_skipped_with_a_warning(tmp_path: Path, env: dict[str, str], said: str) -> None:
    servers = found(tmp_path, **env)
    assert servers.servers == ()
    assert servers.warnings[0].startswith(said)
    assert servers.warnings[0].endswith("it is skipped")


def test_arguments_alone_are_no_server(tmp_path: Path) -> None:
    assert found(tmp_path, MCP_SERVER_ARGS="a", MCP_SERVER_CWD="b") == Servers()
