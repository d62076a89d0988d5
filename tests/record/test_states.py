from __future__ import annotations

import pytest

from remit.record.states import about, is_in, recorded, shown_state
from tests.record.test_standing import row


@pytest.mark.parametrize(
    ("state", "more", "shown"),
    [
        ("running", {}, "stopped"),
        ("waiting", {}, "stopped"),
        ("waiting", {"waiting_for": "a timer"}, "waiting"),
        ("waiting", {"code": "UNKNOWN_RECIPE"}, "stuck"),
        ("pending", {}, "pending"),
    ],
)
def test_a_job_that_was_given_up_is_stopped_and_found_as_such(state: str, more: dict[str, str], shown: str) -> None:
    found = row(state, **more)
    assert shown_state(found) == shown
    assert is_in(found, (shown,))
    assert state in recorded((shown,))


def test_a_job_that_was_given_up_is_listed_with_its_title_and_one_that_waits_with_what_for() -> None:
    assert about(row("waiting", title="steps n: 8", name="steps")) == "n: 8"
    assert about(row("waiting", title="steps n: 8", name="steps", waiting_for="signal go")) == "signal go"
