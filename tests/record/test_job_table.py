from __future__ import annotations

import csv
import io

from remit.record.job_table import job_table
from remit.record.views import JobRow


def row(job: str, title: str = "", **labels: str) -> JobRow:
    return JobRow(
        job=job,
        name="r",
        state="completed",
        title=title,
        created_at=0,
        updated_at=1_000_000,
        due_at=None,
        waiting_for="",
        code="",
        worker="",
        labels=labels,
    )


def test_each_label_has_a_column_and_no_cell_is_a_formula() -> None:
    rows = [row("job_1", 'two\nlines, "quoted"', team="a", size="-5"), row("job_2", "=1+1", team="@x")]
    header, *lines = csv.reader(io.StringIO(job_table(rows)))
    assert header[:4] == ["job", "name", "state", "title"]
    assert header[-2:] == ["label.size", "label.team"]
    assert [(line[0], line[3], line[4], *line[-2:]) for line in lines] == [
        ("job_1", 'two\nlines, "quoted"', "1970-01-01T00:00:00.000Z", "-5", "a"),
        ("job_2", "'=1+1", "1970-01-01T00:00:00.000Z", "", "'@x"),
    ]
