"""Choosing the sentences that answer a question. Pure and deterministic.

BM25 (Robertson and Zaragoza 2009) over the sentences that were read, with what stands around a sentence counting as
well, and with a prior from the rank of its passage or page in the search.

The sentences of a passage, with their exact places.

In prose a sentence is what ends with a full stop, or a paragraph without one. In source code it is a sentence of a
docstring or a comment; a line of code counts as one too, marked as such, for passages without an explanation.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from remit.files.outline import outline
from remit.files.text import is_prose
from remit.files.words import STOP, compounds, query_words, stem, words
from remit.regex import regex

_LONGEST: Final = 700
_SHORTEST: Final = 20
_WORDS_FEWEST: Final = 4

_TRIPLE: Final = regex(r"[rRbBuUfF]{0,2}\"\"\"|[rRbBuUfF]{0,2}'''")
_COMMENT: Final = regex(r"[ \t]*(?P<leader>#+[:!|]?|//+[/!]?|--+|;+|/\*+!?|\*+/?|<!--)(?=\s|\Z)[ \t]*")
_ITEM: Final = regex(r"[ \t]*(?:[-*+•]|\(?(?:\d{1,3}|[a-z])[.)])[ \t]+(?=\S)")
_HEADING: Final = regex(r" {0,3}#{1,6}[ \t]")
_RULE: Final = regex(r"[ \t]*(?=\S)[=\-~^\"'`+*#_.|: ]{3,}[ \t\r]*\Z")
_ENDS: Final = regex(
    r"[.!?]++[\"'\u201d\u2019)\]`*_]*(?=\s+[\"'\u201c\u2018(\[`*_]*[A-Z0-9_])"
    r"|[\u3002\uff01\uff1f]+[\u201d\u2019\u300d\u300f\uff09]*"
)
_ABBREVIATED: Final = regex(
    r"(?:\b(?:e\.?g|i\.?e|etc|vs|cf|al|approx|resp|incl|esp|nr|fig|sec|dr|mr|mrs|ms|prof|st|jr|sr|inc|ltd|u\.s|p|pp)"
    r"|\b[A-Za-z])\.\Z",
    re.IGNORECASE,
)
_ROW: Final = regex(r"[ \t]*\|[ \t]*(?=\S)")
_SIGNS: Final = regex(r"[()\[\]{}=<>;:_|\\/+*%@$&#\"]")
_SIGNS_USUAL: Final = 0.2
"""Signs per word that prose about code has, with its names and parentheses."""
_SIGNS_COST: Final = 1.6
_CODE_LINE: Final = regex(
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


class SourceSentence(NamedTuple):
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


def sentences(passage: str, *, prose: bool) -> list[SourceSentence]:
    """The sentences of a passage, in order; `prose` is False for source code."""
    sentences_found: list[SourceSentence] = []
    if prose:
        for paragraph in _paragraphs(passage, _Span(0, len(passage))):
            sentences_found += _split(passage, paragraph, 1.0)
        return sentences_found
    for span, inside in _segments(passage):
        if inside:
            for paragraph in _paragraphs(passage, span):
                sentences_found += _split(passage, paragraph, 1.0)
        else:
            sentences_found += _from_code(passage, span)
    return sentences_found


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
    tokens = words(text)
    if not tokens:
        return 0.0
    signs = sum(1 for _ in _SIGNS.finditer(text)) / len(tokens)
    tidy = max(0.0, min(1.0, 1 - _SIGNS_COST * (signs - _SIGNS_USUAL)))
    if not text.isascii() and not _SMALL.intersection(tokens):
        return tidy * _UNKNOWN_LANGUAGE  # its function words are not known here
    return tidy * min(1.0, _SMALL_WORTH * sum(word in _SMALL for word in tokens) / len(tokens))


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


def _from_code(passage: str, within: _Span) -> Iterator[SourceSentence]:
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


def _code_line(passage: str, line: _Span) -> Iterator[SourceSentence]:
    text = passage[line.start : line.end]
    if _SHORTEST <= len(text) <= _LONGEST and len(words(text)) >= _WORDS_FEWEST:
        yield SourceSentence(line.start, line.end, text, " ".join(text.split()), 0.1, first=False)


def _split(passage: str, paragraph: _Paragraph, trust: float) -> Iterator[SourceSentence]:
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
            yield SourceSentence(start, stop, passage[start:stop], " ".join(plain.split()), likeness, first=begin == 0)


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


_K1: Final = 1.2
_B: Final = 0.6
_CONTEXT: Final = 0.4
"""The worth of a word of the question where only path, title or heading have it."""
_RANK_FADE: Final = 0.04
_OPENING: Final = 1.25
"""A paragraph's first sentence says what it is about."""
_LEADING_ON: Final = 0.6
"""A sentence that ends in a colon leaves what matters to the next."""
_PER_PASSAGE: Final = 2
_PER_FILE: Final = 4
_PER_SOURCE: Final = 2
"""Of all claims, on the average."""
_SAME: Final = 0.8
"""Share of common words, function words aside, from which two sentences say the same."""
_WEAKEST: Final = 0.4
"""Of the best sentence's score."""


