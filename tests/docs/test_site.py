"""The site has every page once, in one of the four kinds, and its links lead somewhere."""

import re
from functools import cache
from pathlib import Path

import pytest

from scripts.site_hooks import slug

ROOT = Path(__file__).parents[2]
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
READ = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def test_every_page_stands_once_in_the_navigation() -> None:
    assert sorted(re.findall(r"^ +- ([\w-]+\.md)$", CONFIG, re.MULTILINE)) == PAGES


def test_the_first_day_and_the_guides_come_before_reference_and_explanation() -> None:
    nav = CONFIG.partition("\nnav:\n")[2]
    assert re.findall(r"^  - ([^:\n]+):$", nav, re.MULTILINE) == [
        "First day",
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


@pytest.mark.parametrize("page", READ, ids=lambda page: page.name)
def test_a_table_ends_with_a_blank_line(page: Path) -> None:
    """Else the text after it becomes its last row."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^ *\|.*\|\n *(?![|\s]|<!--)(.+)$", text, re.MULTILINE) == []


@cache
def anchors(path: Path) -> frozenset[str]:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return frozenset(slug(title, "-") for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE))


@pytest.mark.parametrize("page", READ, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading_that_are_there(page: Path) -> None:
    lost = []
    for link in re.findall(r"\]\(([^)\s:]+)\)", page.read_text(encoding="utf-8")):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


@pytest.mark.parametrize("page", READ, ids=lambda path: path.name)
def test_a_link_that_shows_a_path_leads_to_it(page: Path) -> None:
    links = re.findall(r"\[`([\w/.-]+\.py)`\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    assert [(shown, target) for shown, target in links if not f"/{target}".endswith(f"/{shown}")] == []


def test_every_rule_that_the_code_cites_is_a_rule() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    cited = {
        int(number) for words in re.findall(r"\(rules? ([\d, and]+)\)", text) for number in re.findall(r"\d+", words)
    }
    rules = (ROOT / "docs/concepts.md").read_text(encoding="utf-8").partition("## Rules")[2].partition("\n## ")[0]
    listed = [int(number) for number in re.findall(r"^(\d+)\. \*\*", rules, re.MULTILINE)]
    assert listed == list(range(1, len(listed) + 1))
    assert cited - set(listed) == set()
