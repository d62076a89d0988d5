"""Main texts of pages, and pages that would take a machine to find one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from remit.codes import Code
from remit.parts.web.engine import Extractors
from remit.parts.web.extraction import ExtractionJob, extract
from remit.parts.web.fetcher import WebError

SENTENCE = "The committee meets on the third of May and decides about the budget. "
PAGE = f"""<html><head><title>The  budget &amp; more</title></head><body>
<nav><a href="/home">Home</a><a href="/about">About us</a></nav>
<article><h1>The budget</h1><p>{SENTENCE * 8}</p><p>See <a href="/minutes">the minutes</a>.</p>
<table><tr><td>Cash</td><td>300</td></tr></table></article><footer>Imprint</footer></body></html>"""
LINES = "".join(f"<div>{SENTENCE}</div>" for _ in range(40))


@pytest.fixture
async def extractors() -> AsyncIterator[Extractors]:
    extractors = Extractors(1, seconds=60)
    yield extractors
    await extractors.close()


@pytest.mark.slow
async def test_a_page_gives_its_text_title_language_and_links(extractors: Extractors) -> None:
    for _ in range(2):  # the same process
        found = await extractors.extract(PAGE, "http://e.example/")
        assert (found.title, found.language, found.method) == ("The budget & more", "en", "trafilatura")
        assert "third of May" in found.text
        assert "Cash" in found.text
        assert "About us" not in found.text
        assert set(found.links) == {"/home", "/about", "/minutes"}


@pytest.mark.slow
async def test_a_page_that_takes_too_long_ends_its_process_and_the_next_page_gets_another() -> None:
    extractors = Extractors(1, seconds=0.01)
    with pytest.raises(WebError) as caught:
        await extractors.extract(PAGE, "http://e.example/")
    assert caught.value.cause is Code.parse_failed
    extractors._workers._seconds = 60
    assert (await extractors.extract(PAGE, "http://e.example/")).title
    await extractors.close()


@pytest.mark.slow
async def test_a_process_that_is_killed_is_a_fault_of_its_page_alone(extractors: Extractors) -> None:
    await extractors.extract(PAGE, "http://e.example/")
    worker = extractors._workers._free[0]
    worker.send_signal(9)  # type: ignore[arg-type] # SIGKILL
    with pytest.raises(WebError):
        await extractors.extract(PAGE, "http://e.example/")
    assert (await extractors.extract(PAGE, "http://e.example/")).title


def test_without_an_article_the_text_comes_from_resiliparse() -> None:
    found = extract(ExtractionJob(f"<html><body>{LINES}</body></html>", "http://e.example/"))
    assert found.text.count("third of May") >= 1


@pytest.mark.parametrize("html", ["", "<html></html>", "plain words", "<" * 1_000, "\0\0"])
def test_a_page_without_text_gives_none(html: str) -> None:
    assert extract(ExtractionJob(html, "http://e.example/")).links == ()


WORDS = "word " * 50


@pytest.mark.parametrize(
    ("html", "note", "links"),
    [
        ('<frameset><frame src="/a"><frame src="b#c"></frameset>', "frames", ("/a", "b#c")),
        ('<p>Short.</p><iframe src="/c"></iframe><a href="/d">d</a>', "frames", ("/c", "/d")),
        ('<noscript>Enable JavaScript.</noscript><div id="root"></div><script src="/x.js"></script>', "scripts", ()),
        ('<p>Short.</p><script type="application/ld+json">{}</script>', "", ()),
        ("<p>Short.</p>", "", ()),
        (f'<p>{WORDS}</p><iframe src="/c"></iframe><script></script>', "", ()),
    ],
)
def test_a_page_with_few_words_says_where_more_may_stand(html: str, note: str, links: tuple[str, ...]) -> None:
    found = extract(ExtractionJob(f"<html>{html}</html>", "http://e.example/"))
    assert (note in found.note, bool(found.note), found.links) == (True, bool(note), links)
