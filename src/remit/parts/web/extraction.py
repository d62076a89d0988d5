"""The main text of an HTML page: what trafilatura finds, or resiliparse where that is much less; and that of a PDF.

Some pages make every extractor run for minutes or take a gigabyte, so it is done in processes of their own with bounds
on memory and time (remit.process.workers). This module is what such a process runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.files import parse_job
from remit.files.pdf import read_pdf
from remit.process.worker import answer_jobs

if TYPE_CHECKING:
    from collections.abc import Iterable

_LARGE: Final = 5 * 1024 * 1024
"""Characters above which only resiliparse is asked: trafilatura takes minutes."""
_SHARE: Final = 0.6
"""Fewer words than this share of resiliparse's, and trafilatura missed the text."""
_LINKS: Final = 200
_AS_REQUESTED: Final = {ord(" "): "%20", **dict.fromkeys(map(ord, "\t\n\r"))}
"""Blanks and line ends within a link, as a browser requests them (the URL Standard)."""
_FEW: Final = 40
"""Words of a page below which its text may be elsewhere."""
_TELLING: Final = 2_000
"""Characters that tell the language."""


class Extract(msgspec.Struct, frozen=True, kw_only=True, tag="extract"):
    """The text of a page."""

    text: str
    """Markdown, where `method` is trafilatura; else plain lines."""
    title: str = ""
    language: str = ""
    """Such as `en`; empty where there is too little text to tell."""
    links: tuple[str, ...] = ()
    """Targets of links as the page writes them, each once."""
    method: str = ""
    """`trafilatura` or `resiliparse`; of a PDF `pdfium`."""
    base: str = ""
    """Address that the links of an HTML page start from, by its own word; empty where it has none."""
    pages: tuple[int, ...] = ()
    """Where each page of a PDF begins in `text`."""
    truncated: bool = False
    note: str = ""
    """Where more may stand, of a page with few words."""


class ExtractionJob(msgspec.Struct, frozen=True, tag="html"):
    """A page to extract from."""

    html: str
    url: str


def extract(job: ExtractionJob) -> Extract:
    """Return the main text of a page."""
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415 - an extra, loaded in workers alone
    from resiliparse.parse.html import HTMLTree  # noqa: PLC0415 - the same

    tree = HTMLTree.parse(job.html)
    plain = extract_plain_text(tree, main_content=True, alt_texts=False).strip()
    marked, links = ("", _walked(tree)) if len(job.html) > _LARGE else _marked(job)
    fits = len(marked.split()) >= _SHARE * len(plain.split())
    text, method = (marked, "trafilatura") if marked and fits else (plain, "resiliparse")
    note, frames = _elsewhere(tree) if len(text.split()) < _FEW else ("", ())
    return Extract(
        text=text,
        title=" ".join((tree.title or "").split()),
        language=_language(plain),
        links=frames + links,
        base=_base(tree),
        method=method,
        note=note,
    )


def answer(job: ExtractionJob | parse_job.ParseJob) -> Extract | parse_job.Refused:
    """Return the text of a page or a PDF."""
    if isinstance(job, ExtractionJob):
        return extract(job)
    pdf = read_pdf(job)
    if isinstance(pdf, parse_job.Refused):
        return pdf
    return Extract(
        text=pdf.text,
        title=pdf.title,
        language=_language(pdf.text),
        method="pdfium",
        pages=pdf.pages,
        truncated=pdf.truncated,
    )


def _marked(job: ExtractionJob) -> tuple[str, tuple[str, ...]]:
    """The text as Markdown, and the links of the tree that trafilatura reads it from."""
    import trafilatura  # noqa: PLC0415 - an extra, and slow to load

    tree = trafilatura.load_html(job.html)
    if tree is None:
        return "", ()
    links = _links(anchor.get("href") for anchor in tree.iter("a"))
    text = trafilatura.extract(tree, url=job.url, output_format="markdown", include_comments=False, include_tables=True)
    return (text or "").strip(), links


def _elsewhere(tree: Any) -> tuple[str, tuple[str, ...]]:
    """Return where more of a page may stand, and the addresses of its frames."""
    frames = _links(frame.getattr("src") for frame in tree.document.query_selector_all("frame, iframe"))
    if frames:
        return "More may stand in its frames, which are the first of the links.", frames
    if tree.document.query_selector('script:not([type$="json"])') is not None:
        return "Its scripts may write more, and they did not run: a browser shows it.", ()
    return "", ()


def _base(tree: Any) -> str:
    """The target of the first `<base>` that has one."""
    bases = tree.head.get_elements_by_tag_name("base") if tree.head is not None else ()
    return next((target for base in bases if (target := (base.getattr("href") or "").strip())), "")


def _language(text: str) -> str:
    from resiliparse.parse.lang import detect_fast  # noqa: PLC0415 - an extra, loaded in workers alone

    language, _ = detect_fast(text[:_TELLING])
    return "" if language == "unknown" else str(language)


def _walked(tree: Any) -> tuple[str, ...]:
    """The links of a large page; its parser's own lists search the page again for each of their items."""
    body = tree.body if tree.body is not None else ()
    return _links(node.getattr("href") for node in body if node.tag == "a")


def _links(targets: Iterable[str | None]) -> tuple[str, ...]:
    links: dict[str, None] = {}
    for raw_target in targets:
        target = (raw_target or "").strip().translate(_AS_REQUESTED)
        if target and not target.startswith(("#", "javascript:", "data:")):
            links[target[:2_048]] = None
        if len(links) >= _LINKS:
            break
    return tuple(links)


if __name__ == "__main__":
    answer_jobs(ExtractionJob | parse_job.ParseJob, answer)
