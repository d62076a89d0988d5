"""The policy: every configured rule, and one pure function from a call to a decision.

- deny > ask > allow; where no rule matches, the tool's level decides (`remit.policy.levels`).
- The order of the rules never changes what a caller may do, nor how many people must approve: of several ask rules the
  largest number of approvals, the approvers that all of them accept and the shortest time count. Where that leaves too
  few people, the call is denied.
- Whatever goes wrong while deciding is a deny.
- Rules are indexed per tool when a tool is first seen, so that a decision looks only at those that are about it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

from msgspec import structs

from remit.canonical import digest
from remit.policy.callers import caller_matcher
from remit.policy.decision import EFFECTS, Caller, Decision, Effect, Query
from remit.policy.levels import DEFAULTS_VERSION, default_for
from remit.policy.overlay import Overlay
from remit.policy.remembered import Remembered
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
"""What becomes of a tool's calls; `depends`: on their arguments."""
_OUTLOOKS: Final[dict[Effect, Outlook]] = {"allow": "runs", "ask": "asks", "deny": "denied"}


class _Ready(NamedTuple):
    """A rule made ready to be applied."""

    rule: Rule
    met: Callable[[Query], bool] | None
    """None: it matches every call of a tool that it concerns."""
    decision: Decision


class _Indexed(NamedTuple):
    """What the rules say about one tool, before caller and arguments are known."""

    tool: ToolMeta
    key: str
    deny: tuple[_Ready, ...]
    ask: tuple[_Ready, ...]
    allow: tuple[_Ready, ...]
    default: Decision


class Policy:
    """Every configured rule; immutable."""

    def __init__(self, rules: Iterable[Rule] = (), overlays: Sequence[Overlay] = (), *, taint: Effect = "ask") -> None:
        """The configured rules, and what some calls add to them. Raises PolicyError if two rules have the same id.

        `taint` is what becomes of a call with an argument from untrusted text if no rule says so.
        """
        self._configured: Final = tuple(rules)
        self._taint: Final[Effect] = taint
        self._lists: Final = tuple(each for each in overlays if each.tools is not None)
        check_ids(self._configured)
        self.rules: Final = (*self._configured, *(rule for each in overlays for rule in each.rules))
        said: dict[str, Any] = {"defaults": DEFAULTS_VERSION, "rules": [rule.canonical() for rule in self._configured]}
        if taint != "ask":
            said["taint"] = taint
        self.hash: Final = digest(said | ({"overlays": [each.key for each in overlays]} if overlays else {}))
        self._ready: Final = tuple(map(_ready, self.rules))
        self.restricts_arguments: Final = any(rule.wide and rule.when for rule in self.rules)
        """Whether a rule denies or asks because of arguments."""
        self._index: dict[str, _Indexed] = {}
        self._narrowed: dict[tuple[str, ...], Policy] = {}

    @classmethod
    def parse(cls, raw: Iterable[object], *, taint: Effect = "ask") -> Policy:
        """The policy of a file's `[[policy.rules]]` and its `policy.taint`. Raises PolicyError."""
        return cls(parse_rules(raw), taint=taint)

    def under(self, overlays: Sequence[Overlay]) -> Policy:
        """This policy with what overlays add to it, and a hash of its own; the same object for the same overlays."""
        if not overlays:
            return self
        key = tuple([each.key for each in overlays])
        found = self._narrowed.get(key)
        if found is None:
            if len(self._narrowed) >= _MAX_NARROWED:
                self._narrowed.clear()
            found = self._narrowed[key] = Policy(self._configured, overlays, taint=self._taint)
        return found

    def decide(self, query: Query, remembered: Sequence[Remembered] = ()) -> Decision:
        """The decision on a call; never raises. A remembered approval answers a question, it lifts no denial."""
        try:
            decision = self._decide(query)
            if remembered and decision.effect == "ask":
                return next((one.decision for one in remembered if one.answers(query, decision)), decision)
        except Exception as error:  # noqa: BLE001 - a policy that cannot be evaluated must not let anything through
            return _undecided(error)
        return decision

    def tainted(self, query: Query, decision: Decision, paths: Collection[str]) -> Decision:
        """What becomes of a decision on a call whose arguments at these paths come from untrusted text; never raises.

        It only gets stricter. Of all allow and ask rules that match, the strictest `taint` counts. If none has one, an
        allow rule that itself limits these arguments decides them; else `policy.taint` does.
        """
        try:
            stricter = self._tainted(query, paths)
        except Exception as error:  # noqa: BLE001 - as in decide
            return _undecided(error)
        return max(decision, stricter or decision, key=lambda one: EFFECTS.index(one.effect))

    def forbids(self, tool: ToolMeta, key: str, caller: Caller) -> bool:
        """Whether every call of the tool by this caller is denied, whatever its arguments: it need not be shown."""
        if not all(each.lists(tool.name, key) for each in self._lists):
            return True
        rules = (ready.rule for ready in self._ready if ready.rule.effect == "deny" and not ready.rule.when)
        return any(rule.concerns(tool, key) and caller_matcher(rule.callers)(caller) for rule in rules)

    def hides(self, asked: Query, other: Query) -> bool:
        """Whether a rule about arguments stops `other` that said nothing to `asked`, which may run; never raises.

        So `asked` shows nothing of what someone could not have asked for by itself.
        """
        tool = other.tool
        if tool is None:
            return False
        try:
            indexed = self._indexed(tool, other.key)
            for rule, met, _ in (*indexed.deny, *indexed.ask):
                if rule.when and met is not None and met(other) and not rule.matches(asked):
                    return True
        except Exception:  # noqa: BLE001 - as in decide: what cannot be evaluated is not shown
            return True
        return False

    def outlook(self, tool: ToolMeta, key: str, caller: Caller) -> Outlook:
        """What becomes of calls of a tool by this caller: the same whatever the arguments, or it depends on them."""
        if self.forbids(tool, key, caller):
            return "denied"
        about = [each.rule for each in self._ready if each.rule.concerns(tool, key)]
        mine = [rule for rule in about if caller_matcher(rule.callers)(caller)]
        sure = {rule.effect for rule in mine if not rule.when}
        if "ask" in sure:
            certain: Outlook = "asks"
        elif "allow" in sure:
            certain = "runs"
        else:
            certain = _OUTLOOKS[default_for(tool).effect]
        open_to = {_OUTLOOKS[rule.effect] for rule in mine if rule.when}
        if "ask" in sure:  # which no allow rule changes
            open_to -= {"runs"}
        return "depends" if open_to - {certain} else certain

    def _decide(self, query: Query) -> Decision:
        tool = query.tool
        if tool is None:
            return default_for(None)
        indexed = self._indexed(tool, query.key)
        for _, met, decision in indexed.deny:
            if met is None or met(query):
                return decision
        if indexed.ask:
            asking = [ready for ready in indexed.ask if ready.met is None or ready.met(query)]
            if asking:
                return _question(asking, query.caller.principal)
        for _, met, decision in indexed.allow:
            if met is None or met(query):
                return decision
        return indexed.default

    def _tainted(self, query: Query, paths: Collection[str]) -> Decision | None:
        """What untrusted arguments lead to by themselves; None: nothing."""
        about = [rule for rule in self.rules if rule.effect != "deny" and rule.matches(query)]
        said = [rule for rule in about if rule.taint is not None]
        if said:
            first = max(said, key=lambda rule: EFFECTS.index(rule.taint or "allow"))
            found = Decision(effect=first.taint or "ask", rule_id=f"taint:{first.id}", reason=_FROM_OUTSIDE)
        elif any(rule.effect == "allow" and rule.bounded.issuperset(paths) for rule in about):
            return None
        else:
            found = Decision(effect=self._taint, rule_id=TAINT_ID, reason=_FROM_OUTSIDE)
        return found if found.effect != "allow" else None

    def _indexed(self, tool: ToolMeta, key: str) -> _Indexed:
        indexed = self._index.get(tool.name)
        if indexed is not None and indexed.tool is tool and indexed.key == key:
            return indexed
        denied = [_unlisted(each, tool) for each in self._lists if not each.lists(tool.name, key)]
        about = [ready for ready in self._ready if ready.rule.concerns(tool, key)]
        indexed = _Indexed(
            tool=tool,
            key=key,
            deny=(*denied, *(ready for ready in about if ready.rule.effect == "deny")),
            ask=tuple(ready for ready in about if ready.rule.effect == "ask"),
            allow=tuple(ready for ready in about if ready.rule.effect == "allow"),
            default=default_for(tool),
        )
        if len(self._index) >= _MAX_INDEXED:
            self._index.clear()
        self._index[tool.name] = indexed
        return indexed


