"""The policy: every configured rule, and one pure function from a call to a decision.

- deny > ask > allow; where no rule matches, rules that are a `default` decide, then the tool's level
  (`remit.policy.levels`), whichever is stricter.
- A deny rule whose `where` is unknown asks.
- The order of the rules never changes what a caller may do, nor how many people must approve: of several ask rules the
  largest number of approvals, the approvers that all of them accept and the shortest time count. Where that leaves too
  few people, the call is denied.
- Whatever goes wrong while deciding is a deny.
- Rules are indexed per tool when a tool is first seen, so that a decision looks only at those that are about it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec import structs

from remit.canonical import canonical, sha256
from remit.policy.approval import Remembered
from remit.policy.condition import Condition, caller_matcher
from remit.policy.decision import EFFECTS, TAINTS, Caller, Decision, Effect, Query, Taint
from remit.policy.expression import paths_of
from remit.policy.groups import NO_GROUPS, Groups, expanded, most_of
from remit.policy.levels import DEFAULTS_VERSION, default_for
from remit.policy.limit import Limit
from remit.policy.overlay import Overlay
from remit.policy.places import HOST, places_of
from remit.policy.rule import Rule, check_ids, parse_rules
from remit.tools.meta import ToolMeta

ERROR_ID: Final = "default:error"
"""The rule id of a decision that could not be made."""
TAINT_ID: Final = "default:taint"
"""The rule id of what becomes of untrusted arguments if no rule says so."""
_MAX_INDEXED: Final = 10_000
_MAX_NARROWED: Final = 1_000
"""Combinations of overlays that are kept ready."""


Outlook = Literal["runs", "asks", "denied", "depends"]
"""The outlook of a tool's calls; `depends`: on their arguments."""
_OUTLOOKS: Final[dict[Effect, Outlook]] = {"allow": "runs", "ask": "asks", "deny": "denied"}


class Needs(msgspec.Struct, frozen=True):
    """The facts that rules about a tool ask for beside the call itself."""

    input: bool = False
    """The input of the job."""
    tools: frozenset[str] = frozenset()
    """Tools whose last results count."""
    limits: tuple[Limited, ...] = ()
    """Rules with a limit."""


NO_NEEDS: Final = Needs()


class Limited(msgspec.Struct, frozen=True):
    """A rule with a limit."""

    rule: Rule
    limit: Limit
    met: Condition | None
    """Whether a call counts: the rule's condition without its limit; None: every call of a tool that it concerns."""


class _Ready(NamedTuple):
    """A rule made ready to be applied."""

    rule: Rule
    met: Condition | None
    """None: it matches every call of a tool that it concerns."""
    decision: Decision
    doubtful: Decision
    """The decision if a deny rule cannot tell."""


class _Indexed(msgspec.Struct, frozen=True):
    """The rules about one tool, before caller and arguments are known."""

    tool: ToolMeta
    key: str
    deny: tuple[_Ready, ...]
    ask: tuple[_Ready, ...]
    allow: tuple[_Ready, ...]
    defaults: tuple[_Ready, ...]
    """Rules that are a default, the strictest first."""
    default: Decision
    tainting: tuple[_Ready, ...]
    """Rules, but those that deny or are a default, that say what becomes of untrusted arguments."""
    needs: Needs


