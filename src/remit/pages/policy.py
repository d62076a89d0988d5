"""Policy: the rules and how often each decided, what they make of a call, and approvals that are remembered."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

import msgspec

from remit.clock import DAY, duration
from remit.codes import Code
from remit.errors import UsageError
from remit.pages.actions import json_object
from remit.pages.page import Page, PageRequest, PageView, See, link
from remit.pages.tools import PATIENCE_S, seen
from remit.policy.approval import Remembered
from remit.policy.decision import CallerKind, Effect
from remit.policy.explain import Explanation, written
from remit.policy.lint import LintFinding
from remit.policy.rule import Rule
from remit.record.decisions import STREAMS, Hits, Ruling
from remit.service.policy import PotView

_TONES: Final[dict[Effect, str]] = {"allow": "quiet", "ask": "asks", "deny": "bad"}
"""The tone of each effect."""
_CALLS: Final = 200
"""Calls of a page, the newest."""


class RuleLine(msgspec.Struct, frozen=True, kw_only=True):
    """A rule in the list."""

    id: str
    effect: Effect
    tone: str
    about: str
    """Which calls: tools, providers, levels, callers."""
    when: tuple[str, ...]
    taint: str
    """Its treatment of arguments from untrusted text; empty if it does not say."""
    terms: str
    """Of an ask rule: who, how many, how long."""
    reason: str
    hits: Hits | None
    findings: tuple[LintFinding, ...]


class ExplainForm(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is only looked at."""

    tool: str = ""
    args: str = ""
    """JSON."""
    principal: str = ""
    kind: CallerKind = "session"
    recipe: str = ""


class RevokeForm(msgspec.Struct, frozen=True, kw_only=True):
    """Why a remembered approval ends."""

    reason: str = ""


class PolicyPage(PageView, frozen=True, kw_only=True):
    """What holds."""

    template: ClassVar[str] = "policy.html"
    rules: tuple[RuleLine, ...]
    defaults: tuple[Hits, ...]
    """Decisions that no rule made."""
    streams: int = STREAMS
    pots: tuple[PotView, ...]
    remembered: tuple[Remembered, ...]
    tools: tuple[str, ...]
    """Names to choose from."""
    form: ExplainForm
    explanation: Explanation | None = None
    wrong: str = ""
    """Why the form could not be understood."""


class RulingsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which decisions of a rule."""

    rule: str = ""
    verdict: Literal["", "ran", "asked", "denied"] = ""


class RulingLine(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a rule decided about."""

    ruling: Ruling
    path: str
    """The page of the call; empty if it has none."""
    name: str
    """The job or session that makes it."""


class Rulings(PageView, frozen=True, kw_only=True):
    """The calls that a rule decided about."""

    template: ClassVar[str] = "rulings.html"
    query: RulingsQuery
    lines: tuple[RulingLine, ...]
    matches: int
    streams: int = STREAMS


async def rulings(request: PageRequest) -> Rulings:
    """The calls that a rule let run, asked about or denied, newest first."""
    query: RulingsQuery = request.query
    rulings_read = await request.service.policy.rulings(request.now - DAY, query.rule)
    rulings_read = [ruling for ruling in rulings_read if query.verdict in {"", ruling.verdict}]
    return Rulings(
        title=f"Calls that {query.rule} decided",
        query=query,
        lines=tuple(_ruling_line(ruling) for ruling in rulings_read[:_CALLS]),
        matches=len(rulings_read),
    )


def _ruling_line(ruling: Ruling) -> RulingLine:
    kind, _, name = ruling.stream.partition("/")
    name = name.partition("/")[0]
    shape = {"job": "/jobs/{}", "session": "/sessions/{}"}.get(kind, "")
    path = link(shape, name, step=ruling.step) if shape else ""
    return RulingLine(
        ruling=ruling, path=link("/inbox/{}", ruling.confirmation) if ruling.confirmation else path, name=name
    )


async def policy(request: PageRequest) -> PolicyPage:
    """The rules as they are."""
    return await _page(request, ExplainForm(principal=request.principal))


async def explain(request: PageRequest) -> PolicyPage:
    """The same, with what the rules make of a call."""
    form: ExplainForm = request.form
    try:
        if not form.tool.strip():
            raise UsageError("Name a tool.", code=Code.INVALID_INPUT)
        args = json_object(form.args, "The arguments")
    except UsageError as error:
        return await _page(request, form, wrong=error.message)
    explanation = await request.service.policy.explain(
        form.tool.strip(), args, principal=form.principal or request.principal, kind=form.kind, recipe=form.recipe
    )
    return await _page(request, form, explanation)


async def revoke(request: PageRequest) -> See:
    """End a remembered approval."""
    await request.service.approvals.revoke(request.path["rule"], by=request.principal, reason=request.form.reason)
    return See("/policy#remembered")


async def _page(
    request: PageRequest, form: ExplainForm, explanation: Explanation | None = None, *, wrong: str = ""
) -> PolicyPage:
    service = request.service
    hits = await service.policy.hits(request.now - DAY)
    findings = await service.policy.findings(PATIENCE_S)
    rules = tuple(
        _line(rule, hits.pop(rule.id, None), [finding for finding in findings if finding.rule_id == rule.id])
        for rule in service.policy.rules
    )
    return PolicyPage(
        title="Policy",
        status=400 if wrong else 200,
        rules=rules,
        defaults=tuple(sorted(hits.values(), key=lambda hit: -hit.total)),
        pots=tuple(await service.policy.pots()),
        remembered=tuple(await service.approvals.active()),
        tools=tuple(tool.name for tool in await seen(request)),
        form=form,
        explanation=explanation,
        wrong=wrong,
    )


def _line(rule: Rule, hits: Hits | None, findings: list[LintFinding]) -> RuleLine:
    levels = [f"level {entry.name}" for entry in rule.levels]
    about = [*rule.tools, *(f"provider {entry}" for entry in rule.providers), *levels]
    callers = f" for {', '.join(rule.callers)}" if rule.callers else ""
    return RuleLine(
        id=rule.id,
        effect=rule.effect,
        tone=_TONES[rule.effect],
        about=(", ".join(about) or "every tool") + callers,
        when=written(rule),
        taint=rule.taint or "",
        terms=_terms(rule) if rule.effect == "ask" else "",
        reason=rule.reason,
        hits=hits,
        findings=tuple(findings),
    )


def _terms(rule: Rule) -> str:
    who = " or ".join(rule.approvers) or "anybody"
    number = f"{rule.approvals} of {who}" if rule.approvals > 1 else who
    within = f", within {duration(rule.expires_s * 1_000_000)}" if rule.expires_s is not None else ""
    return f"{number} answers{within}" if rule.approvals == 1 else f"{number} answer{within}"


PAGES: Final = (
    Page(
        path="/policy",
        scope="read",
        handler=policy,
        name="Policy",
        key="p",
        under="What may run?",
        about="rules, how often each was used, what it would say to a call",
    ),
    Page(path="/policy/calls", scope="read", handler=rulings, query=RulingsQuery),
    Page(path="/policy/explain", scope="read", handler=policy),
    Page(path="/policy/explain", scope="read", handler=explain, form=ExplainForm),
    Page(path="/policy/remembered/{rule}/revoke", scope="decide", handler=revoke, form=RevokeForm),
)