def _undecided(error: Exception) -> Decision:
    reason = f"The policy could not be evaluated ({type(error).__name__}), and then every call is denied."
    return Decision(effect="deny", rule_id=ERROR_ID, reason=reason)


def _ready(rule: Rule) -> _Ready:
    said: dict[str, Any] = {"effect": rule.effect, "rule_id": rule.id, "reason": rule.reason or _REASONS[rule.effect]}
    if rule.effect == "ask":
        said |= {"approvals": rule.approvals, "approvers": rule.approvers, "expires_s": rule.expires_s}
    return _Ready(rule, rule.condition() if rule.conditional else None, Decision(**said))


def _unlisted(overlay: Overlay, tool: ToolMeta) -> _Ready:
    reason = f"{tool.name} is not among the tools that the {overlay.source} may call."
    return _ready(Rule(number=0, id=f"{overlay.source}:tools", effect="deny", reason=reason))


def _question(asking: Sequence[_Ready], requester: str) -> Decision:
    """What all ask rules that match demand together; the strictest of them gives the id and the reason."""
    first = min(asking, key=_strictness)
    approvals = first.rule.approvals
    if len(asking) == 1 and approvals == 1:
        return first.decision
    named = [set(ready.rule.approvers) for ready in asking if ready.rule.approvers]
    approvers = set.intersection(*named) if named else set()
    others = approvers - {requester} if approvals > 1 else approvers
    if named and len(others) < approvals:
        ids = ", ".join(ready.rule.id for ready in asking)
        reason = f"Too few people may approve: {approvals} must, and {ids} leave {len(others)}."
        return Decision(effect="deny", rule_id=first.rule.id, reason=reason)
    times = [ready.rule.expires_s for ready in asking if ready.rule.expires_s is not None]
    return structs.replace(first.decision, approvers=tuple(sorted(approvers)), expires_s=min(times, default=None))


def _strictness(ready: _Ready) -> tuple[int, int, float, int]:
    """Sorts ask rules, the strictest first."""
    rule = ready.rule
    expires = float("inf") if rule.expires_s is None else rule.expires_s
    return -rule.approvals, len(rule.approvers) or 1_000_000, expires, rule.number


_REASONS: Final = {
    "allow": "A rule allows this call.",
    "ask": "A rule wants a person to approve this call.",
    "deny": "A rule forbids this call.",
}
_FROM_OUTSIDE: Final = "An argument that decides what the call reaches comes from untrusted text."
