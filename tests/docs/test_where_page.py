"""docs/where.md: each file and name exists, and each package of the core has its question."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path("docs").resolve()
SOURCE = DOCS.parent / "src" / "remit"
PAGE = (DOCS / "where.md").read_text(encoding="utf-8")
LINKS = sorted(set(re.findall(r"\]\(\.\./src/remit/([^)#]+)\)", PAGE)))
NAMED = sorted(set(re.findall(r"\]\(\.\./src/remit/([^)]+\.py)\) `(\w+)`", PAGE)))
PACKAGES = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))


@pytest.mark.parametrize("link", LINKS)
def test_every_place_exists(link: str) -> None:
    assert (SOURCE / link).exists()


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_every_name_is_defined_in_its_file(file: str, name: str) -> None:
    text = (SOURCE / file).read_text(encoding="utf-8")
    assert re.search(rf"^(?:async )?(?:class|def) {name}\b|^{name}\b", text, re.MULTILINE)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_answers_a_question(package: str) -> None:
    assert any(link.split("/")[0] == package for link in LINKS)
