from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import ProviderError
from remit.providers.fs.edits import applied, diff, undone
from remit.providers.fs.shapes import Replacement

texts = st.text(st.sampled_from("ab\n"), max_size=30)
edits = st.lists(
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


@given(texts, edits)
def test_what_is_undone_is_what_was_there(text: str, changes: list[Replacement]) -> None:
    try:
        after = applied(text, changes)
    except ProviderError:
        return
    assert undone(after, changes) in {text, None}


@given(texts, edits)
def test_an_edit_replaces_every_occurrence_there_is_namely_one(text: str, changes: list[Replacement]) -> None:
    first = changes[:1]
    count = sum(text.startswith(first[0].search, at) for at in range(len(text)))
    if count != 1:
        with pytest.raises(ProviderError):
            applied(text, first)
        return
    before, _, after = text.partition(first[0].search)
    assert applied(text, first) == before + first[0].replace + after


PATCH = shutil.which("patch") or ""


@pytest.mark.skipif(not PATCH, reason="needs the program patch")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\n" * 10 + "b\n" + "a\n" * 10, "a\n" * 10 + "c\n" + "a\n" * 10),
        ("a\nb", "a\nc\n"),
        ("", "a\n"),
        ("".join(f"{n}\n" for n in range(50)), "".join(f"{n}\n" for n in range(50) if n not in {3, 40})),
        ("".join(f"{n}\n" for n in range(2_500)), "".join(f"x{n}\n" for n in range(2_500))),
    ],
)
def test_a_diff_is_one_that_patch_takes(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "f").write_text(before)
    shown = diff("f", before, after)
    if shown.truncated:
        assert len(shown.text) == 20_000
        return
    subprocess.run([PATCH, "-s", "-p1"], input=shown.text.encode(), cwd=tmp_path, check=True)
    assert (tmp_path / "f").read_text() == after


@given(lines, lines)
def test_a_diff_holds_every_line_that_went_or_came(before: str, after: str) -> None:
    shown = diff("f", before, after).text.splitlines()[2:]
    gone = [line[1:] for line in shown if line[:1] in {" ", "-"}]
    come = [line[1:] for line in shown if line[:1] in {" ", "+"}]
    for part, whole in ((gone, before), (come, after)):
        rest = iter(whole.splitlines())
        assert all(line in rest for line in part)


def test_a_name_with_a_line_end_cannot_pass_for_part_of_a_diff() -> None:
    assert diff("a\n+++ b/other", "x\n", "y\n").text.splitlines()[:2] == [
        r"--- a/'a\n+++ b/other'",
        r"+++ b/'a\n+++ b/other'",
    ]


def test_the_diff_of_a_large_rewrite_is_made_at_once() -> None:
    before, after = "a\nb\n" * 100_000, "b\na\n" * 100_000
    start = process_time()
    assert diff("f", before, after).truncated
    assert process_time() - start < 3
