"""A report as one HTML file that needs nothing else: each claim shows its quotation, and that what stands around it.

There is no script in it, and its policy lets it load nothing: what it quotes comes from strangers. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from remit.recipes.report import method, place, summary, where

if TYPE_CHECKING:
    from remit.recipes.report import Citation, Report, Source

_LINES: Final = re.compile(r"[ \t\r]*\n\s*")
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
        yield from _written(report) if report.model else _quoted(report)
        yield "<h2>Sources</h2>\n<ol>"
        yield from (_entry(source, report) for source in report.sources)
        yield "</ol>"
    if report.unread:
        yield "<h2>Not used</h2>\n<ul>"
        yield from (f"<li>{_place(each.path)} <small>{escape(each.why)}</small></li>" for each in report.unread)
        yield "</ul>"
    yield "<footer>Every quotation stands, character for character, in what the record keeps of its source.</footer>"


def _quoted(report: Report) -> Iterator[str]:
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


def _written(report: Report) -> Iterator[str]:
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
