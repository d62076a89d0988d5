from __future__ import annotations

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import ProviderError
from remit.files import edits
from remit.files.edits import Replacement, applied, diff, undone

texts = st.text(st.sampled_from("ab\n"), max_size=30)
changes_made = st.lists(
    st.builds(
        Replacement,
        st.text(st.sampled_from("ab\n"), min_size=1, max_size=4),
        st.text(st.sampled_from("abc\n"), max_size=4),
    ),
    min_size=1,
    max_size=3,
)
lines = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=12).map(
    lambda each: "".join(f"{line}\n" for line in each)
)


@given(texts, changes_made)
def test_what_is_undone_is_what_was_there(text: str, changes: list[Replacement]) -> None:
    try:
        after = applied(text, changes)
    except ProviderError:
        return
    assert undone(after, changes) in {text, None}


@given(texts, changes_made)
def test_an_edit_replaces_every_occurrence_there_is_namely_one(text: str, changes: list[Replacement]) -> None:
    first = changes[:1]
    count = sum(text.startswith(first[0].search, at) for at in range(len(text)))
    if count != 1:
        with pytest.raises(ProviderError):
            applied(text, first)
        return
    before, _, after = text.partition(first[0].search)
    assert applied(text, first) == before + first[0].replace + after


def patched(before: str, shown: str) -> str:
    """The text after a unified diff, which has to fit it exactly."""
    old, new, at = before.splitlines(keepends=True), list[str](), 0
    marked = shown.replace("\n\\ No newline at end of file\n", "\0\n").splitlines(keepends=True)[2:]
    for line in marked:
        if header := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n", line):
            start = int(header[1]) - (header[2] != "0")
            new += old[at:start]
            at = start
            assert len(new) == int(header[3]) - (header[4] != "0")
            continue
        content = line[1:].replace("\0\n", "")
        if line[0] in " -":
            assert old[at] == content
            at += 1
        if line[0] in " +":
            new.append(content)
    return "".join(new + old[at:])


@given(lines, lines, st.booleans(), st.booleans())
def test_a_diff_leads_from_one_text_to_the_other(before: str, after: str, cut_before: bool, cut_after: bool) -> None:
    before = before.removesuffix("\n") if cut_before else before
    after = after.removesuffix("\n") if cut_after else after
    assert patched(before, diff("f", before, after).text) == after


@pytest.mark.parametrize("changed", [{3}, {3, 40}, set(range(100))])
def test_a_diff_shows_little_more_than_what_changed(changed: set[int]) -> None:
    before = "".join(f"{n}\n" for n in range(100))
    after = "".join(f"{n}x\n" if n in changed else f"{n}\n" for n in range(100))
    shown = diff("f", before, after)
    assert patched(before, shown.text) == after
    assert len(shown.text.splitlines()) <= 2 + 9 * len(changed)


def test_a_rewrite_too_long_to_compare_is_shown_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "_DIFF_LINES", 3)
    before, after = "a\nb\nc\nd\ne\nf\n", "a\nB\nc\nD\nE\nf\n"
    shown = diff("f", before, after).text
    assert patched(before, shown) == after
    assert shown.splitlines()[2:] == ["@@ -2,4 +2,4 @@", "-b", "-c", "-d", "-e", "+B", "+c", "+D", "+E"]


def test_a_long_diff_is_cut_and_says_so() -> None:
    shown = diff("f", "", "x" * 50_000)
    assert shown.truncated
    assert len(shown.text) == 20_000


def test_a_name_with_a_line_end_cannot_pass_for_part_of_a_diff() -> None:
    assert diff("a\n+++ b/other", "x\n", "y\n").text.splitlines()[:2] == [
        r"--- a/'a\n+++ b/other'",
        r"+++ b/'a\n+++ b/other'",
    ]


@pytest.mark.slow
def test_the_diff_of_a_large_rewrite_is_made_at_once() -> None:
    before, after = "a\nb\n" * 100_000, "b\na\n" * 100_000
    start = process_time()
    assert diff("f", before, after).truncated
    assert process_time() - start < 3


def test_only_a_line_feed_ends_a_line() -> None:
    shown = diff("a", "one\x0ctwo\u2028three\n", "one\x0ctwo\u2028four\n").text
    assert shown.split("\n")[2:] == ["@@ -1 +1 @@", "-one\x0ctwo\u2028three", "+one\x0ctwo\u2028four", ""]
