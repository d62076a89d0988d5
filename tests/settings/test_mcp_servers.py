from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remit.errors import NameInvalidError, SettingsError
from remit.settings import load
from remit.settings.mcp_servers import NAME, Servers, mcp_servers
from remit.settings.places import server_folder
from remit.tools.names import check_provider_id

FILES = '[[mcp.servers]]\nname = "files"\ncommand = ["npx", "files"]\n'


def found(folder: Path, toml: str = "", **env: str) -> Servers:
    """The servers of a remit.toml and an environment."""
    (folder / "remit.toml").write_text(toml, encoding="utf-8")
    return mcp_servers(load(cwd=folder, env=env), env)


def of_json(folder: Path, *servers: Any) -> Servers:
    return found(folder, MCP_SERVERS_JSON=json.dumps(servers))


def names(servers: Servers) -> list[str]:
    return [server.name for server in servers.servers]


def test_without_any_there_are_none(tmp_path: Path) -> None:
    assert found(tmp_path) == Servers()


def test_a_table_becomes_a_server_with_where_it_came_from(tmp_path: Path) -> None:
    toml = (
        '[[mcp.servers]]\nname = "a"\ncommand = ["npx", "x"]\nenv = {K = "${V}"}\ntimeout_ms = 5\nera = "legacy"\n'
        'level = "L1"\ntools = {"read_*" = "L0"}\nidempotent = ["put"]\ndisabled = true\n'
        '[[mcp.servers]]\nname = "b"\nurl = "https://h/mcp"\nheaders = {A = "b"}\n'
    )
    servers = found(tmp_path, toml)
    a, b = servers.servers
    assert (a.command, a.env, a.timeout_ms, a.era, a.level) == (("npx", "x"), {"K": "${V}"}, 5, "legacy", "L1")
    assert (a.tools, a.idempotent, a.disabled, a.transport) == ({"read_*": "L0"}, ("put",), True, "stdio")
    assert (b.url, b.headers, b.command, b.transport, b.level) == ("https://h/mcp", {"A": "b"}, (), "http", "L2")
    assert servers.origins == dict.fromkeys(("a", "b"), str(tmp_path / "remit.toml"))
    assert servers.enabled == (b,)


@pytest.mark.parametrize("command", ['cmd = "npx"\nargs = ["x"]', 'command = "npx"\nargs = ["x"]', 'cmd = ["npx","x"]'])
def test_a_command_may_be_written_as_other_clients_do(tmp_path: Path, command: str) -> None:
    (server,) = found(tmp_path, f'[[mcp.servers]]\nname = "a"\n{command}\n').servers
    assert server.command == ("npx", "x")


