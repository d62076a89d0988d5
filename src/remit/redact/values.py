"""JSON in a text, taken apart: a secret's value is masked whole, every string is looked at like a text of its own."""

from __future__ import annotations

import re
from itertools import islice
from json import JSONDecoder
from typing import Any, Final

import msgspec

from remit.redact.clues import Clues, names_secret
from remit.redact.names import COUNT, placeholder, without_named
from remit.regex import regex

_DEPTH: Final = 16
"""JSON in a string in JSON … as deep as it is taken apart."""
_FRAGMENT: Final = regex(r"[\[{]")
_FRAGMENTS: Final = 32
"""Places at most where JSON is looked for in a text."""
_WASTE: Final = 65_536
"""Characters at most that are read as JSON in vain, so that hostile text takes no longer than any other."""
_OBJECT: Final = regex(r'[\s\[]{0,64}\{\s{0,64}"|\[\s{0,64}"')
"""Text that begins like JSON so clearly that it is taken for JSON that was cut."""
_FIRST_PLACE: Final = 0xE000
_PLACE: Final = regex("[\ue000-\ue01f]")
"""Characters for private use that stand for JSON while the text around it is looked at."""
_PLAIN_NAME: Final = regex(r"[\w-]{1,64}")
_DECODER: Final = JSONDecoder(strict=False)


def masked(text: str, clues: Clues, mask: str, *, is_json: bool) -> str:
    """The text with `mask` in the place of secrets, given all the clues it holds."""
    masking = _Masking(clues, mask)
    return masking.json(text) if is_json else masking.whole(text, _DEPTH)


class _Masking:
    """Masks one text and everything in it."""

    def __init__(self, clues: Clues, mask: str) -> None:
        self._clues = clues
        self._mask = mask
        self._keys: dict[str, tuple[str, bool]] = {}

    def json(self, text: str) -> str:
        """JSON as a whole, even if it was cut; only here a string is told from a text that begins with a quote."""
        try:
            return msgspec.json.encode(self._value(_decoded(text), _DEPTH)).decode()
        except (ValueError, RecursionError):
            return self.text(text, _DEPTH)

    def text(self, text: str, depth: int) -> str:
        """A text within what is masked."""
        return self.whole(text, depth) if self._clues.within(text) else text

    def whole(self, text: str, depth: int) -> str:
        """A text that holds clues."""
        text, fragments = self._without_json(text, depth) if depth else (text, [])
        text = without_named(text, self._clues.names, self._mask)
        for shape in self._clues.shapes:
            text = shape.without(text, self._mask)
        return _PLACE.sub(lambda match: fragments[ord(match[0]) - _FIRST_PLACE], text) if fragments else text

    def _without_json(self, text: str, depth: int) -> tuple[str, list[str]]:
        """The text with a place instead of each JSON value in it, and those values, masked."""
        text = text if text.isascii() else _PLACE.sub("?", text)
        parts: list[str] = []
        fragments: list[str] = []
        done = wasted = 0
        for match in islice(_FRAGMENT.finditer(text), _FRAGMENTS):
            start = match.start()
            if start < done or wasted > _WASTE:
                continue
            try:
                value, end, whole = _parsed(text, start)
                safe = self._value(value, depth - 1)
                shown = text[start:end] if whole and safe == value else msgspec.json.encode(safe).decode()
            except (ValueError, RecursionError) as error:  # it only begins like JSON
                wasted += getattr(error, "pos", len(text)) - start
                continue
            parts += text[done:start], chr(_FIRST_PLACE + len(fragments))
            fragments.append(shown)
            done = end
        return "".join((*parts, text[done:])), fragments

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value, depth)
        if isinstance(value, dict):
            return self._object(value, depth)
        if isinstance(value, list):
            return [
                self._mask if self._led(value, index) else self._value(item, depth) for index, item in enumerate(value)
            ]
        return value

    def _object(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        if "value" in value and self._key(str(value.get("name", value.get("key", ""))), depth)[1]:
            value = {**value, "value": self._mask}
        shown = {}
        for key, item in value.items():
            name, named = self._key(key, depth)
            shown[name] = self._mask if named and _secret(key, item) else self._value(item, depth)
        return shown

    def _key(self, name: str, depth: int) -> tuple[str, bool]:
        """Return a member's name as it is shown, and whether it says that its value is a secret."""
        known = self._keys.get(name)
        if known is None:
            known = self._keys[name] = self.text(name, depth), names_secret(name, self._clues.names)
        return known

    def _led(self, items: list[Any], index: int) -> bool:
        """Say whether the item before names this one: ["Authorization", "…"], or an option like ["--password", "…"]."""
        before = items[index - 1] if index else None
        if not isinstance(before, str) or not _PLAIN_NAME.fullmatch(before):
            return False
        return (before.startswith("-") or len(items) == 2) and names_secret(before, self._clues.names)  # noqa: PLR2004 - a pair


def _secret(name: str, value: object) -> bool:
    """Return whether a value could be the secret that its name speaks of."""
    if value is None or isinstance(value, bool) or (isinstance(value, int | float) and COUNT.search(name)):
        return False
    return not (isinstance(value, str) and placeholder(value))


def _decoded(text: str) -> Any:
    """The value of JSON that may have been cut. Raises ValueError or RecursionError."""
    try:
        return _DECODER.decode(text)
    except ValueError:
        return _DECODER.decode(_closed(text))


def _parsed(text: str, start: int) -> tuple[Any, int, bool]:
    """The JSON value that begins at `start`, even if it was cut, its end, and whether it is whole.

    Raises ValueError or RecursionError if there is none.
    """
    try:
        return *_DECODER.raw_decode(text, start), True
    except ValueError:
        if not _OBJECT.match(text, start):
            raise
        if len(text) - start > _WASTE:  # so long that it is only looked at as text
            raise
    return _DECODER.raw_decode(_closed(text[start:]))[0], len(text), False


_MARK: Final = regex(r'"(?:[^"\\]|\\.)*+"|[\[\]{},:"]', re.DOTALL)
_CUT_ESCAPE: Final = regex(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?\Z")
_CLOSES: Final = {"[": "]", "{": "}"}


def _closed(text: str) -> str:
    """A JSON text that was cut, closed; a last member that is not whole is dropped, unless it is a string."""
    closers, end, until, before = "", 0, "", ""
    for match in _MARK.finditer(text):
        mark = match[0]
        if mark == '"':  # a string without an end
            if before in {"{", ","} and closers.startswith("}"):
                break  # a name
            return _CUT_ESCAPE.sub(r"\1", text) + '"' + closers
        if mark in _CLOSES:
            closers = _CLOSES[mark] + closers
            end, until = match.end(), closers
        elif mark in {"]", "}"}:
            closers = closers[1:]
            end, until = match.end(), closers
        elif mark == ",":
            end, until = match.start(), closers
        before = mark
    return text[:end] + until
