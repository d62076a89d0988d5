"""The suite passes at any date: a few modules at some in every run, all of them with REMIT_TEST_DATE."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dates import LIBRARY, dated

ROOT = Path(__file__).parents[1]
MODULES = (
    "tests/record/test_old_journals.py::test_every_face_says_of_an_old_journal_what_it_said[waiting_for_approval]",
    "tests/record/test_old_resume.py::test_open_jobs_of_an_old_journal_are_resumed[timers]",
    "tests/http/test_tls.py",
    "tests/policy/test_window.py",
)
DATES = [
    ("+400", "UTC"),
    ("2028-02-29T23:59:55-05:00", "America/New_York"),
    ("2026-10-25T02:59:55+02:00", "Europe/Berlin"),
]
pytestmark = pytest.mark.skipif(LIBRARY is None, reason="libfaketime is made for Linux on x86-64")


def test_a_date_is_that_of_children_too() -> None:
    child = "import subprocess; print(subprocess.check_output(['date', '--utc', '+%F %H'], text=True))"
    words = [sys.executable, "-m", "tests.dates", "2028-02-29T12:30:00Z", sys.executable, "-c", child]
    assert subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split() == [
        "2028-02-29",
        "12",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("date", "zone"), DATES)
def test_modules_pass_at_a_date(date: str, zone: str, tmp_path: Path) -> None:
    folders = [f"--basetemp={tmp_path / 'tests'}", "-o", f"cache_dir={tmp_path}"]
    env = {**os.environ, **dated(date), "TZ": zone}
    words = [sys.executable, "-m", "pytest", "--quiet", *folders, *MODULES]
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
