from __future__ import annotations

import importlib.util
import json
import stat
import tomllib
from typing import Any

import pytest

from tests.cli.conftest import Project
from tests.cli.test_completion import offered

GITHUB = """
# what the team uses
[[mcp.servers]]
name = "github"  # the one
url = "https://me:${PW}@h/mcp?k=${K}"
headers = { Authorization = "Bearer ${T}" }

# jobs
[jobs]
concurrency = 4
"""


def text(project: Project) -> str:
    return (project.folder / "remit.toml").read_text(encoding="utf-8")


def servers(project: Project) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(text(project)).get("mcp", {}).get("servers", [])
    return found


def test_add_writes_a_server_and_says_what_to_do_next(project: Project) -> None:
    project.configure(GITHUB, modules=False)
    done = project.here(
        *("mcp", "add", "files", "--env", "TOKEN=${FILES_TOKEN}", "--cwd", "sub", "--level", "L1"),
        *("--level", "list_*=L0", "--timeout", "2.5", "--era", "legacy", "--", "npx", "-y", "@m/files", "--json"),
    )
    assert (done.status, done.out) == (0, f"ok files is in {project.folder / 'remit.toml'}\n")
    assert "set FILES_TOKEN" in done.err
    assert "next: remit mcp test files, then remit mcp pin files" in done.err
    assert text(project).startswith(GITHUB)
    assert servers(project)[1] == {
        "name": "files",
        "command": ["npx", "-y", "@m/files", "--json"],
        "cwd": "sub",
        "env": {"TOKEN": "${FILES_TOKEN}"},
        "timeout_ms": 2500,
        "era": "legacy",
        "level": "L1",
        "tools": {"list_*": "L0"},
        "sandbox": True,
    }


def test_add_makes_the_file_where_there_is_none_and_keeps_the_mode_of_one(project: Project) -> None:
    file = project.folder / "remit.toml"
    file.unlink()
    added = project.here("mcp", "add", "web", "--url", "https://h/mcp", "--header", "A=${T}", "--json")
    assert added.json == {
        "name": "web",
        "file": str(file),
        "transport": "http",
        "where": "https://h/mcp",
        "isolation": "elsewhere",
    }
    assert added.err == ""
    assert servers(project) == [{"name": "web", "url": "https://h/mcp", "headers": {"A": "${T}"}}]
    file.chmod(0o640)
    assert project.here("mcp", "add", "more", "--", "x").status == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--env", "API_KEY=swordfish", "--", "x"], "Write '${API_KEY}' instead, and set API_KEY in the environment."),
        (["--", "x", "--token", "swordfish"], "Write '${A_TOKEN}'"),
        (["--url", "https://me:swordfish@h"], "Write '${A_URL_PASSWORD}'"),
        (["--url", "https://h?api_key=swordfish"], "Write '${A_URL_API_KEY}'"),
        (["--url", "https://h", "--header", "Authorization=Bearer swordfish"], "Write '${A_AUTHORIZATION}'"),
    ],
)
def test_add_refuses_what_looks_like_a_secret_and_does_not_repeat_it(
    project: Project, words: list[str], said: str
) -> None:
    before = text(project)
    done = project.here("mcp", "add", "a", *words)
    assert (done.status, text(project)) == (2, before)
    assert "look like secrets" in done.err
    assert said in done.err
    assert "swordfish" not in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["A-b", "--", "x"], "name must be lower-case"),
        (["a"], "(a): neither command nor url is given"),
        (["a", "--url", "https://h", "--", "x"], "(a): both command and url are given"),
        (["a", "--url", "https://h", "--env", "A=b"], "(a): env belongs to a server with command"),
        (["a", "--env", "swordfish", "--", "x"], "--env takes K=V"),
        (["a", "--env", "A=b", "--env", "A=c", "--", "x"], "--env A appears twice"),
        (["a", "--level", "t=L9", "--", "x"], "--level t=L9 is not a level"),
        (["github", "--", "x"], "already has a server github"),
    ],
)
def test_add_refuses_what_makes_no_server(project: Project, words: list[str], said: str) -> None:
    project.configure(GITHUB, modules=False)
    done = project.here("mcp", "add", *words)
    assert (done.status, text(project)) == (2, GITHUB)
    assert said in done.err
    assert "swordfish" not in done.err


def test_list_shows_every_server_its_origin_and_the_warnings_but_no_secret(project: Project) -> None:
    project.configure(GITHUB.replace("${PW}", "swordfish").replace("${T}", "swordfish"), modules=False)
    given = [{"name": "files", "cmd": "npx", "args": ["swordfish"], "disabled": True}, {"name": "Bad", "cmd": "x"}]
    project.env["MCP_SERVERS_JSON"] = json.dumps(given)
    done = project.here("mcp", "list")
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[1] == ["github", "http", "used", "elsewhere", "https://h/mcp", str(project.folder / "remit.toml")]
    assert rows[2] == ["files", "stdio", "disabled", "none", "npx", "MCP_SERVERS_JSON"]
    assert "warning: MCP_SERVERS_JSON: server number 2: name must be" in done.err
    listed = project.here("mcp", "list", "--json")
    assert [one["name"] for one in listed.json["servers"]] == ["github", "files"]
    assert [one["isolation"] for one in listed.json["servers"]] == ["elsewhere", "none"]
    assert len(listed.json["warnings"]) == 1
    config = project.here("config"), project.here("config", "--json")
    for one in (done, listed, *config):
        assert one.status == 0
        assert "swordfish" not in one.out + one.err
    assert "Authorization" in config[0].out


