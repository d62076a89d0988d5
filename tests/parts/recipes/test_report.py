from __future__ import annotations

import html
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from remit.canonical import canonical
from remit.parts.recipes.evidence import ChosenClaim, EvidencePiece
from remit.parts.recipes.report import Report, ReportFacts, Searched, Unread, compose, name, plain

FACTS = ReportFacts(query="why?", searched=Searched(folder="/library", files=1_234, passages=1))
active = st.text(st.sampled_from("ab _*`[](){}<>!&#~|\\-+=.:;'\"\n$https://"), max_size=40)


def claim(text: str, path: str = "a.md", start: int = 0, heading: str = "", title: str = "") -> ChosenClaim:
    piece = EvidencePiece(path, title or path, heading, start, text, "sha256:" + path.partition("\n")[0])
    return ChosenClaim(piece, start, start + len(text), text, " ".join(text.split()), heading)


def rendered(markdown: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown))


def shown(markdown: str) -> str:
    """What a reader sees of a paragraph, if nothing in it is formatted except code."""
    page = rendered(markdown).strip().removeprefix("<p>").removesuffix("</p>")
    page = page.replace("<code>", "").replace("</code>", "")
    assert "<" not in page
    return html.unescape(page)


def composed(*claims: ChosenClaim, facts: ReportFacts = FACTS) -> Report:
    return compose(facts, claims)


def report(*claims: ChosenClaim) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(composed(*claims))
    return found


def test_every_claim_is_cited_by_file_span_and_digest() -> None:
    found = report(claim("First thing.", start=5), claim("Second thing.", "b.py", title="The B"))
    cited = [
        {name: each[name] for name in ("n", "text", "source", "source_index", "start", "end", "sha256")}
        for each in found["evidence"]
    ]
    assert cited == [
        {
            "n": 1,
            "text": "First thing.",
            "source": 1,
            "source_index": 0,
            "start": 5,
            "end": 17,
            "sha256": "sha256:a.md",
        },
        {
            "n": 2,
            "text": "Second thing.",
            "source": 2,
            "source_index": 1,
            "start": 0,
            "end": 13,
            "sha256": "sha256:b.py",
        },
    ]
    assert [(each["n"], each["kind"], each["path"], each["title"]) for each in found["sources"]] == [
        (1, "file", "a.md", "a.md"),
        (2, "file", "b.py", "The B"),
    ]
    assert found["evidence_count"] == 2
    assert (found["searched"]["files"], found["searched"]["passages"]) == (1_234, 1)
    canonical(found)


def test_a_quotation_is_shown_with_what_stands_around_it() -> None:
    piece = EvidencePiece("a.md", "A", "", 100, "Before it. The words. After it. " + "More words. " * 60, "sha256:a")
    [cited] = composed(ChosenClaim(piece, 111, 121, "The words.", "The words.", "")).evidence
    assert cited.before == "Before it. "
    assert cited.after.startswith(" After it. More words.")
    assert len(cited.after) <= 280


def web(*claims: ChosenClaim, **more: Any) -> Report:
    facts = ReportFacts(query="why?", searched=Searched(queries=["why?"], results=9, pages=3), **more)
    return composed(*claims, facts=facts)


def page(text: str, url: str = "https://a.example/x", title: str = "The A", **more: Any) -> ChosenClaim:
    piece = EvidencePiece(url, title, "", 0, text, "sha256:a", 0, "page")
    return ChosenClaim(piece, 0, len(text), text, text, "")._replace(**more)


def test_a_report_on_pages_names_their_addresses_and_what_was_not_used() -> None:
    found = web(
        page("It is so."), unread=[Unread("https://b.example/", "timeout_read")], note="Only a part was searched."
    )
    assert found.report == (
        "# why?\n\nOnly a part was searched.\n\n"
        "1 quotation from 1 page, out of 3 pages read of 9 results on the web. Every one is verbatim.\n\n"
        "## The A\n\n> “It is so.” [1]\n\n"
        "## Sources\n\n1. <https://a.example/x>: The A  \n   sha256:a  \n   [1] characters 0-9\n\n"
        "## Not used\n\n- `https://b.example/`: timeout_read\n"
    )


def test_sentences_of_a_model_stand_in_its_order_above_what_they_rest_on() -> None:
    first = page("Words of b.", "https://b.example/", prose="It says b.", section="One")
    second = page("Words of a.", prose="It says a.", section="Two")
    found = web(first, second, model="openai:x", dropped=2)
    assert [source.path for source in found.sources] == ["https://b.example/", "https://a.example/x"]
    assert (
        "## One\n\nIt says b. [1]\n\n## Two\n\nIt says a. [2]\n\n## Quotations\n\n> “Words of b.” [1]" in found.report
    )
    assert "2 sentences without such words were left out." in found.report


def test_the_report_reads_as_a_page() -> None:
    found = report(claim("First\n  thing.", start=5, heading="Guide"), claim("Other.", "b.py", title="The B"))
    assert found["report"] == (
        "# why?\n\n"
        "2 quotations from 2 files, out of 1,234 files (1 passage) in `/library`. Every one is verbatim.\n\n"
        "## `a.md`\n\nIn `Guide`:\n\n> “First thing.” [1]\n\n"
        "## `b.py`\n\n> “Other.” [2]\n\n"
        "## Sources\n\n"
        "1. `a.md`  \n   sha256:a.md  \n   [1] characters 5-19\n\n"
        "2. `b.py`: The B  \n   sha256:b.py  \n   [2] characters 0-6\n"
    )


def test_claims_of_a_file_stand_together_in_its_order() -> None:
    found = report(claim("Late.", start=9), claim("Other.", "b.md"), claim("Early.", start=1))
    assert [(each["text"], each["source"]) for each in found["evidence"]] == [
        ("Early.", 1),
        ("Late.", 1),
        ("Other.", 2),
    ]
    assert [each["n"] for each in found["evidence"]] == [1, 2, 3]


def test_without_evidence_the_report_says_so() -> None:
    found = report()
    assert found["report"].startswith("# why?\n\nNo evidence: nothing in 1,234 files")
    assert (found["evidence"], found["sources"], found["evidence_count"]) == ([], [], 0)


def test_a_hostile_quotation_stays_text() -> None:
    hostile = "<script>x</script> ![a](http://e/?q=1) [b](javascript:c) <http://e> `a` <b>**d**</b> &lt; ~~e~~"
    page = rendered(report(claim(hostile))["report"])
    for markup in ("<script", "<img", "<a ", "<b>", "<strong>", "<s>"):
        assert markup not in page


def test_a_hostile_question_or_path_stays_text() -> None:
    asked = ReportFacts(query="<img src=x>\n# more", searched=Searched(folder="/a`b"))
    found = composed(claim("Text.", "x\n# y`z<i>.md", title="<i>t</i>\n# u"), facts=asked)
    page = rendered(found.report)
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
