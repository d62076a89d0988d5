"""Hooks of the documentation site (mkdocs.yml).

The pages are written to be read in a checkout. There they link to sources and examples. The site does not hold those:
such a link becomes its text. A block that is a file has its name after the language; the site shows it as a title.
"""

import logging
import re
from typing import Any, Final

_OUTSIDE: Final = re.compile(r"(?<!!)\[([^\]]*)\]\(\.\./[^)\s]*\)")
_NAMED: Final = re.compile(r"^```(\w+) ([\w./ -]+)$", re.MULTILINE)
_CODE: Final = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
_RAW: Final = re.compile(r"```|^\s*(?:<p>)?\|.*\|", re.MULTILINE)
"""Fences and rows of tables that are still text."""
_log: Final = logging.getLogger("mkdocs.hooks")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page as the site shows it."""
    return _NAMED.sub(r'```\1 title="\2"', _OUTSIDE.sub(r"\1", markdown))


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Warn of Markdown that the site would show as text; with `--strict` a warning is an error."""
    for found in _RAW.finditer(_CODE.sub("", html)):
        _log.warning("%s shows Markdown as text: %s", page.file.src_uri, found[0][:60].strip())
    return html


def slug(text: str, separator: str) -> str:
    """The anchor of a heading, as hosts of repositories make it: lower case, no punctuation, hyphens for blanks."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", separator)
