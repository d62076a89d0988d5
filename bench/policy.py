"""A decision of the policy, as every call needs one, and what conditions of rules add to it."""

from __future__ import annotations

from typing import Any

from bench.lab import Lab
from bench.measure import Mark, Reading, Result, Watch, against
from remit.policy.decision import Caller, Facts, Query
from remit.policy.rules import Policy
from remit.tools.meta import Level, ToolMeta

RULES, DECISIONS = 30, 20_000
CONDITION = (
    'args.amount <= seen("orders.get").total and seen("orders.get").status == "pending" and args.user == principal'
)

_TOOL = ToolMeta(name="orders.refund", provider_id="builtin", capability_level=Level.L1)
_CALLER = Caller(principal="alice", kind="job", recipe="edit", stream="job/J")


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
    query = Query(tool=tool, key="fs.write", args={"path": "docs/a.md"}, caller=_CALLER)

    async def sample() -> Reading:
        return _timed(policy, query)

    return await against("policy decision, 30 rules", "µs", sample, None, "three about the tool", mark=Mark(1))


async def conditions(_lab: Lab) -> list[Result]:
    """What `where` and `limit` add to a decision of one rule, as the difference to the same rule without them."""
    where = await _added("policy, a condition of three parts adds", {"where": CONDITION}, Mark(3))
    limit = {"limit": {"per": "day", "by": "principal", "calls": 3}}
    return [*where, *await _added("policy, a limit adds", limit, Mark(3))]


async def _added(name: str, more: dict[str, Any], mark: Mark) -> list[Result]:
    rule = {"effect": "allow", "tools": ["orders.refund"], "callers": ["alice"]}
    plain, whole = Policy.parse([rule]), Policy.parse([rule | more])
    args = {"amount": 30, "user": "alice"}
    facts = Facts(seen={"orders.get": {"status": "pending", "total": 200}}, taken={})
    query = Query(tool=_TOOL, key="orders", args=args, caller=_CALLER, now=1_777_881_600_000_000, facts=facts)

    async def sample() -> Reading:
        base, value = _timed(plain, query).cpu_us, _timed(whole, query).cpu_us
        assert base is not None
        assert value is not None
        return Reading(value - base)  # of processor, which is all that a decision takes

    return await against(name, "µs", sample, None, "to a rule about a tool and a caller", mark=mark)


def _timed(policy: Policy, query: Query) -> Reading:
    assert policy.decide(query).effect == "allow"
    decide = policy.decide
    watch = Watch()
    for _ in range(DECISIONS):
        decide(query)
    return watch.micros(DECISIONS)
