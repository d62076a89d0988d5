"""The way to the provider and back, for browsers and for `remit login`.

What a browser has to remember on the way stands in one cookie of its own, for ten minutes: a random text. State, nonce
and verifier are made of it, and the state also of the time and of the page that was asked for. So the provider's answer
counts only in the browser that began, and no process has to keep anything. The cookie is sent along with the navigation
that comes back (SameSite=Lax); that of the session is not, and the page then loads itself once more.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

import msgspec

from remit.api.route import MAX_QUERY, bytes_of
from remit.clock import SECOND
from remit.codes import Code
from remit.http.access import Strangers
from remit.http.problem import HttpProblem, unauthenticated
from remit.http.router import REQUEST, StatelessPart
from remit.pages.entry import PROVIDER, cookie_of, local, set_cookie
from remit.pages.page import SAFE, link
from remit.randomness import salt

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from remit.clock import Clock
    from remit.http.router import RouterRequest
    from remit.parts.login.sessions import LoginSessions

CALLBACK: Final = f"{PROVIDER}/callback"
ENDED: Final = f"{PROVIDER}/ended"
"""Where the provider tells that a session ended there."""
DEVICE: Final = f"{PROVIDER}/device"
SESSION: Final = f"{PROVIDER}/session"
"""Where `remit login` gets its session, and ends it."""
_COOKIE: Final = "remit-login"
_WAY_S: Final = 600
_STRANGERS: Final = 16
_BODY: Final = 32 * 1024
_HTML: Final = "text/html; charset=utf-8"


class LoginPart(StatelessPart):
    """A part of the server (remit.http.router.ServerPart).

    Clients reach the server at `public_url`, or else at the host that they name, by `scheme`.
    """

    def __init__(self, sessions: LoginSessions, public_url: str, clock: Clock, scheme: str = "http") -> None:
        self._sessions = sessions
        self._url = public_url.rstrip("/")
        self._clock = clock
        self._scheme = scheme
        self._strangers = Strangers(_STRANGERS)
        self._answers = {
            ("GET", PROVIDER): self._start,
            ("GET", CALLBACK): self._back,
            ("POST", ENDED): self._ended,
            ("POST", DEVICE): self._device,
            ("POST", SESSION): self._session,
            ("DELETE", SESSION): self._leave,
        }

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        answer = self._answers.get((scope["method"], scope["path"]))
        if answer is None:
            known = any(path == scope["path"] for _, path in self._answers)
            raise HttpProblem(Code.METHOD_NOT_ALLOWED if known else Code.PATH_UNKNOWN)
        request: RouterRequest = scope[REQUEST]
        async with self._strangers.taken((scope.get("client") or ("",))[0]):
            body = await bytes_of(request.headers, receive, most=_BODY) if scope["method"] == "POST" else b""
            try:
                status, headers, data = await answer(request.headers, scope["query_string"], body)
            except HttpProblem as problem:
                if scope["method"] != "GET":
                    raise
                status, headers, data = problem.status, [("content-type", _HTML)], _page(problem)
        plain = [*SAFE.items(), ("cache-control", "no-store"), *headers, ("content-length", str(len(data)))]
        encoded = [(name.encode(), text.encode("latin-1", "replace")) for name, text in plain]
        await send({"type": "http.response.start", "status": status, "headers": encoded})
        await send({"type": "http.response.body", "body": data})

    # --- browsers

    async def _start(self, headers: Mapping[str, str], query: bytes, _body: bytes) -> _Answer:
        """Send a browser to the provider."""
        to = local(_pairs(query).get("to", "/"))
        seed = base64.urlsafe_b64encode(salt(32)).decode().rstrip("=")
        place = base64.urlsafe_b64encode(to.encode()).decode().rstrip("=")
        cookie = f"{seed}.{self._clock.now() // SECOND}.{place}"
        url = await self._sessions.provider.login_url(
            self._callback(headers), _made(cookie, "state"), _made(cookie, "nonce"), _made(cookie, "verifier")
        )
        return 303, [("location", url), ("set-cookie", self._way(headers, cookie, _WAY_S))], b""

    async def _back(self, headers: Mapping[str, str], query: bytes, _body: bytes) -> _Answer:
        """Take a browser that comes back from the provider, and begin its session."""
        cookie = _kept(headers, self._way_name(headers))
        seed, _, rest = cookie.partition(".")
        began, _, place = rest.partition(".")
        fresh = began.isascii() and began.isdigit() and int(began) > self._clock.now() // SECOND - _WAY_S
        state = _made(cookie, "state") if seed and fresh else salt(32).hex()
        provider = self._sessions.provider
        code = provider.check_answer(_pairs(query), state)
        person = await provider.person_of_code(
            code, _made(cookie, "verifier"), _made(cookie, "nonce"), self._callback(headers)
        )
        secret = await self._sessions.begin(person, "console")
        await self._sessions.end(cookie_of(headers))
        to = local(base64.urlsafe_b64decode(place + "=" * (-len(place) % 4)).decode())
        secure = self._is_secure
        cookies = [
            ("set-cookie", set_cookie(headers, secret, secure=secure)),
            ("set-cookie", self._way(headers, "", 0)),
        ]
        return 303, [("location", to), *cookies], b""

    def _callback(self, headers: Mapping[str, str]) -> str:
        return (self._url or f"{self._scheme}://{headers['host']}") + CALLBACK

    @property
    def _is_secure(self) -> bool:
        return self._scheme == "https" or self._url.startswith("https://")

    def _way_name(self, headers: Mapping[str, str]) -> str:
        port = headers.get("host", "").rpartition(":")[2]
        name = f"{_COOKIE}-{port}" if port.isascii() and port.isdigit() else _COOKIE
        return f"__Host-{name}" if self._is_secure else name

    def _way(self, headers: Mapping[str, str], value: str, age: int) -> str:
        secure = "; Secure" if self._is_secure else ""
        return f"{self._way_name(headers)}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}"

    # --- the provider

    async def _ended(self, _headers: Mapping[str, str], _query: bytes, body: bytes) -> _Answer:
        """End the sessions that the provider says are over."""
        over = await self._sessions.provider.ended(_pairs(body).get("logout_token", ""))
        await self._sessions.end_at_provider(over)
        return 200, [], b""

    # --- `remit login`

    async def _device(self, _headers: Mapping[str, str], _query: bytes, _body: bytes) -> _Answer:
        """Begin a login that a person makes on another device."""
        begin_device = await self._sessions.provider.begin_device()
        names = ("device_code", "user_code", "verification_uri", "verification_uri_complete", "expires_in", "interval")
        return _json({name: begin_device[name] for name in names if name in begin_device})

    async def _session(self, _headers: Mapping[str, str], _query: bytes, body: bytes) -> _Answer:
        """Begin the session of a person who logged in on another device; LOGIN_PENDING until then."""
        person = await self._sessions.provider.person_of_device(_pairs(body).get("device_code", ""))
        secret = await self._sessions.begin(person, "cli")
        return _json({"token": secret, "principal": person.principal})

    async def _leave(self, headers: Mapping[str, str], _query: bytes, _body: bytes) -> _Answer:
        """End the session whose secret is the bearer token."""
        kind, _, secret = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or await self._sessions.session(secret, renews=False) is None:
            raise unauthenticated("The login has ended.")
        await self._sessions.end(secret)
        return _json({})


_Answer = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and body."""


