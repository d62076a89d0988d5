"""The visitors of pages: how they log in and out with a token, their sessions, and what guards their forms.

A browser sends its cookie along with whatever any page asks of us. So a form counts only with a token that belongs to
the cookie, and only from our own origin, with its port. Sessions of tokens live in memory: they end with the process,
with their token, after an hour without a request, or after twelve. Those of people who logged in at a provider
(remit.http.people) go on in every process.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import msgspec

from remit.clock import SECOND
from remit.codes import Code
from remit.http.access import ANYBODY, Access
from remit.http.problem import HttpProblem
from remit.pages.page import PageView
from remit.randomness import salt
from remit.regex import regex

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.http.guard import Guard
    from remit.http.people import PersonSession


IDLE_S: Final = 3_600
"""Seconds without a request after which a session ends."""
LONGEST_S: Final = 12 * 3_600
"""Seconds after which a session ends in any case."""
SESSIONS: Final = 1_000
"""Sessions at once; the one that was idle longest ends first."""
SESSIONS_OF_ONE: Final = 50
"""Sessions of one principal, in the same way: so that no one ends those of others."""
NOBODY: Final = Access("", frozenset())
"""The visitor that has not logged in."""
_BYTES: Final = 32
_COOKIE: Final = regex(r"[A-Za-z0-9_-]{43}")


class ConsoleSession(msgspec.Struct):
    """Someone who logged in."""

    access: Access
    until: int
    """When it ends in any case, in microseconds since the epoch."""
    last_request_at: int
    """When its last request came."""


class Visitor(NamedTuple):
    """The visitor who asks for a page."""

    access: Access
    cookie: str
    """The cookie's value; empty if none came that counts."""
    csrf: str
    """The token that a form of theirs must bring; empty without a cookie."""
    until: int | None
    """When their session ends at the latest; None: it has no end."""

    @property
    def known(self) -> bool:
        """Return whether they may see pages at all."""
        return self.access is not NOBODY


class ConsoleEntry:
    """Lets people in, and remembers them."""

    def __init__(self, guard: Guard, clock: Clock, random: Callable[[int], bytes] = salt) -> None:
        self._guard = guard
        self._people = guard.people
        self._clock = clock
        self._random = random
        self._key = random(_BYTES)
        self._sessions: OrderedDict[bytes, ConsoleSession] = OrderedDict()

    @property
    def open(self) -> bool:
        """Return whether everyone on this machine is let in without a token."""
        return self._guard.open

    @property
    def provider(self) -> str:
        """The issuer at which people log in; empty: they do not."""
        return self._people.issuer if self._people is not None else ""

    @property
    def takes_tokens(self) -> bool:
        """Return whether people can log in with a token."""
        return self._guard.has_tokens

    async def admit(self, headers: Mapping[str, str]) -> Access:
        """In whose name a request comes."""
        return (await self.visitor(headers)).access

    async def visitor(self, headers: Mapping[str, str]) -> Visitor:
        """Return who sends a request."""
        cookie = cookie_of(headers)
        if self._guard.open:
            return Visitor(ANYBODY, cookie, self._csrf(cookie), None)
        session = self._session(cookie)
        if session is None:
            person = await self._person(cookie)
            if person is not None:
                return Visitor(person.access, cookie, _form_token(person.form_key, cookie), person.until)
            return Visitor(NOBODY, cookie, self._csrf(cookie), None)
        return Visitor(session.access, cookie, self._csrf(cookie), session.until)

    async def lasts(self, visitor: Visitor) -> bool:
        """Return whether a visitor's session goes on; to ask does not prolong it."""
        if self._guard.open:
            return True
        session, now = self._sessions.get(_digest(visitor.cookie)), self._clock.now()
        if session is None:
            return await self._person(visitor.cookie, renews=False) is not None
        return now < min(session.until, session.last_request_at + IDLE_S * SECOND)

    def newcomer(self, headers: Mapping[str, str]) -> tuple[Visitor, str]:
        """A visitor with a new cookie, which is not a session yet, and the header that sets it."""
        cookie = self._new()
        access = ANYBODY if self._guard.open else NOBODY
        return Visitor(access, cookie, self._csrf(cookie), None), _set(headers, cookie)

    async def log_in(self, headers: Mapping[str, str], text: str) -> str:
        """Begin a session with a token's text; the header that sets its cookie. Raises Problem."""
        token = self._guard.token(text)
        await self._end(cookie_of(headers))
        cookie, now = self._new(), self._clock.now()
        until = now + LONGEST_S * SECOND
        if token.expires is not None:
            until = min(until, token.expires)
        self._sessions[_digest(cookie)] = ConsoleSession(token.access, until, now)
        who = token.access.principal
        own = [digest for digest, session in self._sessions.items() if session.access.principal == who]
        if len(own) > SESSIONS_OF_ONE:
            del self._sessions[own[0]]
        elif len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        return _set(headers, cookie)

    async def log_out(self, headers: Mapping[str, str]) -> str:
        """End a session; the header that removes its cookie."""
        await self._end(cookie_of(headers))
        return _set(headers, "")

    def check(self, visitor: Visitor, headers: Mapping[str, str], token: str) -> None:
        """Raise Problem unless a form comes from a page of ours, made for this visitor."""
        host, origin = headers.get("host", "").lower(), headers.get("origin", "").lower()
        site = headers.get("sec-fetch-site", "same-origin")
        if origin not in {f"http://{host}", f"https://{host}"} or site != "same-origin":
            raise HttpProblem(Code.ORIGIN_REFUSED, "The form was not sent from a page of this server.")
        if not (visitor.csrf and hmac.compare_digest(visitor.csrf.encode(), token.encode())):
            raise HttpProblem(Code.FORM_OUTDATED)

    def _session(self, cookie: str) -> ConsoleSession | None:
        digest = _digest(cookie)
        session, now = self._sessions.get(digest), self._clock.now()
        if session is None:
            return None
        if now >= min(session.until, session.last_request_at + IDLE_S * SECOND):
            del self._sessions[digest]
            return None
        session.last_request_at = now
        self._sessions.move_to_end(digest)
        return session

    async def _person(self, cookie: str, *, renews: bool = True) -> PersonSession | None:
        return await self._people.session(cookie, renews=renews) if self._people is not None and cookie else None

    async def _end(self, cookie: str) -> None:
        if self._sessions.pop(_digest(cookie), None) is None and self._people is not None and cookie:
            await self._people.end(cookie)

    def _new(self) -> str:
        return base64.urlsafe_b64encode(self._random(_BYTES)).decode().rstrip("=")

    def _csrf(self, cookie: str) -> str:
        """Return the token of a form. Who has the cookie alone cannot make it: it takes the key of this process."""
        return _form_token(self._key, cookie) if cookie else ""


