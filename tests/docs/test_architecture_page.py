"""docs/architecture.md walks through files and names that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from remit.service.service import CORE

DOCS = Path("docs").resolve()
PAGE = (DOCS / "architecture.md").read_text()
LINKS = re.findall(r"\]\((\.\./[^)#]+)\)", PAGE)
NAMED = re.findall(r"\]\((\.\./src/[^)]+\.py)\)[ \n]+(?:[a-z]+ )?`([A-Z_][A-Za-z_.]*|[a-z_]+)`", PAGE)


@pytest.mark.parametrize("link", sorted(set(LINKS)))
def test_every_file_exists(link: str) -> None:
    assert (DOCS / link).exists()


@pytest.mark.parametrize(("link", "name"), sorted(set(NAMED)))
def test_every_name_is_defined_in_its_file(link: str, name: str) -> None:
    text = (DOCS / link).read_text()
    for part in name.split("."):
        assert re.search(rf"^\s*(?:async )?(?:class|def) {part}\b|^{part}\b", text, re.MULTILINE), part


def test_the_walk_names_what_it_passes() -> None:
    assert {"Run.call", "Effects.call", "EffectCalls.make", "Gateway.call", "Invoke", "Sessions.call"} <= {
        name for _, name in NAMED
    }


def test_every_noun_of_the_core_is_in_the_picture() -> None:
    picture = PAGE.split("```")[1]
    assert [noun for noun in CORE if noun not in picture.split()] == []
