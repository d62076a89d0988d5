"""Clients that may connect: programs on this machine, or bearers of a token; and no web page of another origin.

Bearer tokens, kept as digests: nothing that is in memory for long could be used to connect.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from remit.codes import Code
from remit.errors import SettingsError
from remit.http.access import ANYBODY, Access
from remit.http.people import SESSION
from remit.http.problem import HttpProblem, unauthenticated

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.http.issuers import Issuers
    from remit.http.people import People


class Token(msgspec.Struct, frozen=True):
    """A token that a request may bring."""

    digest: bytes
    """SHA-256 of the token's bytes."""
    access: Access
    expires: int | None = None
    """Microseconds since the epoch from which it is refused; None: never."""


def digest_of(token: str) -> bytes:
    """The SHA-256 of a token, which has enough randomness of its own to need no salt."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def token_of(random: bytes) -> str:
    """A token of random bytes: `rmt_`, so that scanners for secrets know it, and base64url."""
    return "rmt_" + urlsafe_b64encode(random).rstrip(b"=").decode("ascii")


LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_DOTS: Final = 2
"""In a signed token (JWT)."""
_PORTS: Final = {"http": "80", "https": "443"}
"""By the schemes of origins."""


class Guard:
    """Looks at a request before anything of it is read.

    It is known as `names` and nothing else; it lets in bearers of `tokens` and of tokens of `issuers`, and `people`.
    Without any of these, it lets everyone in.
    """

    def __init__(
        self,
        names: Sequence[str],
        tokens: Sequence[Token],
        clock: Clock,
        issuers: Issuers | None = None,
        people: People | None = None,
    ) -> None:
        self._names = frozenset(f"[{name}]" if ":" in name else name.lower() for name in names)
        self._tokens = tuple(tokens)
        self._clock = clock
        self._issuers = issuers
        self.people = people

    @classmethod
    def of(
        cls,
        host: str,
        known_as: Sequence[str],
        tokens: Sequence[Token],
        clock: Clock,
        *,
        private: bool = False,
        issuers: Issuers | None = None,
        people: People | None = None,
    ) -> Guard:
        """The guard of a server that listens at `host`; `known_as` are further names that clients may use.

        `private` says that no one on the way can read along, or that the operator takes care of it. Raises
        SettingsError if anyone on the network could call, or read the tokens of those who do.
        """
        if host not in LOOPBACK and not tokens and issuers is None and people is None:
            raise SettingsError(
                f"other machines can reach {host}, and no client has a token",
                code=Code.SETTINGS_INVALID,
                remedy="List the clients that may connect in [[clients]], or listen on 127.0.0.1.",
            )
        if host not in LOOPBACK and not private:
            raise SettingsError(
                f"other machines can reach {host}, and their tokens would be sent unencrypted",
                code=Code.SETTINGS_INVALID,
                remedy="Use --tls-cert and --tls-key, or --without-tls behind a proxy that serves HTTPS.",
            )
        return cls([*(LOOPBACK if host in LOOPBACK else (host,)), *known_as], tokens, clock, issuers, people)

    async def admitted(self, headers: Mapping[str, str]) -> Access:
        """As `admit`, also for people's sessions and tokens of issuers, whose keys may have to be fetched.

        Raises Problem.
        """
        if self.people is not None and _bearer(headers).startswith(SESSION):
            self.admit_page(headers)
            if (session := await self.people.session(_bearer(headers))) is None:
                raise unauthenticated("The login has ended.")
            return session.access
        if self._issuers is None:
            return self.admit(headers)
        self.admit_page(headers)
        token = _bearer(headers)
        try:
            if token.count(".") == _DOTS and self._known_token(token) is None:
                return await self._issuers.access(token)
            return self.token(token).access
        except HttpProblem as problem:
            raise unauthenticated(problem.detail, self._issuers.metadata_at(headers["host"])) from None

    def admit(self, headers: Mapping[str, str]) -> Access:
        """Return what the request may do; `headers` have names in lower case. Raises Problem.

        A page in a browser can be made to reach us under a name of its own (DNS rebinding); it cannot hide that name.
        """
        access = ANYBODY if self.open else self.token(_bearer(headers)).access
        self.admit_page(headers)
        return access

    def admit_page(self, headers: Mapping[str, str]) -> None:
        """The same for a request that shows in another way in whose name it comes. Raises Problem."""
        if not self._known(headers.get("host", "")):
            raise HttpProblem(Code.HOST_REFUSED)
        scheme, between, host = headers.get("origin", "").partition("://")
        if (scheme or between) and not (
            scheme in _PORTS and self._known(host) and _is_ours(scheme, host, headers["host"])
        ):
            raise HttpProblem(Code.ORIGIN_REFUSED)

    @property
    def open(self) -> bool:
        """Return whether everyone on this machine is let in."""
        return not self._tokens and self._issuers is None and self.people is None

    @property
    def has_tokens(self) -> bool:
        """Return whether there are tokens that a person can log in with."""
        return bool(self._tokens)

    @property
    def issuers(self) -> Issuers | None:
        """Return the issuers whose tokens count, if there are any."""
        return self._issuers

    def token(self, text: str) -> Token:
        """The token whose text someone brings. Raises Problem if there is none, or it has expired.

        Every digest is compared, in constant time, so that no token can be guessed by measuring.
        """
        token = self._known_token(text)
        if token is None:
            raise unauthenticated("The request has no valid token.")
        if token.expires is not None and self._clock.now() >= token.expires:
            raise unauthenticated("The token has expired.")
        return token

    def _known_token(self, text: str) -> Token | None:
        digest = digest_of(text)
        known_token = None
        for known in self._tokens:
            if hmac.compare_digest(known.digest, digest):
                known_token = known
        return known_token

    def _known(self, host: str) -> bool:
        """Return whether we go by this name, with any port."""
        name, colon, port = host.lower().rpartition(":")
        if not colon or port.endswith("]"):
            return host.lower() in self._names
        return name in self._names and port.isascii() and port.isdigit()


def _bearer(headers: Mapping[str, str]) -> str:
    """The token that a request brings; empty if it brings none."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token if kind.lower() == "bearer" else ""


def _is_ours(scheme: str, origin: str, host: str) -> bool:
    """Return whether a page of this origin is ours: on this machine other programs serve theirs at other ports."""
    name, port = _parted(scheme, origin)
    return name not in LOOPBACK or port == _parted(scheme, host)[1]


def _parted(scheme: str, host: str) -> tuple[str, str]:
    """Name and port of a host that is known."""
    name, colon, port = host.lower().rpartition(":")
    if not colon or port.endswith("]"):
        name, port = host.lower(), _PORTS[scheme]
    return name.strip("[]"), port
