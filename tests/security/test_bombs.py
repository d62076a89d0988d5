"""Schemas of a hostile server: a tool is withheld or checked at once, nothing is fetched (reviews s05/B01 to B17)."""

from __future__ import annotations

from typing import Any

import pytest

from remit.codes import Code
from remit.tools.provider import ToolResult
from tests.gateway.world import odd, opened

WITHHELD, REFUSED, RUNS = Code.TOOL_QUARANTINED, Code.INVALID_TOOL_ARGS, None
REMOTE = "http://127.0.0.1:9/schema.json"


def of(schema: Any) -> dict[str, Any]:
    """A schema with one argument."""
    return {"type": "object", "properties": {"a": schema}}


def doubled(levels: int) -> dict[str, Any]:
    """Alternatives of alternatives: 2 to the power of `levels` of them."""
    defs: dict[str, Any] = {"d0": {"const": "x"}}
    for level in range(1, levels + 1):
        defs[f"d{level}"] = {"anyOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 2}
    return {**of({"$ref": f"#/$defs/d{levels}"}), "$defs": defs}


def deep(levels: int) -> dict[str, Any]:
    """A schema within a schema within a schema."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = of(schema)
    return schema


BOMBS: dict[str, tuple[Any, Any, Code | None]] = {
    "B01": (of({"$ref": REMOTE}), {"a": 1}, WITHHELD),
    "B02": (of({"$ref": "file:///etc/passwd"}), {"a": 1}, WITHHELD),
    "B03": ({**of({}), "$schema": REMOTE}, {"a": 1}, WITHHELD),
    "B04": (of({"$dynamicRef": REMOTE}), {"a": 1}, WITHHELD),
    "B05": (of({"type": "string", "pattern": "^(a+)+$"}), {"a": "a" * 50_000 + "b"}, REFUSED),
    "B06": (of({"type": "string", "pattern": "(.{1000}){1000}"}), {"a": "x"}, WITHHELD),
    "B07": (of({"type": "string", "pattern": "^(?=(a+)+b)"}), {"a": "a" * 50_000}, WITHHELD),
    "B08": (doubled(26), {"a": "y"}, WITHHELD),
    "B09": ({**of({"$ref": "#"}), "additionalProperties": False}, {"a": {"a": {"a": 1}}}, REFUSED),
    "B10": ({**of({"$ref": "#/$defs/x"}), "$defs": {"x": {"$ref": "#/$defs/x"}}}, {"a": 1}, RUNS),
    "B11": ({"type": "object", "properties": {f"k{one}": {} for one in range(100_000)}}, {}, WITHHELD),
    "B12": (of({"enum": [f"v{one}" for one in range(100_000)]}), {"a": "v1"}, WITHHELD),
    "B13": ({"type": 7}, {}, WITHHELD),
    "B14": ([1], {}, WITHHELD),
    "B15": (of({"multipleOf": 1e-300}), {"a": 1}, RUNS),
    "B16": (of({"type": "string", "minLength": 1e308}), {"a": "x"}, REFUSED),
    "B17": (deep(5_000), {}, WITHHELD),
}


@pytest.mark.parametrize("name", BOMBS)
async def test_a_schema_that_is_a_bomb_withholds_its_tool_or_is_checked_at_once(name: str) -> None:
    schema, args, code = BOMBS[name]
    bomb = odd(lambda _args, _ctx: ToolResult("ran"), input_schema=schema)
    good = odd(lambda _args, _ctx: ToolResult("ran"), name="good.tool", provider_id="good")
    async with opened(bomb, good) as world:
        outcome = await world.call("odd.tool", args)
        assert outcome.code is code or (name == "B10" and outcome.code in {WITHHELD, REFUSED}), outcome.reason
        assert (await world.call("good.tool", {}, step="2")).ok, "no other tool is the worse for it"
