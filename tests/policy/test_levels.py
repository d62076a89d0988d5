from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.policy.levels import DEFAULTS, UNKNOWN_TOOL, default_for, effective_level
from remit.tools.meta import Level, Risk, ToolMeta
from tests.policy.samples import EXEC, READ, WRITE, tool

STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


def test_reading_runs() -> None:
    assert default_for(READ).effect == "allow"


@pytest.mark.parametrize(("meta", "rule_id"), [(WRITE, "default:L1"), (EXEC, "default:L2")])
def test_writing_and_executing_ask(meta: ToolMeta, rule_id: str) -> None:
    decision = default_for(meta)
    assert (decision.effect, decision.rule_id) == ("ask", rule_id)


def test_a_reading_tool_that_demands_a_confirmation_asks() -> None:
    decision = default_for(tool("fs.read", Level.L0, requires_confirm=True))
    assert (decision.effect, decision.rule_id) == ("ask", "default:confirm")


def test_an_unknown_tool_is_denied() -> None:
    assert default_for(None) is UNKNOWN_TOOL
    assert UNKNOWN_TOOL.effect == "deny"


def test_a_tool_that_says_nothing_is_the_worst_case() -> None:
    meta = ToolMeta(name="x.y", provider_id="mcp_x")
    assert effective_level(meta) is Level.L2
    assert default_for(meta).rule_id == "default:L2"


@pytest.mark.parametrize(
    ("changes", "level"),
    [
        ({"risk_level": Risk.UNKNOWN}, Level.L2),
        ({"risk_level": Risk.WRITE}, Level.L1),
        ({"side_effects": True}, Level.L1),
        ({}, Level.L0),
    ],
)
def test_a_claim_to_only_read_does_not_hide_what_else_is_said(changes: dict[str, Any], level: Level) -> None:
    assert effective_level(tool("x.y", Level.L0, **changes)) is level


@given(
    st.sampled_from(Level),
    st.sampled_from(Risk),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["side_effects", "requires_confirm"]),
)
def test_saying_more_against_itself_never_makes_a_tool_easier_to_call(
    level: Level, risk: Risk, effects: bool, confirm: bool, field: str
) -> None:
    said: dict[str, Any] = {"risk_level": risk, "side_effects": effects, "requires_confirm": confirm}
    meek = default_for(tool("x.y", level, **(said | {field: False})))
    honest = default_for(tool("x.y", level, **(said | {field: True})))
    assert STRICTNESS[honest.effect] >= STRICTNESS[meek.effect]


def test_every_default_has_an_id_of_its_own_and_a_reason() -> None:
    assert len({decision.rule_id for decision in DEFAULTS}) == len(DEFAULTS)
    assert all(decision.reason and decision.rule_id.startswith("default:") for decision in DEFAULTS)
