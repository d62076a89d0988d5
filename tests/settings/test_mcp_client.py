from __future__ import annotations

from pathlib import Path

import pytest

from remit.errors import SettingsError
from remit.settings import load
from remit.settings.mcp_client import McpClient, mcp_clients


def clients(folder: Path, *tables: str) -> tuple[McpClient, ...]:
    text = "".join(f"[[mcp.clients]]\n{table}\n" for table in tables)
    (folder / "remit.toml").write_text(text, encoding="utf-8")
    return mcp_clients(load(cwd=folder, env={}))


def test_clients_are_in_the_order_of_the_file_and_may_share_a_principal(tmp_path: Path) -> None:
    found = clients(tmp_path, 'principal = "a"\ntoken = "${T}"', 'principal = "a"\ntoken = "u"')
    assert [(one.principal, one.token) for one in found] == [("a", "${T}"), ("a", "u")]
    assert clients(tmp_path) == ()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('principal = "a"', "number 1: token must be a non-empty text"),
        ('token = "hunter2"', "number 1: principal must be a non-empty text"),
        ('principal = ""\ntoken = "hunter2"', "number 1: principal must be a non-empty text"),
        ('principal = "a"\ntoken = ["hunter2"]', "number 1: token must be a non-empty text"),
        ('principal = "a"\ntoken = "hunter2"\nscope = "x"', "number 1: there is no key scope"),
    ],
)
def test_a_bad_table_is_an_error_that_quotes_no_token(tmp_path: Path, table: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        clients(tmp_path, table)
    assert caught.value.message == f"{tmp_path / 'remit.toml'}: mcp.clients {said}"
    assert "hunter2" not in str(caught.value) + caught.value.remedy


def test_two_clients_with_one_token_cannot_be_told_apart(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="number 2: b has the token of a") as caught:
        clients(tmp_path, 'principal = "a"\ntoken = "hunter2"', 'principal = "b"\ntoken = "hunter2"')
    assert "hunter2" not in str(caught.value)
