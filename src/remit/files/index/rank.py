"""Which passages answer a question best. Pure.

The index ranks by BM25 over title, path, heading and body. What kind of file a passage is from weighs in as well: a
test repeats the words of what it tests more often than the code that explains itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from remit.files.words import compounds, query_words, spaced, stem, words
from remit.regex import regex

_TERMS_MOST: Final = 32
_SNIPPET: Final = 240
_PRIORS: Final = (
    (
        0.5,  # tests
        r"(?:^|/)(?:tests?|testing|[^/]*_tests?|test_[^/]*|[^/]*_test\.[^/]*|[^/]*\.(?:test|spec)\.[^/]*)(?:/|$)",
    ),
    (0.7, r"(?:^|/)(?:examples?|samples?|demos?|fixtures?|vendor|third_party|(?:changelog|changes|news)[^/]*)(?:/|$)"),
    (0.6, r"\.(?:csv|tsv|json|jsonl|ndjson|xml|svg|lock|log|pem|po|map|min\.js)$"),  # data
)
_KINDS: Final = tuple((factor, regex(pattern, re.IGNORECASE)) for factor, pattern in _PRIORS)


def expression(query: str) -> str:
    """The question as an FTS5 expression; empty where it has no word. Every word is quoted: none can act as syntax."""
    return any_of([*compounds(query), *query_words(query)])


def any_of(terms: Sequence[str]) -> str:
    """Give an FTS5 expression for texts with any of these words, of which only the first 32 count."""
    return " OR ".join(f'"{spaced(term).strip()}"' for term in terms[:_TERMS_MOST])


def prior(path: str) -> float:
    """Say how likely a file of this path is to explain something, from 0 to 1: tests, examples and data are less so."""
    weight = 1.0
    for factor, kind in _KINDS:
        if kind.search(path):
            weight *= factor
    return weight


def snippet(query: str, passage: str) -> str:
    """The stretch of a passage with most of the question's words, on one line; it begins with one of them."""
    stems = {stem(word) for word in query_words(query)}
    pieces = passage.split()
    matches = [len(stems & {stem(word) for word in words(piece)}) for piece in pieces]
    start, end = _densest(pieces, matches)
    before, after = "… " if start else "", " …" if end < len(pieces) else ""
    return before + " ".join(pieces[start:end])[:_SNIPPET] + after


def _densest(pieces: list[str], matches: list[int]) -> tuple[int, int]:
    """The window with most matches, of those that begin at the start or at a match; the first of equals."""
    best, window = -1, (0, 0)
    end = length = covered = 0
    for start, piece in enumerate(pieces):
        while end < len(pieces) and (end == start or length + len(pieces[end]) <= _SNIPPET):
            length += len(pieces[end]) + 1
            covered += matches[end]
            end += 1
        if covered > best and (matches[start] or start == 0):
            best, window = covered, (start, end)
        length -= len(piece) + 1
        covered -= matches[start]
    return window
