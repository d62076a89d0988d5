"""Examples are programs that run, and documents point only at what is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "python").glob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])

SAID = {
    "triage.py": [
        "asked: desk.refund {'customer': 'ada', 'cents': 300}",
        "refunded 300 to ada",
        '2 tool.desk.refund ok "refunded 300 to ada"',
        "replay: same",
    ],
    "notes.py": [
        "asked: mcp.notes.write_note {'topic': 'tea', 'text': 'milk first'}",
        "milk first",
        '1 tool.mcp.notes.write_note ok "noted tea"',
        "replay: same",
    ],
    "booking.py": [
        "JOB_FAILED: LookupError: no car is left (undone: 2, 1)",
        "1 tool.trip.book ok compensated",
        "still booked: []",
    ],
    "spending.py": ["spam: BUDGET_EXCEEDED", "less than the day allows: True"],
    "migrated.py": ["500 cents, begun under version 1"],
    "library.py": [
        "1 left",
        "not packed: grace refused stock.take: deny by size",
        "['5 apples', '2 apples']",
        "pending True",
        "JOB_FAILED LookupError: no pears",
        "JOB_NOT_FOUND",
    ],
    "mailbox.py": [
        "asked: bank.pay {'iban': 'DE89370400440532013000', 'euros': 900}",
        "The printer is paid. ['40 EUR to DE02120300000000202051']",
        "replay: same",
    ],
    "shop.py": ["refunded 700 to ada"],
    "review.py": ["[2, 1] {'good': True}", "same"],
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_and_says_what_it_should(example: Path, tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert [line for line in SAID[example.name] if line not in lines] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []
