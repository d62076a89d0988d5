"""The sentences of a passage, with their exact places. Pure.

In prose a sentence is what ends with a full stop, or a paragraph without one. In source code it is a sentence of a
docstring or a comment; a line of code counts as one too, marked as such, for passages without an explanation.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from remit.files.words import STOP, words

_LONGEST: Final = 700
_SHORTEST: Final = 20
_WORDS_FEWEST: Final = 4

_TRIPLE: Final = re.compile(r"[rRbBuUfF]{0,2}\"\"\"|[rRbBuUfF]{0,2}'''")
_COMMENT: Final = re.compile(r"[ \t]*(?P<leader>#+[:!|]?|//+[/!]?|--+|;+|/\*+!?|\*+/?|<!--)(?=\s|\Z)[ \t]*")
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+•]|\(?(?:\d{1,3}|[a-z])[.)])[ \t]+(?=\S)")
_HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]")
_RULE: Final = re.compile(r"[ \t]*(?=\S)[=\-~^\"'`+*#_.|: ]{3,}[ \t\r]*\Z")
_ENDS: Final = re.compile(
    r"[.!?]++[\"'\u201d\u2019)\]`*_]*(?=\s+[\"'\u201c\u2018(\[`*_]*[A-Z0-9_])"
    r"|[\u3002\uff01\uff1f]+[\u201d\u2019\u300d\u300f\uff09]*"
)
_ABBREVIATED: Final = re.compile(
    r"(?:\b(?:e\.?g|i\.?e|etc|vs|cf|al|approx|resp|incl|esp|nr|fig|sec|dr|mr|mrs|ms|prof|st|jr|sr|inc|ltd|u\.s|p|pp)"
    r"|\b[A-Za-z])\.\Z",
    re.IGNORECASE,
)
_ROW: Final = re.compile(r"[ \t]*\|[ \t]*(?=\S)")
_SIGNS: Final = re.compile(r"[()\[\]{}=<>;:_|\\/+*%@$&#\"]")
_SIGNS_USUAL: Final = 0.2
"""Signs per word that prose about code has, with its names and parentheses."""
_SIGNS_COST: Final = 1.6
_CODE_LINE: Final = re.compile(
    r"[ \t]*+(?:(?:if|for|while|with|return|raise|import|from|def|class|else|elif|try|except|assert|const|let|var)\b"
    r"[^\n]*[(:;{=]"
    r"|[\w.\[\]]++(?:[ \t]*[-+*/|&]?=[ \t]|\([^\n]*\)[ \t]*$)"
    r"|[^\n]*[;{}][ \t]*$)"
)
_SMALL: Final = STOP.difference(words("all and any as do for from if in is not on or out this where while with"))
"""Function words that no programming language has as keywords."""
_SMALL_WORTH: Final = 4.0
"""One function word in four is all that natural language needs."""
_UNKNOWN_LANGUAGE: Final = 0.8


class Sentence(NamedTuple):
    """A sentence and where it stands."""

    start: int
    end: int
    text: str
    """Exactly `passage[start:end]`."""
    plain: str
    """The same on one line, without the marks that comment lines begin with."""
    prose: float
    """The degree to which it reads like natural language rather than code, from 0 to 1."""
    first: bool
    """Whether it opens its paragraph."""


class _Span(NamedTuple):
    start: int
    end: int


_Paragraph = list[_Span]
"""The lines of a paragraph without indentation and comment marks."""


def sentences(passage: str, *, prose: bool) -> list[Sentence]:
    """The sentences of a passage, in order; `prose` is False for source code."""
    found: list[Sentence] = []
    if prose:
        for paragraph in _paragraphs(passage, _Span(0, len(passage))):
            found += _split(passage, paragraph, 1.0)
        return found
    for span, inside in _segments(passage):
        if inside:
            for paragraph in _paragraphs(passage, span):
                found += _split(passage, paragraph, 1.0)
        else:
            found += _from_code(passage, span)
    return found


def _segments(passage: str) -> Iterator[tuple[_Span, bool]]:
    """The stretches between triple quotes, and whether each is inside a docstring.

    A passage may begin inside one: of the two ways to read it, the one under which what is inside reads more like
    natural language is taken.
    """
    spans: list[_Span] = []
    start = 0
    for quote in _TRIPLE.finditer(passage):
        spans.append(_Span(start, quote.start()))
        start = quote.end()
    spans.append(_Span(start, len(passage)))
    likeness = [_segment_likeness(passage[span.start : span.end]) for span in spans]
    begins_inside = _mean(likeness[0::2]) > max(_mean(likeness[1::2]), 0.5 if len(spans) == 1 else 0.0)
    for index, span in enumerate(spans):
        yield span, (index % 2 == 0) == begins_inside


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _segment_likeness(text: str) -> float:
    """Return how far a stretch of several lines reads like natural language, its comments and empty lines aside."""
    lines = [line for line in text.split("\n") if line.strip() and not _COMMENT.match(line)]
    code = sum(1 for line in lines if _CODE_LINE.match(line))
    return _likeness("\n".join(lines)) * (1 - code / len(lines)) if lines else 0.0


def _likeness(text: str) -> float:
    """Return how far a text reads like natural language: it has function words, and few signs of code."""
    found = words(text)
    if not found:
        return 0.0
    signs = sum(1 for _ in _SIGNS.finditer(text)) / len(found)
    tidy = max(0.0, min(1.0, 1 - _SIGNS_COST * (signs - _SIGNS_USUAL)))
    if not text.isascii() and not _SMALL.intersection(found):
        return tidy * _UNKNOWN_LANGUAGE  # its function words are not known here
    return tidy * min(1.0, _SMALL_WORTH * sum(word in _SMALL for word in found) / len(found))


def _paragraphs(passage: str, within: _Span) -> Iterator[_Paragraph]:
    """Runs of lines that belong together: empty lines, headings, rules, list items and table rows part them."""
    paragraph: _Paragraph = []
    for line in _lines(passage, within):
        text = passage[line.start : line.end]
        rule = bool(_RULE.match(text))
        starts = _ITEM.match(text) or _ROW.match(text)
        if rule and len(paragraph) == 1:
            paragraph = []  # it was the heading above its rule
        if (starts or rule or not text.strip() or _HEADING.match(text)) and paragraph:
            yield paragraph
            paragraph = []
        if text.strip() and not rule and not _HEADING.match(text):
            paragraph.append(_trimmed(passage, line, starts.end() if starts else 0))
    if paragraph:
        yield paragraph


def _lines(passage: str, within: _Span) -> Iterator[_Span]:
    """Every line, the empty ones too."""
    start = within.start
    while start < within.end:
        end = passage.find("\n", start, within.end)
        end = within.end if end < 0 else end
        yield _Span(start, end)
        start = end + 1


def _trimmed(passage: str, line: _Span, lead: int) -> _Span:
    text = passage[line.start + lead : line.end]
    start = line.start + lead + len(text) - len(text.lstrip())
    return _Span(start, start + len(text.strip()))


def _from_code(passage: str, within: _Span) -> Iterator[Sentence]:
    """Sentences of comments, and lines of code as they are."""
    comment: _Paragraph = []
    for line in _lines(passage, within):
        text = passage[line.start : line.end]
        leader = _COMMENT.match(text)
        if leader and leader.end() < len(text.rstrip()):
            comment.append(_trimmed(passage, line, leader.end()))
            continue
        yield from _split(passage, comment, 0.9)
        comment = []
        if not leader:
            yield from _code_line(passage, _trimmed(passage, line, 0))
    yield from _split(passage, comment, 0.9)


def _code_line(passage: str, line: _Span) -> Iterator[Sentence]:
    text = passage[line.start : line.end]
    if _SHORTEST <= len(text) <= _LONGEST and len(words(text)) >= _WORDS_FEWEST:
        yield Sentence(line.start, line.end, text, " ".join(text.split()), 0.1, first=False)


def _split(passage: str, paragraph: _Paragraph, trust: float) -> Iterator[Sentence]:
    """The sentences of a paragraph; `trust` scales how far they count as prose."""
    if not paragraph:
        return
    pieces = [passage[span.start : span.end] for span in paragraph]
    joined = " ".join(pieces)
    offsets = [0]
    for piece in pieces[:-1]:
        offsets.append(offsets[-1] + len(piece) + 1)

    def place(at: int) -> int:
        line = bisect_right(offsets, at) - 1
        return paragraph[line].start + at - offsets[line]

    for begin, end in _bounds(joined):
        plain = joined[begin:end]
        if _worth_quoting(plain):
            start, stop = place(begin), place(end - 1) + 1
            likeness = trust * _likeness(plain)
            yield Sentence(start, stop, passage[start:stop], " ".join(plain.split()), likeness, first=begin == 0)


def _bounds(joined: str) -> Iterator[tuple[int, int]]:
    """Return where the sentences of a paragraph begin and end, without blanks around them."""
    begin = 0
    for end in _ENDS.finditer(joined):
        if end[0][0] == "." and _ABBREVIATED.search(joined, max(0, end.start() - 8), end.start() + 1):
            continue
        yield begin, end.end()
        begin = end.end()
        while begin < len(joined) and joined[begin].isspace():
            begin += 1
    if begin < len(joined):
        yield begin, len(joined)


def _worth_quoting(plain: str) -> bool:
    if not plain.isascii() and len(words(plain)) >= _WORDS_FEWEST:
        return len(plain) <= _LONGEST
    return _SHORTEST <= len(plain) <= _LONGEST and len(words(plain)) >= _WORDS_FEWEST