def test_add_says_that_a_server_on_stdio_is_not_isolated(project: Project) -> None:
    done = project.here("mcp", "add", "files", "--no-sandbox", "--", "npx", "x")
    assert "isolation: none; files runs as you" in done.err
    assert "sandbox" not in servers(project)[0]
    assert "isolation" not in project.here("mcp", "add", "web", "--url", "https://h/mcp").err


def test_add_proposes_the_sandbox_with_the_paths_that_the_command_names(project: Project) -> None:
    for name in ("notes", "server", "server/node_modules", "given"):
        (project.folder / name).mkdir()
    (project.folder / "server" / "package.json").write_text("{}")
    (project.folder / "server" / "index.js").write_text("")
    here = project.folder
    words = [
        "--root",
        str(here / "given"),
        "--network",
        "api.example",
        "--",
        "node",
        "server/index.js",
        "./notes",
        "-v",
    ]
    done = project.here("mcp", "add", "files", *words)
    assert servers(project)[0]["sandbox"] == {
        "roots": [str(here / "given"), str(here / "server"), str(here / "notes")],
        "network": ["api.example"],
    }
    assert f"isolation: sandbox; files reads {here / 'given'}, {here / 'server'}, {here / 'notes'}, " in done.err
    assert "reaches api.example" in done.err
    more = project.here("mcp", "add", "more", "--writable", str(here / "notes"), "--", "npx", "m", str(here / "notes"))
    assert servers(project)[1]["sandbox"] == {"writable": [str(here / "notes")]}
    assert "npx downloads what it runs" in more.err
    rows = [line.split() for line in project.here("mcp", "list").out.splitlines()]
    assert [row[3] for row in rows[1:]] == ["sandbox", "sandbox"]
    isolation = [one for one in project.here("doctor", "--live", "--json").json if one["name"] == "isolation"]
    assert isolation == []


def test_add_proposes_what_lies_behind_links_and_all_packages_of_node(project: Project) -> None:
    here = project.folder
    (here / "node_modules" / ".bin").mkdir(parents=True)
    (here / "node_modules" / "server").mkdir()
    (here / "node_modules" / "server" / "package.json").write_text("{}")
    (here / "node_modules" / "server" / "index.js").write_text("")
    (here / "node_modules" / ".bin" / "server").symlink_to("../server/index.js")
    (here / "data").mkdir()
    (here / "notes").symlink_to("data")
    project.here("mcp", "add", "files", "--", "node", "node_modules/.bin/server", str(here / "notes"))
    assert servers(project)[0]["sandbox"] == {
        "roots": [str(here / "node_modules"), str(here / "notes"), str(here / "data")]
    }


@pytest.mark.parametrize("words", [["--url", "https://h"], ["--no-sandbox", "--", "x"]])
def test_what_the_sandbox_is_given_belongs_to_a_server_in_it(project: Project, words: list[str]) -> None:
    done = project.here("mcp", "add", "files", "--root", "/usr", *words)
    assert (done.status, servers(project)) == (2, [])
    assert "belong to the sandbox" in done.err


@pytest.mark.parametrize("value", ['"yes"', '{ root = ["x"] }', "{ roots = 1 }", '{ limits = { pids = "x" } }'])
def test_a_wrong_sandbox_in_the_file_is_an_error_that_names_it(project: Project, value: str) -> None:
    project.configure(f'[[mcp.servers]]\nname = "a"\ncommand = ["x"]\nsandbox = {value}\n', modules=False)
    assert "(a): sandbox must be true, false, or a table" in project.here("mcp", "list").err


def test_doctor_says_which_servers_are_not_isolated_and_which_are_down(project: Project) -> None:
    servers = """
[[mcp.servers]]
name = "gone"
command = ["/nowhere/at-all"]
[[mcp.servers]]
name = "web"
url = "http://127.0.0.1:9/mcp"
"""
    project.configure(servers, modules=False)
    said = project.here("doctor", "--live", "--json").json
    isolation = [check for check in said if check["name"] == "isolation"]
    assert [(check["verdict"], check["detail"]) for check in isolation] == [
        ("warn", "none: gone; each runs as you, with all your rights")
    ]
    down = {check["detail"].split()[0]: check for check in said if check["name"] == "dependency"}
    assert set(down) == {"mcp", "mcp.gone", "mcp.web"}
    assert "not ready: DEP_INIT_FAILED" in down["mcp.gone"]["detail"]
    assert down["mcp.gone"]["verdict"] == "warn"
    assert "degraded" in next(check["detail"] for check in said if check["name"] == "readiness")
    project.env["REMIT_READINESS_REQUIRED"] = "mcp.gone"
    done = project.here("doctor", "--live", "--json")
    required = next(check for check in done.json if check["detail"].startswith("mcp.gone is required"))
    assert (required["verdict"], done.status) == ("fail", 1)


