"""Secrets planted in every place of the MCP settings are seen in no output, whatever they look like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remit.errors import RemitError
from remit.settings import load
from remit.settings.clients import clients
from remit.settings.mcp import McpServer
from remit.settings.mcp_servers import mcp_servers
from remit.settings.pictures import servers
from remit.settings.table import table

SECRET = "swordfish"
SERVERS: list[dict[str, Any]] = [
    {"name": "a", "command": ["npx", "-y", SECRET, f"--k={SECRET}"], "env": {"KEEP": SECRET}},
    {"name": "b", "cmd": "npx", "args": [SECRET]},
    {"name": "c", "url": f"https://me:{SECRET}@host/mcp?x={SECRET}#{SECRET}", "headers": {"X-Keep": SECRET}},
    {"name": "d", "url": f"https://{SECRET}@host/mcp"},
]
BAD: list[dict[str, Any]] = [
    {"name": "a", "command": f"npx {SECRET}"},
    {"name": "a", "command": {"x": SECRET}},
    {"name": "a", "command": ["x", {"x": SECRET}]},
    {"name": "a", "command": ["x"], "env": SECRET},
    {"name": "a", "command": ["x"], "env": [SECRET]},
    {"name": "a", "command": ["x"], "env": {"K": [SECRET]}},
    {"name": "a", "url": [SECRET]},
    {"name": "a", "url": f"{SECRET}://h"},
    {"name": "a", "url": f"https://[{SECRET}"},
    {"name": "a", "url": "https://h", "headers": {"H": {"deep": SECRET}}},
    {"name": "a", "token": SECRET},
]


def outputs(folder: Path, env: dict[str, str]) -> str:
    """Everything that may be said of the settings."""
    said: list[str] = []
    try:
        settings = load(cwd=folder, env=env)
        said += [
            repr(settings),
            str(settings.mcp),
            repr(settings.explain()),
            json.dumps(settings.explain(), default=str),
        ]
        said += [repr(clients(settings))]
        found = mcp_servers(settings, env)
        said += [repr(found), *(server.where for server in found.servers)]
    except RemitError as error:
        said += [str(error), error.remedy, repr(error)]
    return "\n".join(said)


def as_toml(servers: list[dict[str, Any]]) -> str:
    return "[mcp]\nservers = " + json.dumps(servers).replace('": ', '" = ')


def test_no_secret_of_a_server_in_the_file_is_seen_and_every_name_is(tmp_path: Path) -> None:
    (tmp_path / "remit.toml").write_text(as_toml(SERVERS), encoding="utf-8")
    said = outputs(tmp_path, {})
    assert SECRET not in said
    assert all(name in said for name in ("KEEP", "X-Keep", "https://host/mcp", "npx"))


@pytest.mark.parametrize("server", BAD, ids=str)
def test_no_secret_of_a_bad_server_is_seen(tmp_path: Path, server: dict[str, Any]) -> None:
    (tmp_path / "remit.toml").write_text(as_toml([server]), encoding="utf-8")
    assert SECRET not in outputs(tmp_path, {})
    (tmp_path / "remit.toml").unlink()
    assert SECRET not in outputs(tmp_path, {"MCP_SERVERS_JSON": json.dumps([server])})
    assert SECRET not in outputs(tmp_path, {"REMIT_MCP_SERVERS": json.dumps([server])})


@pytest.mark.parametrize(
    "text",
    [
        f"[mcp]\nservers = '{SECRET}'",
        f"[mcp.servers.a]\nenv = {{K = '{SECRET}'}}",
        f"[mcp]\nservers = ['{SECRET}']",
        f"[mcp]\nclients = '{SECRET}'",
        f"[[mcp.clients]]\nprincipal = 'p'\ntoken = '{SECRET}'",
        f"[[mcp.clients]]\nprincipal = 'p'\ntokn = '{SECRET}'",
        f"[[mcp.clients]]\nprincipal = 'p'\ntoken = ['{SECRET}']",
        f"[[clients]]\nprincipal = 'p'\ntoken = '{SECRET}'",
        f"[[clients]]\nprincipal = 'p'\nsha256 = '{SECRET}'",
        f"[[clients]]\nprincipal = 'p'\ntokn = '{SECRET}'",
        f"clients = '{SECRET}'",
        f"[mcp]\nservers_json = ['{SECRET}']",
    ],
)
def test_no_secret_of_a_file_that_does_not_fit_is_seen(tmp_path: Path, text: str) -> None:
    (tmp_path / "remit.toml").write_text(text, encoding="utf-8")
    assert SECRET not in outputs(tmp_path, {})


@pytest.mark.parametrize(
    "env",
    [
        {"MCP_SERVERS_JSON": json.dumps(SERVERS)},
        {"MCP_SERVERS_JSON": json.dumps(SERVERS)[:-1]},
        {"MCP_SERVERS_JSON": json.dumps({"a": SERVERS[2]})},
        {"REMIT_MCP_SERVERS": json.dumps(SERVERS)[:-1]},
        {"REMIT_MCP_SERVERS": SECRET},
        {"REMIT_MCP_CLIENTS": SECRET},
        {"REMIT_CLIENTS": SECRET},
        {"REMIT_CLIENTS": json.dumps([{"principal": "p", "token": SECRET}])},
        {"REMIT_CLIENTS": json.dumps([{"principal": "p", "sha256": SECRET}])},
        {"REMIT_MCP_CLIENTS": json.dumps([{"principal": "p", "token": SECRET}])},
        {"MCP_SERVER_NAME": "a", "MCP_SERVER_CMD": f"X={SECRET}", "MCP_SERVER_ARGS": SECRET},
        {"MCP_SERVER_NAME": "a", "MCP_SERVER_CMD": f"npx {SECRET}", "MCP_SERVER_ARGS_JSON": f'["{SECRET}"]'},
        {"MCP_SERVER_NAME": "a", "MCP_SERVER_CMD": "x", "MCP_SERVER_ARGS": f"'{SECRET}"},
        {"MCP_SERVER_NAME": "a", "MCP_SERVER_CMD": "x", "MCP_SERVER_ARGS_JSON": f'["--token", "{SECRET}"'},
    ],
    ids=str,
)
def test_no_secret_of_the_environment_is_seen(tmp_path: Path, env: dict[str, str]) -> None:
    assert SECRET not in outputs(tmp_path, env)


def test_a_picture_is_made_of_settings_that_exist_and_fits_their_defaults() -> None:
    pictured = [row for row in table().values() if row.about.picture is not None]
    assert {row.section for row in pictured} >= {"journal", "mcp", "clients"}
    for row in pictured:
        assert row.about.picture is not None
        assert row.about.picture(row.default) == (row.default if isinstance(row.default, str | dict) else [])


def test_the_picture_of_a_server_says_all_that_is_no_secret(tmp_path: Path) -> None:
    plain = {
        "name": "a",
        "cwd": "/srv",
        "login": "user",
        "timeout_ms": 5,
        "grace_ms": 6,
        "era": "legacy",
        "level": "L1",
        "tools": {"t": "L0"},
    }
    plain |= {
        "idempotent": ["t"],
        "strict": True,
        "client_capabilities": {"roots": {}},
        "disabled": True,
        "sandbox": {"roots": ["/srv"]},
    }
    (picture,) = servers([{**plain, "command": ["npx", "a"], "env": {"K": "v"}}])
    assert picture == {**plain, "command": ["npx", "…"], "env": {"K": "…"}}
    assert set(McpServer.__struct_fields__) == {*plain, "command", "env", "url", "headers", "oauth"}
