from __future__ import annotations

import pytest

from remit.parts.recipes.evidence import EvidencePiece
from remit.parts.recipes.gather import AnswerSentence, held, keywords

POOL = EvidencePiece(
    "https://a.example/", "Pool", "", 50, "The pool opens at 6:30 on every day. A ticket costs 4 euros.", "s"
)
RINK = EvidencePiece("https://b.example/", "Rink", "", 0, "The rink is not open in summer at all.", "s")


def said(sentence: str, quotation: str, source: int = 1) -> list[str]:
    written = held("what in 2024", [AnswerSentence("Hours", sentence, source, quotation)], [[POOL], [RINK]])
    assert written.dropped == 1 - len(written.claims)
    return [claim.text for claim in written.claims]


def test_a_sentence_with_the_words_of_its_source_is_kept_with_their_place() -> None:
    answer = [AnswerSentence("Hours", " It opens\nat 6:30. ", 1, "The pool opens at 6:30")]
    [claim] = held("?", answer, [[POOL], [RINK]]).claims
    assert (claim.prose, claim.section, claim.start, claim.end) == ("It opens at 6:30.", "Hours", 50, 72)


@pytest.mark.parametrize(
    ("sentence", "quotation", "source"),
    [
        ("It opens at 7.", "The pool opens at 7:30 on every day.", 1),
        ("The rink is open.", "The rink is open in summer", 2),
        ("The rink is shut.", "The rink is not open in summer", 1),
        ("The rink is shut.", "The rink is not open in summer", 3),
        ("The rink is shut.", "The rink is not open in summer", 0),
        ("A ticket costs 5 euros.", "A ticket costs 4 euros.", 1),
        ("", "A ticket costs 4 euros.", 1),
        ("It costs something.", "", 1),
    ],
)
def test_a_sentence_that_its_source_does_not_say_is_dropped(sentence: str, quotation: str, source: int) -> None:
    assert said(sentence, quotation, source) == []


def test_a_sentence_may_name_the_numbers_of_the_question() -> None:
    assert said("In 2024 a ticket costs 4 euros.", "A ticket costs 4 euros.") == ["A ticket costs 4 euros."]


@pytest.mark.parametrize(
    ("query", "queries"),
    [
        ("When does the pool open?", ["When does the pool open?", "pool open"]),
        ("pool prices", ["pool prices"]),
        ("the pool", ["the pool"]),
        ("?", ["?"]),
    ],
)
def test_a_question_is_also_searched_for_by_its_words(query: str, queries: list[str]) -> None:
    assert keywords(query) == queries
