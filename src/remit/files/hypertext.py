"""The text of an HTML page, in time linear in its length whatever it holds.

The standard library's parser takes a minute for 200 kB of `<!--` repeated, and holds the interpreter meanwhile;
selectolax (Lexbor) takes time quadratic in the depth of nesting, 3 s for 200 kB of `<div>` and over a minute for 1 MB;
lxml (libxml2) is fast, and drops what is nested deeper than 256 levels. This one only knows what reading needs: where a
tag ends, which elements break a line, which hold no text. It looks at every character once; what an unclosed construct
swallows, it swallows (the HTML standard says the same for an end of file).
"""

from __future__ import annotations

import html
import re
from typing import Final, NamedTuple

_MARKUP: Final = re.compile(r"<(?:[!?]|/?[a-zA-Z])")
"""What begins markup; any other `<` is text."""
_NAME: Final = re.compile(r"/?([a-zA-Z][a-zA-Z0-9-]*)")
_TAG_STOP: Final = re.compile(r"=\s*([\"'])|>")
_SPACES: Final = re.compile(r"[ \t\r\n\f]+")
_UNREAD: Final = frozenset(
    {"iframe", "math", "noembed", "noscript", "object", "script", "style", "svg", "template", "textarea"}
)
"""Elements whose content is not for reading; skipped to their end tag without being parsed."""
_PARAGRAPHS: Final = frozenset(
    {"address", "article", "aside", "blockquote", "body", "dd", "details", "div", "dl", "dt", "fieldset", "figcaption"}
    | {"figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p"}
    | {"pre", "section", "summary", "table", "tbody", "tfoot", "thead", "title", "tr", "ul"},
)
_CELLS: Final = frozenset({"td", "th"})


class Page(NamedTuple):
    """What a person reads in a page."""

    text: str
    """Paragraphs separated by an empty line."""
    title: str


def page_text(source: str) -> Page:
    """The text and the title of an HTML page."""
    reader = _Reader(source)
    reader.read()
    return Page(_tidy("".join(reader.out)), _SPACES.sub(" ", html.unescape(reader.title)).strip())


def _tidy(text: str) -> str:
    # Runs of blanks were folded while reading, except in <pre>; here only the lines are put in order.
    lines = [line.rstrip() for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


class _Reader:
    """One pass over a page; `at` only grows."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.out: list[str] = []
        self.title = ""
        self.preformatted = False
        self._absent: set[str] = set()

    def read(self) -> None:
        source = self.source
        while found := _MARKUP.search(source, self.at):
            self._text(source[self.at : found.start()])
            self.at = found.start()
            self._markup()
        self._text(source[self.at :])

    def _text(self, raw: str) -> None:
        if not raw:
            return
        text = html.unescape(raw).replace("\0", "")
        if not self.preformatted:
            text = _SPACES.sub(" ", text)
            if not self.out or self.out[-1].endswith(("\n", " ")):
                text = text.lstrip(" ")
        if text:
            self.out.append(text)

    def _markup(self) -> None:
        source, at = self.source, self.at
        if source.startswith("<!--", at):
            self._skip_past("-->", at + 2)  # from the opening dashes: `<!-->` is a whole comment
        elif source.startswith(("<!", "<?"), at):
            self._skip_past(">", at + 2)
        elif name := _NAME.match(source, at + 1):
            self.at = name.end()
            self._end_of_tag()
            self._tag(name[1].lower(), closing=source.startswith("/", at + 1))

    def _skip_past(self, what: str, start: int) -> None:
        end = self._find(what, start)
        self.at = len(self.source) if end < 0 else end + len(what)

    def _find(self, what: str, start: int) -> int:
        """Like str.find, but what was once not found is not searched for again: the page is read once."""
        if what in self._absent:
            return -1
        end = self.source.find(what, start)
        if end < 0:
            self._absent.add(what)
        return end

    def _end_of_tag(self) -> None:
        """Move past the `>` that ends this tag; one inside a quoted attribute does not."""
        source = self.source
        while stop := _TAG_STOP.search(source, self.at):
            self.at = stop.end()
            if stop[0] == ">":
                return
            closing = self._find(stop[1], self.at)
            if closing >= 0:
                self.at = closing + 1
        self.at = len(source)

    def _tag(self, name: str, *, closing: bool) -> None:
        if name == "title" and not closing and not self.title:
            start = self.at
            self._to_end_tag(name)
            self.title = self.source[start : self.at]
        elif name in _UNREAD and not closing:
            self._to_end_tag(name)
        elif name in _PARAGRAPHS:
            self.preformatted = name == "pre" and not closing
            self._break("\n\n")
        elif name == "br":
            self._break("\n")
        elif name in _CELLS and closing:
            self._text(" ")

    def _to_end_tag(self, name: str) -> None:
        """Move to the end tag of an element whose content is not markup, or to the end of the page."""
        if name in self._absent:
            self.at = len(self.source)
            return
        found = re.compile(rf"</{name}", re.IGNORECASE).search(self.source, self.at)
        if found is None:
            self._absent.add(name)
        self.at = found.start() if found else len(self.source)

    def _break(self, lines: str) -> None:
        if self.out:
            self.out.append(lines)
