from typing import Any

import pytest

from remit.policy.explain import misfits
from remit.tools.meta import ToolMeta

TOOL = ToolMeta(
    name="mail.send",
    provider_id="mail",
    input_schema={
        "type": "object",
        "properties": {"to": {"type": "string"}, "copies": {"type": "array", "items": {"type": "string"}}},
        "required": ["to"],
    },
)


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ({"to": "ann"}, ()),
        ({}, ()),
        ({"to": 5}, ("to must be string, not integer",)),
        ({"too": "ann"}, ('too is not a known field. Did you mean "to"?',)),
        ({"copies": ["ann", 5]}, ("copies/1 must be string, not integer",)),
    ],
)
def test_what_a_tool_could_not_take_is_named_and_what_is_left_out_is_not(
    args: dict[str, Any], found: tuple[str, ...]
) -> None:
    assert misfits(TOOL, args) == found


def test_a_tool_whose_schema_cannot_be_used_takes_anything() -> None:
    assert misfits(ToolMeta(name="a.b", provider_id="x", input_schema={"type": "nonsense"}), {"x": 1}) == ()
