"""The site has every page once, in one of the four kinds."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def test_every_page_stands_once_in_the_navigation() -> None:
    assert sorted(re.findall(r"^ +- ([\w-]+\.md)$", CONFIG, re.MULTILINE)) == PAGES


def test_the_kinds_are_tutorials_guides_reference_and_explanation() -> None:
    nav = CONFIG.partition("\nnav:\n")[2]
    assert re.findall(r"^  - ([^:\n]+):$", nav, re.MULTILINE) == [
        "Tutorials",
        "How-to guides",
        "Reference",
        "Explanation",
    ]


def test_the_readme_and_the_first_page_lead_to_every_page() -> None:
    first = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    others = [page for page in PAGES if page != "index.md"]
    assert [page for page in others if f"]({page})" not in first] == []
    assert [page for page in others if f"](docs/{page})" not in readme and page != "sandbox-battery.md"] == []


def test_nothing_is_loaded_from_elsewhere() -> None:
    assert "font: false" in CONFIG
    assert "://" not in re.sub(r"#.*", "", CONFIG)
