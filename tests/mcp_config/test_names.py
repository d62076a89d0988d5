from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.mcp_config.plan import LONGEST, free_name, server_name
from remit.settings.mcp_servers import NAME


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("github", "github"),
        ("My Server", "my_server"),
        ("@scope/x--y__z", "scope_x_y_z"),
        ("Café №1", "cafe_no1"),
        ("日本", "server"),
        ("_", "server"),
        ("a" * 31 + "_b", "a" * 31),
    ],
)
def test_names_become_ones_that_keep_the_rule(given_name: str, name: str) -> None:
    assert server_name(given_name) == name


@given(st.text())
def test_every_name_keeps_the_rule_afterwards_and_then_stays(text: str) -> None:
    name = server_name(text)
    assert NAME.fullmatch(name)
    assert len(name) <= LONGEST
    assert server_name(name) == name


def test_a_name_that_is_taken_gets_the_first_free_number() -> None:
    assert free_name("a", set()) == "a"
    assert free_name("a", {"a", "a_2"}) == "a_3"
