"""The changelog is whole: no entry is torn or told twice, as merges leave them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

ENTRIES = [
    " ".join(entry.split())
    for entry in Path("CHANGELOG.md").read_text(encoding="utf-8").replace("\n### ", "\n- ### ").split("\n- ")[1:]
    if not entry.startswith("### ")
]


def test_every_entry_ends_as_a_sentence_does() -> None:
    assert [entry for entry in ENTRIES if not entry.endswith((".", ":", ";", ")", "`", "|"))] == []


def test_no_sentence_is_told_twice() -> None:
    sentences = Counter(sentence for entry in ENTRIES for sentence in entry.removesuffix(".").split(". "))
    assert [sentence for sentence, times in sentences.items() if times > 1 and len(sentence) > 40] == []


def test_every_line_belongs_to_one_entry() -> None:
    """A line that goes on after the end of an entry's last sentence begins in lower case where two were merged."""
    lines = Path("CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    torn = [
        line
        for before, line in pairwise(lines)
        if line.startswith("  ") and line[2:3].islower() and before.endswith(".")
    ]
    assert torn == []
