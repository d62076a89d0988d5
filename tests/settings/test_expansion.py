from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import SettingsError
from remit.settings.expansion import expand, expanded, is_sound, literal, variables
from remit.settings.mcp import McpServer

ENV = {"A": "1", "EMPTY": "", "B_2": "two"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${A}", "1"),
        ("x${A}y${B_2}", "x1ytwo"),
        ("${env:A}", "1"),
        ("${A:-d}", "1"),
        ("${NONE:-d e}", "d e"),
        ("${NONE:-}", ""),
        ("${EMPTY:-d}", "d"),
        ("${EMPTY}", ""),
        ("${env:NONE:-d}", "d"),
        ("$${A}", "${A}"),
        ("$$${A}", "$${A}"),
        ("$A $ {A} $$", "$A $ {A} $$"),
        ("${NONE:-$${A}", "$${A"),
    ],
)
def test_references_are_replaced(text: str, value: str) -> None:
    assert expand(text, ENV, "x") == value
    assert is_sound(text)


@pytest.mark.parametrize(
    "text", ["${", "${}", "${A", "${keyring:}", "${keyring:a b}", "${input:A}", "${9}", "${A-b}", "${ A }"]
)
def test_what_only_begins_like_a_reference_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="does not name a variable"):
        expand(text, ENV, "x")
    assert not is_sound(text)


def test_what_a_variable_holds_is_not_looked_at_again() -> None:
    assert expand("${X}", {"X": "${A}"}, "x") == "${A}"


@given(st.text())
def test_a_text_with_its_openings_escaped_stays_itself(text: str) -> None:
    assert expand(text.replace("${", "$${"), {}, "x") == text
    assert literal(text.replace("${", "$${")) == text


def test_every_place_of_a_server_is_expanded() -> None:
    here = McpServer(name="a", command=("${A}/x", "--k=${A}"), env={"K": "${B_2}"}, cwd="/c")
    there = McpServer(name="b", url="https://h/${A}", headers={"H": "Bearer ${B_2}"})
    assert expanded(here, ENV) == McpServer(name="a", command=("1/x", "--k=1"), env={"K": "two"}, cwd="/c")
    assert expanded(there, ENV) == McpServer(name="b", url="https://h/1", headers={"H": "Bearer two"})


@pytest.mark.parametrize(
    "server",
    [
        McpServer(name="gh", command=("x", "${NONE}")),
        McpServer(name="gh", command=("x",), env={"K": "${NONE}"}),
        McpServer(name="gh", url="https://h/${NONE}"),
        McpServer(name="gh", url="https://h", headers={"K": "${NONE}"}),
    ],
)
def test_a_variable_that_is_not_set_is_named_with_the_server(server: McpServer) -> None:
    with pytest.raises(SettingsError, match=r"MCP server gh needs the environment variable NONE") as caught:
        expanded(server, ENV)
    assert "Set NONE" in caught.value.remedy


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (McpServer(name="gh", url="https://h", headers={"K": "${X}"}), "header K has a line break"),
        (McpServer(name="gh", url="${X}"), "url is not one of http"),
        (McpServer(name="gh", command=("a", "${N}")), "contains a NUL"),
    ],
)
def test_what_cannot_be_sent_is_refused_without_quoting_it(server: McpServer, said: str) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        expanded(server, {"X": "hunter2\r\nEvil: 1", "N": "hunter2\0"})
    assert "hunter2" not in str(caught.value) + caught.value.remedy


def test_a_key_in_several_lines_may_be_given_to_a_command() -> None:
    server = McpServer(name="a", command=("x",), env={"KEY": "${K}"})
    assert expanded(server, {"K": "a\nb"}).env == {"KEY": "a\nb"}


def test_a_text_is_told_apart_into_what_it_says_and_what_it_needs() -> None:
    text = "Bearer ${A}${B:-x}$${C}${env:D}"
    assert literal(text) == "Bearer x${C}"
    assert variables(text) == ["A", "D"]
