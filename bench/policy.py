"""A decision of the policy, as every call needs one."""

from __future__ import annotations

from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from remit.policy.decision import Caller, Query
from remit.policy.rules import Policy
from remit.tools.meta import Level, ToolMeta

RULES, DECISIONS = 30, 20_000


def thirty_rules() -> Policy:
    """Three rules about the tool that is asked for, and the rest about others."""
    about = [
        {"effect": "deny", "tools": ["fs.*"], "callers": ["mcp:*"]},
        {"effect": "ask", "tools": ["fs.write"], "callers": ["http:*"]},
        {"effect": "allow", "tools": ["fs.write"], "callers": ["job:edit/alice"]},
    ]
    others = [{"effect": "allow", "tools": [f"service_{number}.*"]} for number in range(RULES - len(about))]
    return Policy.parse([*others, *about])


async def decision(_lab: Lab) -> list[Result]:
    """One decision among 30 rules, three of them about the tool."""
    policy = thirty_rules()
    tool = ToolMeta(name="fs.write", provider_id="builtin", capability_level=Level.L1)
    caller = Caller(principal="alice", kind="job", recipe="edit")
    asked = Query(tool=tool, key="fs.write", args={"path": "docs/a.md"}, caller=caller)
    assert policy.decide(asked).effect == "allow"

    async def sample() -> Reading:
        decide = policy.decide
        watch = Watch()
        for _ in range(DECISIONS):
            decide(asked)
        return watch.micros(DECISIONS)

    return await against("policy decision, 30 rules", "µs", sample, None, "three about the tool", mark=Mark(1))
