from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import UsageError
from remit.mcp_config.array_tables import server_block, server_names, with_server, without_server

NEW = {"name": "new", "command": ["npx", "-y"], "env": {"K": "${K}", "a.b": 'x"y'}, "level": "L1"}
A = "[[mcp.servers]]\nname = 'a'\ncommand = ['a'] # a's\n"
LAYOUTS = {
    "empty": "",
    "comment": "# only\n",
    "no line end": "[jobs]\nconcurrency = 4",
    "mcp before others": "[mcp]\ntimeout_ms = 5 # t\n\n# jobs\n[jobs]\nconcurrency = 4\n",
    "servers before others": f"# first\n{A}[mcp.servers.env]\nX = '1'\n\n# jobs\n[jobs]\nconcurrency = 4\n",
    "mcp after servers": f"{A}\n[jobs]\nconcurrency = 4\n\n[mcp]\ntimeout_ms = 5\n",
    "apart": f"{A}\n[jobs]\nconcurrency = 4\n\n[[mcp.servers]]\nname = 'b'\ncommand = ['b']\n",
    "array": "[mcp]\nservers = [{name = 'a', command = ['a']}] # all\n\n[jobs]\nconcurrency = 4\n",
    "empty array": "[mcp]\nservers = []\n[jobs]\nconcurrency = 4\n",
    "all inline": "mcp = {servers = [{name = 'a', command = ['a']}]}\n[jobs]\nconcurrency = 4\n",
    "dotted": "mcp.timeout_ms = 5\n[jobs]\nconcurrency = 4\n",
    "clients": "[[mcp.clients]]\nprincipal = 'a'\ntoken = 'b'\n\n[jobs]\nconcurrency = 4\n",
    "windows": "[jobs]\r\nconcurrency = 4\r\n",
    "text like a table": "[app]\nprincipal = '''\n[[mcp.servers]]\nname = 'x'\n'''\n" + A,
}


def servers(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(text).get("mcp", {}).get("servers", [])
    return found


def rest(text: str) -> dict[str, Any]:
    """What else a file says."""
    data = tomllib.loads(text)
    data.setdefault("mcp", {}).pop("servers", None)
    return data


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_a_server_is_added_last_and_all_else_stays(text: str) -> None:
    made = with_server(text, NEW)
    assert servers(made) == [*servers(text), NEW]
    assert rest(made) == rest(text)
    assert [line for line in text.splitlines() if "#" in line and "servers =" not in line] == [
        line for line in made.splitlines() if "#" in line and "servers =" not in line
    ]
    assert server_names(made) == [*server_names(text), "new"]


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_what_was_added_can_be_removed_again(text: str) -> None:
    made = without_server(with_server(text, NEW), "new")
    assert tomllib.loads(made) | {"mcp": None} == tomllib.loads(text) | {"mcp": None}
    assert servers(made) == servers(text)


@pytest.mark.parametrize("text", [text for text in LAYOUTS.values() if "name = 'a'" in text])
def test_a_server_that_a_person_wrote_can_be_removed(text: str) -> None:
    made = without_server(text, "a")
    assert "a" not in server_names(made)
    assert rest(made) == rest(text)
    assert all(comment in made for comment in ("# first", "# jobs") if comment in text)


def test_what_stands_in_the_file_stays_byte_for_byte() -> None:
    text = LAYOUTS["servers before others"]
    assert with_server(text, NEW) == text + "\n" + server_block(NEW)
    assert with_server("", NEW) == server_block(NEW)
    assert without_server(text, "a") == "# first\n# jobs\n[jobs]\nconcurrency = 4\n"
    assert "\n" not in with_server(LAYOUTS["windows"], NEW).replace("\r\n", "")


def test_comments_within_a_removed_table_go_with_it_and_those_between_stay() -> None:
    text = f"# top\n\n{A}# inside\nlevel = 'L0'\n\n# of b\n[[mcp.servers]]\nname = 'b'\ncommand = ['b']\n"
    assert without_server(text, "a") == "# top\n\n# of b\n[[mcp.servers]]\nname = 'b'\ncommand = ['b']\n"
    assert without_server(text, "b") == f"# top\n\n{A}# inside\nlevel = 'L0'\n\n# of b\n"


def test_where_it_cannot_be_written_the_person_is_told_what_to_write() -> None:
    with pytest.raises(UsageError, match="in a way that Remit cannot edit") as caught:
        with_server("mcp = {timeout_ms = 5}\n", NEW)
    assert server_block(NEW) in caught.value.remedy


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(TEXTS, min_size=1), st.dictionaries(TEXTS, TEXTS))
def test_any_text_comes_through(command: list[str], env: dict[str, str]) -> None:
    table = {"name": "a", "command": command, "env": env}
    assert servers(with_server("# c\n", table)) == [table]


def test_a_text_that_only_looks_like_the_table_is_left_alone() -> None:
    text = "[app]\nprincipal = '''\n[[mcp.servers]]\n[x]\n'''\n\n[[\"mcp\".servers]]\nname = 'a'\ncommand = ['a']\n"
    made = without_server(text, "a")
    assert server_names(made) == []
    assert tomllib.loads(made)["app"] == tomllib.loads(text)["app"]
