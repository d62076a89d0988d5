"""A raw table of the policy section, read key by key; an error names the table, the key and a way out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any, TypeVar

from remit.errors import PolicyError
from remit.nearest import did_you_mean

T = TypeVar("T", bound=str)


class Table:
    """A table with known keys. Raises PolicyError on construction where it is no table or holds an unknown key."""

    def __init__(self, raw: object, where: str, keys: Collection[str]) -> None:
        self.where = where
        if not isinstance(raw, Mapping):
            raise PolicyError(f"{where} is not a table but {describe(raw)}")
        self._raw: Mapping[Any, Any] = raw
        for key in raw:
            if key not in keys:
                remedy = closest(key, keys) or f"It may hold: {', '.join(sorted(keys))}."
                raise self.error(str(key), "is not a known key", remedy)

    def error(self, key: str, problem: str, remedy: str = "") -> PolicyError:
        """The error to raise for what `key` holds."""
        return PolicyError(f'{self.where}, key "{key}" {problem}', remedy=remedy)

    def __contains__(self, key: str) -> bool:
        return key in self._raw

    def raw(self, key: str) -> Any:
        """Return what stands under a key, unread; None where nothing does."""
        return self._raw.get(key)

    def text(self, key: str, default: str = "") -> str:
        """A string."""
        value = self._raw.get(key, default)
        if not isinstance(value, str):
            raise self.error(key, f"must be a string, not {describe(value)}")
        return value

    def zone(self) -> str:
        """The time zone under `zone`."""
        name = self.text("zone", "UTC")
        try:
            zone_of(name)
        except (KeyError, ValueError, OSError):
            raise self.error("zone", f"does not know {name!r}", 'Write a name such as "Europe/Berlin".') from None
        return name

    def choice(self, key: str, choices: Sequence[T]) -> T:
        """One of a few strings; required."""
        value = self._raw.get(key)
        for candidate in choices:
            if candidate == value:
                return candidate
        known = f"Use one of: {', '.join(choices)}."
        if key not in self._raw:
            raise self.error(key, "is missing", known)
        raise self.error(key, f"does not know {value!r}", closest(value, choices) or known)

    def texts(self, key: str) -> tuple[str, ...]:
        """A string or a list of different strings, none empty; nothing where the key is absent."""
        if key not in self._raw:
            return ()
        value = self._raw[key]
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise self.error(key, f"must be a string or a list of strings, not {describe(value)}")
        if not items or "" in items:
            raise self.error(key, "names nothing", f'Leave "{key}" out where it should not restrict.')
        return tuple(dict.fromkeys(items))

    def whole(self, key: str, default: int) -> int:
        """An integer of at least 1."""
        value = self._raw.get(key, default)
        if type(value) is not int or value < 1:
            raise self.error(key, f"must be a whole number from 1, not {describe(value)}")
        return value


def closest(word: object, known: Collection[str]) -> str:
    """`Did you mean "x"?` where something known is close, else nothing."""
    return did_you_mean(str(word), known, around='"')


def describe(value: object) -> str:
    """A value for an error message: short, and with its type where that is not obvious."""
    text = repr(value)
    shown = text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004 - one line of a terminal
    return shown if isinstance(value, (str, int, float, bool, list, dict)) else f"{shown} ({type(value).__name__})"


def zone_of(name: str) -> tzinfo:
    """Return a time zone. Raises KeyError, ValueError or OSError for a name of none."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - slow to load, and few rules name a zone

    return ZoneInfo(name)  # which keeps those it has read
