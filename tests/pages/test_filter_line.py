from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.clock import DAY, SECOND
from remit.errors import UsageError
from remit.pages.filter_line import AGES, STATES, Filter, completions, fields_of, line_of, micros_of


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("", Filter()),
        (
            "state:failed recipe:refund since:1d lost card",
            Filter(state=("failed",), recipe="refund", within="1d", text="lost card"),
        ),
        ("state:failed,waiting state:running", Filter(state=("failed", "waiting", "running"))),
        ("by:ann team=pay amount>=100", Filter(principal="ann", label="team=pay, amount>=100")),
        (
            'by:"Ann Lee" team="two words" "state:failed"',
            Filter(principal="Ann Lee", label="team=two words", text="state:failed"),
        ),
        ("http://a.b/c 12:30", Filter(text="http://a.b/c 12:30")),
        ('open "quote', Filter(text="open quote")),
    ],
)
def test_a_line_says_its_fields(line: str, fields: Filter) -> None:
    assert fields_of(line) == fields
    assert fields_of(line_of(fields)) == fields


@pytest.mark.parametrize("line", ["state:broken", "since:yesterday", "since:0d", "since:1y"])
def test_a_line_that_means_nothing_is_refused(line: str) -> None:
    with pytest.raises(UsageError):
        fields_of(line)


def test_an_age_is_a_number_with_its_unit() -> None:
    assert [micros_of(age) for age in ("", "90m", "2d", "1w")] == [0, 5_400 * SECOND, 2 * DAY, 7 * DAY]
    assert all(micros_of(age) for age in AGES)


_NAMES = st.text("abcdefg é-", min_size=1, max_size=8).map(lambda text: " ".join(text.split())).filter(bool)


@given(
    st.builds(
        Filter,
        state=st.lists(st.sampled_from(STATES), unique=True).map(tuple),
        recipe=_NAMES,
        principal=_NAMES,
        within=st.sampled_from(("", *AGES)),
        label=st.lists(_NAMES, max_size=3).map(
            lambda values: ", ".join(f"k{number}={value}" for number, value in enumerate(values))
        ),
        text=st.one_of(st.just(""), _NAMES),
    )
)
def test_fields_come_back_from_their_line(fields: Filter) -> None:
    assert fields_of(line_of(fields)) == fields


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("", ("state:", "recipe:", "by:", "since:", "team=")),
        ("s", ("state:", "since:")),
        ("lost state:f", ("lost state:failed",)),
        ("recipe:", ("recipe:orders", "recipe:refund")),
        ("recipe:refund by:", ("recipe:refund by:ann", 'recipe:refund by:"Bob B"')),
        ("state:failed t", ("state:failed team=",)),
        ("nothing:", ()),
    ],
)
def test_a_line_is_completed_where_it_ends(line: str, wanted: tuple[str, ...]) -> None:
    assert completions(line, ["orders", "refund"], {"team"}, {"Bob B", "ann"}) == wanted