class Policy:
    """Every configured rule; immutable.

    `overlays` are what some calls add to them. `taint` is what becomes of a call with untrusted arguments if no rule
    says so; rules of a job may name `groups`. Raises PolicyError if two rules have the same id.
    """

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        overlays: Sequence[Overlay] = (),
        *,
        taint: Taint = "ask",
        groups: Groups = NO_GROUPS,
    ) -> None:
        self.groups: Final = groups
        self._configured: Final = tuple(rules)
        self._taint: Final[Taint] = taint
        self._lists: Final = tuple(each for each in overlays if each.tools is not None)
        check_ids(self._configured)
        self.rules: Final = (*self._configured, *(rule for each in overlays for rule in each.rules))
        fields: dict[str, Any] = {
            "defaults": DEFAULTS_VERSION,
            "rules": [rule.canonical() for rule in self._configured],
        }
        if taint != "ask":
            fields["taint"] = taint
        if overlays:
            fields["overlays"] = [each.key for each in overlays]
        self.text: Final = canonical(fields)
        """Everything it says, in canonical JSON; the overlays by the digests of their own texts."""
        self.hash: Final = sha256(self.text)
        self.overlays: Final = tuple(overlays)
        self._ready: Final = tuple(map(_ready, self.rules))
        self.needs_facts: Final = any(_needs([rule]) != NO_NEEDS for rule in self.rules)
        """Whether a rule asks for more than the call itself."""
        self.restricts_arguments: Final = any(rule.wide and rule.depends for rule in self.rules)
        """Whether a rule denies or asks because of arguments."""
        self.looks_at_time: Final = any(map(_looks_at_time, self.rules))
        """Whether a rule may decide otherwise at another time."""
        self._index: dict[str, _Indexed] = {}
        self._narrowed: dict[tuple[str, ...], Policy] = {}

    @classmethod
    def parse(cls, raw: Iterable[object], *, taint: Taint = "ask", groups: Groups = NO_GROUPS) -> Policy:
        """The policy of a file's `[[policy.rules]]`, `policy.taint` and `[policy.groups]`. Raises PolicyError."""
        return cls(parse_rules(expanded(raw, groups)), taint=taint, groups=groups)

    def under(self, overlays: Sequence[Overlay]) -> Policy:
        """This policy with what overlays add to it, and a hash of its own; the same object for the same overlays."""
        if not overlays:
            return self
        key = tuple([each.key for each in overlays])
        policy = self._narrowed.get(key)
        if policy is None:
            if len(self._narrowed) >= _MAX_NARROWED:
                self._narrowed.clear()
            policy = self._narrowed[key] = Policy(self._configured, overlays, taint=self._taint, groups=self.groups)
        return policy

    def decide(self, query: Query, remembered: Sequence[Remembered] = ()) -> Decision:
        """The decision on a call; never raises. A remembered approval answers a question, it lifts no denial."""
        try:
            decision = self._decide(query)
            if remembered and decision.effect == "ask":
                return next((rule.decision for rule in remembered if rule.answers(query, decision)), decision)
        except Exception as error:  # noqa: BLE001 - a policy that cannot be evaluated must not let anything through
            return _undecided(error)
        return decision

    def tainted(self, query: Query, decision: Decision, paths: Collection[str]) -> Decision:
        """Return the decision on a call whose arguments at these paths come from untrusted text; never raises.

        It only gets stricter. Of all allow and ask rules that match, the strictest `taint` counts. If none has one, an
        allow rule that itself limits these arguments decides them; else `policy.taint` does.
        """
        try:
            stricter = self._tainted(query, paths)
        except Exception as error:  # noqa: BLE001 - as in decide
            return _undecided(error)
        return max(decision, stricter or decision, key=lambda each: EFFECTS.index(each.effect))

    def taints(self, query: Query) -> set[Taint]:
        """Return what rules about a call say becomes of untrusted arguments; never raises."""
        try:
            tool = query.tool
            if tool is None:
                return set()
            tainting = self._indexed(tool, query.key).tainting
            if not tainting:  # as for most tools
                return set()
            return {rule.taint for rule, met, *_ in tainting if rule.taint and (met is None or met(query) is not False)}
        except Exception:  # noqa: BLE001 - in doubt every argument counts
            return {"strict"}

    def is_strict(self, query: Query) -> bool:
        """Return whether every argument of a call counts, not only those that decide what it reaches."""
        return "strict" in (self.taints(query) or {self._taint})

    def forbids(self, tool: ToolMeta, key: str, caller: Caller) -> bool:
        """Say whether every call of the tool by this caller is denied, whatever its arguments: it need not be shown."""
        if not all(each.lists(tool.name, key) for each in self._lists):
            return True
        denying = [ready.rule for ready in self._ready if ready.rule.effect == "deny" and not ready.rule.default]
        rules = [rule for rule in denying if not rule.depends]
        return any(rule.concerns(tool, key) and caller_matcher(rule.callers)(caller) for rule in rules)

    def hides(self, query: Query, other: Query) -> bool:
        """Say whether a rule about arguments stops `other` that said nothing to `query`, which may run; never raises.

        So `query` shows nothing of what someone could not have asked for by itself.
        """
        tool = other.tool
        if tool is None:
            return False
        try:
            indexed = self._indexed(tool, other.key)
            for rule, met, *_ in (*indexed.deny, *indexed.ask):
                if rule.depends and met is not None and met(other) is not False and not rule.matches(query):
                    return True
        except Exception:  # noqa: BLE001 - as in decide: what cannot be evaluated is not shown
            return True
        return False

    def outlook(self, tool: ToolMeta, key: str, caller: Caller) -> Outlook:
        """Give the outlook of a tool's calls by this caller: the same whatever the arguments, or it depends on them."""
        if self.forbids(tool, key, caller):
            return "denied"
        about = [each.rule for each in self._ready if each.rule.concerns(tool, key)]
        matching = [rule for rule in about if caller_matcher(rule.callers)(caller)]
        mine = [rule for rule in matching if not rule.default]
        sure = {rule.effect for rule in mine if not rule.depends}
        open_to = {_OUTLOOKS[rule.effect] for rule in mine if rule.depends}
        if "deny" in {rule.effect for rule in mine if rule.depends and rule.where is not None}:
            open_to.add("asks")
        if "ask" in sure:
            certain: Outlook = "asks"
        elif "allow" in sure:
            certain = "runs"
        else:
            defaults = [rule for rule in matching if rule.default]
            effects = [default_for(tool).effect, *(rule.effect for rule in defaults if not rule.depends)]
            certain = _OUTLOOKS[max(effects, key=EFFECTS.index)]
            open_to |= {_OUTLOOKS[rule.effect] for rule in defaults if rule.depends}
        if "ask" in sure:  # which no allow rule changes
            open_to -= {"runs"}
        return "depends" if open_to - {certain} else certain

    def needs(self, tool: ToolMeta, key: str) -> Needs:
        """Return what the rules about a tool ask for beside a call itself."""
        return self._indexed(tool, key).needs if self.needs_facts else NO_NEEDS

    def _decide(self, query: Query) -> Decision:
        tool = query.tool
        if tool is None:
            return default_for(None)
        indexed = self._indexed(tool, query.key)
        asking: list[_Ready] = []
        for ready in indexed.deny:
            holds = ready.met is None or ready.met(query)
            if holds:
                return ready.decision
            if holds is None:
                asking.append(ready._replace(decision=ready.doubtful))
        if indexed.ask:
            asking += [ready for ready in indexed.ask if ready.met is None or ready.met(query)]
        if asking and any(not ready.rule.added and not ready.decision.doubt for ready in asking):
            return _question(asking, query.caller.principal)
        allowed = _first(indexed.allow, query) if indexed.allow else None
        if allowed is None and indexed.defaults:
            return self._by_default(indexed, query, asking)
        if asking:
            return _question(asking, query.caller.principal)
        return indexed.default if allowed is None else allowed.decision

    def _by_default(self, indexed: _Indexed, query: Query, asking: Sequence[_Ready]) -> Decision:
        """Return what is decided if no rule speaks but those that are a default; never less than the tool's level asks.

        `asking` are doubts, and rules that a job brings along: they make it stricter at most.
        """
        ready_rules = list(asking)
        for ready in indexed.defaults:
            holds = ready.met is None or ready.met(query)
            if holds and ready.rule.effect == "deny":
                return ready.decision
            if holds is not False:
                ready_rules.append(ready if holds else ready._replace(decision=ready.doubtful))
        return _question(ready_rules, query.caller.principal) if ready_rules else indexed.default

    def _tainted(self, query: Query, paths: Collection[str]) -> Decision | None:
        """Return what untrusted arguments lead to by themselves; None: nothing."""
        about = self._about(query)
        rules = [rule for rule in about if rule.taint is not None]
        if rules:
            first = max(rules, key=lambda rule: TAINTS.index(rule.taint or "allow"))
            effect, rule_id = _effect(first.taint or "ask"), f"taint:{first.id}"
        elif any(rule.effect == "allow" and _bounded(rule, query).issuperset(paths) for rule in about):
            return None
        else:
            effect, rule_id = _effect(self._taint), TAINT_ID
        return Decision(effect=effect, rule_id=rule_id, reason=_FROM_OUTSIDE) if effect != "allow" else None

    def _about(self, query: Query) -> list[Rule]:
        """The rules whose `taint` counts for a call."""
        return [rule for rule in self.rules if rule.effect != "deny" and not rule.default and rule.matches(query)]

    def _indexed(self, tool: ToolMeta, key: str) -> _Indexed:
        indexed = self._index.get(tool.name)
        if indexed is not None and indexed.tool is tool and indexed.key == key:
            return indexed
        denied = [_unlisted(each, tool) for each in self._lists if not each.lists(tool.name, key)]
        concerned = [ready for ready in self._ready if ready.rule.concerns(tool, key)]
        about = [ready for ready in concerned if not ready.rule.default]
        defaults = [ready for ready in concerned if ready.rule.default]
        indexed = _Indexed(
            tool=tool,
            key=key,
            deny=(*denied, *(ready for ready in about if ready.rule.effect == "deny")),
            ask=tuple(ready for ready in about if ready.rule.effect == "ask"),
            allow=tuple(ready for ready in about if ready.rule.effect == "allow"),
            defaults=tuple(sorted(defaults, key=lambda ready: -EFFECTS.index(ready.rule.effect))),
            default=default_for(tool),
            tainting=tuple(ready for ready in about if ready.rule.effect != "deny" and ready.rule.taint is not None),
            needs=_needs([ready.rule for ready in concerned]),
        )
        if len(self._index) >= _MAX_INDEXED:
            self._index.clear()
        self._index[tool.name] = indexed
        return indexed


