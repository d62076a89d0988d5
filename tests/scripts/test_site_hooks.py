from types import SimpleNamespace

import pytest

from scripts.site_hooks import nested, on_page_content, on_page_markdown, slug, summary


def page_of(title: str) -> SimpleNamespace:
    """A page in the section of this title."""
    return SimpleNamespace(meta={}, parent=SimpleNamespace(title=title))


def test_a_link_to_a_file_outside_of_the_site_becomes_its_text() -> None:
    page = "See [`app.py`](../src/remit/app.py), [plans](plans.md#nodes) and ![a picture](images/call.svg)."
    assert (
        on_page_markdown(page, page_of("Reference"))
        == "See `app.py`, [plans](plans.md#nodes) and ![a picture](images/call.svg)."
    )


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("```python recipes.py\npass\n```\n", '```python title="recipes.py"\npass\n```\n'),
        ("```json vscode after\n{}\n```\n", '```json title="vscode after"\n{}\n```\n'),
        ("```toml\n```\n", "```toml\n```\n"),
    ],
)
def test_the_words_after_the_language_of_a_block_are_its_title(markdown: str, shown: str) -> None:
    assert on_page_markdown(markdown, page_of("Reference")) == shown


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("What it cannot promise", "what-it-cannot-promise"),
        ("TOOL → REPLY", "tool--reply"),
        ("`a_b` and C", "a_b-and-c"),
    ],
)
def test_an_anchor_is_that_of_the_repository_s_host(heading: str, anchor: str) -> None:
    assert slug(heading, "-") == anchor


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<p>one | two</p><pre>```\n| a | b |\n</pre><code>```</code>", []),
        ("<p>```json vscode after\n{}</p>", ["```"]),
        ("<p>| | |\n|---|---|\n| a | b |</p>", ["<p>| | |", "|---|---|", "| a | b |"]),
    ],
)
def test_markdown_that_a_page_would_show_as_text_is_warned_of(
    html: str, found: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert on_page_content(html, SimpleNamespace(file=SimpleNamespace(src_uri="a.md"))) == html
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == found


@pytest.mark.parametrize(
    ("title", "meta"),
    [("Reference", {"description": "One."}), ("How-to guides", {"description": "One.", "search": {"boost": 2.0}})],
)
def test_a_guide_weighs_more_in_the_search_than_a_reference(title: str, meta: dict[str, object]) -> None:
    page = page_of(title)
    on_page_markdown("# A\nOne.\n", page)
    assert page.meta == meta


@pytest.mark.parametrize(
    ("markdown", "first"),
    [
        ("# A\nOne [link](b.md) and\n`code`. Two.\n\nThree.", "One link and code. Two."),
        ("# A\n```\ncode\n```\n| a | b |\n|---|---|\n\nAfter **all**:\n\n- not this", "After all"),
        (f"# A\nOne. {'x' * 200}.", "One."),
        ("# A\n```\ncode\n```\n", ""),
    ],
)
def test_the_summary_of_a_page_is_its_first_sentences(markdown: str, first: str) -> None:
    assert summary(markdown) == first


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("So:\n- a\n  b\n- c", "So:\n\n- a\n    b\n- c"),
        ("1. a\n   - b\n     c\n2. d", "1. a\n    - b\n        c\n2. d"),
        ("1. a\n\n   b\n2. c", "1. a\n\n    b\n\n2. c"),
        ("1. a:\n   ```toml\n   b = 1\n   ```\n2. c", "1. a:\n    ```toml\n    b = 1\n    ```\n\n2. c"),
        ("- a\n\nb\n  c", "- a\n\nb\n  c"),
        ("```\nb\n- c\n```", "```\nb\n- c\n```"),
    ],
)
def test_lists_are_as_python_markdown_wants_them(markdown: str, shown: str) -> None:
    assert nested(markdown) == shown
