from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.pages.page import exact, link, moment, pieces, visible, written

pytestmark = pytest.mark.slow


def test_what_cannot_be_seen_is_named() -> None:
    assert visible("a\u202eb\u200bc\r\x00\u00ad") == "a⟨U+202E⟩b⟨U+200B⟩c⟨U+000D⟩⟨U+0000⟩⟨U+00AD⟩"
    assert visible("é 漢\n\tnaïve") == "é 漢\n\tnaïve"


@given(st.text())
def test_everything_shown_prints(text: str) -> None:
    assert visible(text).replace("\n", "").replace("\t", "").isprintable()


def test_numbers_keep_every_digit() -> None:
    assert written({"n": 2**70}) == '{\n  "n": 1180591620717411303424\n}'


def test_links_keep_names_and_filters_what_they_are() -> None:
    assert link("/jobs/{}", "a/b?c#d") == "/jobs/a%2Fb%3Fc%23d"
    assert (
        link("/jobs", state=("a", "b"), label="k=v&w", before="", from_=3)
        == "/jobs?state=a&state=b&label=k%3Dv%26w&from=3"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Start one: `remit worker`.", [("Start one: ", False), ("remit worker", True), (".", False)]),
        ("`remit jobs` lists them", [("remit jobs", True), (" lists them", False)]),
        ("no `pair", [("no `pair", False)]),
        ("", []),
    ],
)
def test_commands_stand_in_backticks(text: str, found: list[tuple[str, bool]]) -> None:
    assert pieces(text) == found


def test_times_name_their_day_unless_it_is_today() -> None:
    day = 86_400_000_000
    assert moment(day, UTC, day + 5) == "00:00:00"
    assert moment(day, UTC, 3 * day) == "1970-01-02 00:00"
    assert exact(day, UTC) == "1970-01-02 00:00:00.000000 UTC (1970-01-02T00:00:00.000Z)"
