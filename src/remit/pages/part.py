"""Answers requests for pages: who asks, may they, what is the view, and the headers that keep a page what it is."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import msgspec

from remit.api.part import HttpSessions, problem_of
from remit.api.route import MAX_BODY, bytes_of, pairs_of, query_of, typed
from remit.codes import Code
from remit.http.access import RequestPlaces, Strangers
from remit.http.problem import HttpProblem
from remit.http.reader import Read
from remit.http.router import REQUEST, RouterRequest
from remit.pages import renderer
from remit.pages.entry import LOGIN, LOGOUT, PROVIDER, Again, ConsoleEntry, Leave, LoginForm, LoginPage, Visitor, local
from remit.pages.feed import PATH, STATUS, LiveFeed
from remit.pages.page import SAFE, Memory, Page, PageFile, PageRequest, PageView, See, find, link, look_of, zone_of
from remit.pages.renderer import entries_of, render, shell_for
from remit.regex import regex
from remit.service.reach import check_reach

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from remit.clock import Clock
    from remit.http.reader import Reader
    from remit.service.service import Service

_FORM: Final = "application/x-www-form-urlencoded"
_FILES: Final = "multipart/form-data"
_BOUNDARY: Final = regex(r'\s*boundary="?([0-9A-Za-z\'()+_,./:=?-]{1,70})"?\s*', re.IGNORECASE)
_PART: Final = regex(
    rb'\r\ncontent-disposition: form-data; name="([^"\r\n]*)"(; filename[^\r\n]*)?(?:\r\n[^\r\n]+)*\r\n\r\n',
    re.IGNORECASE,
)
_HTML: Final = "text/html; charset=utf-8"
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_UNFIT: Final = regex(r"[^A-Za-z0-9._-]+")
_LOGIN: Final = 401
_FIELDS: Final = 1_200
"""Fields of a form: as many questions as one round answers, with room for more."""
STRANGERS: Final = 16
"""Requests under way from one address whose clients have not logged in."""
_FORM_BYTES: Final = 16 * 1024
"""Bytes of a form of a client that has not logged in."""


class PageReply(NamedTuple):
    """An answer, ready to be sent."""

    status: int
    body: bytes
    headers: dict[str, str]


class ConsolePages:
    """The pages, as a part of the server."""

    def __init__(
        self,
        service: Service,
        pages: Sequence[Page],
        entry: ConsoleEntry,
        places: RequestPlaces,
        clock: Clock,
        readers: Sequence[Reader] = (),
    ) -> None:
        self._readers = tuple(readers)
        self._service = service
        self._pages = tuple(pages)
        self._entries = entries_of(pages)
        self._entry = entry
        self._sessions = HttpSessions(service)
        self._places = places
        self._strangers = Strangers(STRANGERS)
        self._clock = clock
        self._memory = Memory(service.jobs)
        self._live = LiveFeed(service, pages, entry, clock, self._sessions, self._memory)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        yield

    def close_streams(self) -> None:
        self._places.closing.set()
        self._live.close()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        request: RouterRequest = scope[REQUEST]
        asset = renderer.served(scope["path"])
        if asset is not None and scope["method"] in {"GET", "HEAD"}:
            fields = {"content-type": asset.kind, "cache-control": _FOR_EVER}
            await _say(PageReply(200, asset.data, fields), send)
            return
        visitor, headers = await self._entry.visitor(request.headers), dict[str, str]()
        if scope["path"] in {PATH, STATUS} and scope["method"] == "GET":
            await self._live.answer(scope, request, visitor, receive, send)
            return
        if not visitor.cookie:
            visitor, headers["set-cookie"] = self._entry.newcomer(request.headers)
        place = (
            self._places.taken(f"page:{visitor.access.principal}")
            if visitor.known
            else self._strangers.taken((scope.get("client") or ("",))[0])
        )
        async with place:
            reply = await self._answer(scope, request, visitor, receive)
        await _say(reply._replace(headers={**headers, **reply.headers}), send)

    async def _answer(self, scope: Any, request: RouterRequest, visitor: Visitor, receive: Receive) -> PageReply:
        here = _here(scope)
        try:
            if scope["path"] == LOGIN and scope["method"] == "POST":
                return await self._log_in(request, visitor, receive)
            if scope["path"] == LOGOUT and scope["method"] == "POST":
                await self._form(Leave, request, visitor, receive)
                return _see("/", {"set-cookie": await self._entry.log_out(request.headers)})
            if not visitor.known:
                return await self._stranger(request, visitor, here)
            return await self._known(scope, request, visitor, receive, here)
        except Exception as error:  # noqa: BLE001 - whatever it is, the reader gets a page
            problem = problem_of(error)
            return await self._page(FailurePage.of(problem, here), request, visitor, here)

    async def _known(
        self, scope: Any, request: RouterRequest, visitor: Visitor, receive: Receive, here: str
    ) -> PageReply:
        page, path = find(self._pages, scope["method"], scope["raw_path"].decode("latin-1"))
        request.access.require(page.scope)
        await check_reach(self._service, request.access, path)
        page_request = PageRequest(
            service=self._service,
            path=path,
            query=query_of(page.query, scope["query_string"]),
            form=await self._form(page.form, request, visitor, receive) if page.form is not None else None,
            access=request.access,
            now=self._clock.now(),
            zone=zone_of(request.headers),
            here=here,
            session=lambda: self._sessions.of(request.access.principal or ""),
            memory=self._memory,
        )
        answer = await page.handler(page_request)
        for reader in self._readers if page.form is None else ():
            await reader(Read("page", page.path, path, page_request.principal))
        match answer:
            case PageView():
                if "{" in page.path and answer.title:
                    self._memory.note(page_request.principal, answer.title, here)
                return await self._page(answer, request, visitor, here, listens=bool(page.live))
            case See():
                return _see(answer.path, {"set-cookie": answer.cookie} if answer.cookie else {})
            case PageFile():
                return _file(answer)

    async def _stranger(self, request: RouterRequest, visitor: Visitor, here: str) -> PageReply:
        """A form to log in, at the address that was asked for; nothing says which addresses there are."""
        headers = request.headers
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") == "navigate":
            # A link from elsewhere brings no cookie. The page that loads itself again is ours, and then it does.
            return await self._page(Again(title="Remit", here=here), request, visitor, here)
        if "hx-request" in headers:
            return PageReply(_LOGIN, b"", {"hx-refresh": "true", "cache-control": "no-store"})
        return await self._page(self._login(here), request, visitor, here)

    async def _log_in(self, request: RouterRequest, visitor: Visitor, receive: Receive) -> PageReply:
        login_form: LoginForm = await self._form(LoginForm, request, visitor, receive)
        try:
            cookie = await self._entry.log_in(request.headers, login_form.token.strip())
        except HttpProblem as problem:
            return await self._page(self._login(local(login_form.to), problem.detail), request, visitor, "/")
        return _see(local(login_form.to), {"set-cookie": cookie})

    def _login(self, to: str, wrong: str = "") -> LoginPage:
        return LoginPage(
            title="Log in",
            to=to,
            wrong=wrong,
            status=_LOGIN,
            provider=self._entry.provider,
            start=link(PROVIDER, to=to),
            tokens=self._entry.takes_tokens,
        )

    async def _form(
        self, kind: type[msgspec.Struct], request: RouterRequest, visitor: Visitor, receive: Receive
    ) -> Any:
        """A form's fields, once it is clear that a page of ours sent it. Raises Problem."""
        headers = request.headers
        media, _, boundary = headers.get("content-type", "").partition(";")
        if media.strip().lower() not in {_FORM, _FILES}:
            raise HttpProblem(Code.MEDIA_TYPE_UNSUPPORTED, f"Send {_FORM}, or {_FILES} with files.")
        fields = await bytes_of(headers, receive, most=MAX_BODY if visitor.known else _FORM_BYTES)
        if media.strip().lower() == _FILES:
            (name, token), *pairs = parts_of(fields, boundary)
            self._entry.check(visitor, headers, token if name == "csrf" else "")
            return typed(pairs, kind, "The form")
        mark, _, rest = fields.partition(b"&")
        token = mark.removeprefix(b"csrf=").decode("ascii", "replace") if mark.startswith(b"csrf=") else ""
        self._entry.check(visitor, headers, token)
        return pairs_of(rest, kind, "The form", _FIELDS)

    async def _page(
        self, view: PageView, request: RouterRequest, visitor: Visitor, here: str, *, listens: bool = False
    ) -> PageReply:
        now, zone = self._clock.now(), zone_of(request.headers)
        shell = await shell_for(
            self._entries,
            self._service,
            self._entry,
            visitor,
            visitor.csrf,
            now,
            zone,
            here,
            look=look_of(request.headers),
            counted=not isinstance(view, FailurePage),
            listens=listens,
            again=view.status == HTTPStatus.OK and "origin" not in request.headers,
        )
        return PageReply(view.status, render(view, shell), {"content-type": _HTML, "cache-control": "no-store"})


