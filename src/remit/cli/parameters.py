"""The words after `remit run NAME`: options that are not ours but the recipe's parameters, or a plan's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.codes import Code
from remit.errors import UsageError
from remit.nearest import nearest

if TYPE_CHECKING:
    from remit.jobs.plans.plan import Plan
    from remit.service.recipes import RecipeView

_TRUTH: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Kind(msgspec.Struct, frozen=True):
    """How the text of an option becomes a value; else it is JSON, or a text where it is none."""

    text: bool = False
    """Takes the text as it is."""
    flag: bool = False
    """Yes or no; may stand without a value."""
    many: bool = False
    """May be given several times, or once as a JSON list."""


def recipe_input(recipe: RecipeView, words: Sequence[str]) -> dict[str, Any]:
    """Return what options give a recipe, by parameter. Raises UsageError, which lists its parameters."""
    kinds = {
        parameter.name: Kind(text=parameter.text, flag=parameter.flag, many=parameter.many)
        for parameter in recipe.parameters
    }
    shown = ", ".join(parameter.shown for parameter in recipe.parameters)
    return _Reader(recipe.name, kinds, f"Its parameters are: {shown or 'none'}.").read(words)


def plan_input(plan: Plan, words: Sequence[str]) -> dict[str, Any]:
    """Return what options give a plan, by input. Raises UsageError, which lists its inputs."""
    kinds = {
        name: Kind(text=declared.type == "string", flag=declared.type == "boolean", many=declared.type == "array")
        for name, declared in plan.inputs.items()
    }
    shown = ", ".join(f"{name} ({declared.type})" for name, declared in plan.inputs.items())
    return _Reader(plan.name, kinds, f"Its inputs are: {shown or 'none'}.").read(words)


class _Reader:
    """Reads the options of one recipe or plan."""

    def __init__(self, owner: str, kinds: Mapping[str, Kind], remedy: str) -> None:
        self.owner = owner
        self.kinds = kinds
        self.remedy = remedy
        self.values: dict[str, Any] = {}

    def read(self, words: Sequence[str]) -> dict[str, Any]:
        """Every option's value."""
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if not word.startswith("--") or word == "--":
                short = word.startswith("-") and word != "--"
                before = (
                    f"Options of every command stand before it: remit {word} …. " if short else "Write --name value. "
                )
                raise self._wrong(f"{word!r} belongs to no option", before)
            option, separator, text = word[2:].partition("=")
            name, negated = self._named(option)
            if not separator:
                text = self._next(option, self.kinds[name], rest, negated=negated)
            self._put(option, name, text)
        return self.values

    def _named(self, option: str) -> tuple[str, bool]:
        """The parameter that an option names, and whether it says no to it."""
        name = option.replace("-", "_")
        for known in (option, name):
            if known in self.kinds:
                return known, False
        positive = name.removeprefix("no_")
        if positive != name and self.kinds.get(positive, Kind()).flag:
            return positive, True
        hint = "".join(f"Did you mean --{close}? " for close in nearest(name, self.kinds))
        raise self._wrong(f"there is no option --{option}", hint)

    def _next(self, option: str, kind: Kind, rest: list[str], *, negated: bool) -> str:
        """The value that follows, or the one that an option stands for by itself."""
        if negated:
            return "false"
        if kind.flag and (not rest or rest[0].lower() not in _TRUTH):
            return "true"
        if not rest:
            raise self._wrong(f"--{option} needs a value")
        return rest.pop(0)

    def _put(self, option: str, name: str, text: str) -> None:
        kind = self.kinds[name]
        value = _value(text, kind)
        if kind.many and not isinstance(value, list):
            self.values[name] = [*self.values.get(name, []), value]
        elif name in self.values:
            raise self._wrong(f"--{option} is given twice", "Give it once. ")
        else:
            self.values[name] = value

    def _wrong(self, what: str, remedy: str = "") -> UsageError:
        return UsageError(f"{self.owner}: {what}", code=Code.INVALID_INPUT, remedy=remedy + self.remedy)


def _value(text: str, kind: Kind) -> Any:
    if kind.flag and text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    if kind.text and not (kind.many and text.lstrip().startswith("[")):
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text  # a date, a word of an enumeration, or wrong: binding the input says which
