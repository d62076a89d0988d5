"""The words of a text, as a search compares them.

English is folded to its stems; scripts written without spaces are cut into pairs of characters, so that a question in
Chinese or Japanese finds what it should.
"""

from __future__ import annotations

from typing import Final

from remit.regex import regex

_WORD: Final = regex(r"[^\W_]+")

STOP: Final = frozenset(
    _WORD.findall(
        """
        a about after all also am an and any are as at be because been before being between both but by can could did
        do does doing during each few for from further get gets got had has have having he her here hers him his how i
        if in into is it its itself just let may me might more most must my no nor not now of off on once only or other
        our out over own s same shall she should so some such t than that the their them then there these they this
        those through to too under until up us use used uses using very was we were what when where which while who
        whom whose why will with work works would you your
        """,
    ),
)
"""English words too frequent to tell one passage from another."""
_ASKING: Final = frozenset(
    _WORD.findall("describe explain find give happen happens list mean means need please show tell want")
)
"""Words of the asking, not of what is asked."""

_NAME: Final = regex(r"\w+")
_SCRIPTS: Final = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_UNSPACED: Final = regex(rf"[{_SCRIPTS}]")
_RUN: Final = regex(rf"[{_SCRIPTS}]+|[^\W_{_SCRIPTS}]+")
_CAMEL: Final = regex(r"([a-z0-9])([A-Z][a-z])")
_DOUBLED: Final = regex(r"([bdfgklmnprtz])\1$")
_VOWEL: Final = regex(r"[aeiouy]")
_ENDINGS: Final = (
    "ation",
    "ating",
    "ated",
    "ator",
    "ate",
    "ing",
    "ion",
    "ive",
    "ied",
    "ie",
    "er",
    "ed",
    "ly",
    "e",
    "y",
)
"""Longest first; the plural's `s` has gone before."""
_SHORTEST: Final = 3


def words(text: str) -> list[str]:
    """Every word of a text, lower-case, in order.

    Names are taken apart (`CancelledError`, `wait_for`); unspaced script becomes its overlapping pairs of characters.
    """
    lower = apart(text).lower()
    if lower.isascii():
        return _WORD.findall(lower)
    tokens: list[str] = []
    for run in _RUN.findall(lower):
        if len(run) > 1 and _UNSPACED.match(run):
            tokens += (run[i : i + 2] for i in range(len(run) - 1))
        else:
            tokens.append(run)
    return tokens


def query_words(query: str) -> list[str]:
    """Give what a question asks about: its words once each without those of the asking, or all if no other is left."""
    tokens = list(dict.fromkeys(words(query)))
    return [word for word in tokens if word not in STOP and word not in _ASKING] or tokens


def compounds(query: str) -> list[str]:
    """The names in a question that `words` takes apart, lower-case and once each, such as `lru_cache`."""
    names = (name for name in _NAME.findall(query) if name.isascii() and len(words(name)) > 1)
    return list(dict.fromkeys(name.lower().strip("_") for name in names))


def spaced(text: str) -> str:
    """The text with unspaced script set apart, character by character, for an index that splits at non-letters."""
    return text if text.isascii() else _UNSPACED.sub(r" \g<0> ", text)


def apart(text: str) -> str:
    """The text with names like `CancelledError` taken apart."""
    # To look first takes a tenth of the time of a substitution that finds nothing, as in most headings.
    return _CAMEL.sub(r"\1 \2", text) if _CAMEL.search(text) else text


def stem(word: str) -> str:
    """A word without its English ending: cancel, cancels, cancelled, cancelling, cancellation meet in one."""
    if len(word) <= _SHORTEST or not word.isascii():
        return word
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in _ENDINGS:
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= _SHORTEST and _VOWEL.search(rest):
            return _DOUBLED.sub(r"\1", rest)
    return _DOUBLED.sub(r"\1", word)
