"""One tool that is worded against the protocol takes no other tool away from a client."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.mcp_server.definition import fitting, for_older
from tests.mcp_server.links import Link, facing
from tests.mcp_server.test_listing import DEFINITION, raw_list
from tests.mcp_server.upstream import Upstream, offered
from tests.opened import OpenRemit

PLAIN: dict[str, Any] = {"name": "t", "inputSchema": {"type": "object"}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
SLOPPY: list[dict[str, Any]] = [
    {"annotations": "x"},
    {"icons": "x"},
    {"icons": [{"href": "x"}]},
    {"_meta": []},
    {"execution": "x"},
    {"execution": {"taskSupport": "always"}},
    {"title": 5},
    {"description": 5},
    {"description": None},
    {"outputSchema": []},
]


@pytest.mark.parametrize("sloppy", SLOPPY, ids=str)
def test_a_member_that_breaks_the_protocol_is_left_out_and_named(sloppy: dict[str, Any]) -> None:
    assert fitting({**PLAIN, **sloppy}) == (PLAIN, list(sloppy))


def test_a_hint_that_is_no_boolean_is_left_out_and_the_others_stay() -> None:
    hints = {"readOnlyHint": "yes", "destructiveHint": False, "title": 5, "own": 1}
    made, left = fitting({**PLAIN, "annotations": hints})
    assert made["annotations"] == {"destructiveHint": False, "own": 1}
    assert left == ["annotations.readOnlyHint", "annotations.title"]


@pytest.mark.parametrize(
    ("icon", "name"),
    [
        ({"sizes": "48x48"}, "sizes"),
        ({"sizes": [48]}, "sizes"),
        ({"mimeType": 5}, "mimeType"),
        ({"theme": "blue"}, "theme"),
    ],
    ids=str,
)
def test_a_member_of_an_icon_is_left_out_alone_and_an_icon_without_a_source_too(
    icon: dict[str, Any], name: str
) -> None:
    sound = {"src": "https://a.example", "sizes": ["any"], "mimeType": "image/png", "theme": "dark"}
    shown, wrong = fitting({**PLAIN, "icons": [{}, {**sound, **icon}, sound]})
    assert shown["icons"] == [{key: value for key, value in sound.items() if key != name}, sound]
    assert wrong == ["icons[0]", f"icons[1].{name}"]


def test_a_property_that_is_true_or_false_is_written_as_the_object_that_means_the_same() -> None:
    schema = {"type": "object", "properties": {"a": True, "b": False, "c": {"type": "string"}}}
    made, left = fitting({**PLAIN, "inputSchema": schema, "outputSchema": schema})
    properties = {"a": {}, "b": {"not": {}}, "c": {"type": "string"}}
    assert made["inputSchema"]["properties"] == made["outputSchema"]["properties"] == properties
    assert left == []


def test_members_that_the_protocol_does_not_know_are_passed_on() -> None:
    known = {"title": "T", "_meta": {"a": 1}, "execution": {}, "outputSchema": {"type": "array"}}
    definition = {**PLAIN, **known, "own": [1]}
    assert fitting(definition) == (definition, [])


@pytest.mark.parametrize("schema", [{"type": "array"}, {}, {"type": ["object"]}])
def test_older_clients_are_shown_no_output_schema_without_an_object_at_its_root(schema: dict[str, Any]) -> None:
    assert for_older({**PLAIN, "outputSchema": schema}) == PLAIN
    whole = {**PLAIN, "outputSchema": {"type": "object"}}
    assert for_older(whole) == whole


@given(st.dictionaries(st.sampled_from(["title", "description", "annotations", "icons", "execution", "_meta"]), JSON))
def test_whatever_a_server_says_the_official_client_takes_what_is_shown(members: dict[str, Any]) -> None:
    made, _ = fitting({**PLAIN, **members})
    types.Tool.model_validate(for_older(made))


async def test_a_sloppy_tool_is_offered_beside_the_good_one(remit_in: OpenRemit, link: Link) -> None:
    sloppy = {**DEFINITION, "name": "sloppy", "annotations": "x", "outputSchema": {"type": "array"}}
    far = Upstream(offered(DEFINITION), offered(sloppy))
    async with remit_in(providers=[far]) as remit, facing(remit) as face, link.connect(face) as client:
        listed = {each["name"]: each for each in await raw_list(client)}
    assert listed["mcp__far__search"] == {**DEFINITION, "name": "mcp__far__search"}
    assert "annotations" not in listed["mcp__far__sloppy"]
    assert ("outputSchema" in listed["mcp__far__sloppy"]) == link.modern
