"""Rules of what follows a question that a model gave no reply to: the same model again, another one, or nothing.

A rule names the models that may be asked in the place of another, in their order, and for which faults. Each model of
a chain is asked as the first was: with its own attempts, under its own rules, limits and prices.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import msgspec

from remit.errors import SettingsError, UsageError
from remit.models.faults import FAULTS
from remit.models.names import parse
from remit.nearest import did_you_mean
from remit.settings.section import Count, Texts, converted
from remit.tools.meta import Retry

if TYPE_CHECKING:
    from remit.codes import Code
    from remit.settings.section import Tables

FaultName = Literal[
    "unavailable",
    "busy",
    "quota",
    "overloaded",
    "server",
    "cut",
    "timeout",
    "rejected",
    "context_full",
    "auth",
    "unknown_model",
]
"""Names of faults; `unavailable`: this process cannot ask the model at all, as it lacks its key or package."""
_NAMES: Final = {kind.code: name for name, kind in FAULTS.items()}
_AWAY: Final[tuple[FaultName, ...]] = ("unavailable", "busy", "quota", "overloaded", "server", "cut", "timeout")
_RETRY: Final = Retry(attempts=12, first_delay_ms=500, max_delay_ms=60_000)
_RETRIED: Final = frozenset(name for name, kind in FAULTS.items() if kind.retry != "none")


class Fallback(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule about the models that are asked in the place of others."""

    to: Annotated[Texts, msgspec.Meta(min_length=1, max_length=8)]
    """The models to ask, by name, in their order."""
    models: Texts = ("*",)
    """The models that questions name, by name or glob."""
    recipes: Texts = ("*",)
    """The recipes that ask, by name or glob; `*` holds outside of recipes too."""
    on: tuple[FaultName, ...] = _AWAY
    """The faults for which a model is left."""
    after: Count = 2
    """Attempts that fail before a model is left for a fault that is retried; at once for others."""

    def names(self, model: str, recipe: str) -> bool:
        """Return whether the rule is about a question to a model in a recipe."""
        return any(fnmatchcase(model, pattern) for pattern in self.models) and any(
            fnmatchcase(recipe, pattern) for pattern in self.recipes
        )

    def following(self, named: str, current: str) -> str:
        """Return the model of its chain after the current one; empty: that is the last."""
        chain = [*dict.fromkeys((named, *self.to))]  # each once: it ends
        place = chain.index(current) + 1 if current in chain else 1
        return chain[place] if place < len(chain) else ""


class Next(NamedTuple):
    """The attempt that follows a failed one."""

    again_ms: int
    model: str = ""
    """The model to ask then; empty: the same."""


class Fallbacks:
    """Says what follows a failed attempt: pure, so that every process says the same."""

    def __init__(
        self, rules: Iterable[Fallback] = (), retry: Retry = _RETRY, retried: Iterable[str] = _RETRIED
    ) -> None:
        self._rules = tuple(rules)
        self.retry = retry
        """The number of attempts at each model, and how far apart they are."""
        self._retried = frozenset(retried)

    def after(self, first_choice: str, recipe: str, current: str, code: Code, failed: int) -> Next | None:
        """Return what follows the fault `code` of the model `current`, which failed so often; None: nothing.

        `model` is the one that the question named: its rule holds for the whole chain.
        """
        name = _NAMES.get(code, "")
        retried = name in self._retried if name else code.retryable
        rule = self._rule(first_choice, recipe, name)
        if (
            rule is not None
            and (failed >= rule.after or not retried)
            and (model := rule.following(first_choice, current))
        ):
            return Next(0, model)
        if not retried or failed >= self.retry.attempts:
            return None
        return Next(self.retry.delay_ms(failed))

    def past(self, named: str, recipe: str, current: str) -> str:
        """Return the model to ask where this process cannot ask `current` at all; empty if the chain ends."""
        rule = self._rule(named, recipe, "unavailable")
        return rule.following(named, current) if rule is not None else ""

    def _rule(self, named: str, recipe: str, fault: str) -> Fallback | None:
        rule = next((rule for rule in self._rules if rule.names(named, recipe)), None)
        return rule if rule is not None and fault in rule.on else None


def retried_of(names: Iterable[str]) -> frozenset[str]:
    """Return the names of faults that the settings give. Raise SettingsError for another name."""
    if wrong := next((name for name in names if name not in FAULTS), None):
        remedy = did_you_mean(wrong, FAULTS) or f"Use {', '.join(FAULTS)}."
        raise SettingsError(f"models.retried: {wrong!r} is not a fault", remedy=remedy)
    return frozenset(names)


def fallbacks_of(tables: Tables) -> tuple[Fallback, ...]:
    """Return the rules that tables say. Raise SettingsError."""
    rules = tuple(
        converted(table, Fallback, f"models.fallbacks, rule {number}") for number, table in enumerate(tables, 1)
    )
    for number, rule in enumerate(rules, 1):
        for name in rule.to:
            try:
                parse(name)
            except UsageError as error:
                reason = f"models.fallbacks, rule {number}: {error.message}"
                raise SettingsError(reason, remedy=error.remedy) from error
    return rules
