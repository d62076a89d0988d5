"""Pages as text: which types are read, by which characters, and where they say that a person must do something."""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from remit.codes import Code
from remit.files.text import LOSSY, codec_of
from remit.providers.web.fetcher import Page, WebError

HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_PDF: Final = frozenset({"application/pdf", "application/x-pdf"})
_ANY: Final = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""Types that say nothing."""
_TEXT: Final = frozenset({"application/json", "application/xml"})
_BUILT_ON: Final = ("+json", "+xml")
"""Suffixes of types that are JSON or XML (RFC 6839)."""
_CHARSET: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([a-zA-Z0-9_:.-]{2,40})""", re.IGNORECASE)
_TITLE: Final = re.compile(r"<title[^>]{0,200}>(.{0,1000}?)</title", re.IGNORECASE | re.DOTALL)
_HEAD: Final = 4_096
_CHALLENGES: Final = (
    "cf-challenge",
    "cf_chl_",
    "challenge-platform",
    "g-recaptcha",
    "h-captcha",
    "px-captcha",
    "captcha-delivery.com",
    "please enable cookies and reload",
    "checking your browser before accessing",
    "verify you are human",
)
_CONSENT: Final = ("consent.google.", "consent.youtube.", "guce.yahoo", "privacy gateway", "consent-page")
_SHORT: Final = 20_000
"""Characters above which a page that mentions a challenge has content of its own."""
_NOT_MODIFIED, _FORBIDDEN, _TOO_MANY, _ERROR = 304, 403, 429, 400


def is_html(page: Page) -> bool:
    """Return whether a page is HTML, by its type or, without one, by its beginning."""
    if page.content_type:
        return page.content_type in HTML
    return page.body[:_HEAD].lstrip()[:1] == b"<"


def is_pdf(page: Page) -> bool:
    """Return whether a page is a PDF, by its type or, without one, by its beginning."""
    return page.content_type in _PDF or (page.content_type in _ANY and page.body.startswith(b"%PDF-"))


def text_of(page: Page) -> str:
    """Return the page's characters. Raises WebError for a type that is not text."""
    kind = page.content_type
    if kind and kind not in HTML | _TEXT and not kind.startswith("text/") and not kind.endswith(_BUILT_ON):
        raise WebError(f"{page.final_url}: {kind[:80]} is no text", Code.unsupported_content_type)
    if not kind and b"\0" in page.body[:_HEAD]:
        raise WebError(f"{page.final_url}: it names no type and is no text", Code.unsupported_content_type)
    return page.body.decode(charset_of(page), LOSSY)


def charset_of(page: Page) -> str:
    """Return the page's encoding: a mark at its beginning, its header, its own word, or what the bytes look like."""
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if page.body.startswith(mark):
            return name
    declared = page.headers.get("content-type", "").lower().partition("charset=")[2]
    found = _CHARSET.search(page.body[:_HEAD])
    if codec := codec_of(declared.partition(";")[0].strip("\"' ")):
        return codec
    if codec := codec_of(found[1].decode("ascii") if found else ""):
        return "utf-8" if codec.startswith("utf-16") else codec  # it would not have been found in UTF-16
    try:
        page.body.decode("utf-8")
    except UnicodeDecodeError as error:
        return "utf-8" if page.truncated and error.start >= len(page.body) - 4 else "cp1252"
    return "utf-8"


def title_of(html: str) -> str:
    """Return the title of an HTML page, on one line; empty if it has none."""
    found = _TITLE.search(html)
    return " ".join(unescape(found[1]).split()) if found else ""


def check_answer(page: Page) -> None:
    """Raise WebError for an answer other than a page: a refusal, an error, or a challenge to a person."""
    url = page.final_url
    if page.status in {_FORBIDDEN, _TOO_MANY}:
        cause = Code.http_403 if page.status == _FORBIDDEN else Code.http_429
        raise WebError(f"{url}: it answered {page.status}", Code.captcha_required if is_challenge(page) else cause)
    if page.status >= _ERROR or page.status == _NOT_MODIFIED:  # no condition was sent to it
        raise WebError(f"{url}: it answered {page.status}", Code.BadGateway)
    if is_challenge(page):
        raise WebError(f"{url}: it asks for a proof that a person reads it", Code.captcha_required)


def is_challenge(page: Page) -> bool:
    """Return whether a page asks its reader to prove to be a person."""
    if len(page.body) > _SHORT or not is_html(page):
        return False
    text = page.body.decode("utf-8", "replace").lower()
    return any(sign in text for sign in _CHALLENGES)


def is_consent(page: Page) -> bool:
    """Return whether a page stands before the one that was asked for until a person agrees to something."""
    if len(page.body) > _SHORT or page.final_url == page.url:
        return False
    text = page.body.decode("utf-8", "replace").lower()
    return any(sign in page.final_url.lower() or sign in text for sign in _CONSENT)