def test_a_command_starts_in_a_folder_of_its_own_or_where_it_says(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    tables = "".join(
        f'[[mcp.servers]]\nname = "{name}"\ncommand = ["x"]\n{cwd}\n'
        for name, cwd in (("a", ""), ("b", 'cwd = "sub"'), ("c", 'cwd = "~/n"'))
    )
    (tmp_path / "remit.toml").write_text(tables, encoding="utf-8")
    env = {"HOME": "/home/ann", "MCP_SERVERS_JSON": '[{"name":"d","cmd":"x","cwd":"sub"},{"name":"e","cmd":"x"}]'}
    folders = [server.cwd for server in mcp_servers(load(cwd=below, env=env), env).servers]
    own = [server_folder(env, tmp_path, name) for name in "ae"]
    expected = [own[0], tmp_path / "sub", Path("/home/ann/n"), below / "sub", own[1]]
    assert folders == [str(folder) for folder in expected]
    assert own[0] != own[1] != server_folder(env, below, "e")


def test_what_a_command_names_in_the_project_is_found_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("server.py", "sub/data.json", "run"):
        (tmp_path / name).write_text("", encoding="utf-8")
    words = ["python", "server.py", ".", "sub/data.json", "sub", "sub/", "run"]
    words += ["-y", "@scope/server", "https://h/x", "x" * 5_000]
    (server,) = of_json(tmp_path, {"name": "a", "command": words}).servers
    here = str(tmp_path)
    assert server.command == (
        *("python", f"{here}/server.py", here, f"{here}/sub/data.json", "sub", f"{here}/sub", f"{here}/run"),
        *("-y", "@scope/server", "https://h/x", "x" * 5_000),
    )
    (there,) = of_json(tmp_path, {"name": "a", "command": words, "cwd": "."}).servers
    assert (list(there.command), there.cwd) == (words, here)


def test_in_the_sandbox_a_server_starts_in_the_project(tmp_path: Path) -> None:
    (server,) = of_json(tmp_path, {"name": "a", "command": ["python", "server.py"], "sandbox": True}).servers
    assert server.cwd == str(tmp_path)


@pytest.mark.parametrize(
    ("lines", "said", "remedy"),
    [
        ('command = ["x"]', "number 1: name must be lower-case", "github"),
        ('name = "Git-Hub"\ncommand = ["x"]', "number 1: name must be lower-case", "github"),
        ('name = "a"\ncomand = ["x"]', "(a): there is no key comand", "Did you mean command?"),
        ('name = "a"', "(a): neither command nor url is given", "Give command"),
        ('name = "a"\nurl = "https://h"\ncommand = ["x"]', "(a): both command and url are given", "Give command"),
        ('name = "a"\ncommand = []', "(a): command must be a list of texts", "Correct command"),
        ('name = "a"\ncommand = ["", "b"]', "(a): command must be a list of texts", "Correct command"),
        ('name = "a"\ncommand = ["x", 1]', "(a): command must be a list of texts", "Correct command"),
        ('name = "a"\ncommand = ["x"]\ncmd = "x"', "(a): both command and cmd are given", "Leave one"),
        ('name = "a"\nargs = ["x"]', "(a): args are given without a command", "Name the client"),
        ('name = "a"\ncmd = "x"\nargs = "y z"', "(a): args must be a list of texts", "Correct args"),
        ('name = "a"\ncommand = ["x"]\nheaders = {A = "b"}', "(a): headers belongs to a server with url", "Leave"),
        ('name = "a"\nurl = "https://h"\nenv = {A = "b"}', "(a): env belongs to a server with command", "Leave"),
        ('name = "a"\nurl = "ftp://h"', "(a): url must be text that begins with https://", "Correct url"),
        ('name = "a"\nurl = "https://[x"', "(a): url must be text that begins", "Correct url"),
        ('name = "a"\nurl = "https:///x"', "(a): url must be text that begins", "Correct url"),
        ('name = "a"\ncommand = ["x"]\nenv = {K = 5}', "(a): env must be a table of texts", "Correct env"),
        ('name = "a"\ncommand = ["x"]\nenv = {"A=B" = "c"}', "(a): env must be a table of texts", "Correct env"),
        ('name = "a"\nurl = "https://h"\nheaders = {"A b" = "c"}', "(a): headers must be a table", "Correct headers"),
        ('name = "a"\ncommand = ["x"]\ntools = {t = "L3"}', "(a): tools must be a table of levels", "Correct tools"),
        ('name = "a"\ncommand = ["x"]\ntimeout_ms = -1', "(a): timeout_ms must be an integer from 0", "Correct"),
        ('name = "a"\ncommand = ["x"]\ncwd = "${D}"', "(a): cwd cannot contain ${NAME}", "Write the folder"),
    ],
)
def test_a_bad_table_is_an_error_that_names_file_server_and_key(
    tmp_path: Path, lines: str, said: str, remedy: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        found(tmp_path, f"[[mcp.servers]]\n{lines}\n")
    assert caught.value.message.startswith(f"{tmp_path / 'remit.toml'}: mcp.servers number 1")
    assert said in caught.value.message
    assert remedy in caught.value.remedy


def test_two_tables_of_one_name_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"number 2 \(files\): the name is taken"):
        found(tmp_path, FILES + FILES)


@pytest.mark.parametrize("name", ["a", "my_files", "a1", "A", "a__b", "_a", "a_", "a.b", "a-b", "", "ä"])
def test_names_keep_the_rule_of_the_segments_of_a_tools_name(name: str) -> None:
    try:
        check_provider_id(name)
    except NameInvalidError:
        assert not NAME.fullmatch(name)
    else:
        assert NAME.fullmatch(name)


def test_no_mcp_means_no_servers(tmp_path: Path) -> None:
    assert found(tmp_path, FILES, NO_MCP="1", MCP_SERVERS_JSON="nonsense") == Servers()


def test_the_files_servers_come_first_and_win_over_the_environments(tmp_path: Path) -> None:
    text = json.dumps([{"name": "more", "cmd": "x"}, {"name": "files", "cmd": "y"}])
    servers = found(tmp_path, FILES, MCP_SERVERS_JSON=text)
    assert names(servers) == ["files", "more"]
    assert servers.servers[0].command == ("npx", "files")
    assert servers.origins["more"] == "MCP_SERVERS_JSON"
    (warning,) = servers.warnings
    assert warning.startswith("MCP_SERVERS_JSON: server number 2: ")
    assert "remit.toml already defines the server files; this one is ignored" in warning


def test_json_in_the_environment_may_say_all_that_a_table_may(tmp_path: Path) -> None:
    servers = of_json(
        tmp_path,
        {"name": "a", "cmd": "npx", "args": ["-y"], "env": {"K": "v"}, "cwd": "/srv"},
        {"name": "b", "command": ["npx", "-y"]},
        {"name": "c", "url": "https://h", "headers": {"H": "v"}},
    )
    assert servers.warnings == ()
    a, b, c = servers.servers
    assert (a.command, a.env, a.cwd) == (("npx", "-y"), {"K": "v"}, "/srv")
    assert b.command == ("npx", "-y")
    assert (c.url, c.headers) == ("https://h", {"H": "v"})


def test_what_is_wrong_in_the_environment_is_skipped_with_a_warning_and_the_rest_loads(tmp_path: Path) -> None:
    servers = of_json(
        tmp_path,
        {"name": "Bad Name", "cmd": "x"},
        {"name": "a", "cmd": "first"},
        {"name": "a", "cmd": "second"},
        {"name": "b", "cmd": ""},
        {"name": "c", "cmd": "x", "nonsense": 1},
        7,
        {"name": "d", "cmd": "x"},
    )
    assert names(servers) == ["a", "d"]
    assert servers.servers[0].command == ("first",)
    said = [
        ("number 6", "is not an object"),
        ("number 1", "name must be"),
        ("number 3", "an earlier server has the name a"),
        ("number 4", "command must be"),
        ("number 5", "there is no key nonsense"),
    ]
    assert len(servers.warnings) == len(said)
    for warning, (where, why) in zip(servers.warnings, said, strict=True):
        assert where in warning
        assert why in warning
        assert warning.endswith("it is skipped")


@pytest.mark.parametrize(
    "text",
    [
        '[{"name":"srv1","cmd":["python","server.py"],"cwd":null}]',
        '[{"name":"srv1","cmd":"python","args":["server.py"],"env":null,"url":null,"headers":null,"oauth":null}]',
        '[{"name":"srv1","command":["python","server.py"],"cmd":null,"args":null,"timeout_ms":null,"level":null}]',
    ],
)
def test_a_key_that_is_null_counts_as_absent(tmp_path: Path, text: str) -> None:
    servers = found(tmp_path, MCP_SERVERS_JSON=text)
    (server,) = servers.servers
    assert (server.name, server.command) == ("srv1", ("python", "server.py"))
    assert server.cwd.endswith(server_folder({}, tmp_path, "srv1").name)
    assert servers.warnings == ()


@pytest.mark.parametrize(("name", "near"), [("a_", "a"), ("_a", "a"), ("a__b", "a_b"), ("__a___b_", "a_b")])
def test_a_name_that_models_would_mistake_is_refused_with_one_that_they_would_not(
    tmp_path: Path, name: str, near: str
) -> None:
    """As models see them, the tool `b` of a server `a_` and the tool `_b` of `a` would be one."""
    with pytest.raises(SettingsError, match="models see `__` between") as caught:
        found(tmp_path, FILES.replace("files", name, 1))
    assert caught.value.remedy == f"Call the server {near}."
