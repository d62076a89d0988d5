import pytest

from scripts.site_hooks import on_page_markdown, slug


def test_a_link_to_a_file_outside_of_the_site_becomes_its_text() -> None:
    page = "See [`app.py`](../src/remit/app.py), [plans](plans.md#nodes) and ![a picture](images/call.svg)."
    assert on_page_markdown(page) == "See `app.py`, [plans](plans.md#nodes) and ![a picture](images/call.svg)."


def test_the_name_of_a_file_is_its_title() -> None:
    assert on_page_markdown("```python recipes.py\npass\n```\n") == '```python title="recipes.py"\npass\n```\n'
    assert on_page_markdown("```toml\n```\n") == "```toml\n```\n"


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
