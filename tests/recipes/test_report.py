from __future__ import annotations

import html
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from remit.canonical import canonical
from remit.recipes.evidence import Claim, Piece
from remit.recipes.report import Searched, compose, name, plain

SEARCHED = Searched(files=1_234, passages=1)
active = st.text(st.sampled_from("ab _*`[](){}<>!&#~|\\-+=.:;'\"\n$https://"), max_size=40)


def claim(text: str, path: str = "a.md", start: int = 0, heading: str = "", title: str = "") -> Claim:
    piece = Piece(path, title or path, heading, start, text, "sha256:" + path.partition("\n")[0])
    return Claim(piece, start, start + len(text), text, " ".join(text.split()), heading)


def rendered(markdown: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown))


def shown(markdown: str) -> str:
    """What a reader sees of a paragraph, if nothing in it is formatted except code."""
    page = rendered(markdown).strip().removeprefix("<p>").removesuffix("</p>")
    page = page.replace("<code>", "").replace("</code>", "")
    assert "<" not in page
    return html.unescape(page)


def report(*claims: Claim) -> dict[str, Any]:
    return compose("why?", "/library", claims, SEARCHED)


def test_every_claim_is_cited_by_file_span_and_digest() -> None:
    composed = report(claim("First thing.", start=5), claim("Second thing.", "b.py", title="The B"))
    assert composed["evidence"] == [
        {"n": 1, "text": "First thing.", "source": 1, "start": 5, "end": 17, "sha256": "sha256:a.md"},
        {"n": 2, "text": "Second thing.", "source": 2, "start": 0, "end": 13, "sha256": "sha256:b.py"},
    ]
    assert composed["sources"] == [
        {"n": 1, "path": "a.md", "sha256": "sha256:a.md", "title": "a.md"},
        {"n": 2, "path": "b.py", "sha256": "sha256:b.py", "title": "The B"},
    ]
    assert composed["evidence_count"] == 2
    assert composed["claims"] == composed["evidence"], "the old name, for one more release"
    assert composed["searched"] == {"files": 1_234, "passages": 1}
    canonical(composed)


def test_the_report_reads_as_a_page() -> None:
    composed = report(claim("First\n  thing.", start=5, heading="Guide"), claim("Other.", "b.py", title="The B"))
    assert composed["report"] == (
        "# why?\n\n"
        "2 quotations from 2 files, out of 1,234 files (1 passage) in `/library`. Every one is verbatim.\n\n"
        "## `a.md`\n\nIn `Guide`:\n\n> “First thing.” [1]\n\n"
        "## `b.py`\n\n> “Other.” [2]\n\n"
        "## Sources\n\n"
        "1. `a.md`  \n   sha256:a.md  \n   [1] characters 5-19\n\n"
        "2. `b.py`: The B  \n   sha256:b.py  \n   [2] characters 0-6\n"
    )


def test_claims_of_a_file_stand_together_in_its_order() -> None:
    composed = report(claim("Late.", start=9), claim("Other.", "b.md"), claim("Early.", start=1))
    assert [(each["text"], each["source"]) for each in composed["evidence"]] == [
        ("Early.", 1),
        ("Late.", 1),
        ("Other.", 2),
    ]
    assert [each["n"] for each in composed["evidence"]] == [1, 2, 3]


def test_without_evidence_the_report_says_so() -> None:
    composed = report()
    assert composed["report"].startswith("# why?\n\nNo evidence: nothing in 1,234 files")
    assert (composed["evidence"], composed["sources"], composed["evidence_count"]) == ([], [], 0)


def test_a_hostile_quotation_stays_text() -> None:
    hostile = "<script>x</script> ![a](http://e/?q=1) [b](javascript:c) <http://e> `a` <b>**d**</b> &lt; ~~e~~"
    page = rendered(report(claim(hostile))["report"])
    for markup in ("<script", "<img", "<a ", "<b>", "<strong>", "<s>"):
        assert markup not in page


def test_a_hostile_question_or_path_stays_text() -> None:
    composed = compose(
        "<img src=x>\n# more", "/a`b", [claim("Text.", "x\n# y`z<i>.md", title="<i>t</i>\n# u")], SEARCHED
    )
    page = rendered(composed["report"])
    assert page.count("<h1>") == 1
    assert "<img" not in page
    assert "<i>" not in page


@given(active)
@example("\\`:`")
def test_markdown_shows_a_quotation_as_it_is(text: str) -> None:
    folded = " ".join(text.split())
    assert shown(f"“{plain(text)}”").replace("`", "") == f"“{folded}”".replace("`", "")


@given(active.filter(lambda text: text.strip(" ") == text != ""))
def test_markdown_shows_a_name_as_it_is(text: str) -> None:
    page = rendered(name(text)).removeprefix("<p><code>").removesuffix("</code></p>\n")
    assert html.unescape(page) == text.replace("\n", "\\x0a")


def test_short_code_stays_code_and_signs_that_do_nothing_stay_bare() -> None:
    assert plain("call ``gather.cancel()`` or `x_y`, not snake_case (see #1)") == (
        "call ``gather.cancel()`` or `x_y`, not snake_case (see #1)"
    )


def test_characters_that_reorder_or_hide_text_are_left_out() -> None:
    assert plain("a\u202eb\u200bc\x1b[31m") == "a b c \\[31m"
