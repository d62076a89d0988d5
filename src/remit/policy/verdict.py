"""Verdict on a call from its facts, as they were recorded: one pure function.

It decides as the gate does: rules first, then a remembered approval in the place of a question, then what untrusted
arguments change. Today's rules, those of the time, and rules that are only tried are all asked in this way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from remit.policy.approval import Remembered
from remit.policy.decision import Query
from remit.policy.rules import TAINT_ID

if TYPE_CHECKING:
    from remit.policy.decision import Decision, Effect
    from remit.policy.rules import Policy

DENIED: Final = frozenset({"POLICY_DENIED", "UNTRUSTED_ARGUMENT", "UNKNOWN_TOOL"})
"""Codes of refusals that policy made."""
_DECIDING: Final = frozenset({"", "authorize", "check_origins", "resolve"})
"""Stages that decide by policy; later ones refuse a call that was sent back to policy too often."""
_TURN: Final = "take_turn"
"""The stage of the limits of the settings: policy had let the call pass."""
DONE: Final = frozenset({"pure", "success", "side_effect_committed"})
"""Outcomes of steps whose results rules may look at."""
TAINT_IDS: Final = ("taint:", TAINT_ID)
"""Beginnings of the ids of rules that asked because of untrusted arguments."""
BUDGET_ID: Final = "budget:"
"""Beginning of the id of what asks about a question to a model that goes beyond a budget, which policy allows."""


class RecordedFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision was made from."""

    query: Query
    remembered: tuple[Remembered, ...] = ()
    """The remembered approvals of the tool that held then, newest first."""
    untrusted: tuple[str, ...] = ()
    """The places of arguments that no trusted text held."""


def verdict_on(policy: Policy, facts: RecordedFacts) -> Decision:
    """Return the decision of a policy on recorded facts; never raises."""
    query = facts.query
    decision = policy.decide(query)
    if decision.effect == "ask" and facts.remembered:
        decision = policy.decide(query, remembered=facts.remembered)
    if not facts.untrusted or query.tool is None or decision.effect == "deny":
        return decision
    decision = policy.tainted(query, decision, facts.untrusted)
    if decision.effect != "ask":
        return decision
    exact = (rule for rule in facts.remembered if rule.args_digest is not None and rule.answers(query, decision))
    return next((rule.decision for rule in exact), decision)


def agrees(decision: Decision, effect: Effect, rule: str, *, question: bool, untrusted: bool) -> bool:
    """Return whether a decision is the recorded one, of a question or of a call.

    A call that was asked about may be allowed by the time it runs, as by a remembered approval or an hour; it spends
    its own approval all the same. What a person edited is not `untrusted` any more, and keeps the rule of what was.
    """
    if effect == "ask" and not untrusted and rule.startswith(TAINT_IDS):
        return True
    if rule.startswith(BUDGET_ID):
        return (effect, decision.effect) == ("ask", "allow")
    return decision.rule_id == rule and (
        decision.effect == effect or (effect, decision.effect, question) == ("ask", "allow", False)
    )


def effect_of_refusal(code: str, stage: str, passed: Effect, *, model_call: bool) -> Effect | None:
    """Return the decision of policy behind a refusal; None: there is none.

    `passed` is what it was if policy had let the call pass: whether a person was asked about it, the event says.
    """
    if code in DENIED and stage in _DECIDING:
        return "deny"
    if stage != _TURN or model_call:
        return None
    return passed
