from typing import Any

import pytest

from remit.policy.lint import lint
from remit.tools.meta import Level
from tests.policy.samples import tool

ORDER = {"type": "object", "properties": {"status": {"type": "string"}, "total": {"type": "number"}}}
GET = tool("orders.get", Level.L0, "order", output_schema=ORDER)
TYPED = {
    "type": "object",
    "properties": {"cents": {"type": "integer"}, "to": {"type": "string"}, "ok": {"type": "boolean"}},
}
PAY = tool("desk.pay", Level.L1, input_schema=TYPED)


def kinds(**said: Any) -> list[tuple[str, str, str]]:
    found = lint([{"effect": "deny", "tools": ["desk.pay"], **said}], [GET, PAY])
    return [(one.kind, one.message, one.remedy) for one in found]


@pytest.mark.parametrize(
    "where",
    [
        'args.cents <= seen("orders.get").total and seen("orders.get").status in ["pending"]',
        "args.to == principal and args.ok and input.anything.at_all == 3",
        "args.cents + 1 > len(args.to)",
        "args.to == null",
    ],
)
def test_a_condition_about_what_there_is_has_no_finding(where: str) -> None:
    assert kinds(where=where) == []


def test_names_that_nothing_has() -> None:
    assert kinds(where="args.cent > 1") == [
        ("unknown-argument", "names the argument 'cent', which none of its tools has", 'Did you mean "cents"?')
    ]
    assert kinds(where='seen("order.get").status == "x"') == [
        ("unknown-result", "uses results of order.get, but no tool has that name", 'Did you mean "orders.get"?')
    ]
    assert kinds(where='seen("orders.get").state == "x"') == [
        ("unknown-result", "asks for 'state', which orders.get does not return", 'Did you mean "status"?')
    ]
    assert [one[0] for one in kinds(limit={"per": "day", "sum": "cent", "max": 1})] == ["unknown-argument"]
    assert [one[0] for one in kinds(unless={"cent": {"equals": 1}})] == ["unknown-argument"]


@pytest.mark.parametrize(
    "more", [{"properties": {}}, {"additionalProperties": {"type": "string"}}, {"properties": None}]
)
def test_a_result_that_may_hold_anything_has_no_finding(more: dict[str, Any]) -> None:
    get = tool("orders.get", Level.L0, output_schema={key: value for key, value in (ORDER | more).items() if value})
    found = lint([{"effect": "deny", "tools": ["desk.pay"], "where": 'seen("orders.get").state == "x"'}], [get, PAY])
    assert found == []


@pytest.mark.parametrize(
    "where",
    [
        'args.cents == "100"',
        "args.to < 3",
        "args.ok < true",
        'args.cents in "abc"',
        'principal == 3 or args.cents > seen("orders.get").status',
        "not args.cents == lower(args.to)",
    ],
)
def test_comparisons_that_can_never_be_told(where: str) -> None:
    assert {one[0] for one in kinds(where=where)} == {"never-told"}


def test_a_condition_that_cannot_be_read_is_invalid() -> None:
    assert [(one[0], one[1]) for one in kinds(where="args.cents >")] == [
        ("invalid", 'rule 1, key "where" ends too early (near character 13)')
    ]


def test_a_rule_with_more_conditions_is_not_taken_for_one_with_fewer() -> None:
    plain = {"id": "a", "effect": "allow", "tools": ["desk.pay"]}
    for more in ({"where": "args.ok"}, {"limit": {"per": "day", "calls": 1}}, {"unless": {"to": {"equals": "x"}}}):
        assert lint([plain, {"id": "b", "effect": "deny", "tools": ["desk.pay"], **more}], [GET, PAY]) == []
        found = lint([plain | more, plain | {"id": "b"}], [GET, PAY])
        assert found == []
    default = {"id": "d", "effect": "deny", "default": True, "tools": ["desk.*"]}
    assert lint([default, {"id": "l", "effect": "deny", "tools": ["desk.pay"]}], [GET, PAY])[0].rule_id == "d"
