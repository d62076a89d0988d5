"""Hooks of the documentation site (mkdocs.yml).

The pages are written to be read in a checkout. There they link to sources and examples. The site does not hold those:
such a link becomes its text. A block that is a file has its name after the language; the site shows it as a title.
"""

import re
from typing import Any, Final

_OUTSIDE: Final = re.compile(r"(?<!!)\[([^\]]*)\]\(\.\./[^)\s]*\)")
_NAMED: Final = re.compile(r"^```(\w+) ([\w./-]+)$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page as the site shows it."""
    return _NAMED.sub(r'```\1 title="\2"', _OUTSIDE.sub(r"\1", markdown))


def slug(text: str, separator: str) -> str:
    """The anchor of a heading, as hosts of repositories make it: lower case, no punctuation, hyphens for blanks."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", separator)
