"""Bearers of JWTs that issuers signed: whom they let in is decided here, before anything of a request is read.

A token counts if it is signed by a key of its issuer, with an algorithm that fits the key and is listed here; if it is
for us (aud), of now (exp, nbf, iat, within SKEW_S), and if a grant of its issuer admits its claims (grants.py). What it
says of where keys are (jku, x5u, jwk) is not looked at. Sources: RFC 7519, RFC 8725, RFC 9068.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import jwt
from msgspec.structs import replace

from remit.clock import SECOND
from remit.http.access import Access, Assertion
from remit.http.addresses import Resolver, resolved
from remit.http.issuer_keys import IssuerKeys
from remit.http.problem import METADATA, unauthenticated

if TYPE_CHECKING:
    from remit.clock import Clock
    from remit.http.grants import Grant


SKEW_S: Final = 60
"""Seconds by which the clocks of an issuer and ours may differ."""
LONGEST: Final = 16 * 1024
"""Characters of a token."""
ALGORITHMS: Final[Mapping[str, frozenset[str]]] = {
    "RSA": frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}),
    "P-256": frozenset({"ES256"}),
    "P-384": frozenset({"ES384"}),
    "P-521": frozenset({"ES512"}),
    "Ed25519": frozenset({"EdDSA"}),
}
"""The algorithms that count, by the kind of key: none with a shared secret, and not `none`."""
_LEAST_BITS: Final = 2_048
_TYPES: Final = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
"""The values of `typ`: tokens that are made for something else, such as logging out, are no access tokens."""


class Issuers:
    """The issuers whose tokens count.

    They let in by `grants`, the first of an issuer's that fits; no one as a principal that is `taken`. Clients reach us
    at `url`, or else at the host that they name, by `scheme`.
    """

    def __init__(
        self,
        grants: Sequence[Grant],
        clock: Clock,
        *,
        taken: frozenset[str] = frozenset(),
        url: str = "",
        scheme: str = "http",
        resolve: Resolver = resolved,
    ) -> None:
        self._grants = tuple(grants)
        self._clock = clock
        self._taken = taken
        self._url = url.rstrip("/") if url.startswith(("https://", "http://")) else ""
        self._scheme = scheme
        self.urls = tuple(dict.fromkeys(grant.issuer for grant in grants))
        self._keys = {url: IssuerKeys(url, clock, resolve) for url in self.urls}

    def at(self, host: str) -> str:
        """The URL at which a client reaches us that names this host."""
        return self._url or f"{self._scheme}://{host}"

    def metadata_at(self, host: str) -> str:
        """The URL that says whose tokens count, for a client that names this host."""
        return f"{self.at(host)}{METADATA}"

    async def access(self, token: str) -> Access:
        """Return what the bearer of a token may do. Raises Problem, which does not quote it."""
        claims, key_id = await self.claims(token)
        now = self._clock.now()
        grant = next(
            (
                candidate
                for candidate in self._grants
                if candidate.issuer == claims["iss"] and candidate.admits(claims, now)
            ),
            None,
        )
        if grant is None:
            raise unauthenticated("The token is not for this server, or lacks what a client of it needs.")
        access = grant.access_of(claims, key_id)
        if access is None or access.principal in self._taken:
            raise unauthenticated("The token does not name a principal that it may speak for.")
        return replace(access, assertion=Assertion(claims["iss"], claims["sub"], token))

    async def claims(
        self, token: str, types: frozenset[str] = _TYPES, *, about: bool = True
    ) -> tuple[dict[str, Any], str]:
        """The claims of a token of one of these types that its issuer signed and that is of now, and the id of the key.

        `about`: it names a subject. Raises Problem.
        """
        if len(token) > LONGEST:
            raise unauthenticated("The token is too long.")
        claims, key_id = await self._verified(token, types)
        if about and (not isinstance(claims.get("sub"), str) or not claims["sub"]):
            raise unauthenticated("The token is about no one.")
        _check_times(claims, self._clock.now() // SECOND)
        return claims, key_id

    async def metadata(self, issuer: str) -> dict[str, Any]:
        """Return what an issuer says of itself; empty: it cannot be reached."""
        return await self._keys[issuer].metadata()

    async def _verified(self, token: str, types: frozenset[str]) -> tuple[dict[str, Any], str]:
        """The claims of a token that its issuer signed, and the id of the key."""
        try:
            header = jwt.get_unverified_header(token)
            unproven = jwt.decode(token, options={"verify_signature": False})
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            raise unauthenticated("The token cannot be read.") from None
        issuer, key_id = unproven.get("iss"), header.get("kid")
        keys = self._keys.get(issuer) if isinstance(issuer, str) else None
        if keys is None or not isinstance(key_id, str) or "crit" in header:
            raise unauthenticated("The token is of no issuer that is known here, or names no key.")
        if str(header.get("typ", "")).lower() not in types:
            raise unauthenticated("The token is of another type.")
        jwk = await keys.key(key_id)
        algorithm = header.get("alg")
        if jwk is None or not isinstance(algorithm, str) or not _fits(algorithm, jwk):
            raise unauthenticated("The token is not signed by a key of its issuer.")
        try:
            key = jwt.PyJWK(jwk, algorithm)
            if getattr(key.key, "key_size", _LEAST_BITS) < _LEAST_BITS and jwk.get("kty") == "RSA":
                raise unauthenticated("The key of the token is too short.")
            # Times and audience are looked at by our clock and our grants.
            claims = jwt.decode(token, key, algorithms=[algorithm], options=_SIGNATURE_ALONE)
        except (jwt.PyJWTError, ValueError):
            raise unauthenticated("The token is not signed by a key of its issuer.") from None
        return claims, key_id


_SIGNATURE_ALONE: Final[Any] = {
    "verify_signature": True,
    "require": ["exp", "iss", "aud"],
    **{f"verify_{claim}": False for claim in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")},
}


def _fits(algorithm: str, jwk: Mapping[str, Any]) -> bool:
    """Return whether a key is for an algorithm that counts."""
    kind = jwk.get("crv") if jwk.get("kty") in {"EC", "OKP"} else jwk.get("kty")
    return jwk.get("alg", algorithm) == algorithm and algorithm in ALGORITHMS.get(str(kind), frozenset())


def _check_times(claims: Mapping[str, Any], now_s: int) -> None:
    """Raise Problem unless a token is of now."""
    times = {name: claims[name] for name in ("exp", "nbf", "iat") if name in claims}
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in times.values()):
        raise unauthenticated("The times of the token cannot be read.")
    if not now_s < times["exp"] + SKEW_S:
        raise unauthenticated("The token has expired.")
    if max(times.get("nbf", 0), times.get("iat", 0)) > now_s + SKEW_S:
        raise unauthenticated("The token does not count yet.")
