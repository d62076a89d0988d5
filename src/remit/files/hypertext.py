"""The text of an HTML page, as libxml2 parses it, in time linear in its length.

The parser reports elements as it reads them, and builds no tree. It looks for an unmatched end tag among all open
elements, so nesting is bounded. The page is fed in pieces, because an error stops the parser only between two of them.
The standard library's parser takes a minute for 200 kB of `<!--` repeated, and selectolax (Lexbor) for 1 MB of `<div>`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from lxml.etree import HTMLParser

from remit.regex import regex

_DEEPEST: Final = 2_000
"""Open elements; browsers keep 512."""
_PIECE: Final = 32_768
_SPACES: Final = regex(r"[ \t\r\n\f]+")
_UNREAD: Final = frozenset(
    {"annotation", "annotation-xml", "iframe", "noembed", "noscript", "object", "script", "style", "svg", "template"}
)
"""Elements whose content is not for reading."""
_PARAGRAPHS: Final = frozenset(
    {"address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt", "fieldset", "figcaption"}
    | {"figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p"}
    | {"pre", "section", "summary", "table", "tbody", "tfoot", "thead", "title", "tr", "ul"}
    | {"button", "caption", "dialog", "legend", "optgroup", "option", "select", "textarea"},
)
_HIDDEN: Final = regex(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0+(?:\.0*)?(?:[a-z]+|%)?)"
    r"\s*(?:!\s*important\s*)?(?:;|$)",
    re.IGNORECASE,
)
_VALUELESS: Final = frozenset({"checkbox", "file", "hidden", "image", "password", "radio", "range", "color"})
"""Kinds of `<input>` whose value is not written on the page."""
_CELLS: Final = frozenset({"td", "th"})


class PageText(NamedTuple):
    """The page as a person reads it."""

    text: str
    """Paragraphs separated by an empty line."""
    title: str
    hidden: int = 0
    """Characters that the page holds and hides from a person."""


class TooDeepError(Exception):
    """The page's elements are nested deeper than pages are."""


def page_text(source: str) -> PageText:
    """The text and the title of an HTML page; raises TooDeepError."""
    reader = _Reader()
    if source:  # without any, libxml2 finds no element
        parser = HTMLParser(target=reader, encoding="utf-8", huge_tree=True)
        data = source.encode()
        for at in range(0, len(data), _PIECE):
            parser.feed(data[at : at + _PIECE])
        parser.close()
    return PageText(_tidy("".join(reader.text)), _SPACES.sub(" ", "".join(reader.title)).strip(), reader.hidden)


def _tidy(text: str) -> str:
    # Runs of blanks were folded while reading, except in <pre>; here only the lines are put in order.
    lines = [line.rstrip() for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _hides(tag: str, attributes: Mapping[str, str]) -> bool:
    """Return whether an element is drawn nowhere, by its own attributes; style sheets are not read."""
    closed = tag == "dialog" and "open" not in attributes
    hidden = "hidden" in attributes and attributes["hidden"].lower() != "until-found"
    return closed or hidden or _HIDDEN.search(attributes.get("style", "")) is not None


class _Reader:
    """The parser's target: it gets the start and the end of every element, whether or not the page has their tags."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.title: list[str] = []
        self.hidden = 0
        self._open = 0
        self._unseen = 0
        """Depth of the open element that hides what is in it; 0: none does."""
        self._unread = 0
        self._preformatted = 0
        self._in_title = False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._open += 1
        if self._open > _DEEPEST:
            raise TooDeepError
        self._unread += tag in _UNREAD
        self._preformatted += tag == "pre"
        if not self._unseen and _hides(tag, attributes):
            self._unseen = self._open
        if self._unread:
            return
        if tag == "title" and not self.title:
            self._in_title = True
        elif tag in _PARAGRAPHS:
            self._break("\n\n")
        elif tag == "br":
            self._break("\n")
        elif tag == "input" and attributes.get("type", "text").lower() not in _VALUELESS:
            self.data(f" {attributes.get('value', '')} ")

    def end(self, tag: str) -> None:
        self._open -= 1
        if self._open < self._unseen:
            self._unseen = 0
        self._in_title &= tag != "title"
        if not self._unread:
            if tag in _PARAGRAPHS:
                self._break("\n\n")
            elif tag in _CELLS:
                self._say(" ")
        self._unread -= tag in _UNREAD
        self._preformatted -= tag == "pre"

    def data(self, text: str) -> None:
        if self._in_title:
            self.title.append(text)
        elif self._unseen:
            self.hidden += 0 if self._unread else len(text.strip())
        elif not self._unread:
            self._say(text)

    def close(self) -> None:
        """End the page; the parser asks for it."""

    def _say(self, text: str) -> None:
        if not self._preformatted:
            text = _SPACES.sub(" ", text)
            if not self.text or self.text[-1].endswith(("\n", " ")):
                text = text.lstrip(" ")
        if text:
            self.text.append(text)

    def _break(self, lines: str) -> None:
        if self.text:
            self.text.append(lines)
