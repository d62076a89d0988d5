"""Writing a report from verified quotations. Pure.

What is claimed is quoted, what is quoted is cited. Without a model nothing in it is anyone's own prose; with one, each
sentence of the model carries the words of a source. Quotations come from files and pages that are not vetted, so
whatever Markdown acts on is escaped in them: a quoted page can neither link, embed nor format.

A report as one HTML file that needs nothing else: each claim shows its quotation, and that what stands around it.

There is no script in it, and its policy lets it load nothing: what it quotes comes from strangers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Final
from urllib.parse import urlsplit

import msgspec

from remit.files.text import suffix_of
from remit.parts.recipes.evidence import ChosenClaim, Kind
from remit.regex import regex

_CODE_SPAN: Final = regex(r"(?<!`)(`{1,2})(?!`)([^`\\\[\]<>!]+)(?<!`)\1(?!`)")
_ACTIVE: Final = regex(r"[`*\[<]|~(?=~)|(?<![^\W_])_+|_+(?![^\W_])|&(?=#?\w)|\\(?=[!-/:-@\[-`{-~]|\Z)")
_UNSEEN: Final = regex(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202f\u2060-\u2069\ufeff]")
_LINK: Final = regex(r"https?://[^\s<>\"\\]+")
_AROUND: Final = 280
"""Characters of a passage that are shown before and after a quotation."""
_PLACES: Final = {".ipynb": "cell", ".pptx": "slide", ".xlsx": "sheet", ".epub": "chapter"}
"""Kinds of pages of documents that are not pages."""
_KINDS: Final[tuple[Kind, ...]] = ("file", "page", "document")


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """What was searched."""

    folder: str = ""
    files: int = 0
    passages: int = 0
    queries: list[str] = []
    """The queries to the web."""
    results: int = 0
    """Addresses that searches of the web gave."""
    pages: int = 0
    """Those of them that were read."""
    looked_in: str = ""
    """The folder whose documents were searched."""
    documents: int = 0


class Unread(msgspec.Struct, frozen=True):
    """A source that was found and not used."""

    path: str
    why: str
    """A cause, such as `timeout_read`; or `consent`, `duplicate` or `no_text`."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a text that the record keeps."""

    sha256: str
    """Digest of that text in UTF-8."""
    start: int
    end: int


class Citation(msgspec.Struct, frozen=True, kw_only=True):
    """A verbatim quotation and its place."""

    n: int
    text: str
    """Verbatim."""
    plain: str
    """The same on one line, without the marks that comment lines begin with."""
    source: int
    """The number of its source."""
    source_index: int
    """Its place in `sources`, from 0 on."""
    start: int
    end: int
    sha256: str
    stored: Span
    """The same words in a text that the record keeps: of a page all of it, of a file or document the passage read."""
    page: int | None = None
    """The page of a PDF, or cell of a notebook, that it stands on."""
    claim: str = ""
    """The sentence of a model that it shows; empty: it speaks for itself."""
    section: str = ""
    """The heading that the sentence stands under; of a quotation alone the part of its source."""
    before: str = ""
    """The text of its source before and after it."""
    after: str = ""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A file, page or document that is quoted."""

    n: int
    kind: Kind
    path: str
    """The file below its folder, the page's URL, or the document's path."""
    sha256: str
    """Digest of the bytes of a file or document; of the text of a page, which its positions count in."""
    title: str
    truncated: bool = False
    """Whether its end was too far away to be read."""


class ReportFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a report says beside its quotations."""

    query: str
    searched: Searched
    unread: list[Unread] = []
    model: str = ""
    """The model that wrote its sentences; empty: it is made of quotations alone."""
    dropped: int = 0
    """Sentences of the model that no source holds."""
    note: str = ""


class Report(ReportFacts, frozen=True, kw_only=True):
    """An answer of which every part is quoted."""

    evidence: list[Citation]
    """The quotations of the report, each with its span and its source (contract: tools, "Web")."""
    sources: list[Source]
    evidence_count: int
    report: str = ""
    """The report as Markdown."""


def compose(facts: ReportFacts, claims: Sequence[ChosenClaim], cut: frozenset[str] = frozenset()) -> Report:
    """The report on verified claims, which come best first, or in the order in which a model wrote them.

    `cut` are the sources whose end is missing.
    """
    if not any(claim.prose for claim in claims):
        claims = [claim for group in _by_source(claims).values() for claim in group]
    pieces = {claim.piece.source: claim.piece for claim in reversed(claims)}
    order = list(dict.fromkeys(claim.piece.source for claim in claims))
    sources = [
        Source(
            n=n, kind=(piece := pieces[source]).kind, path=piece.path, sha256=piece.sha256, title=piece.title,
            truncated=piece.path in cut,
        )
        for n, source in enumerate(order, 1)
    ]  # fmt: skip
    citations = [_citation(n, claim, order.index(claim.piece.source)) for n, claim in enumerate(claims, 1)]
    bare = Report(**msgspec.structs.asdict(facts), evidence=citations, sources=sources, evidence_count=len(citations))
    return msgspec.structs.replace(bare, report="\n".join(_lines(bare)))