def _first(rules: Sequence[_Ready], query: Query) -> _Ready | None:
    """Return the first rule that matches a call."""
    for ready in rules:
        if ready.met is None or ready.met(query):
            return ready
    return None


def _effect(taint: Taint) -> Effect:
    return "ask" if taint == "strict" else taint


def _undecided(error: Exception) -> Decision:
    reason = f"The policy could not be evaluated ({type(error).__name__}), and then every call is denied."
    return Decision(effect="deny", rule_id=ERROR_ID, reason=reason)


def _ready(rule: Rule) -> _Ready:
    fields: dict[str, Any] = {
        "effect": rule.effect,
        "rule_id": rule.id,
        "reason": rule.reason or f"Rule {rule.id} {_REASONS[rule.effect]}",
    }
    if rule.effect == "ask":
        fields |= {"approvals": rule.approvals, "approvers": rule.approvers, "expires_s": rule.expires_s}
    decision = Decision(**fields)
    doubtful = (
        Decision(effect="ask", rule_id=rule.id, reason=_DOUBTFUL, doubt=True) if rule.effect == "deny" else decision
    )
    return _Ready(rule, rule.condition() if rule.conditional else None, decision, doubtful)


def _needs(rules: Sequence[Rule]) -> Needs:
    paths = [path for rule in rules if rule.where is not None for path in paths_of(rule.where)]
    limits = tuple(_limited(rule, rule.limit) for rule in rules if rule.limit is not None)
    tools = frozenset(path.tool for path in paths if path.tool)
    needs = Needs(any(path.root == "input" for path in paths), tools, limits)
    return NO_NEEDS if needs == NO_NEEDS else needs


