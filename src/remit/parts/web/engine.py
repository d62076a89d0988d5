"""The work of the web tools: search, fetch and extract, with what they need of the network and of other processes.

It is loaded with the first call: a process that only lists its tools imports none of it.

Pages as text: which types are read, by which characters, and where they say that a person must do something.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from html import unescape
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from remit.canonical import sha256
from remit.codes import Code
from remit.errors import ChainBrokenError, ProviderError
from remit.files import parse_job
from remit.files.hypertext import TooDeepError, page_text
from remit.files.text import LOSSY, codec_of
from remit.parts.web.extraction import Extract, ExtractionJob
from remit.parts.web.fetcher import (
    FetchedPage,
    Fetcher,
    WebError,
    checked,
    host_of,
    joined,
    origin_of,
    without_tracking,
)
from remit.parts.web.kept import KeptPages, conditions
from remit.parts.web.robots import Pace, Robots
from remit.parts.web.search import EngineHit, SearchBackend, again_s, fused, items
from remit.parts.web.shapes import SECONDS, ExtractResult, FetchArgs, FetchResult, Item, SearchArgs, SearchResult
from remit.process.workers import WorkerPool
from remit.regex import regex
from remit.tools.provider import CallContext, EvidenceCandidate, ToolResult

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.parts.web.kept import Cooldowns


HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_PDF: Final = frozenset({"application/pdf", "application/x-pdf"})
_ANY: Final = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""Types that say nothing."""
_TEXT: Final = frozenset({"application/json", "application/xml"})
_BUILT_ON: Final = ("+json", "+xml")
"""Suffixes of types that are JSON or XML (RFC 6839)."""
_CHARSET: Final = regex(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([a-zA-Z0-9_:.-]{2,40})""", re.IGNORECASE)
_TITLE: Final = regex(r"<title[^>]{0,200}>(.{0,1000}?)</title", re.IGNORECASE | re.DOTALL)
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
_AGREE: Final = regex(
    r"\b(?:accept|agree|allow|consent|zustimm|stimme|akzept|einwillig|einverstanden|autoris|consens|acept|acconsent|"
    r"accett|aceit|akkoord|toestem|zgadzam|zgod|godk\u00e4nn|samtyck|hyv\u00e4ksy|souhlas|elfogad|kabul)",
)
"""Words of agreeing in languages of the web: how they begin, in lower case."""
_PRIVACY: Final = regex(
    r"cookie|privacy|personal data|partners|terms of|gdpr|datenschutz|personenbezogen|confidentialit|vie priv\u00e9e|"
    r"donn\u00e9es personnelles|privacidad|datos personales|dati personali|persoonsgegevens|prywatno|ciasteczk|"
    r"integritet|kakor|ev\u00e4stei|soukrom|s\u00fcti|\u00e7erez|ki\u015fisel veri",
)
"""Words of that which is agreed to."""
_BUTTON: Final = regex(r"<(?:button|form)\b|role=[\"']?button|type=[\"']?(?:submit|button)", re.IGNORECASE)
_FIELD: Final = regex(
    r"<(?:textarea|article)\b|<input\b[^>]{0,400}\btype=[\"']?(?:text|email|password|search|tel|number)", re.IGNORECASE
)
"""Elements that ask for more than to agree, or hold more than the question."""
_QUESTION: Final = 3_000
"""Characters of the longest page that only asks."""
_LINE: Final = 60
"""Characters of a longer line than headings, buttons and links are."""
_CONTENT: Final = 300
"""Characters of lines about something else from which on a page has content of its own."""
_LONGEST_QUESTION: Final = 500_000
"""Bytes of a page with its scripts that is looked at."""
_SHORT: Final = 20_000
"""Characters above which a page that mentions a challenge has content of its own."""
_UNCHANGED, _FORBIDDEN, _TOO_MANY, _ERROR = 304, 403, 429, 400


def is_html(page: FetchedPage) -> bool:
    """Return whether a page is HTML, by its type or, without one, by its beginning."""
    if page.content_type:
        return page.content_type in HTML
    return page.body[:_HEAD].lstrip()[:1] == b"<"


def is_pdf(page: FetchedPage) -> bool:
    """Return whether a page is a PDF, by its type or, without one, by its beginning."""
    return page.content_type in _PDF or (page.content_type in _ANY and page.body.startswith(b"%PDF-"))


def text_of(page: FetchedPage) -> str:
    """Return the page's characters. Raises WebError for a type that is not text."""
    kind = page.content_type
    if kind and kind not in HTML | _TEXT and not kind.startswith("text/") and not kind.endswith(_BUILT_ON):
        raise WebError(f"{page.final_url}: {kind[:80]} is no text", Code.unsupported_content_type)
    if not kind and b"\0" in page.body[:_HEAD]:
        raise WebError(f"{page.final_url}: it names no type and is no text", Code.unsupported_content_type)
    return page.body.decode(charset_of(page), LOSSY)


def charset_of(page: FetchedPage) -> str:
    """Return the page's encoding: a mark at its beginning, its header, its own word, or what the bytes look like."""
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if page.body.startswith(mark):
            return name
    declared = page.headers.get("content-type", "").lower().partition("charset=")[2]
    match = _CHARSET.search(page.body[:_HEAD])
    if codec := codec_of(declared.partition(";")[0].strip("\"' ")):
        return codec
    if codec := codec_of(match[1].decode("ascii") if match else ""):
        return "utf-8" if codec.startswith("utf-16") else codec  # it would not have been found in UTF-16
    try:
        page.body.decode("utf-8")
    except UnicodeDecodeError as error:
        return "utf-8" if page.truncated and error.start >= len(page.body) - 4 else "cp1252"
    return "utf-8"


def title_of(html: str) -> str:
    """Return the title of an HTML page, on one line; empty if it has none."""
    match = _TITLE.search(html)
    return " ".join(unescape(match[1]).split()) if match else ""


def check_answer(page: FetchedPage) -> None:
    """Raise WebError for an answer other than a page: a refusal, an error, or a challenge to a person."""
    url = page.final_url
    if page.status in {_FORBIDDEN, _TOO_MANY}:
        cause = Code.http_403 if page.status == _FORBIDDEN else Code.http_429
        raise WebError(f"{url}: it answered {page.status}", Code.captcha_required if is_challenge(page) else cause)
    if page.status >= _ERROR or page.status == _UNCHANGED:  # no condition was sent to it
        raise WebError(f"{url}: it answered {page.status}", Code.BadGateway)
    if is_challenge(page):
        raise WebError(f"{url}: it asks for a proof that a person reads it", Code.captcha_required)


def is_challenge(page: FetchedPage) -> bool:
    """Return whether a page asks its reader to prove to be a person."""
    if len(page.body) > _SHORT or not is_html(page):
        return False
    text = page.body.decode("utf-8", "replace").lower()
    return any(sign in text for sign in _CHALLENGES)


def is_consent(page: FetchedPage) -> bool:
    """Return whether a page stands before the one that was asked for until a person agrees to something."""
    if not is_html(page) or len(page.body) > _LONGEST_QUESTION:
        return False
    html = text_of(page)
    if page.final_url != page.url and len(page.body) <= _SHORT:
        text = f"{page.final_url} {html}".lower()
        if any(sign in text for sign in _CONSENT):
            return True
    if _FIELD.search(html) or not _BUTTON.search(html):
        return False
    try:
        return _only_asks(page_text(html).text.lower())
    except TooDeepError:
        return False


def _only_asks(text: str) -> bool:
    """Return whether a text, in lower case, asks to agree to cookies, terms and the like, and holds little else."""
    if len(text) > _QUESTION or not (_AGREE.search(text) and _PRIVACY.search(text)):
        return False
    others = [line for line in text.split("\n") if len(line) > _LINE and not _PRIVACY.search(line)]
    return sum(map(len, others)) < _CONTENT


_LARGEST_TEXT: Final = 1_000_000
"""Characters of text that one call returns."""
_PDF_PAGES: Final = 2_000
_PLAIN_PATH: Final = regex(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)+/?")
"""A link within a site that is its own absolute form."""
_NOT_MODIFIED: Final = 304
_SOON_S: Final = 5.0
"""Seconds that a search waits for a service that wants to be asked again then."""
_log: Final = logging.getLogger("remit.web")


class SearchTerms(NamedTuple):
    """The terms that the operator set."""

    max_bytes: int = 5_000_000
    robots: bool = True
    pause_s: float = 0.5
    fuse: bool = False


class WebEngine:
    """Searches, fetches and extracts."""

    def __init__(
        self,
        fetcher: Fetcher,
        clock: Clock,
        terms: SearchTerms,
        backends: Sequence[SearchBackend] = (),
        cooldowns: Cooldowns | None = None,
        pages: KeptPages | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._terms = terms
        self._backends = tuple(backends)
        self._cooldowns = cooldowns
        self._robots = Robots(fetcher, clock)
        self._pace = Pace(clock, terms.pause_s)
        self._extractors = Extractors()
        self._pages = pages

    async def close(self) -> None:
        """Close connections and processes; may be called twice."""
        await self._extractors.close()
        await self._fetcher.close()

    # --- search

    async def search(self, args: SearchArgs) -> ToolResult:
        """Return results of the first backend that answers, or of all. Raises WebError."""
        lists: list[list[Item]] = []
        failures: list[WebError] = []
        for backend in self._backends:
            try:
                hits = await self._ask(backend, args)
            except WebError as error:
                _log.warning("web.search: %s", error)
                failures.append(error)
                continue
            lists.append(items(hits, backend.name))
            if not self._terms.fuse:
                break
        if not lists:
            raise failures[0]
        results = fused(lists, args.max_results) if len(lists) > 1 else lists[0][: args.max_results]
        return ToolResult(msgspec.to_builtins(SearchResult(items=results)))

    async def _ask(self, backend: SearchBackend, args: SearchArgs) -> list[EngineHit]:
        left = await self._seconds_left(backend.name)
        if left:
            reason = f"{backend.name} blocked Remit; it is asked again in {left} s"
            raise WebError(reason, Code.WebBlocked, blocked_by=Code.captcha_cooldown)
        has_waited = False
        while True:
            async with self._pace.turn(backend.name):
                try:
                    return await backend.ask(self._fetcher, args.query, args.max_results)
                except WebError as error:
                    pause_s = again_s(error, self._clock.now())
                    if has_waited or pause_s is None or pause_s > _SOON_S:
                        if error.blocked_by is not None and self._cooldowns is not None:
                            await self._cooldowns.block(backend.name, error.blocked_by, pause_s)
                        raise
            await self._clock.sleep(pause_s)
            has_waited = True

    async def _seconds_left(self, backend: str) -> int:
        if self._cooldowns is None:
            return 0
        try:
            return await self._cooldowns.seconds_left(backend)
        except ChainBrokenError as error:
            _log.warning("web.search: when %s was blocked cannot be read: %s", backend, error.message)
            return 0

    # --- pages

    async def fetch(self, args: FetchArgs, ctx: CallContext) -> ToolResult:
        """Return a page as text. Raises WebError."""
        page, from_cache = await self._page(args.url, "web.fetch", ctx)
        if is_pdf(page):
            pdf = await self._extractors.pdf(page)
            title, shown, truncated = pdf.title, pdf.text, pdf.truncated
        else:
            text = text_of(page)
            title, shown, truncated = title_of(text) if is_html(page) else "", _readable(page, text), page.truncated
        result = FetchResult(
            url=args.url,
            final_url=page.final_url,
            status_code=page.status,
            content_type=page.content_type,
            title=title,
            text=shown[:_LARGEST_TEXT],
            truncated=truncated or len(shown) > _LARGEST_TEXT,
            cache_hit=from_cache,
        )
        return ToolResult(msgspec.to_builtins(result), (_evidence(result, ctx),))

    async def extract(self, args: FetchArgs, ctx: CallContext) -> ToolResult:
        """Return the main text of a page. Raises WebError."""
        page, _ = await self._page(args.url, "web.extract", ctx)
        extracted = await self._extracted(page)
        shown = extracted.text[:_LARGEST_TEXT].encode("utf-8", "replace").decode()
        result = ExtractResult(
            url=args.url,
            final_url=page.final_url,
            title=extracted.title,
            text=shown,
            sha256=sha256(shown.encode()),
            language=extracted.language,
            links=_links(_start(page.final_url, extracted.base), extracted.links),
            method=extracted.method,
            truncated=extracted.truncated or page.truncated or len(extracted.text) > _LARGEST_TEXT,
            consent=is_consent(page),
            pages=list(extracted.pages),
            note=extracted.note,
        )
        return ToolResult(msgspec.to_builtins(result), (_evidence(result, ctx),))

    async def _extracted(self, page: FetchedPage) -> Extract:
        if is_pdf(page):
            return await self._extractors.pdf(page)
        text = text_of(page)
        return (
            await self._extractors.extract(text, page.final_url) if is_html(page) else Extract(text=text, method="text")
        )

    async def _page(self, url: str, tool: str, ctx: CallContext) -> tuple[FetchedPage, bool]:
        """Return a page, and whether the site said that the kept one is still it."""
        known: dict[str, FetchedPage] = {}

        async def headers(target: str) -> dict[str, str]:
            page = await self._pages.find(target, self._terms.max_bytes) if self._pages is not None else None
            if page is not None:
                known[target] = page
            return conditions(page)

        async def before_hop(target: str) -> dict[str, str]:
            if ctx.hidden is not None and ctx.hidden(tool, {"url": target}):
                reason = f"{url}: it redirects to {target}, and a rule keeps that from the caller"
                raise ProviderError(reason, cause=None, code=Code.POLICY_DENIED)
            if self._terms.robots:
                await self._robots.check(target)
            return await headers(target)

        address = without_tracking(checked(url))
        pause_s = (await self._robots.check(address)).pause_s if self._terms.robots else 0.0
        async with self._pace.turn(host_of(address), pause_s):
            page = await self._fetcher.fetch(
                address,
                seconds=SECONDS,
                limit=self._terms.max_bytes,
                headers=await headers(address),
                before_hop=before_hop,
            )
        if page.status == _NOT_MODIFIED and page.final_url in known:
            return msgspec.structs.replace(known[page.final_url], url=address), True
        check_answer(page)
        if self._pages is not None:
            await self._pages.keep(page, ctx.stream)
        return page, False


def _readable(page: FetchedPage, text: str) -> str:
    if not is_html(page):
        return text
    try:
        return page_text(text).text
    except TooDeepError as error:
        raise WebError(f"{page.final_url}: its elements are nested too deeply", Code.parse_failed) from error


def _start(url: str, base: str) -> str:
    """Return what the links of a page start from, by its own word if that leads to the web."""
    try:
        return joined(url, base) if base else url
    except WebError:
        return url


def _links(base: str, targets: Sequence[str]) -> list[str]:
    links: dict[str, None] = {}
    origin = origin_of(base)
    for target in targets:
        if _PLAIN_PATH.fullmatch(target):  # most are, and to take a URL apart takes a hundred times as long
            links[origin + target] = None
            continue
        try:
            links[joined(base, target)] = None
        except WebError:
            continue  # mail, telephone and the like
    return list(links)


def _evidence(result: FetchResult | ExtractResult, ctx: CallContext) -> EvidenceCandidate:
    cut = {"page_truncated": True} if result.truncated else {}
    return EvidenceCandidate(
        kind="http_body_preview", source=result.final_url, retrieved_at=ctx.now, text=result.text, metadata=cut
    )


class Extractors:
    """Extracts text in at most so many processes at once."""

    def __init__(self, processes: int = 2, seconds: float = 20.0) -> None:
        self._workers: WorkerPool[Extract | parse_job.Refused] = WorkerPool(
            "remit.parts.web.extraction", Extract | parse_job.Refused, processes, seconds
        )
        self._seconds = seconds

    async def extract(self, html: str, url: str) -> Extract:
        """Return the main text of a page. Raises WebError (parse_failed) for one that takes too much."""
        return await self._ask(ExtractionJob(html, url), url)

    async def pdf(self, page: FetchedPage) -> Extract:
        """Return the text of a PDF. Raises WebError: unsupported_content_type where nothing here reads PDFs."""
        url = page.final_url
        if page.truncated:
            reason = (
                f"{url}: a PDF can only be read whole, and it has more than {len(page.body):,} bytes (web.max_bytes)"
            )
            raise WebError(reason, Code.content_too_large)
        job = parse_job.ParseJob(format="pdf", data=page.body, pages=_PDF_PAGES, chars=_LARGEST_TEXT)
        return await self._ask(job, url)

    async def _ask(self, job: ExtractionJob | parse_job.ParseJob, url: str) -> Extract:
        try:
            reply = await self._workers.ask(job)
        except TimeoutError as error:
            reason = f"{url}: its text was not found within {self._seconds:g} s"
            raise WebError(reason, Code.parse_failed) from error
        except ConnectionError as error:
            raise WebError(f"{url}: finding its text took too much memory", Code.parse_failed) from error
        if isinstance(reply, parse_job.Refused):
            absent = reply.code == Code.SpawnFailed.name
            raise WebError(f"{url}: {reply.reason}", Code.unsupported_content_type if absent else Code.parse_failed)
        return reply

    async def close(self) -> None:
        """End every process; may be called twice."""
        await self._workers.close()
