"""Names of secrets in any text, and the values they lead to: code, headers, options, query strings, pieces of JSON.

A piece of JSON may stand in a string that stands in a string; each level doubles the backslashes and adds one before a
quote, by which a string's own end is told from quotes within it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from remit.redact.clues import lower
from remit.regex import regex

COUNT: Final = regex(r"tokens|token_?(?:count|limit|budget|usage)", re.IGNORECASE)
"""Names whose numbers are no secrets."""
_LINES: Final = {"authorization", "cookie", "passphrase"}
"""Words whose value is all that follows on the line."""

_QUOTE: Final = r"(?:\\*+[\"'])"
_PLAIN: Final = r"(?:[^\"'\\\n]|\\++[^\"'\\\n])"
_QUOTED_REST: Final = regex(
    # What follows the word within a quoted name (also quotes that end nothing), its end, what leads to the value.
    rf"{_PLAIN}{{0,200}}+(?:{_QUOTE}(?!\s{{0,8}}[:=,\]}}]){_PLAIN}{{0,64}}+){{0,8}}{_QUOTE}\s{{0,8}}"
    rf"(?:,\s{{0,8}}{_QUOTE}value{_QUOTE}\s{{0,8}})?[:=]\s{{0,8}}"
)
_BARE_REST: Final = regex(
    "[\\w.\\[\\]\ue000-\ue01f-]{0,64}"  # also what stands for JSON, such as an index
    r"(?P<entity>%2[27]|&quot;|&#3[49];)?\s{0,8}(?:=>|[:=]|%3[AD])[^\S\r\n]{0,8}"
)
_OPTION: Final = regex(r"(?:(?<![\w-])|(?<=\\[nrt]))--?[\w.-]{0,64}\Z")
_OPTION_REST: Final = regex(rf"[\w.-]{{0,64}}(?:{_QUOTE}\s{{0,8}},\s{{0,8}}|\s{{1,8}})")

_OPEN: Final = regex(r"[bfru]{0,2}(?P<slashes>\\*+)(?P<quote>[\"'])", re.IGNORECASE)
_RUN: Final = regex(r"(?<!\\)(?P<slashes>\\*+)(?P<quote>[\"'])")
_BRACKET: Final = regex(r"[\[{(\]})]|(?<!\\)(?P<slashes>\\*+)(?P<quote>[\"'])")
_LITERAL: Final = regex(r"(?:null|none|true|false)\b", re.IGNORECASE)
_NUMBER: Final = regex(r"-?\d[\d.,_]*(?![\w-])")
_WORD: Final = regex(r"[^\s\"'\\]*")
_JSON_WORD: Final = regex(r"[^\s\"'\\,}\]]*")
_LINE: Final = regex(r"(?:[^\\\r\n`]|\\++[^\\rn])*")
_ESCAPED: Final = regex(
    r"(?<!\\)(?P<slashes>\\++)u00"
    r"(?:(?P<quote>2[27])|(?P<char>2[dD]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aA]))"
)
_COMMON: Final = (
    r"(?:ago|all|and?|are|as|at|be|been|but|by|can|cannot|could|did|do|does|for|from|had|has|have|how|if|in|into|is|its?|"
    r"may|might|must|no|not|of|only?|or|should|so|than|that|the|their|then|there|they|this|to|until|was|were|what|when|"
    r"where|which|who|why|will|with|would|you|your|a)\b"
)
"""Words that make a sentence of those around them."""
_SENTENCE: Final = regex(
    rf"[^\W\d_]{{1,20}},? (?:(?:[^\W\d_]{{1,20}}|\d{{1,4}}),? ){{0,3}}{_COMMON}(?![=:(-])"
    rf"|{_COMMON},? [^\W\d_]{{1,20}}\b",
    re.IGNORECASE,
)
_PLACEHOLDER: Final = regex(
    r"(?:(?i:bearer|basic|token)\s)?(?:\$\{[^{}\s]{0,200}\}|\$\w{1,100}|<[^<>\s]{1,100}>|\{\{[^{}]{0,200}\}\}|…|\.{3}"
    r"|(?:TOKEN|PASSWORD|SECRET|KEY|VALUE|NAME|VARIABLE|INTEGER|TEXT|STRING|FILE)|[A-Z]{2,16}(?:_[A-Z]{2,16}){1,5})"
    r"(?![\w+/=.$<{-])"
)
"""Stand-ins for a value: the name of a variable, an omission."""
_ADDRESS: Final = regex(r"https?://[^\s?@#\"']+(?![^\s\"']*[?@#])")
_FAR: Final = 1_024
"""Characters at most from a name to what separates it from its value."""


def placeholder(text: str) -> bool:
    """Return whether a value only stands for one, such as `${TOKEN}`."""
    match = _PLACEHOLDER.match(text)
    return match is not None and match.end() == len(text)


def without_named(text: str, names: Iterable[str], mask: str) -> str:
    """The text with `mask` in the place of the values that these parts of names, in lower case, lead to."""
    if "u00" in text:
        text = _ESCAPED.sub(_unescaped, text)
    separators = tuple([separator for separator in (":", "=", "%3") if separator in text])
    parts: list[str] = []
    done = 0
    for begin, end in _places(text, names):
        if begin >= done:
            far = end + _FAR
            separated = any(text.find(separator, end, far) >= 0 for separator in separators)
            start, stop = _value(text, begin, end, separated=separated)
            if stop > start:
                parts += text[done:start], mask
                done = stop
    return "".join((*parts, text[done:]))


def _places(text: str, names: Iterable[str]) -> list[tuple[int, int]]:
    """Return where the parts of names stand, in order."""
    lowered = lower(text)
    places_found = []
    for name in names:
        at = lowered.find(name)
        while at >= 0:
            places_found.append((at, at + len(name)))
            at = lowered.find(name, at + len(name))
    return sorted(places_found)


def _unescaped(match: re.Match[str]) -> str:
    """A letter for what stands for it; a quote as JSON writes it within a string."""
    if match["char"]:
        return chr(int(match["char"], 16))
    return "\\" * _before_quote(len(match["slashes"])) + chr(int(match["quote"], 16))


def _before_quote(slashes: int) -> int:
    """Return how many backslashes a quote has where its code has so many."""
    return slashes if slashes % 2 else 2 * _before_quote(slashes // 2) + 1


def _value(text: str, begin: int, end: int, *, separated: bool) -> tuple[int, int]:
    """Say where the value lies that a word within a name leads to; empty if the word leads to none, or to no secret.

    Only where a separator follows does more than an option lead to one.
    """
    quoted = _QUOTED_REST.match(text, end) if separated else None
    bare = _BARE_REST.match(text, end) if separated and not quoted else None
    rest = quoted or bare or _option(text, begin, end)
    if rest is None:
        return end, end
    start = rest.end()
    opened = _OPEN.match(text, start)
    if (
        _LITERAL.match(text, start)
        or (_NUMBER.match(text, start) and COUNT.match(text, begin))
        or _PLACEHOLDER.match(text, opened.end() if opened else start)
        or _ADDRESS.match(text, start)
        or (rest[0].endswith(" ") and not rest[0].rstrip().endswith("=") and _SENTENCE.match(text, start))
    ):
        return start, start
    if opened is not None:
        return start, _string_end(text, opened.end(), opened)
    if text[start : start + 1] in {"[", "{", "("}:
        return start, _container_end(text, start)
    pattern = _JSON_WORD if quoted else _WORD
    if bare and (bare["entity"] or text[begin:end].lower() in _LINES):
        pattern = _LINE
    match = pattern.match(text, start)
    return start, match.end() if match else start


def _option(text: str, begin: int, end: int) -> re.Match[str] | None:
    """Return what leads from an option, such as `--api-key`, to its value."""
    near = max(0, begin - 66)
    if text.find("-", near, begin) < 0 or not _OPTION.search(text, near, begin):
        return None
    return _OPTION_REST.match(text, end)


def _string_end(text: str, start: int, opened: re.Match[str]) -> int:
    """Behind the quote that ends a string; the end of the text where it was cut."""
    quote, slashes = opened["quote"], len(opened["slashes"])
    level = (slashes + 1).bit_length() - 1
    for run in _RUN.finditer(text, start):
        # JSON does not escape a single quote, so its level is unknown: one with more backslashes counts as inside.
        ends = len(run["slashes"]) <= slashes if quote == "'" else _ends(len(run["slashes"]), level)
        if run["quote"] == quote and ends:
            return run.end()
    return len(text)


def _ends(slashes: int, level: int) -> bool:
    """Return whether a quote behind so many backslashes ends a string within `level` other strings, or one of those."""
    for _ in range(level):
        if slashes % 2 == 0:
            return True
        slashes //= 2
    return slashes % 2 == 0


def _container_end(text: str, start: int) -> int:
    """Behind the bracket that closes the one at `start`, not counting those in strings; or the end of the text."""
    depth, at = 0, start
    while match := _BRACKET.search(text, at):
        at = match.end()
        if match["quote"]:
            at = _string_end(text, at, match)
        elif match[0] in "[{(":
            depth += 1
        else:
            depth -= 1
            if depth <= 0:
                return at
    return len(text)