def _by_source(claims: Sequence[ChosenClaim]) -> dict[tuple[Kind, str], list[ChosenClaim]]:
    """The claims by source, the one with the best claim first, each one's in the order of its text."""
    groups: dict[tuple[Kind, str], list[ChosenClaim]] = {}
    for claim in claims:
        groups.setdefault(claim.piece.source, []).append(claim)
    return {source: sorted(group, key=lambda claim: claim.start) for source, group in groups.items()}


def _citation(n: int, claim: ChosenClaim, index: int) -> Citation:
    text, start, end = claim.piece.text, claim.start - claim.piece.start, claim.end - claim.piece.start
    return Citation(
        n=n,
        text=claim.text,
        plain=claim.plain,
        source=index + 1,
        source_index=index,
        start=claim.start,
        end=claim.end,
        sha256=claim.piece.sha256,
        stored=Span(sha256=claim.piece.stored, start=claim.piece.stored_at + start, end=claim.piece.stored_at + end),
        page=claim.piece.page,
        claim=claim.prose,
        section=claim.section or ("" if claim.heading == claim.piece.title else claim.heading),
        before=_tail(text[:start]),
        after=_head(text[end:]),
    )


def _tail(text: str) -> str:
    """The end of a text, from a word on."""
    return text if len(text) <= _AROUND else text[-_AROUND:].partition(" ")[2]


def _head(text: str) -> str:
    """The beginning of a text, up to a word."""
    return text if len(text) <= _AROUND else text[:_AROUND].rpartition(" ")[0]


# --- Markdown


def _lines(report: Report) -> list[str]:
    lines = [f"# {plain(report.query)}", ""]
    if report.note:
        lines += [plain(report.note), ""]
    if not report.evidence:
        return [*lines, f"No evidence: nothing in {where(report.searched)} answers this question.", "", *_left(report)]
    lines += [f"{summary(report)} {method(report)}", ""]
    lines += _written(report) if report.model else _quoted(report)
    return [*lines, *_source_list(report), *_left(report)]


def summary(report: Report) -> str:
    """Return how much is quoted, of what."""
    counts = [_many(count, kind) for kind in _KINDS if (count := sum(source.kind == kind for source in report.sources))]
    return f"{_many(len(report.evidence), 'quotation')} from {_joined(counts)}, out of {where(report.searched)}."


def where(searched: Searched) -> str:
    """Return what was searched, in words."""
    parts = []
    if searched.folder or not (searched.queries or searched.looked_in):
        parts.append(
            f"{_many(searched.files, 'file')} ({_many(searched.passages, 'passage')}) in {name(searched.folder)}"
        )
    if searched.looked_in:
        parts.append(f"{_many(searched.documents, 'document')} in {name(searched.looked_in)}")
    if searched.queries:
        parts.append(f"{_many(searched.pages, 'page')} read of {_many(searched.results, 'result')} on the web")
    return _joined(parts)


def method(report: Report) -> str:
    """Return what a reader may rely on."""
    if not report.model:
        return "Every one is verbatim."
    dropped = f" {_many(report.dropped, 'sentence')} without such words {_was(report.dropped)} left out."
    held = f"The sentences are those of {plain(report.model)}; the words behind each one stand in its source."
    return held + (dropped if report.dropped else "")


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _quoted(report: Report) -> Iterator[str]:
    """The quotations alone, by their sources."""
    source, heading = -1, ""
    for each in report.evidence:
        own = report.sources[each.source_index]
        if each.source_index != source:
            source, heading = each.source_index, ""
            yield from (f"## {plain(own.title) if own.kind == 'page' else name(own.path)}", "")
        if each.section not in {"", heading}:
            heading = each.section
            yield from (f"In {name(heading)}:", "")
        yield from (f"> “{plain(each.plain)}” [{each.n}]", "")


def _written(report: Report) -> list[str]:
    """The model's sentences, and below them what they rest on."""
    lines: list[str] = []
    section, paragraph = "", ""
    for each in report.evidence:
        if each.section not in {"", section}:
            lines += [paragraph.strip(), ""] if paragraph else []
            section, paragraph = each.section, ""
            lines += [f"## {plain(section)}", ""]
        paragraph += f"{plain(each.claim)} [{each.n}] "
    lines += [paragraph.strip(), "", "## Quotations", ""]
    for each in report.evidence:
        lines += [f"> “{plain(each.plain)}” [{each.n}]", ""]
    return lines