Kind = Literal["file", "page", "document"]
"""The kind of a source: a text file in a folder, a page of the web, or a document that is open to agents."""


class EvidencePiece(NamedTuple):
    """A passage that was read."""

    path: str
    """The file below its folder, the page's URL, or the document's path."""
    title: str
    heading: str
    start: int
    """Where `text` begins in the source's text."""
    text: str
    sha256: str
    """Digest of the file's bytes, or of the whole text of a page of the web."""
    rank: int = 0
    """Its place in the order of the search, from 0 on: of a file's passage its own, of a page that of the page."""
    kind: Kind = "file"
    page: int | None = None
    """The page of a PDF, or cell of a notebook, that it stands on."""
    stored: str = ""
    """SHA-256 of the text that the record keeps: of a page all of it, of a file or document this passage."""
    stored_at: int = 0
    """Position at which `text` begins in that text."""

    @property
    def source(self) -> tuple[Kind, str]:
        """Return its source: one path may name a file, a page and a document."""
        return self.kind, self.path

    @property
    def form(self) -> str:
        """A file name that says how the text is written: pages are Markdown."""
        return "page.md" if self.kind == "page" else self.path


class ChosenClaim(NamedTuple):
    """A sentence that was chosen."""

    piece: EvidencePiece
    start: int
    """In the file's text."""
    end: int
    text: str
    """Verbatim."""
    plain: str
    heading: str
    """The section or definition it stands in; may be empty."""
    prose: str = ""
    """The model's words for what it shows; empty: it speaks for itself."""
    section: str = ""
    """The part of the report that the model puts it in."""


class _Candidate(NamedTuple):
    sentence: SourceSentence
    piece: int
    counts: Counter[str]
    length: int


class _Question(NamedTuple):
    """The question, and what each word of it is worth among the sentences that were read."""

    weights: dict[str, float]
    contexts: Sequence[AbstractSet[str]]
    """The words of each piece's folder, path, title and heading."""
    bodies: Sequence[AbstractSet[str]]
    """The words of each piece's text."""
    ranks: Sequence[int]
    """The rank of each piece."""
    mean: float
    """Words of a sentence."""


def choose(query: str, pieces: Sequence[EvidencePiece], *, max_sources: int, folder: str = "") -> list[ChosenClaim]:
    """The best sentences, best first, from at most `max_sources` sources; none where nothing is about the question.

    `folder` is what the folder is called that files are from: a word of the question there is met by all of them.
    """
    names = compounds(query)
    terms = list(dict.fromkeys([*names, *map(stem, query_words(query))]))
    candidates = _candidates(names, pieces)
    if not terms or not candidates:
        return []
    contexts = [_terms(names, f"{_place(piece, folder)} {piece.title} {piece.heading}").keys() for piece in pieces]
    question = _Question(
        weights=_weights(terms, candidates, contexts),
        contexts=contexts,
        bodies=[_terms(names, piece.text).keys() for piece in pieces],
        ranks=[piece.rank for piece in pieces],
        mean=sum(candidate.length for candidate in candidates) / len(candidates),
    )
    answering = [_answering(question, piece) for piece in range(len(pieces))]
    scored = [
        (_score(question, candidate), candidate)
        for candidate in candidates
        if answering[candidate.piece] and _about(question, candidate)
    ]
    scored.sort(key=lambda each: -each[0])
    return [_claim(candidate, pieces[candidate.piece]) for candidate in _varied(scored, pieces, max_sources)]


def best(query: str, pieces: Sequence[EvidencePiece], wanted: int) -> list[EvidencePiece]:
    """The passages that answer best, best first, at most `_PER_FILE` of each source; for pages that were read whole."""
    terms = list(dict.fromkeys([*compounds(query), *map(stem, query_words(query))]))
    texts = [f"{piece.title} {piece.heading} {piece.text}".lower() for piece in pieces]
    counts = {term: _counts(term, texts) for term in terms}
    mean = sum(map(len, texts)) / max(1, len(texts))
    scores = [0.0] * len(pieces)
    for own in counts.values():
        weight = math.log(1 + (len(own) - sum(map(bool, own)) + 0.5) / (sum(map(bool, own)) + 0.5))
        for index, count in enumerate(own):
            length = _K1 * (1 - _B + _B * len(texts[index]) / mean)
            scores[index] += weight * count * (_K1 + 1) / (count + length) / (1 + _RANK_FADE * pieces[index].rank)
    per_source: Counter[tuple[Kind, str]] = Counter()
    chosen: list[EvidencePiece] = []
    for score, piece in sorted(zip(scores, pieces, strict=True), key=lambda each: -each[0]):
        if score > 0 and per_source[piece.source] < _PER_FILE and len(chosen) < wanted:
            per_source[piece.source] += 1
            chosen.append(piece)
    return chosen


def _counts(term: str, texts: Sequence[str]) -> list[int]:
    """Count how often each text has a stem or name; a stem is how the words that have it begin."""
    if not term.isalnum() or not term.isascii():
        return [text.count(term) for text in texts]
    begins = re.compile(rf"(?<![a-z0-9]){term}[a-z0-9]*")
    return [sum(_stem(word) == term for word in begins.findall(text)) for text in texts]


