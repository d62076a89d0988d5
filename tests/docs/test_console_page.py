"""docs/console.md names the keys and the pages that there are."""

from __future__ import annotations

import re
from pathlib import Path

from remit.pages.renderer import entries_of
from remit.pages.table import PAGES

PAGE = (Path(__file__).parents[2] / "docs/console.md").read_text(encoding="utf-8")
ENTRIES = [entry for entry in entries_of(PAGES) if not entry.of]


def test_every_key_leads_to_one_page_and_is_listed_with_it() -> None:
    (keys, names) = re.findall(r"^\| `g` then (.*?) \| go to a page: (.*?) \|$", PAGE, re.MULTILINE)[0]
    listed = dict(zip(re.findall(r"`(\w)`", keys), names.split(", "), strict=True))
    assert len({entry.key for entry in ENTRIES}) == len(ENTRIES)
    assert [(key, name.lower()) for key, name in listed.items()] == [
        (entry.key, entry.name.lower()) for entry in ENTRIES
    ]


def test_every_page_has_a_section() -> None:
    assert {entry.name for entry in ENTRIES} <= set(re.findall(r"^## (.*)$", PAGE, re.MULTILINE))