def _source_list(report: Report) -> list[str]:
    lines = ["## Sources", ""]
    for source in report.sources:
        own = [each for each in report.evidence if each.source == source.n]
        titled = "" if source.title in {source.path, source.path.rpartition("/")[2]} else f": {plain(source.title)}"
        shown = f"<{source.path}>" if source.kind == "page" and _LINK.fullmatch(source.path) else name(source.path)
        cut = " (its end is missing)" if source.truncated else ""
        places = ", ".join(f"[{each.n}] {place(each, source)}characters {each.start}-{each.end}" for each in own)
        lines += [f"{source.n}. {shown}{titled}{cut}  ", f"   {source.sha256}  ", f"   {places}", ""]
    return lines


def _left(report: Report) -> list[str]:
    """Return what was found and could not be used."""
    if not report.unread:
        return []
    return ["## Not used", "", *(f"- {name(each.path)}: {each.why}" for each in report.unread), ""]


def plain(text: str) -> str:
    """Text on one line that Markdown shows as it is; short code between backticks stays code."""
    text = " ".join(_UNSEEN.sub(" ", text).split())
    out: list[str] = []
    start = 0
    for span in _CODE_SPAN.finditer(text):
        out += [_escaped(text[start : span.start()]), span[0]]
        start = span.end()
    return "".join(out) + _escaped(text[start:])


def place(each: Citation, source: Source) -> str:
    """Return the page that a quotation stands on, in words with a comma; empty if its source has none."""
    if each.page is None:
        return ""
    kind = _PLACES.get(suffix_of(source.path), "page")
    return f"{kind} {each.page:,}, "


def name(text: str) -> str:
    """A path or a name as inline code, whatever characters it has."""
    shown = _UNSEEN.sub(lambda sign: f"\\x{ord(sign[0]):02x}", text)
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", shown)), default=0))
    pad = " " if fence != "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _escaped(text: str) -> str:
    return _ACTIVE.sub(lambda signs: "".join("\\" + sign for sign in signs[0]), text)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


_LINES: Final = regex(r"[ \t\r]*\n\s*")
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE: Final = """
:root { color-scheme: light dark; --paper: #fdfdfb; --ink: #1d2126; --soft: #5d6670; --line: #dfe3e6;
  --accent: #0b6bcb; --mark: #fff0b3; --card: #ffffff; --shade: 0 8px 30px rgb(20 30 40 / .18); }
@media (prefers-color-scheme: dark) { :root { --paper: #15181c; --ink: #e4e7ea; --soft: #98a2ad; --line: #2c3238;
  --accent: #6cb2ff; --mark: #5a4a10; --card: #1e2328; --shade: 0 8px 30px rgb(0 0 0 / .6); } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 17px/1.6 Georgia, "Times New Roman", serif; }
main { max-width: 44rem; margin: 0 auto; padding: 3rem 1.25rem 10rem; }
h1 { font-size: 1.9rem; line-height: 1.25; margin: 0 0 .6rem; text-wrap: balance; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; padding-top: .9rem; border-top: 1px solid var(--line); }
h2 small, .how, .note, .part, footer, .card, li code { font-family: system-ui, sans-serif; }
h2 small { font-weight: 400; font-size: .8rem; color: var(--soft); margin-left: .4rem; }
.how, .note { font-size: .88rem; color: var(--soft); margin: 0 0 .4rem; }
.note { color: inherit; border-left: 3px solid #d08700; padding-left: .8rem; }
.part { font-size: .8rem; color: var(--soft); margin: 1rem 0 .2rem; }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: 2px; overflow-wrap: anywhere; }
main p, blockquote { position: relative; }
.claim { cursor: help; border-radius: 3px; outline: none; }
.claim:hover, .claim:focus-within { background: var(--mark); }
blockquote { margin: .5rem 0 .9rem; padding: .1rem 0 .1rem 1rem; border-left: 3px solid var(--line); }
sup { font: 600 .68em/0 system-ui, sans-serif; margin-left: .1em; }
sup a { text-decoration: none; padding: .2em; }
.card { position: absolute; left: 0; right: 0; margin-top: 1.75rem; z-index: 2; padding: .85rem 1rem;
  background: var(--card); border: 1px solid var(--line); border-radius: 8px; box-shadow: var(--shade);
  font-size: .84rem; line-height: 1.5; visibility: hidden; opacity: 0; transition: opacity .12s .12s; }
.claim:hover > .card, .claim:focus-within > .card { visibility: visible; opacity: 1; }
.card b, .card i { display: block; font-style: normal; }
.card i { color: var(--soft); font-size: .74rem; margin-top: .5rem; overflow-wrap: anywhere; }
.card q { display: block; quotes: none; margin-top: .45rem; white-space: pre-line; overflow-wrap: anywhere; }
@media (prefers-reduced-motion: reduce) { .card { transition: none; } }
mark { background: var(--mark); color: inherit; padding: .05em 0; border-radius: 2px; }
ol, ul { padding-left: 1.4rem; } li { margin-bottom: .7rem; overflow-wrap: anywhere; }
li code { display: block; font-size: .72rem; color: var(--soft); }
footer { margin-top: 3rem; padding-top: .9rem; border-top: 1px solid var(--line); font-size: .78rem;
  color: var(--soft); }
:target { background: var(--mark); }
@media print { .card { display: none; } .claim { cursor: auto; } main { max-width: none; padding: 0; } }
"""


