import re
import tomllib
from pathlib import Path

from remit.http.guard import digest_of
from remit.settings import documented, load
from remit.settings.clients import ClientTable, bearer, clients
from remit.settings.expansion import expanded
from remit.settings.file import MAX_BYTES
from remit.settings.mcp import McpServer
from remit.settings.mcp_servers import mcp_servers
from scripts.doc_tables import with_tables

PAGE = (Path(__file__).parents[2] / "docs/configuration.md").read_text(encoding="utf-8")
DOCS = documented()
"""Every setting, those of the parts that ship last."""


def test_its_tables_are_those_of_today() -> None:
    assert with_tables(PAGE) == PAGE, "Write them again: python -m scripts.doc_tables"


def test_a_new_setting_and_a_new_section_get_their_rows() -> None:
    lacking = re.sub(r"### `\[web\]`\n.*?(?=^##)", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    lacking = re.sub(r"^\| `drain_ms` .*\n", "", lacking, flags=re.MULTILINE)
    assert "### `[web]`" not in lacking
    fresh = with_tables(lacking)
    assert re.findall(r"^### .*", fresh, re.MULTILINE) == re.findall(r"^### .*", PAGE, re.MULTILINE)
    assert [line for line in PAGE.splitlines() if line.startswith("| `") and line not in fresh.splitlines()] == []


def test_every_environment_name_on_the_page_exists() -> None:
    known = {name for doc in DOCS for name in doc.env} | {"REMIT_CONFIG", "REMIT_TEST_"}
    assert set(re.findall(r"\bREMIT_[A-Z_]+", PAGE)) <= known


def test_the_example_is_a_file_that_loads(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "remit.toml").write_text(example, encoding="utf-8")
    settings = load(cwd=tmp_path, env={})
    given = {f"{name}.{key}" for name, table in tomllib.loads(example).items() for key in table}
    assert {key for key, _, source in settings.explain() if source != "default"} == given


def test_the_size_limit_on_the_page_is_the_one_in_force() -> None:
    assert f"{MAX_BYTES // 1024**2} MiB" in PAGE


def test_every_key_of_a_server_is_listed_and_no_other() -> None:
    part = PAGE.partition("## MCP servers")[2].partition("## Clients")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)) == McpServer.__struct_fields__


def test_every_key_of_a_client_is_listed_and_no_other() -> None:
    part = PAGE.partition("## Clients")[2]
    assert tuple(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE)) == ClientTable.__struct_fields__


def test_the_servers_and_clients_of_the_example_load_and_can_be_connected(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml mcp\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "remit.toml").write_text(example, encoding="utf-8")
    settings = load(cwd=tmp_path, env={})
    env = {"HOME": "/home/ann", "GITHUB_TOKEN": "t1", "TEAM_AGENT_TOKEN": "t2"}
    files, github = [expanded(server, env) for server in mcp_servers(settings, env).servers]
    assert files.command[-1] == "/home/ann/notes"
    assert github.headers == {"Authorization": "Bearer t1"}
    (agent,) = clients(settings).clients
    assert bearer(agent, env).digest == digest_of("t2")


def test_the_json_of_the_page_is_a_server(tmp_path: Path) -> None:
    (text,) = re.findall(r"`(\[\{\"name\".*?\}\])`", PAGE)
    found = mcp_servers(load(cwd=tmp_path, env={"MCP_SERVERS_JSON": text}), {})
    assert ([server.name for server in found.servers], found.warnings) == (["files"], ())
