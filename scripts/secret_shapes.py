"""Writes `src/remit/redact/shapes.txt`, the shapes of tokens, from the rules of gitleaks.

    python scripts/secret_shapes.py gitleaks.toml > src/remit/redact/shapes.txt

Of a rule only facts are taken: the fixed text that its tokens begin with, the characters that follow, and how many at
least. A rule without such a beginning, such as "32 characters behind the word asana", is left out and named on stderr.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]  # the parser of `re` has no public name
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final

_HEADER: Final = """\
# Shapes of tokens, one a line: a name, the text that such a token begins with, the characters that follow it (as in the
# brackets of a regular expression), and how many of them there are at least.
# Made by scripts/secret_shapes.py of the rules of gitleaks, https://github.com/gitleaks/gitleaks,
# copyright (c) 2019 Zachary Rice, MIT licence. Do not edit: our own shapes stand in own_shapes.txt.
"""
_ASCII: Final = frozenset(map(chr, range(33, 127)))
_CLASSES: Final = {
    op.CATEGORY_WORD: frozenset(char for char in _ASCII if char.isalnum() or char == "_"),
    op.CATEGORY_DIGIT: frozenset("0123456789"),
}
_BODY: Final = frozenset(char for char in _ASCII if char.isalnum() or char in "_.~+/=-")
_LEAST_HEAD: Final = 3
_LEAST: Final = 16
"""Characters of a token with its head: shorter ones are words too often."""
_FEW: Final = 5
"""Characters at one place of a token that still belong to its beginning, such as p, o, u, s and r of `gh?_`."""
_NAMED: Final = re.compile(r"(?:\[\\w\.-\]\{0,50\}\?|\(\?i\)\[\\w).*?\{0,5\}(?=\()")
"""What leads to the token of a rule that wants its service's name before it."""
_END: Final = re.compile(r"""\(\?:\[\\x60'"\\s;\]\|\\\\\[nr\]\|\$(?:\|\\b)?\)""")
_PUBLIC: Final = re.compile(r"-pub(?:lic)?-|-client-id")


def rows(rules: list[dict[str, Any]]) -> Iterator[str]:
    """Give a line for each beginning of each rule that has one."""
    for rule in rules:
        lines = list(_rows(rule))
        if not lines:
            sys.stderr.write(f"left out: {rule['id']}\n")
        yield from lines


def _rows(rule: dict[str, Any]) -> Iterator[str]:
    source = _python(rule.get("regex", ""))
    if not source or _PUBLIC.search(rule["id"]):
        return
    icase = "(?i" in rule["regex"]
    leasts: dict[tuple[str, str], int] = {}
    for items in _branches(list(_parser.parse(source))):
        head, body = _split(items)
        chars = {other for char in _chars(body) for other in ((char, char.swapcase()) if icase else (char,))}
        least = _least(body)
        if len(head) >= _LEAST_HEAD and chars and chars <= _BODY and len(head) + least >= _LEAST:
            key = head, _written(chars)
            leasts[key] = min(least, leasts.get(key, least))
    yield from (f"{rule['id']} {head} {chars} {least}" for (head, chars), least in leasts.items())


def _python(source: str) -> str:
    """Return the rule as Python reads it, without flags, and without what leads to a token and what ends one."""
    source = _END.sub("", _NAMED.sub("", source))
    source = re.sub(r"\(\?-?i\)", "", source)
    return source.replace("(?-i:", "(?:").replace("(?i:", "(?:").replace("[:alnum:]", "a-zA-Z0-9").replace(r"\z", r"\Z")


def _branches(items: list[Any]) -> Iterator[list[Any]]:
    """Give each way through the groups and alternatives at the beginning, up to what is repeated."""
    for place, (code, value) in enumerate(items):
        before, after = items[:place], items[place + 1 :]
        if code is op.SUBPATTERN:
            yield from _branches([*before, *value[3], *after])
            return
        if code is op.BRANCH:
            for branch in value[1]:
                yield from _branches([*before, *branch, *after])
            return
        if code is op.IN and len(_chars([(code, value)])) <= _FEW:
            for char in sorted(_chars([(code, value)])):
                yield from _branches([*before, (op.LITERAL, ord(char)), *after])
            return
        if code not in {op.LITERAL, op.AT}:
            break
    yield items


def _split(items: list[Any]) -> tuple[str, list[Any]]:
    """Return the literal beginning, and what follows."""
    items = [(code, value) for code, value in items if code is not op.AT]
    end = next((place for place, (code, _) in enumerate(items) if code is not op.LITERAL), len(items))
    return "".join(chr(value) for _, value in items[:end]), items[end:]


def _chars(items: list[Any]) -> set[str]:
    """Return all characters that may stand there."""
    chars: set[str] = set()
    for code, value in items:
        if code is op.LITERAL:
            chars.add(chr(value))
        elif code is op.RANGE:
            chars.update(map(chr, range(value[0], value[1] + 1)))
        elif code is op.CATEGORY:
            chars.update(_CLASSES.get(value, _ASCII))
        elif code is op.IN:
            chars |= _chars(value)
        elif code in {op.MAX_REPEAT, op.MIN_REPEAT}:
            chars |= _chars(list(value[2]))
        elif code is op.SUBPATTERN:
            chars |= _chars(list(value[3]))
        elif code is op.BRANCH:
            chars.update(*(_chars(list(branch)) for branch in value[1]))
    return chars


def _least(items: list[Any]) -> int:
    """Return how many characters stand there at least."""
    least = 0
    for code, value in items:
        if code in {op.LITERAL, op.IN}:
            least += 1
        elif code in {op.MAX_REPEAT, op.MIN_REPEAT}:
            least += value[0] * _least(list(value[2]))
        elif code is op.SUBPATTERN:
            least += _least(list(value[3]))
        elif code is op.BRANCH:
            least += min(_least(list(branch)) for branch in value[1])
    return least


def _written(chars: set[str]) -> str:
    """Return the characters as a class of regular expressions has them."""
    ranges = [("A", "Z"), ("a", "z"), ("0", "9"), ("A", "F"), ("a", "f")]
    text, rest = "", set(chars)
    for first, last in ranges:
        span = set(map(chr, range(ord(first), ord(last) + 1)))
        if span <= rest:
            text += f"{first}-{last}"
            rest -= span
    return text + "".join(sorted(rest - {"-"})) + ("-" if "-" in rest else "")


if __name__ == "__main__":
    sys.stdout.write(_HEADER + "\n".join(rows(tomllib.loads(Path(sys.argv[1]).read_text("utf-8"))["rules"])) + "\n")