def page(report: Report) -> str:
    """The report as HTML."""
    body = "\n".join(_body(report))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{escape(report.query)}</title>\n<style>{_STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def _body(report: Report) -> Iterator[str]:
    yield f"<h1>{escape(report.query)}</h1>"
    if report.note:
        yield f'<p class="note">{escape(report.note)}</p>'
    if not report.evidence:
        yield f"<p>No evidence: nothing in {_shown(where(report.searched))} answers this question.</p>"
    else:
        yield f'<p class="how">{_shown(summary(report))} {_shown(method(report))}</p>'
        what = "a sentence" if report.model else "a quotation"
        yield f'<p class="how">Point at {what} to see where its words stand.</p>'
        yield from _written_as_html(report) if report.model else _quoted_as_html(report)
        yield "<h2>Sources</h2>\n<ol>"
        yield from (_entry(source, report) for source in report.sources)
        yield "</ol>"
    if report.unread:
        yield "<h2>Not used</h2>\n<ul>"
        yield from (f"<li>{_place(each.path)} <small>{escape(each.why)}</small></li>" for each in report.unread)
        yield "</ul>"
    yield "<footer>Every quotation stands, character for character, in what the record keeps of its source.</footer>"


def _quoted_as_html(report: Report) -> Iterator[str]:
    """The quotations by their sources."""
    for index, group in groupby(report.evidence, key=lambda each: each.source_index):
        source, part = report.sources[index], ""
        where_from = _host(source) if source.kind == "page" else source.path if source.title else ""
        yield f"<h2>{escape(source.title or source.path)}<small>{escape(where_from)}</small></h2>"
        for each in group:
            if each.section not in {"", part}:
                part = each.section
                yield f'<p class="part">{escape(part)}</p>'
            yield f"<blockquote>{_claim(each, each.plain, report)}</blockquote>"


def _written_as_html(report: Report) -> Iterator[str]:
    """The sentences of a model under their headings."""
    for section, group in groupby(report.evidence, key=lambda each: each.section):
        if section:
            yield f"<h2>{escape(section)}</h2>"
        yield f"<p>{' '.join(_claim(each, each.claim, report) for each in group)}</p>"


def _claim(each: Citation, words: str, report: Report) -> str:
    source = report.sources[each.source_index]
    return (
        f'<span class="claim" tabindex="0" id="c{each.n}">{escape(words)}<sup><a href="#s{source.n}">{each.n}</a></sup>'
        f'<span class="card"><b>{escape(source.title or source.path)}</b>{_place(source.path, each.page)}'
        f"<q>{_started(each.before)}<mark>{escape(each.text)}</mark>{_ended(each.after)}</q>"
        f"<i>{place(each, source)}characters {each.start:,} to {each.end:,} of its text</i></span></span>"
    )


def _started(before: str) -> str:
    return f"…{_close(before)}" if before else ""


def _ended(after: str) -> str:
    return f"{_close(after)} …" if after else ""


def _close(text: str) -> str:
    """Text without its empty lines."""
    return escape(_LINES.sub("\n", text))


def _entry(source: Source, report: Report) -> str:
    own = [each for each in report.evidence if each.source == source.n]
    links = " ".join(f'<a href="#c{each.n}">[{each.n}]</a> {place(each, source).rstrip(", ")}' for each in own)
    cut = " (its end is missing)" if source.truncated else ""
    return (
        f'<li id="s{source.n}">{escape(source.title or source.path)}{cut}<br>{_place(source.path)} {links}'
        f"<code>{escape(source.sha256)}</code></li>"
    )


def _place(path: str, page: int | None = None) -> str:
    """A source's address: a link where it is one of the web, to a page of a PDF."""
    shown, at = escape(path), f"#page={page}" if page else ""
    if not path.startswith(("https://", "http://")):
        return shown
    return f'<a href="{shown}{at}" rel="noopener noreferrer nofollow">{shown}</a>'


def _host(source: Source) -> str:
    return urlsplit(source.path).hostname or ""


def _shown(text: str) -> str:
    """Words of the Markdown report, without its backquotes."""
    return escape(text.replace("`", ""))
