"""Objects of a form that was read strictly before: a pattern is enough to read the next one as strictly.

Most events of a kind have the same members in the same order. The pattern of one matches only texts with these members,
no other and none twice, whose texts hold no escape; anything else is read by the parser.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any, NamedTuple

from remit.evidence.strict_json import read_text, scan

_LEARN_AT = {16, 256, 4096, 65536}
"""So many objects of a key without a pattern, and one is made: that takes as long as to parse hundreds."""
_MAX_FORMS, _MAX_CHARS, _MAX_NESTED = 64, 8192, 16
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_QUOTED = '"%s"'


class _Form(NamedTuple):
    """A form of objects."""

    pattern: re.Pattern[str]
    names: tuple[str, ...]
    scanned: tuple[str, ...]
    """Members whose values are numbers, objects or lists, or the like."""
    refers: bool


class Forms:
    """The forms of the events that were read so far."""

    def __init__(self, wanted: Mapping[str, Container[str]]) -> None:
        """Of the kinds in `wanted`, give only these members if no value lies beside; the others are only checked."""
        self._wanted = wanted
        self._forms: dict[tuple[str, int], _Form] = {}
        """By kind and number of quotation marks."""
        self._unknown: dict[tuple[str, int], int] = {}

    def read(self, kind: str, text: str, quotes: int, where: str) -> tuple[dict[str, Any], bool]:
        """Return the object of an event, and whether it may refer to values beside it. Raise RejectedError.

        `quotes` are the quotation marks in a text without escapes or control characters; negative: it may have some.
        """
        if quotes < 0:
            return read_text(text, where), "\\u" in text or _refers(text)
        key = kind, quotes
        form = self._forms.get(key)
        match = form.pattern.fullmatch(text) if form is not None else None
        if form is not None and match is not None:
            members: dict[str, Any] = dict(zip(form.names, match.groups()))  # noqa: B905 - Python 3.9
            try:
                for name in form.scanned:
                    members[name] = scan(members[name], 0)[0]
            except ValueError:  # a number of too many digits
                return read_text(text, where), form.refers
            return members, form.refers
        members = read_text(text, where)
        self._unknown[key] = seen = self._unknown.get(key, 0) + 1
        if seen in _LEARN_AT and len(self._forms) < _MAX_FORMS and len(text) <= _MAX_CHARS:
            self._learn(key, members, text)
        return members, _refers(text)

    def _learn(self, key: tuple[str, int], members: Any, text: str) -> None:
        if not isinstance(members, dict) or text.count("{") + text.count("[") > _MAX_NESTED:
            return
        refers = _refers(text)
        wanted = members if refers else self._wanted.get(key[0], members)
        names = tuple(name for name in members if name in wanted)
        scanned = tuple(name for name in names if not isinstance(members[name], str))
        groups = [_group(value) if name in names else _pattern(value) for name, value in members.items()]
        body = ",".join([f"{_QUOTED % re.escape(name)}:{group}" for name, group in zip(members, groups)])  # noqa: B905
        pattern = re.compile(f"{{{body}}}")
        if pattern.fullmatch(text):
            self._forms[key] = _Form(pattern, names, scanned, refers)


def _refers(text: str) -> bool:
    return "_blob" in text or "raw_pointer" in text


def _group(value: Any) -> str:
    return '"([^"]*)"' if isinstance(value, str) else f"({_pattern(value)})"


def _pattern(value: Any) -> str:
    """Return a pattern of the JSON values that have the form of one."""
    if isinstance(value, str):
        return '"[^"]*"'
    if isinstance(value, dict):
        return rf"\{{{','.join([f'{_QUOTED % re.escape(name)}:{_pattern(one)}' for name, one in value.items()])}\}}"
    if isinstance(value, list):
        return rf"\[{','.join(map(_pattern, value))}\]"
    return _NUMBER if type(value) in (int, float) else {None: "null", True: "true", False: "false"}[value]