def _place(piece: EvidencePiece, folder: str) -> str:
    return f"{folder} {piece.path}" if piece.kind == "file" else piece.path


def verified(claims: Sequence[ChosenClaim]) -> list[ChosenClaim]:
    """The claims that stand, character for character, where they say they do."""
    return [claim for claim in claims if claim.text and _quoted(claim) == claim.text]


def _quoted(claim: ChosenClaim) -> str:
    offset = claim.piece.start
    return claim.piece.text[max(0, claim.start - offset) : max(0, claim.end - offset)]


_stem: Final = lru_cache(50_000)(stem)


def _terms(names: Sequence[str], text: str) -> Counter[str]:
    """The stems in a text, and those of `names` that stand in it whole."""
    counts = Counter(map(_stem, words(text)))
    lower = text.lower() if names else ""
    counts.update({name: lower.count(name) for name in names if name in lower})
    return counts


def _candidates(names: Sequence[str], pieces: Sequence[EvidencePiece]) -> list[_Candidate]:
    candidates: list[_Candidate] = []
    for index, piece in enumerate(pieces):
        for sentence in sentences(piece.text, prose=is_prose(piece.form)):
            counts = _terms(names, sentence.plain)
            candidates.append(_Candidate(sentence, index, counts, counts.total()))
    return candidates


def _weights(
    terms: Sequence[str], candidates: Sequence[_Candidate], contexts: Sequence[AbstractSet[str]]
) -> dict[str, float]:
    """Return how much each asked word tells one sentence, with what stands around it, from another.

    A word that all of them have tells next to nothing, and so does one that none has.
    """
    total = len(candidates)
    weights: dict[str, float] = {}
    for term in terms:
        having = sum(term in each.counts or term in contexts[each.piece] for each in candidates)
        weights[term] = math.log(1 + (total - having + 0.5) / (having + 0.5)) if having else 0.0
    return weights


def _answering(question: _Question, piece: int) -> bool:
    """Return whether a passage has half of the question's words; of two, both."""
    around, total = question.contexts[piece] | question.bodies[piece], len(question.weights)
    return sum(term in around for term in question.weights) >= min(total, max(2, total / 2))


def _about(question: _Question, candidate: _Candidate) -> bool:
    """Say whether a sentence has a word of the question, and with title and heading a third of what they all weigh."""
    own, context = candidate.counts, question.contexts[candidate.piece]
    covered = sum(weight for term, weight in question.weights.items() if term in own or term in context)
    return any(term in own for term in question.weights) and 3 * covered >= sum(question.weights.values())


def _score(question: _Question, candidate: _Candidate) -> float:
    sentence, context = candidate.sentence, question.contexts[candidate.piece]
    length = 1 - _B + _B * candidate.length / question.mean
    score = 0.0
    for term, weight in question.weights.items():
        count = candidate.counts[term]
        if count:
            score += weight * count * (_K1 + 1) / (count + _K1 * length)
        elif term in context:
            score += weight * _CONTEXT
    if sentence.first:
        score *= _OPENING
    if sentence.plain.endswith((":", "\uff1a")):
        score *= _LEADING_ON
    return score * (0.1 + 0.9 * sentence.prose) / (1 + _RANK_FADE * question.ranks[candidate.piece])


def _claim(candidate: _Candidate, piece: EvidencePiece) -> ChosenClaim:
    sentence = candidate.sentence
    within = [mark for mark in outline(piece.form, piece.text) if 0 < mark.at <= sentence.start]
    heading = within[-1].name if within else piece.heading
    return ChosenClaim(
        piece, piece.start + sentence.start, piece.start + sentence.end, sentence.text, sentence.plain, heading
    )


def _varied(
    scored: Sequence[tuple[float, _Candidate]], pieces: Sequence[EvidencePiece], max_sources: int
) -> list[_Candidate]:
    """The best sentences, no two of which say the same, spread over passages and sources."""
    chosen: list[_Candidate] = []
    stems_chosen: list[frozenset[str]] = []
    per_piece: Counter[int] = Counter()
    per_source: Counter[tuple[Kind, str]] = Counter()
    for score, candidate in scored:
        if score < _WEAKEST * scored[0][0] or len(chosen) == _PER_SOURCE * max_sources:
            break
        source = pieces[candidate.piece].source
        full = per_piece[candidate.piece] == _PER_PASSAGE or per_source[source] == _PER_FILE
        stems = frozenset(candidate.counts.keys() - STOP)
        if (
            full
            or (source not in per_source and len(per_source) == max_sources)
            or any(_alike(stems, each) for each in stems_chosen)
        ):
            continue
        chosen.append(candidate)
        stems_chosen.append(stems)
        per_piece[candidate.piece] += 1
        per_source[source] += 1
    return chosen


def _alike(stems: frozenset[str], other: frozenset[str]) -> bool:
    return len(stems & other) >= _SAME * len(stems | other)