def _form_token(key: bytes, cookie: str) -> str:
    return hmac.new(key, cookie.encode(), hashlib.sha256).hexdigest()


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()


def cookie_of(headers: Mapping[str, str]) -> str:
    """The value of our cookie; empty if there is none, or it is not one that we make."""
    cookies = {}
    for pair in headers.get("cookie", "").split(";"):
        name, _, value = pair.strip().partition("=")
        cookies[name] = value
    secure, plain = (_name(headers, secure=secure) for secure in (True, False))
    value = cookies.get(secure) or cookies.get(plain, "")
    return value if _COOKIE.fullmatch(value) else ""


def _name(headers: Mapping[str, str], *, secure: bool) -> str:
    """By port, since cookies are shared by all servers of a host."""
    port = headers.get("host", "").rpartition(":")[2]
    name = f"remit-{port}" if port.isascii() and port.isdigit() else "remit"
    return f"__Host-{name}" if secure else name


def _set(headers: Mapping[str, str], value: str) -> str:
    """Keep the cookie to TLS if the browser came over it, which only its Origin tells us behind a proxy."""
    return set_cookie(headers, value, secure=headers.get("origin", "").startswith("https://"))


def set_cookie(headers: Mapping[str, str], value: str, *, secure: bool) -> str:
    """The header that sets the cookie of a session, or removes it; `secure`: the browser came over TLS."""
    age = LONGEST_S if value else 0
    mark = "; Secure" if secure else ""
    return f"{_name(headers, secure=secure)}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{mark}"


LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
PROVIDER: Final = "/login/provider"
"""Begins a login at a provider; what answers there is a part's."""


class LoginPage(PageView, frozen=True, kw_only=True):
    """Asks for a token."""

    template: ClassVar[str] = "login.html"
    to: str
    """Where the reader wanted to go."""
    wrong: str = ""
    """Why the last token was not taken."""
    provider: str = ""
    """The issuer at which people log in; empty: they do not."""
    start: str = ""
    """Where a login there begins."""
    tokens: bool = True
    """Whether people can log in with a token."""


class Again(PageView, frozen=True, kw_only=True):
    """Loads the page that was asked for once more."""

    template: ClassVar[str] = "again.html"
    here: str


class LoginForm(msgspec.Struct, frozen=True, kw_only=True):
    """The form to log in."""

    token: str
    to: str = "/"

    def __repr__(self) -> str:
        """Leave the token out."""
        return f"LoginForm(to={self.to!r})"


class Leave(msgspec.Struct, frozen=True):
    """The form to log out."""


def local(path: str) -> str:
    """A path of this server; the first page instead of anything that could lead elsewhere."""
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isascii() and path.isprintable()
    return path if safe and path.partition("?")[0] not in {LOGIN, LOGOUT} else "/"
