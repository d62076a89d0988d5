"""Jobs as a table of comma-separated values: one line a job, one column more for each label."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Final

from remit.clock import isoformat
from remit.journal.labels import measure
from remit.record.views import JobRow

MEDIA: Final = "text/csv; charset=utf-8"
_COLUMNS: Final = ("job", "name", "state", "title", "created_at", "updated_at", "waiting_for", "code", "worker")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a cell that spreadsheets compute."""


def job_table(rows: Sequence[JobRow]) -> str:
    """Return jobs as CSV, times in UTC as ISO 8601; a text that a spreadsheet would compute begins with `'`."""
    keys = sorted({key for row in rows for key in row.labels})
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*_COLUMNS, *(_cell(f"label.{key}") for key in keys)))
    for row in rows:
        times = (isoformat(row.created_at), isoformat(row.updated_at))
        texts = (row.job, row.name, row.state, row.title, *times, row.waiting_for, row.code, row.worker)
        writer.writerow([_cell(text) for text in (*texts, *(row.labels.get(key, "") for key in keys))])
    return out.getvalue()


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) and measure(text) is None else text
