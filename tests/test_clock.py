from __future__ import annotations

import re
from pathlib import Path

import pytest

import remit
from remit.clock import age, duration

SQL_CLOCK = re.compile(
    r"CURRENT_(?:TIME|DATE)|_timestamp\(|'now'|(?:unixepoch|julianday)\(|(?<![.\w])now\(\)", re.IGNORECASE
)
"""What reads the clock of a database."""
STATEMENT = re.compile(r"\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE)\b")
BY_SERVER = {"functions.py", "queries.py", "schema.py", "groups.py"}
"""Files of the journal in PostgreSQL: when a writer was last seen is told by the server, whose clock is one for all."""


@pytest.mark.slow
def test_no_statement_reads_a_database_clock_but_of_when_a_writer_was_seen() -> None:
    folder = Path(remit.__file__).parent
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    lines = [(path, line) for path, text in texts.items() if STATEMENT.search(text) for line in text.splitlines()]
    reading = [(path, line) for path, line in lines if SQL_CLOCK.search(line) and "def now()" not in line]
    assert {path.relative_to(folder).parent.as_posix() for path, _ in reading} == {"journal/postgres"}
    assert {path.name for path, _ in reading} == BY_SERVER
    assert [line for _, line in reading if not re.search(r"\bat\b", line)] == []


def test_lengths_of_time_are_said_shortly() -> None:
    given_us = [400, 12_345, 1_500_000, 61_000_000, 3_700_000_000, 100_000_000_000]
    assert [duration(one) for one in given_us] == ["0.4 ms", "12 ms", "1.5 s", "1 min 1 s", "1 h 1 min", "1 d 3 h"]
    assert [age(one) for one in given_us] == ["0 s", "0 s", "1 s", "1 min", "1 h", "1 d"]