def _looks_at_time(rule: Rule) -> bool:
    timed = rule.limit is not None and rule.limit.per != "job"
    return timed or rule.during is not None or rule.outside is not None or "age(" in str(rule.where or "")


def _limited(rule: Rule, limit: Limit) -> Limited:
    bare = structs.replace(rule, limit=None)
    return Limited(rule, limit, bare.condition() if bare.conditional else None)


def _bounded(rule: Rule, query: Query) -> frozenset[str]:
    """The arguments that a rule limits, of a tool's URLs those whose hosts it does."""
    if HOST not in rule.bounded or query.tool is None:
        return rule.bounded
    return rule.bounded.union(places_of(query.tool.input_schema).urls)


def _unlisted(overlay: Overlay, tool: ToolMeta) -> _Ready:
    reason = f"{tool.name} is not among the tools that the {overlay.source} may call."
    return _ready(Rule(number=0, id=f"{overlay.source}:tools", effect="deny", reason=reason))


def _question(asking: Sequence[_Ready], requester: str) -> Decision:
    """Return what all ask rules that match demand together; the strictest of them gives the id and the reason."""
    first = min(asking, key=_strictness)
    approvals = first.rule.approvals
    doubt = any(ready.decision.doubt for ready in asking)
    if len(asking) == 1 and approvals == 1:
        return first.decision
    named = [set(ready.rule.approvers) for ready in asking if ready.rule.approvers]
    approvers = set.intersection(*named) if named else set()
    others = approvers - {requester} if approvals > 1 else approvers
    if named and most_of(others) < approvals:
        ids = ", ".join(ready.rule.id for ready in asking)
        reason = f"Too few people may approve: {approvals} must, and {ids} leave {len(others)}."
        return Decision(effect="deny", rule_id=first.rule.id, reason=reason)
    times = [ready.rule.expires_s for ready in asking if ready.rule.expires_s is not None]
    return structs.replace(
        first.decision, approvers=tuple(sorted(approvers)), expires_s=min(times, default=None), doubt=doubt
    )


def _strictness(ready: _Ready) -> tuple[int, int, float, int]:
    """Sorts ask rules, the strictest first."""
    rule = ready.rule
    expires = float("inf") if rule.expires_s is None else rule.expires_s
    return -rule.approvals, len(rule.approvers) or 1_000_000, expires, rule.number


_REASONS: Final = {
    "allow": "allows this call.",
    "ask": "requires a person to approve this call.",
    "deny": "forbids this call.",
}
_DOUBTFUL: Final = "It is unknown whether a rule forbids this call."
_FROM_OUTSIDE: Final = "An argument that decides what the call reaches comes from untrusted text."
