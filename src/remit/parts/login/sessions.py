"""Sessions of people, each a stream of its own, which every process on the journal knows.

The journal keeps a digest of a session's secret, which only the browser or the program has. The provider's refresh
token is encrypted with that secret, so that the provider is asked in a person's name for a request of theirs alone.

    login_begun ──(login_renewal, login_refreshed)*──> login_ended

The provider is asked about a person again when a request comes and the last answer is FRESH_S old. One process asks at
a time: a refresh token that two use is taken for a stolen one. While the provider cannot be reached, its last answer
counts for STALE_S; once it refuses, the session is over.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from remit.clock import SECOND
from remit.codes import Code
from remit.errors import AppendConflictError
from remit.http.access import Access
from remit.http.people import SESSION, PersonSession
from remit.http.problem import HttpProblem
from remit.journal.event import HeadPatch, HeadQuery
from remit.journal.kinds import decode
from remit.parts.login.kinds import LoginBegun, LoginEnded, LoginRefreshed, LoginRenewal
from remit.parts.login.provider import refused
from remit.randomness import salt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remit.http.access import Scope
    from remit.journal.event import StreamHead
    from remit.journal.journal import Journal
    from remit.journal.kinds import Payload
    from remit.parts.login.kinds import Face, Reason
    from remit.parts.login.provider import LoginProvider, LogoutNotice, Person
    from remit.parts.login.settings import LoginGrant

KIND: Final = "login"
FRESH_S: Final = 15 * 60
"""Seconds after which the provider is asked about a person again."""
STALE_S: Final = 3_600
"""Seconds for which its last answer counts while it cannot be reached; a console left alone so long is logged out."""
LONGEST_S: Final = 12 * 3_600
"""Seconds after which a session ends in any case."""
OF_ONE: Final = 50
"""Sessions of one person; the oldest end first."""
_CLAIM_S: Final = 60
"""Seconds that one process has to ask the provider before another one may."""
_OPEN: Final = "open"
_NONCE: Final = 12
_BYTES: Final = 32
_PAGE: Final = 100


class LoginSession(NamedTuple):
    """A session, as its stream tells it."""

    head: StreamHead
    begun: LoginBegun
    groups: tuple[str, ...]
    sealed: str
    checked_at: int
    """When the provider last said something of the person."""
    claimed_at: int
    """When a process last began to ask it."""
    ended: bool


class LoginSessions:
    """Everyone who logged in (remit.http.people.People)."""

    def __init__(
        self,
        journal: Journal,
        provider: LoginProvider,
        grants: Sequence[LoginGrant],
        random: Callable[[int], bytes] = salt,
    ) -> None:
        self._journal = journal
        self._grants = tuple(grants)
        self._random = random
        self.provider = provider

    @property
    def issuer(self) -> str:
        return self.provider.issuer

    # --- beginning

    async def begin(self, person: Person, face: Face) -> str:
        """Begin a session; its secret. Raise Problem if the person may do nothing here."""
        if not self._scopes(person.groups):
            raise refused(f"{person.principal} is in no group that may do something here.")
        await self._make_room(person.principal)
        secret = base64.urlsafe_b64encode(self._random(_BYTES)).decode().rstrip("=")
        secret = secret if face == "console" else f"{SESSION}{secret}"
        stream, now = _stream(secret), self._journal.clock.now()
        begun = LoginBegun(
            principal=person.principal,
            issuer=self.issuer,
            subject=person.subject,
            sid=person.sid,
            groups=person.groups,
            face=face,
            until=now + LONGEST_S * SECOND,
            form_key=self._random(_BYTES).hex(),
            sealed=self._seal(person.refresh, secret, stream),
        )
        labels = {"principal": person.principal, "subject": person.subject, "sid": person.sid}
        patch = HeadPatch(
            state=_OPEN, title=person.principal, labels={name: text for name, text in labels.items() if text}
        )
        await self._journal.create(stream, KIND, begun, patch=patch)
        return secret

    async def _make_room(self, principal: str) -> None:
        """End sessions whose time is over, and the oldest of someone who has many."""
        over = HeadQuery(kind=KIND, states=(_OPEN,), until=self._journal.clock.now() - LONGEST_S * SECOND, limit=_PAGE)
        for head in await self._journal.heads(over):
            await self._end(head.stream, "expired")
        own = HeadQuery(kind=KIND, states=(_OPEN,), labels={"principal": principal}, limit=OF_ONE + _PAGE)
        for head in (await self._journal.heads(own))[OF_ONE - 1 :]:
            await self._end(head.stream, "replaced")

    # --- going on

    async def session(self, secret: str, *, renews: bool = True) -> PersonSession | None:
        login = await self._read(_stream(secret))
        if login is not None and self._lasts(login) and renews and self._age(login) >= FRESH_S * SECOND:
            login = await self._renewed(login, secret)
        if login is None or not self._lasts(login) or self._age(login) >= STALE_S * SECOND:
            return None
        access = Access(login.begun.principal, self._scopes(login.groups), groups=frozenset(login.groups))
        return PersonSession(access, login.begun.until, bytes.fromhex(login.begun.form_key))

    async def groups(self, principal: str) -> frozenset[str]:
        query = HeadQuery(kind=KIND, states=(_OPEN,), labels={"principal": principal}, limit=OF_ONE)
        sessions = [await self._read(head.stream) for head in await self._journal.heads(query)]
        fresh = [
            session
            for session in sessions
            if session is not None and self._lasts(session) and self._age(session) < STALE_S * SECOND
        ]
        return frozenset(max(fresh, key=lambda session: session.checked_at).groups) if fresh else frozenset()

    def _lasts(self, login: LoginSession) -> bool:
        """Return whether a session is not over, whatever the provider says by now."""
        idle = login.begun.face == "console" and self._age(login) >= STALE_S * SECOND
        same = login.begun.issuer == self.issuer
        in_time = self._journal.clock.now() < login.begun.until
        return same and in_time and not login.ended and not idle and bool(self._scopes(login.groups))

    def _age(self, login: LoginSession) -> int:
        return self._journal.clock.now() - login.checked_at

    def _scopes(self, groups: Sequence[str]) -> frozenset[Scope]:
        """The scopes of someone in these groups, as the settings say now."""
        return frozenset(
            scope for grant in self._grants if not grant.group or grant.group in groups for scope in grant.scopes
        )

    async def _renewed(self, login: LoginSession, secret: str) -> LoginSession | None:
        """Ask the provider about the person, unless another process does; the session afterwards."""
        refresh = self._unseal(login.sealed, secret, login.head.stream)
        if not refresh or self._journal.clock.now() - login.claimed_at < _CLAIM_S * SECOND:
            return login
        stream = login.head.stream
        if not await self._append(login.head, LoginRenewal()):
            return await self._read(stream)
        try:
            person = await self.provider.person_again(refresh)
            if person.subject != login.begun.subject:
                raise refused("The provider speaks of another person.")
        except HttpProblem as problem:
            if problem.code is Code.LOGIN_UNAVAILABLE:
                return login
            await self._end(stream, "refused")
            return None
        claimed = await self._read(stream)
        if claimed is not None and not claimed.ended:
            sealed = self._seal(person.refresh, secret, stream)
            await self._append(claimed.head, LoginRefreshed(groups=person.groups, sealed=sealed))
        return await self._read(stream)

    # --- ending

    async def end(self, secret: str) -> None:
        await self._end(_stream(secret), "logout")

    async def end_at_provider(self, over: LogoutNotice) -> int:
        """End the sessions that ended at the provider; their number."""
        labels = {"sid": over.sid} if over.sid else {"subject": over.subject}
        number = 0
        while heads := await self._journal.heads(HeadQuery(kind=KIND, states=(_OPEN,), labels=labels, limit=_PAGE)):
            for head in heads:
                await self._end(head.stream, "provider")
            number += len(heads)
        return number

    async def _end(self, stream: str, reason: Reason) -> None:
        patch = HeadPatch(state="ended", closed=True)
        login = await self._read(stream)
        while login is not None and not login.ended:
            if await self._append(login.head, LoginEnded(reason=reason), patch):
                return
            login = await self._read(stream)  # something was written meanwhile

    # --- common

    async def _append(self, head: StreamHead, payload: Payload, patch: HeadPatch | None = None) -> bool:
        """Append to a session; False: it has changed since it was read."""
        writer = self._journal.writer(head.stream, KIND, head)
        draft = writer.draft(payload) if patch is None else writer.draft(payload, patch=patch)
        try:
            await self._journal.commit(draft, synced=True)
        except AppendConflictError:
            return False
        return True

    async def _read(self, stream: str) -> LoginSession | None:
        head = await self._journal.head(stream)
        if head is None:
            return None
        events = [event for event in await self._journal.left(stream) if event.seq <= head.seq]
        self._journal.prove(head, events)
        login: LoginSession | None = None
        for event in events:
            match decode(event.kind, event.data):
                case LoginBegun() as begun:
                    login = LoginSession(head, begun, begun.groups, begun.sealed, event.at, 0, ended=False)
                case LoginRenewal() if login is not None:
                    login = login._replace(claimed_at=event.at)
                case LoginRefreshed(groups=groups, sealed=sealed) if login is not None:
                    login = login._replace(groups=groups, sealed=sealed, checked_at=event.at)
                case LoginEnded() if login is not None:
                    login = login._replace(ended=True)
                case _:
                    pass
        return login

    def _seal(self, text: str, secret: str, stream: str) -> str:
        if not text:
            return ""
        nonce = self._random(_NONCE)
        return base64.b64encode(nonce + _cipher(secret).encrypt(nonce, text.encode(), stream.encode())).decode()

    def _unseal(self, sealed: str, secret: str, stream: str) -> str:
        data = base64.b64decode(sealed)
        try:
            return _cipher(secret).decrypt(data[:_NONCE], data[_NONCE:], stream.encode()).decode() if data else ""
        except InvalidTag:
            return ""


def _stream(secret: str) -> str:
    return f"{KIND}/{hashlib.sha256(secret.encode()).hexdigest()[:32]}"


def _cipher(secret: str) -> AESGCM:
    return AESGCM(hashlib.sha256(b"remit login\0" + secret.encode()).digest())