def parts_of(body: bytes, parameter: str) -> list[tuple[str, str]]:
    """Names and values of a form with files, each of them as base64. Raise Problem."""
    boundary = _BOUNDARY.fullmatch(parameter)
    if boundary is None:
        raise HttpProblem(Code.INVALID_INPUT, "The form names no boundary.")
    before, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary[1].encode(), _FIELDS + 2)
    heads = [_PART.match(part) for part in parts[:-1]]
    if before or not heads or not parts[-1].startswith(b"--") or not all(heads):
        raise HttpProblem(Code.INVALID_INPUT, "The form cannot be read.")
    pairs = []
    for part, head in zip(parts, heads, strict=False):
        if head is not None:
            value = part[head.end() :]
            text = b64encode(value).decode() if head[2] else value.decode("utf-8", "replace")
            pairs.append((head[1].decode("utf-8", "replace"), text))
    return pairs


def _here(scope: Any) -> str:
    query = scope["query_string"].decode("latin-1")
    path: str = scope["raw_path"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _see(path: str, headers: Mapping[str, str]) -> PageReply:
    return PageReply(303, b"", {"location": path, "cache-control": "no-store", **headers})


def _file(file: PageFile) -> PageReply:
    """Bytes that a browser saves and never shows, under a name that cannot leave its header."""
    name = _UNFIT.sub("-", file.name)[:80] or "file"
    headers = {
        "content-type": "application/octet-stream",
        "content-disposition": f'attachment; filename="{name}"',
        "content-security-policy": "sandbox; default-src 'none'",
        "cache-control": "no-store",
    }
    return PageReply(200, file.data, headers)


async def _say(reply: PageReply, send: Send) -> None:
    headers = {**SAFE, **reply.headers, "content-length": str(len(reply.body))}
    encoded = [(name.encode(), text.encode("latin-1", "replace")) for name, text in headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": encoded})
    await send({"type": "http.response.body", "body": reply.body})


_TITLES: Final = {
    403: "This is not allowed",
    404: "There is no such page",
    405: "This cannot be done here",
    409: "Someone was faster, or it is over",
    410: "It is over",
    429: "Too many requests at once",
}
_ADVICE: Final = {
    Code.PATH_UNKNOWN: "Check the address, or begin with the overview.",
    Code.SCOPE_REQUIRED: "Log in with a token that has this scope, or ask the person who runs the server.",
    Code.TOO_MANY_REQUESTS: "Close some pages and load this one again.",
}
_OURS: Final = 500


class FailurePage(PageView, frozen=True, kw_only=True):
    """What went wrong, and what to do."""

    template: ClassVar[str] = "failure.html"
    code: str
    detail: str
    remedy: str
    here: str
    retry: bool
    """Whether loading the page again may help."""

    @classmethod
    def of(cls, problem: HttpProblem, here: str) -> FailurePage:
        """The page of a refusal."""
        ours = problem.status >= _OURS
        return cls(
            title=_TITLES.get(problem.status, "Something is wrong here" if ours else "This could not be done"),
            status=problem.status,
            code=problem.code.name,
            detail=problem.detail,
            remedy=problem.remedy or _ADVICE.get(problem.code, ""),
            here=here,
            retry=ours,
        )
