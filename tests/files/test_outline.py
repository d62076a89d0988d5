from __future__ import annotations

import re
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.files.outline import outline, scopes, title_of

PYTHON = '''"""Tasks and such."""

import os


class Task:
    """A task."""

    # Why it can be cancelled.
    @final
    def cancel(self, msg=None):
        def inner():
            pass

    async def wait(self) -> None: ...


def create_task(coro):
    "function to call"
'''


def parts(path: str, text: str) -> list[tuple[str, str]]:
    """Each part's scope and its first line."""
    marks = outline(path, text)
    return [
        (scope, text[mark.at :].partition("\n")[0].strip())
        for scope, mark in zip(scopes(path, marks), marks, strict=True)
    ]


def test_definitions_are_found_with_what_stands_right_above_them() -> None:
    assert parts("a.py", PYTHON) == [
        ("Task", "class Task:"),
        ("Task.cancel", "# Why it can be cancelled."),
        ("Task.cancel.inner", "def inner():"),
        ("Task.wait", "async def wait(self) -> None: ..."),
        ("create_task", "def create_task(coro):"),
    ]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("export default async function load(url) {", "load"),
        ("pub(crate) fn parse<T>(input: &str) -> T {", "parse"),
        ("public static class Index {", "Index"),
        ("interface Reader extends Closer {", "Reader"),
        ("type = class", None),
        ("    the function to call is this", None),
        ("default is class", None),
    ],
)
def test_definitions_of_other_languages_are_found_and_prose_is_none(line: str, name: str | None) -> None:
    assert [mark.name for mark in outline("a.ts", line + "\n")] == ([name] if name else [])


def test_markdown_headings_nest_by_their_level() -> None:
    text = "# Guide\n\ntext\n\n## Install #\n\n### On Linux\n\n## Use\n"
    assert [scope for scope, _ in parts("a.md", text)] == [
        "Guide",
        "Guide > Install",
        "Guide > Install > On Linux",
        "Guide > Use",
    ]


def test_underlined_headings_are_found() -> None:
    text = "Guide\n=====\n\ntext\n\nInstall\n-------\n\nmore - text\n"
    assert [scope for scope, _ in parts("a.rst", text)] == ["Guide", "Guide > Install"]


@pytest.mark.parametrize(
    ("path", "text", "title"),
    [
        ("a.py", PYTHON, "Tasks and such."),
        ("a.py", "#!/usr/bin/env python\n# licence\n\n'''One\nmore'''", "One"),
        ("a.py", "import os\n", "a.py"),
        ("docs/a.md", "text first\n\n# The  Title\n", "The Title"),
        ("docs/a.txt", "\n  First line\nsecond", "First line"),
        ("docs/a.txt", "x" * 500, "a.txt"),
        ("docs/a.md", "", "a.md"),
        ("docs/a.md", "# X\n", "X"),
        ("docs/a.txt", "x" * 120, "x" * 120),
        ("docs/a.txt", "x" * 121, "a.txt"),
    ],
)
def test_a_text_is_called_by_its_own_title(path: str, text: str, title: str) -> None:
    assert title_of(path, text) == title


@pytest.mark.parametrize("path", ["a.md", "a.py"])
@pytest.mark.parametrize(
    "part", ["# # # #", " ", "\t", "=", "-", "async ", "def ", "@x\n", "#\n", "# \n", "pub(", "def a\n"]
)
def test_hostile_text_costs_no_more_than_its_length(path: str, part: str) -> None:
    text = part * (1_000_000 // len(part)) + "x"
    before = process_time()
    outline(path, text)
    title_of(path, text)
    assert process_time() - before < 5


_AS_ONE = re.compile(
    r"^(?:(?P<hashes>\#{1,6})[ \t]++(?P<atx>[^\n]{1,200})"
    r"|(?P<under>[^\s\n][^\n]{0,118})\n(?P<line>([=\-~^\"'`+*#])\5{2,}+)[ \t\r]*+)$",
    re.MULTILINE,
)
"""Headings of both kinds in one expression, which is slow to search for."""


@given(
    st.text("#=- \t\r\na", max_size=40)
    | st.lists(st.sampled_from(["# a", "---", "===", "b", "", "## "])).map("\n".join)
)
def test_headings_are_those_that_one_expression_finds(text: str) -> None:
    found = [
        (each.start(), len(each["hashes"])) if each["atx"] else (each.start(), 1 + "#=-~".index(each["line"][0]))
        for each in _AS_ONE.finditer(text)
    ]
    assert [(mark.at, mark.depth) for mark in outline("a.md", text)] == found
