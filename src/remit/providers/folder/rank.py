"""Which passages answer a question best. Pure.

The index ranks by BM25 over title, path, heading and body. What kind of file a passage is from weighs in as well: a
test repeats the words of what it tests more often than the code that explains itself.
"""

from __future__ import annotations

import re
from typing import Final

from remit.tools.words import compounds, query_words, spaced, stem, words

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
_KINDS: Final = tuple((factor, re.compile(pattern, re.IGNORECASE)) for factor, pattern in _PRIORS)


def expression(query: str) -> str:
    """The question as an FTS5 expression; empty where it has no word. Every word is quoted: none can act as syntax."""
    terms = [*compounds(query), *query_words(query)][:_TERMS_MOST]
    return " OR ".join(f'"{spaced(term).strip()}"' for term in terms)


def prior(path: str) -> float:
    """How likely a file of this path is to explain something, from 0 to 1: tests, examples and data are less so."""
    weight = 1.0
    for factor, kind in _KINDS:
        if kind.search(path):
            weight *= factor
    return weight


def snippet(query: str, passage: str) -> str:
    """The stretch of a passage with most of the question's words, on one line."""
    asked = {stem(word) for word in query_words(query)}
    pieces = passage.split()
    if sum(map(len, pieces)) + len(pieces) <= _SNIPPET:
        return " ".join(pieces)
    matches = [len(asked & {stem(word) for word in words(piece)}) for piece in pieces]
    start = _densest(pieces, matches)
    text = " ".join(pieces[start : _window_end(pieces, start)])[:_SNIPPET]
    return f"… {text} …" if start else f"{text} …"


def _densest(pieces: list[str], matches: list[int]) -> int:
    """Where the window that holds most matches begins; the first of equals."""
    best, best_start = -1, 0
    start = end = length = found = 0
    while end < len(pieces):
        length += len(pieces[end]) + 1
        found += matches[end]
        end += 1
        while length > _SNIPPET and start < end - 1:
            length -= len(pieces[start]) + 1
            found -= matches[start]
            start += 1
        if found > best:
            best, best_start = found, start
    return best_start


def _window_end(pieces: list[str], start: int) -> int:
    length = 0
    for end in range(start, len(pieces)):
        length += len(pieces[end]) + 1
        if length > _SNIPPET + 1:
            return max(end, start + 1)
    return len(pieces)