def _json(value: Any) -> _Answer:
    return 200, [("content-type", "application/json")], msgspec.json.encode(value)


def _made(cookie: str, what: str) -> str:
    """Make a text of what a browser remembers; of one text of its own, a third cannot be guessed."""
    seed = cookie.partition(".")[0]
    text = cookie if what == "state" else what
    digest = hmac.new(seed.encode(), f"{what}\0{text}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _pairs(raw: bytes) -> dict[str, str]:
    """The fields of a query or a form, each once. Raise Problem."""
    if len(raw) > max(MAX_QUERY, _BODY):
        raise HttpProblem(Code.INVALID_INPUT, "The query is too long.")
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=50)
    except (ValueError, UnicodeDecodeError):
        raise HttpProblem(Code.INVALID_INPUT, "The fields cannot be read.") from None
    if len({name for name, _ in pairs}) < len(pairs):
        raise HttpProblem(Code.INVALID_INPUT, "A field comes twice.")
    return dict(pairs)


def _kept(headers: Mapping[str, str], name: str) -> str:
    """Return what a browser remembers of a login under way; empty: nothing."""
    for pair in headers.get("cookie", "").split(";"):
        key, _, value = pair.strip().partition("=")
        if key == name:
            return value
    return ""


def _page(problem: HttpProblem) -> bytes:
    """A page that says why a login failed, and lets a person begin again."""
    text = f"{problem.detail} {problem.remedy}".strip()
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Not logged in</title><h1>Not logged in</h1>'
        f'<p id="wrong">{escape(text)}</p><p>{problem.code.name}</p><p><a href="{link(PROVIDER)}">Log in again</a></p>'
    ).encode()
