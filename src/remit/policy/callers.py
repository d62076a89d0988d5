"""The callers that a rule is about: patterns over callers.

| pattern | covers |
|---|---|
| `alice` | the principal, whatever it calls from; a glob, as everywhere here |
| `principal:a:b` | the same, for a principal whose name holds a colon |
| `job:triage` | jobs of the recipe, no matter who started them |
| `job:triage/alice` | those of them that the principal started |
| `plan:triage`, `plan:triage/alice` | the same for jobs that follow a plan, which anyone can name as they like |
| `session:alice` | sessions of the principal; likewise `ticket:`, `http:` and `mcp:` |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from remit.policy.decision import CALLER_KINDS, Caller
from remit.policy.globs import name_matcher
from remit.policy.table import Table, closest

_PRINCIPAL: Final = "principal"
_JOBS: Final = frozenset({"job", "plan"})


def caller_matcher(patterns: Iterable[str]) -> Callable[[Caller], bool]:
    """Return whether one of the patterns covers a caller, as a function; no patterns cover everyone."""
    checks = [_matcher(pattern) for pattern in patterns]
    if len(checks) == 1:
        return checks[0]
    return lambda caller: not checks or any(check(caller) for check in checks)


def _matcher(pattern: str) -> Callable[[Caller], bool]:
    kind, colon, rest = pattern.partition(":")
    if not colon or kind == _PRINCIPAL:
        anywhere = name_matcher(rest if colon else pattern)
        return lambda caller: bool(anywhere(caller.principal))
    recipe, slash, person = rest.partition("/") if kind in _JOBS else ("*", "/", rest)
    started = name_matcher(recipe)
    if not slash:
        return lambda caller: caller.kind == kind and bool(started(caller.recipe))
    asks = name_matcher(person)
    return lambda caller: bool(caller.kind == kind and started(caller.recipe) and asks(caller.principal))


def parse_callers(table: Table) -> tuple[str, ...]:
    """Return what stands under `callers`. Raises PolicyError."""
    callers = table.texts("callers")
    kinds = (*CALLER_KINDS, _PRINCIPAL)
    for pattern in callers:
        kind, colon, rest = pattern.partition(":")
        if colon and kind not in kinds:
            remedy = closest(kind, kinds) or f'Write "principal:{pattern}" for a principal of that name.'
            raise table.error("callers", f"holds {pattern!r}, but {kind!r} is not a kind of caller", remedy)
        if colon and not all(rest.split("/", 1) if kind in _JOBS else [rest]):
            every = f'Write "{kind}:*" for all of them.'
            raise table.error("callers", f"holds {pattern!r}, which names no caller", every)
    return callers
