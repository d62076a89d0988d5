"""Tools, callers and calls that the policy tests share."""

from __future__ import annotations

from typing import Any, Final

from remit.policy.constraint import Constraint, Operator
from remit.policy.decision import Caller, CallerKind, Decision, Query
from remit.policy.rule import Rule, parse_rule
from remit.policy.rules import Policy
from remit.tools.meta import Level, Risk, ToolMeta
from remit.tools.names import key_of

ALICE: Final = Caller(principal="alice", kind="session", stream="session/S")


def tool(name: str, level: Level = Level.L1, *args: str, provider: str = "builtin", **changes: Any) -> ToolMeta:
    """A tool that is honest about its level, and takes these arguments."""
    reads = level is Level.L0
    said: dict[str, Any] = {
        "risk_level": Risk.READ_ONLY if reads else Risk.WRITE,
        "side_effects": not reads,
        "requires_confirm": not reads,
        "input_schema": {"type": "object", "properties": {arg: {} for arg in args}},
    }
    return ToolMeta(name=name, provider_id=provider, capability_level=level, **(said | changes))


READ: Final = tool("fs.read", Level.L0, "path")
LIST: Final = tool("fs.list", Level.L0, "path")
WRITE: Final = tool("fs.write", Level.L1, "path", "content")
EDIT: Final = tool("fs.edit", Level.L1, "path", "search", "replace")
FETCH: Final = tool("web.fetch", Level.L0, "url", provider="web")
EXEC: Final = tool("sandbox.exec", Level.L2, "command", provider="sandbox")
ISSUES: Final = tool("mcp.github.list_issues", Level.L0, "repo", provider="mcp_github")
COMMENT: Final = tool("mcp.github.add_comment", Level.L1, "repo", "issue", "body", provider="mcp_github")
PUSH: Final = tool("mcp.github.push_files", Level.L1, "repo", "branch", "files", provider="mcp_github")
TOOLS: Final = (READ, LIST, WRITE, EDIT, FETCH, EXEC, ISSUES, COMMENT, PUSH)

SHOP: Final = (
    tool("shop.find_user", Level.L0, "email"),
    tool("shop.get_order", Level.L0, "order_id"),
    tool("shop.cancel_order", Level.L1, "order_id", "reason"),
    tool("shop.return_items", Level.L1, "order_id", "items", "refund_to"),
    tool("shop.exchange_items", Level.L1, "order_id", "items", "new_items"),
    tool("shop.credit", Level.L1, "user_id", "amount", "note"),
)
"""What an assistant of a retailer calls, in examples/policy/refunds.toml."""


def query(meta: ToolMeta = WRITE, /, caller: Caller = ALICE, *, now: int = 0, **args: Any) -> Query:
    """A call of a tool."""
    return Query(tool=meta, key=key_of(meta.name), args=args, caller=caller, now=now)


def job(recipe: str, principal: str = "alice", stream: str = "job/J") -> Caller:
    """A job of a recipe."""
    return Caller(principal=principal, kind="job", recipe=recipe, stream=stream)


def caller(kind: CallerKind, principal: str) -> Caller:
    """Somebody who calls from elsewhere."""
    return Caller(principal=principal, kind=kind)


def rule(effect: str = "allow", **said: Any) -> Rule:
    """A rule from its raw table."""
    return parse_rule({"effect": effect, **said}, 1)


def decide(asked: Query, *rules: dict[str, Any]) -> Decision:
    """What a policy of these raw rules decides."""
    return Policy.parse(rules).decide(asked)


def verdict(operators: dict[str, Any], value: Any, *, wide: bool = False) -> bool | None:
    """What a constraint says of one value."""
    constraint = Constraint("x", tuple(Operator(name, operand) for name, operand in operators.items()))
    return constraint.judge(wide=wide)({"x": value}, None)
