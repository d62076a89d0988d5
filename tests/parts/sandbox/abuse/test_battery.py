"""The battery holds, and its pages say what it found."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from tests.parts.sandbox.abuse.__main__ import as_nobody
from tests.parts.sandbox.abuse.accepted import ACCEPTED
from tests.parts.sandbox.abuse.battery import OUTSIDE, battery
from tests.parts.sandbox.abuse.page import MARKS, SUMMARY, recorded, summary
from tests.parts.sandbox.abuse.subjects import CONTAINERS, NAMES, Finding, skip_untried

USER = "root" if os.geteuid() == 0 else "user"


def judge(name: str, user: str, found: Sequence[Finding]) -> None:
    """Nothing leaks that the page does not say, and the page has every probe."""
    assert [one for one in found if one.verdict == "broken"] == []
    written = recorded()[name, user]
    assert {(one.group, one.title) for one in found} == set(written)
    leaks = [one for one in found if one.verdict == "leaked"]
    assert [one for one in leaks if (name, one.title) not in ACCEPTED] == []
    assert [one for one in leaks if written[one.group, one.title] != "leaked"] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
async def test_nothing_leaks_but_what_the_page_says(name: str) -> None:
    skip_untried(name)
    judge(name, USER, await battery(name))


@pytest.mark.slow
@pytest.mark.skipif(USER != "root", reason="the same as without root")
def test_nothing_leaks_either_if_a_plain_user_runs_it() -> None:
    found = as_nobody("bwrap")
    if found is None:
        pytest.skip("no Python here that a plain user could run")
    judge("bwrap", "user", found)


@pytest.mark.slow
async def test_without_a_sandbox_most_probes_get_what_they_are_after() -> None:
    found = await battery("none")
    assert [one for one in found if one.verdict == "broken"] == []
    assert sum(one.verdict == "leaked" for one in found) >= 100


def test_the_page_has_a_battery_for_each_driver() -> None:
    for subject, rows in recorded().items():
        inside = [title for group, title in rows if group != OUTSIDE]
        if subject[0] in {"bwrap", *CONTAINERS}:
            assert len(inside) >= 120
            assert len(rows) - len(inside) >= 30


def test_the_summary_is_that_of_the_page() -> None:
    found = {
        subject: [Finding(group, title, verdict) for (group, title), verdict in rows.items()]
        for subject, rows in recorded().items()
    }
    text = SUMMARY.read_text(encoding="utf-8")
    assert text.split(MARKS[0])[1].split(MARKS[1])[0] == summary(found)
    assert "?" not in summary(found)