def test_list_says_why_there_are_none(project: Project) -> None:
    assert "there are no servers: remit mcp add or remit mcp import" in project.here("mcp", "list").err
    project.configure(GITHUB, modules=False)
    project.env["NO_MCP"] = "1"
    done = project.here("mcp", "list")
    assert (done.out, done.err) == ("", "MCP servers are not used: NO_MCP sets tools.no_mcp\n")


def test_a_wrong_table_is_an_error_that_quotes_no_secret(project: Project) -> None:
    project.configure('[[mcp.servers]]\nname = "a"\ncommand = ["x"]\nenv = { K = ["swordfish"] }\n', modules=False)
    done = project.here("mcp", "list", "--json")
    assert done.status == 2
    assert "mcp.servers number 1 (a): env must be a table of texts" in done.error["message"]
    assert "swordfish" not in done.err


@pytest.mark.parametrize(
    "table",
    [
        'command = ["x", "${keyring:}"]',
        'command = ["x"]\nenv = { K = "${" }',
        'url = "https://mcp.example/${}"',
        'url = "https://mcp.example/"\nheaders = { X = "${9}" }',
        'url = "https://mcp.example/"\noauth = { client_secret = "${a-b}" }',
    ],
    ids=["command", "env", "url", "headers", "oauth"],
)
def test_a_reference_that_names_nothing_is_an_error(
    project: Project, table: str, request: pytest.FixtureRequest
) -> None:
    project.configure(f'[[mcp.servers]]\nname = "a"\n{table}\n', modules=False)
    done = project.here("mcp", "list", "--json")
    assert (done.status, done.error["code"]) == (2, "SETTINGS_INVALID")
    assert f"in its {request.node.callspec.id} names nothing" in done.error["message"]


def test_remove_takes_a_server_out_and_leaves_all_else(project: Project) -> None:
    project.configure(GITHUB, modules=False)
    done = project.here("mcp", "remove", "github")
    assert (done.status, done.out) == (0, f"ok removed github from {project.folder / 'remit.toml'}\n")
    assert text(project) == "\n# what the team uses\n# jobs\n[jobs]\nconcurrency = 4\n"


def test_a_wrong_table_can_be_removed(project: Project) -> None:
    project.configure('[[mcp.servers]]\nname = "a"\ncomand = ["x"]\n', modules=False)
    assert project.here("mcp", "list").status == 2
    assert project.here("mcp", "remove", "a").status == 0
    assert project.here("mcp", "list").status == 0


def test_who_changes_a_file_that_is_not_in_force_is_told(project: Project) -> None:
    project.env["REMIT_MCP_SERVERS"] = "[]"
    said = f"REMIT_MCP_SERVERS is set: the servers in {project.folder / 'remit.toml'} are passed over"
    assert said in project.here("mcp", "add", "a", "--", "x").err
    assert said in project.here("mcp", "import").err


def test_without_the_editor_installed_the_person_is_told_what_to_install(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    for words in (("add", "a", "--", "x"), ("remove", "a"), ("import",)):
        done = project.here("mcp", *words)
        assert done.status == 2
        assert "pip install 'remit[mcp]'" in done.err
    assert project.here("mcp", "list").status == 0


def test_remove_of_what_is_not_in_the_file_says_where_it_is(project: Project) -> None:
    project.configure(GITHUB, modules=False)
    project.env["MCP_SERVERS_JSON"] = '[{"name": "files", "cmd": "x"}]'
    assert "Did you mean github?" in project.here("mcp", "remove", "gitub").err
    done = project.here("mcp", "remove", "files", "--json")
    assert done.status == 2
    assert "files comes from the environment (MCP_SERVERS_JSON)" in done.error["message"]
    assert text(project) == GITHUB


@pytest.mark.parametrize(("answer", "left"), [("y", []), ("n", ["github"])])
def test_remove_asks_at_a_terminal(project: Project, answer: str, left: list[str]) -> None:
    project.configure(GITHUB, modules=False)
    with project.terminal("mcp", "remove", "github") as terminal:
        terminal.expect("Remove github from")
        terminal.type(f"{answer}\r")
        assert terminal.end() == (130 if left else 0)
    assert [server["name"] for server in servers(project)] == left


def test_remove_does_not_ask_with_yes(project: Project) -> None:
    project.configure(GITHUB, modules=False)
    with project.terminal("mcp", "remove", "github", "--yes") as terminal:
        assert terminal.end() == 0
    assert servers(project) == []


def test_names_of_servers_are_offered_to_shells(project: Project) -> None:
    project.configure(GITHUB, modules=False)
    assert offered(project, "mcp", "remove", "g") == ["plain,github"]
    project.configure("[[mcp.servers]]\n", modules=False)
    assert offered(project, "mcp", "remove", "") == []
