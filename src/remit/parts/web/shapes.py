"""The arguments and results: what the web tools take and give."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from remit.tools.provider import Url

SECONDS: Final = 40
"""Seconds that a page may take."""


class SearchArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for."""

    query: Annotated[str, Meta(min_length=1, max_length=1_000, description="Words or a question.")]
    max_results: Annotated[int, Meta(ge=1, le=10, description="Results to return at most.")] = 5


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One result."""

    title: str
    url: str
    snippet: str
    provider: str
    """The backend that gave it; of several, joined by `+`."""
    rank: int
    """From 1 on."""


class SearchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Pages that may answer, best first."""

    items: list[Item]


class FetchArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which page to fetch."""

    url: Url


class FetchResult(msgspec.Struct, frozen=True, kw_only=True):
    """A page as text. What was cut stands first, where also a preview of the result shows it."""

    truncated: Annotated[bool, Meta(description="Whether the page is larger than the limit: its end is missing.")]
    url: str
    final_url: Annotated[str, Meta(description="The address that answered, after redirects.")]
    status_code: int
    content_type: str
    title: str
    text: Annotated[str, Meta(description="What a person reads in the page.")]
    cache_hit: Annotated[bool, Meta(description="Whether the site said that it has not changed since it was kept.")]


class ExtractResult(msgspec.Struct, frozen=True, kw_only=True):
    """The main text of a page, without navigation and advertisements."""

    truncated: Annotated[bool, Meta(description="Whether the page is larger than the limit: its end is missing.")]
    url: str
    final_url: str
    title: str
    text: Annotated[str, Meta(description="Markdown, as far as the page has structure; of a PDF plain lines.")]
    sha256: Annotated[str, Meta(description="Of `text` in UTF-8: quotations name it.")]
    language: Annotated[str, Meta(description="Such as `en`; empty: unknown.")]
    links: Annotated[list[str], Meta(description="Addresses that the page links to, each once.")]
    method: Annotated[
        str, Meta(description="What found the text: trafilatura, resiliparse or pdfium; `text`: it is text.")
    ]
    consent: Annotated[bool, Meta(description="Whether the page only asks to agree to something before the real one.")]
    pages: Annotated[list[int], Meta(description="Where each page of a PDF begins in `text`.")] = []
    note: Annotated[str, Meta(description="Where more may stand, of a page with few words; empty: nowhere.")] = ""
