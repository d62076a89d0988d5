"""Tools over HTTP: the catalog, what policy says of a call, and calls themselves."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from remit.api.readiness import require_deps
from remit.api.route import ApiRequest, DetailedAnswer, Route
from remit.codes import Code
from remit.errors import UsageError
from remit.policy.decision import CallerKind
from remit.policy.explain import Explanation
from remit.record.outcome import OutcomeView
from remit.redact import line
from remit.tools.names import wire_name

PENDING: Final = 202
"""The status of a call that waits for a person."""


class ExplainBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call that is only looked at."""

    tool: str
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    principal: str = ""
    """The principal that would make it; empty: the principal of the request."""
    kind: CallerKind = "http"
    """Where it would come from."""
    recipe: str = ""
    """The recipe whose job would make it."""
    given: dict[str, Any] = msgspec.field(default_factory=dict)
    """Facts taken as given: `at`, `input`, `seen` and `taken`, as tests of rules have them."""


class ExecuteBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call."""

    tool_name: str = ""
    """A key, or the name as models see it: no dot."""
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=86_400_000)] | None = None


async def explain(request: ApiRequest) -> Explanation:
    """Say what policy would do with a call, and what part each rule has in that. Nothing is called."""
    body: ExplainBody = request.body
    who = body.principal or request.principal
    return await request.service.policy.explain(
        body.tool, body.args, principal=who, kind=body.kind, recipe=body.recipe, given=body.given
    )


async def execute(request: ApiRequest) -> DetailedAnswer:
    """Call a tool through the gateway.

    200 with the outcome, whatever it is: `ok`, `failed` or `blocked` with a code. 202 if a person has to approve first:
    the outcome names the confirmation, and the same call made again continues it. Where a limit refused the call,
    `Retry-After` says when it may be made again. 503 while a required dependency is
    missing.
    """
    body: ExecuteBody = request.body
    _check_name(body.tool_name)
    await require_deps(request.service.health)
    outcome = await request.service.sessions.call(
        await request.session(),
        body.tool_name,
        body.args,
        key=request.key,
        timeout_s=body.timeout_ms / 1_000 if body.timeout_ms is not None else None,
        only=request.access.tools,
        trace_id=request.trace.trace_id if request.trace.named else "",
    )
    later = {} if outcome.again_ms is None else {"retry-after": str(-(-outcome.again_ms // 1_000))}
    return DetailedAnswer(value=outcome, status=PENDING if outcome.status == "pending" else 0, headers=later)


def _check_name(name: str) -> None:
    """Raise UsageError for a name with a dot: calls and limits of tickets name tools by one key (contract: tickets)."""
    if "." in name:
        remedy = f"Write its key or its name for models: {line(wire_name(name))}."
        raise UsageError(f"tool_name {line(name)!r} has a dot", code=Code.INVALID_TOOL_STEP, remedy=remedy)


ROUTES: Final = (
    Route(
        method="POST",
        path="/v1/tools/execute",
        name="tools.execute",
        scope="call",
        summary="Call a tool.",
        handler=execute,
        body=ExecuteBody,
        answer=OutcomeView,
        also=(PENDING,),
        starts=True,
        keeps_key=True,
        codes=(Code.INVALID_TOOL_STEP, Code.MCP_REQUIRED_UNAVAILABLE, Code.IDEMPOTENCY_MISMATCH),
        example={"tool_name": "fs_read", "args": {"path": "README.md"}},
    ),
    Route(
        method="POST",
        path="/v1/policy/explain",
        name="policy.explain",
        scope="read",
        summary="Say what policy would do with a call.",
        handler=explain,
        body=ExplainBody,
        answer=Explanation,
        example={"tool": "fs.write", "args": {"path": "a.md", "content": "x"}},
    ),
)
