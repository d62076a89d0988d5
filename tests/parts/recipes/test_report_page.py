from __future__ import annotations

from lxml import html

from remit.parts.recipes.evidence import ChosenClaim, EvidencePiece
from remit.parts.recipes.report import Report, ReportFacts, Searched, Unread, compose, page

HOSTILE = '<script>alert(1)</script><img src="//e.example/x" onerror=x> " onmouseover=x \' </span>'


def report(text: str = "The words.", url: str = "https://a.example/x", **more: str) -> Report:
    piece = EvidencePiece(url, more.pop("title", "The A"), "", 10, f"Before. {text} After.", "sha256:a", 0, "page")
    claim = ChosenClaim(piece, 18, 18 + len(text), text, text, "", **more)
    facts = ReportFacts(
        query=more.get("prose", "why?"),
        searched=Searched(queries=["why?"], results=3, pages=1),
        unread=[Unread("https://b.example/", "consent")],
        model="openai:x" if more else "",
    )
    return compose(facts, [claim])


def test_each_claim_carries_its_quotation_within_its_source() -> None:
    tree = html.document_fromstring(page(report(prose="It is so.", section="One")))
    [claim] = tree.find_class("claim")
    assert claim.text == "It is so."
    [card] = tree.find_class("card")
    assert card.find("q").text_content() == "…Before. The words. After. …"
    assert [mark.text for mark in tree.iter("mark")] == ["The words."]
    assert {link.get("href") for link in card.iter("a")} == {"https://a.example/x"}
    assert "https://b.example/" in tree.text_content()


def test_the_file_needs_nothing_else_and_runs_nothing() -> None:
    for hostile in (report(HOSTILE, title=HOSTILE, prose=HOSTILE, section=HOSTILE), report(HOSTILE, url=HOSTILE)):
        text = page(hostile)
        tree = html.document_fromstring(text)
        assert {each.tag for each in tree.iter() if isinstance(each.tag, str)} <= {
            "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "small", "span", "sup", "a", "b",
            "q", "mark", "i", "ol", "ul", "li", "br", "code", "blockquote", "footer",
        }  # fmt: skip
        names = {name for each in tree.iter() for name in each.keys()}  # noqa: SIM118 - an element is no dict
        assert names <= {"lang", "charset", "http-equiv", "content", "name", "class", "tabindex", "id", "href", "rel"}
        links = {link.get("href") for link in tree.iter("a")}
        assert all(link.startswith(("https://", "#")) for link in links)
        assert "default-src 'none'" in text
        assert "url(" not in text


def test_without_evidence_it_says_so() -> None:
    text = page(compose(ReportFacts(query="why?", searched=Searched(folder="/library")), []))
    assert "No evidence: nothing in 0 files (0 passages) in /library answers this question." in text
