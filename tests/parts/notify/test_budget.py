"""People are told of a level of a budget."""

from __future__ import annotations

from pathlib import Path

from remit.clock import SystemClock
from remit.journal.kinds import BudgetReached
from remit.parts.notify.occasion import event_of, read_occasion
from remit.parts.notify.sender import message_of
from tests.journal.storages import SqliteStorage


async def test_a_level_of_a_budget_is_told_in_one_line(tmp_path: Path) -> None:
    async with SqliteStorage(tmp_path / "j.db").open(SystemClock()) as journal:
        reached = BudgetReached(
            budget="team",
            period="2026-11",
            share="pay",
            level=80,
            taken="$4.12 of $5 this month",
            stream="job/j",
            step="1",
        )
        await journal.create("budget/team/x", "budget", reached)
        (event,) = await journal.read("budget/team/x")
        occasion = await read_occasion(journal, "budget/team/x", 1)
    assert event_of(event) == "budget"
    assert occasion is not None
    message = message_of("n", occasion, details=True, console="")
    assert message.title == "Budget team of pay: 80 % reached"
    assert message.reason == "$4.12 of $5 this month"
