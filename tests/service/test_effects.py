"""Whatever becomes of a result, an effect that stands is not had again without a person's word."""

from __future__ import annotations

import pytest

from tests.service.effects import BEGIN, END, PAGE, every, table


@pytest.mark.slow
async def test_the_table_on_the_page_is_what_happens_and_nothing_is_paid_twice() -> None:
    rows = await every()
    assert table(rows) == PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    writes = [row for row in rows if row.tool != "reads"]
    assert [row for row in writes if row.effect in {"committed", "unknown"} and row.paid] == []
    assert [row for row in writes if row.cause.sent and row.effect == "none" and row.by != "person"] == []
