"""What a tool may do is the operator's word; what its server says of it can only make that stricter."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.providers.mcp.offers import full_name, meta_of, version_of
from remit.settings.mcp import McpServer
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.names import check_name
from tests.providers.mcp.world import tool

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
hints = st.dictionaries(st.sampled_from(HINTS), st.sampled_from([True, False, None, "yes", 1]))


def meta(raw: dict[str, Any], **entry: Any) -> ToolMeta:
    return meta_of(McpServer(name="s", **entry), full_name("s", raw["name"]), raw)


def test_a_tool_nobody_spoke_for_is_the_worst_case() -> None:
    found = meta(tool("x", annotations={"readOnlyHint": True, "idempotentHint": True}))
    assert (found.capability_level, found.risk_level) == (Level.L2, Risk.UNKNOWN)
    assert (found.side_effects, found.requires_confirm, found.idempotent, found.retry) == (True, True, False, None)


@pytest.mark.parametrize(
    ("name", "level"), [("list_all", "L0"), ("list_secrets", "L2"), ("write", "L1"), ("other", "L1"), ("LIST_X", "L1")]
)
def test_an_exact_name_wins_then_the_first_pattern_then_the_servers_level(name: str, level: str) -> None:
    patterns: dict[str, Any] = {"list_*": "L0", "*_secrets": "L0", "w*": "L1", "list_secrets": "L2"}
    assert meta(tool(name), level="L1", tools=patterns).capability_level is Level[level]


@pytest.mark.parametrize(
    ("name", "level"), [("list_all", "L1"), ("write", "L2"), ("list_known", "L0"), ("other", "L1")]
)
def test_before_a_person_has_looked_patterns_only_make_it_stricter(name: str, level: str) -> None:
    server = McpServer(name="s", level="L1", tools={"list_*": "L0", "w*": "L2", "list_known": "L0"}, idempotent=("w*",))
    found = meta_of(server, full_name("s", name), tool(name), reviewed=False)
    assert (found.capability_level, found.idempotent) == (Level[level], False)


def test_what_reads_may_be_repeated_and_needs_nobody() -> None:
    found = meta(tool("x"), level="L0")
    assert (found.risk_level, found.side_effects, found.requires_confirm) == (Risk.READ_ONLY, False, False)
    assert found.retry is not None


@pytest.mark.parametrize("said", [{"readOnlyHint": False}, {"destructiveHint": True}])
def test_what_says_that_it_writes_is_taken_at_its_word(said: dict[str, Any]) -> None:
    found = meta(tool("x", annotations=said), level="L0")
    assert (found.capability_level, found.requires_confirm) == (Level.L1, True)


@given(hints, st.sampled_from(["L0", "L1", "L2"]), st.booleans())
def test_annotations_only_make_it_stricter(said: dict[str, Any], level: Any, idempotent: bool) -> None:
    entry: dict[str, Any] = {"level": level, "idempotent": ("x",) if idempotent else ()}
    plain, annotated = meta(tool("x"), **entry), meta(tool("x", annotations=said), **entry)
    assert annotated.capability_level >= plain.capability_level
    assert annotated.side_effects >= plain.side_effects
    assert annotated.requires_confirm >= plain.requires_confirm
    assert annotated.idempotent <= plain.idempotent or annotated.capability_level > plain.capability_level
    assert annotated.repeatable <= plain.repeatable or idempotent


@pytest.mark.parametrize("annotations", [None, "readOnly", [], 5])
def test_annotations_that_are_none_are_nothing(annotations: Any) -> None:
    assert meta(tool("x", annotations=annotations), level="L0").capability_level is Level.L0


def test_what_the_operator_calls_idempotent_is_unless_the_server_denies_it() -> None:
    assert meta(tool("put_x"), level="L1", idempotent=("put_*",)).repeatable
    denied = meta(tool("put_x", annotations={"idempotentHint": False}), level="L1", idempotent=("put_*",))
    assert not denied.repeatable


def test_a_title_stands_in_for_a_description() -> None:
    assert meta({"name": "x", "description": " ", "title": "A title"}).description == "A title"
    assert "does not describe" in meta({"name": "x", "description": 5}).description


@given(st.text(max_size=100), st.sampled_from(["s", "a_long_name", "x" * 40, "x" * 50]), st.booleans())
def test_every_name_is_rewritten_to_one_that_models_take(name: str, server: str, apart: bool) -> None:
    check_name(full_name(server, name, apart=apart))


def test_names_that_meet_can_be_kept_apart() -> None:
    assert full_name("s", "a.b") == full_name("s", "a-b") == "mcp.s.a-b"
    assert full_name("s", "a.b", apart=True) != full_name("s", "a-b", apart=True)


@pytest.mark.parametrize(
    ("name", "version", "said"),
    [
        ("acme-mail", "1.4.2", "acme-mail 1.4.2 (pin 0123456789ab)"),
        ("acme-mail", "", "acme-mail (pin 0123456789ab)"),
        ("", "", "pin 0123456789ab"),
        ("evil\x1b[31m\n" + "x" * 200, "1", None),
    ],
)
def test_a_tool_has_the_version_of_its_server_and_the_pin(name: str, version: str, said: str | None) -> None:
    found = version_of(name, version, "sha256:0123456789abcdef")
    assert said is None or found == said
    assert found.isprintable()
    assert len(found) <= 160
