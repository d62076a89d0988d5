from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.parts.recipes.evidence import sentences

METHOD = '''def cancel(self, msg=None):
    """Request that this task cancel itself.

    This arranges for an error to be thrown into the
    wrapped coroutine. Unlike Future.cancel, e.g. the C one, this does
    not guarantee that the task will be cancelled:

        result = task.cancel(msg=None)

    - The first item of a list goes here
    - The second one is here as well
    """
    # The comment says why this is done, in
    # two lines of text. It has a second sentence.
    self._must_cancel = self._fut_waiter.cancel(msg)  # trailing
    return True
'''

TAIL = '''the request using try and except. The task may also return a value or
    raise a different exception.
    """
    if self._fut_waiter is not None and self._must_cancel:
        return self._fut_waiter.cancel(msg=msg)
'''


def plain(passage: str, *, prose: bool) -> list[str]:
    return [sentence.plain for sentence in sentences(passage, prose=prose)]


def explained(passage: str) -> list[str]:
    """The sentences of source code that read like prose."""
    return [sentence.plain for sentence in sentences(passage, prose=False) if sentence.prose > 0.4]


def test_prose_is_cut_into_sentences() -> None:
    text = "# Title\n\nThe first one\nspans two lines. Is this the second? It is! (The last one here.)\n"
    assert plain(text, prose=True) == [
        "The first one spans two lines.",
        "Is this the second? It is!",
        "(The last one here.)",
    ] or plain(text, prose=True) == ["The first one spans two lines.", "(The last one here.)"]


def test_abbreviations_and_numbers_end_no_sentence() -> None:
    text = "See e.g. the docs by Dr. Smith et al. Version 3.11 of it costs 1.50 more."
    assert plain(text, prose=True) == [text]


def test_chinese_sentences_end_without_a_blank() -> None:
    assert plain("如果任务被取消协程会收到异常。之后它可以清理。", prose=True) == [
        "如果任务被取消协程会收到异常。",
        "之后它可以清理。",
    ]


def test_headings_rules_and_short_scraps_are_no_sentences() -> None:
    text = "A heading of four words\n=======\n\n## Another heading with five words\n\nToo short.\n\n-----\n"
    assert plain(text, prose=True) == []


def test_list_items_and_table_rows_stand_alone() -> None:
    text = (
        "- the first of the items\n- the second of the items\n\n| a row of a table | here |\n| one more row | there |\n"
    )
    assert plain(text, prose=True) == [
        "the first of the items",
        "the second of the items",
        "a row of a table | here |",
        "one more row | there |",
    ]


def test_of_code_the_docstrings_and_comments_are_sentences() -> None:
    assert explained(METHOD) == [
        "Request that this task cancel itself.",
        "This arranges for an error to be thrown into the wrapped coroutine.",
        "Unlike Future.cancel, e.g. the C one, this does not guarantee that the task will be cancelled:",
        "The first item of a list goes here",
        "The second one is here as well",
        "The comment says why this is done, in two lines of text.",
        "It has a second sentence.",
    ]


def test_lines_of_code_count_little() -> None:
    code = [sentence for sentence in sentences(METHOD, prose=False) if sentence.plain.startswith("self._must_cancel")]
    assert [sentence.prose for sentence in code] == [0.1]


def test_a_passage_that_begins_inside_a_docstring_is_understood() -> None:
    assert explained(TAIL) == [
        "the request using try and except.",
        "The task may also return a value or raise a different exception.",
    ]


def test_code_without_a_docstring_is_code_for_all_its_keywords() -> None:
    code = "if not self and other is not None:\n    for each in all_of(them):\n        raise Error(each) from None\n"
    assert explained(code) == []


@pytest.mark.parametrize("leader", ["#", "//", "--", ";;", " *"])
def test_comments_of_many_languages_are_read_across_their_lines(leader: str) -> None:
    text = f"{leader} This is why the thing\n{leader} is done here.\nint x = 1;\n"
    [sentence] = [sentence for sentence in sentences(text, prose=False) if sentence.prose > 0.4]
    assert sentence.plain == "This is why the thing is done here."
    assert sentence.text == text[sentence.start : sentence.end]
    assert leader.strip() in sentence.text


def test_the_first_sentence_of_a_paragraph_is_known_as_such() -> None:
    text = "The first of the sentences. The second of the sentences.\n\nAnother paragraph stands here."
    assert [sentence.first for sentence in sentences(text, prose=True)] == [True, False, True]


@given(
    st.lists(
        st.sampled_from(
            [
                "a word of text ",
                "The end. ",
                "\n",
                "\n\n",
                '"""',
                "# ",
                "    ",
                "x = f(y)\n",
                "- ",
                "| ",
                "====\n",
                "。",
                "é",
                "\r\n",
            ]
        ),
        max_size=40,
    ).map("".join),
    st.booleans(),
)
def test_every_sentence_stands_exactly_where_it_says(text: str, prose: bool) -> None:
    at = 0
    for sentence in sentences(text, prose=prose):
        assert sentence.start >= at
        assert text[sentence.start : sentence.end] == sentence.text == sentence.text.strip()
        assert 0 <= sentence.prose <= 1
        at = sentence.end
