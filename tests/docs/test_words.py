"""The pages stay short: a ceiling of words written by hand, which may only fall, and no sentence stands twice."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Final

import pytest

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final = sorted(path.name for path in DOCS.glob("*.md"))
CEILING: Final = 109_900
"""Words written by hand in all pages. Lower it after a cut; only the page of a new part raises it."""
SENTENCE: Final = 12
"""Words from which on a sentence counts."""

MADE: Final = r"^<!-- (?:figures|effects|battery)\b.*?^<!-- end of \w+ -->$"
COMMANDS: Final = r"^\| `-.*$|^\| \d+ \|.*$|^`remit .*\]?`$|(?<=^### remit )[^\n]*\n[^\n]+$"
KINDS: Final = r"^\| `\w+` \|.*\|.*\|.*$|(?<=^### )`\w+`\n[^\n]+$"
DERIVED: Final = {
    "audit.md": r"^\| `\w+`[^|]* \|(?:[^|]*\|){5}$",
    "cli.md": COMMANDS,
    "cli-groups.md": COMMANDS,
    "codes.md": r"^\| `\w+` \|.*\|.*\|.*\|.*$",
    "configuration.md": r"^\| `\w+` \|.*\|.*\|.*\|.*$",
    "mcp.md": r"^\| \w+ \|(?: \d+ of \d+ \|){5}$",
    "policy.md": r"^\| `[\w-]+` \| (?:error|warning) \| .*$",
    "sandbox-battery.md": r"^\| .*$",
    "versions.md": r"^\| (?:tool|recipe): .*$",
    "work.md": r"^\|(?: [^|]* \|){6}$",
    "events.md": KINDS,
    "events-parts.md": KINDS,
}
"""What a program makes, or another test compares word for word with the code: options, codes, settings, fields."""
PLACE: Final = r"^In .+; written by .+\.$"
"""The line of an event that says where it lies, in one form for all."""


@cache
def written(page: str) -> str:
    """What people wrote of a page, without what is made of code and measurements."""
    text = re.sub(MADE, "", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(DERIVED[page], "", text, flags=re.MULTILINE) if page in DERIVED else text


def sentences(page: str) -> list[str]:
    """The sentences of a page outside of code, one paragraph, item or cell after the other."""
    prose = re.sub(r"^ *```.*?^ *```$", "\n\n", written(page), flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(PLACE, "", prose, flags=re.MULTILINE)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) )|\s\|\s|\|$", prose, flags=re.MULTILINE)
    plain = [" ".join(re.sub(r"\]\([^)]*\)|[*\[\]`|]", "", block).split()) for block in blocks]
    return [sentence for block in plain for sentence in re.split(r"(?<=[.!?]) ", block)]


def test_the_words_written_by_hand_only_become_fewer() -> None:
    words = {page: len(written(page).split()) for page in PAGES}
    assert sum(words.values()) <= CEILING, words


def test_the_ceiling_is_not_far_above_them() -> None:
    assert CEILING - sum(len(written(page).split()) for page in PAGES) < 2_000


@pytest.mark.parametrize("page", DERIVED)
def test_what_counts_as_derived_is_on_the_page(page: str) -> None:
    assert re.search(DERIVED[page], (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)


def test_no_sentence_stands_twice() -> None:
    places = defaultdict(list)
    for page in PAGES:
        for sentence in sentences(page):
            if len(sentence.split()) >= SENTENCE:
                places[sentence.lower().rstrip(".:;")].append(page)
    assert {sentence: pages for sentence, pages in places.items() if len(pages) > 1} == {}
