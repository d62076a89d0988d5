from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from remit.errors import NameInvalidError
from remit.tools.names import (
    MAX_WIRE,
    check_name,
    check_provider_id,
    key_of,
    provider_of,
    wire_name,
)

words = st.text("abmcpz09", min_size=1, max_size=4)
segments = st.lists(words, min_size=1, max_size=3).map("_".join)
plain_names = st.lists(segments, min_size=2, max_size=4).map(".".join).filter(lambda name: not name.startswith("mcp."))
mcp_tools = st.text("abcXYZ019-_", min_size=1, max_size=12).map(lambda text: text.replace("__", "_-"))
mcp_names = st.builds(lambda server, tool: f"mcp.{server}.{tool}", segments, mcp_tools)
names = st.one_of(plain_names, mcp_names).filter(lambda name: len(wire_name(name)) <= MAX_WIRE)


@given(names)
def test_a_name_comes_back_from_its_wire_name(name: str) -> None:
    assert check_name(name) == name
    assert wire_name(name).replace("__", ".") == name


@given(names, names)
def test_two_tools_never_share_a_wire_name(one: str, other: str) -> None:
    assume(one != other)
    assert wire_name(one) != wire_name(other)


@given(names)
def test_models_accept_every_wire_name(name: str) -> None:
    wire = wire_name(name)
    assert len(wire) <= MAX_WIRE
    assert all(char.isascii() and (char.isalnum() or char in "_-") for char in wire)


@given(names)
def test_full_names_wire_names_and_keys_never_meet(name: str) -> None:
    assert "." in name
    assert "." not in wire_name(name)
    assert "__" in wire_name(name)
    assert "." not in key_of(name)
    assert "__" not in key_of(name)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("web.search", "web_search"),
        ("fs.read", "fs_read"),
        ("a.b.c", "a_b_c"),
        ("mcp.github.create_issue", "github"),
        ("mcp.git._status", "git"),
        ("mcp_like.tool", "mcp_like_tool"),
    ],
)
def test_a_key_is_the_servers_name_or_the_name_without_dots(name: str, key: str) -> None:
    assert key_of(check_name(name)) == key


@given(segments, mcp_tools, mcp_tools)
def test_all_tools_of_a_server_share_its_key(server: str, one: str, other: str) -> None:
    assert key_of(f"mcp.{server}.{one}") == key_of(f"mcp.{server}.{other}") == server


@pytest.mark.parametrize(
    "name",
    [
        "",
        "search",
        "web.",
        ".search",
        "web..search",
        "Web.search",
        "web.search-all",
        "web.a__b",
        "web.a_",
        "web_.a",
        "web._a",
        "web.search\n",
        "web.süche",
        "mcp.github",
        "mcp.GitHub.list",
        "mcp.github.a__b",
        "mcp.github.a.b",
        "mcp.github.",
        "mcp.github_.list",
        None,
        3,
    ],
)
def test_a_name_that_could_be_misread_is_refused(name: object) -> None:
    with pytest.raises(NameInvalidError) as error:
        check_name(name)
    assert error.value.remedy


def test_the_last_part_of_an_mcp_tools_name_is_freer() -> None:
    for name in ("mcp.github.listIssues", "mcp.notion.API-post-page", "mcp.git._private_"):
        assert wire_name(check_name(name)).replace("__", ".") == name


def test_a_name_too_long_for_models_is_refused_with_a_way_out() -> None:
    fits = "mcp.srv." + "a" * (MAX_WIRE - len("mcp__srv__"))
    assert len(wire_name(check_name(fits))) == MAX_WIRE
    with pytest.raises(NameInvalidError, match="65 characters") as error:
        check_name(fits + "a")
    assert "shorter" in error.value.remedy


def test_a_refusal_does_not_repeat_a_huge_name() -> None:
    with pytest.raises(NameInvalidError) as error:
        check_name("x" * 1_000_000)
    assert len(error.value.message) < 300


@pytest.mark.parametrize("provider_id", ["builtin", "mcp_github", "stub", "web2"])
def test_provider_ids_are_plain_segments(provider_id: str) -> None:
    assert check_provider_id(provider_id) == provider_id


@pytest.mark.parametrize("provider_id", ["", "Builtin", "mcp-github", "mcp__x", "_x", "x.y", None])
def test_other_provider_ids_are_refused(provider_id: object) -> None:
    with pytest.raises(NameInvalidError):
        check_provider_id(provider_id)


def test_only_an_mcp_tool_belongs_to_one_provider() -> None:
    assert provider_of("mcp.github.create_issue") == "mcp_github"
    assert provider_of("web.search") is None
