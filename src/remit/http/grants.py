"""Grants: what lets in the bearers of an issuer's tokens (JWT), and in whose name; decided by claims alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from remit.http.access import Access, TokenIdentity
from remit.regex import regex

CLAIM: Final = regex(r"\{([^{}]*)\}")
"""A place in the principal of a grant that a claim fills."""
_LONGEST: Final = 200
"""Characters of a claim that becomes part of a principal."""
_LISTED: Final = frozenset({"scope", "scp"})
"""Claims whose text is a list, separated by blanks (RFC 8693, section 4.2)."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """One `[[clients]]` table with an issuer."""

    issuer: str
    audience: tuple[str, ...]
    """The names that we go by at the issuer, one of which a token has to be for."""
    claims: Mapping[str, tuple[str, ...]]
    """The claims that a token has to have, each with any of these values."""
    access: Access
    """The rights of a bearer; claims fill the places in its principal."""
    expires: int | None = None
    """Microseconds since the epoch from which it lets no one in; None: never."""

    def admits(self, claims: Mapping[str, Any], now: int) -> bool:
        """Return whether a token with these claims is for us, and has what the grant wants."""
        if self.expires is not None and now >= self.expires:
            return False
        wanted = all(_values(name, claims.get(name)) & set(values) for name, values in self.claims.items())
        return wanted and bool(_values("aud", claims.get("aud")) & set(self.audience))

    def access_of(self, claims: Mapping[str, Any], key: str) -> Access | None:
        """The access of a token's bearer; None if a claim that names the principal is no plain text."""
        missing: list[str] = []

        def fill(place: re.Match[str]) -> str:
            value = claims.get(place[1])
            if isinstance(value, str) and 0 < len(value) <= _LONGEST and value.isprintable() and value.strip() == value:
                return value
            missing.append(place[1])
            return ""

        principal = CLAIM.sub(fill, self.access.principal or "")
        identity = TokenIdentity(self.issuer, str(claims.get("sub", "")), key)
        return None if missing else msgspec.structs.replace(self.access, principal=principal, identity=identity)


def rivals(grants: Iterable[Grant]) -> tuple[str, str] | None:
    """The principals of two issuers' grants that could name the same one; None if no issuer speaks for another's."""
    filled = [(grant.issuer, grant.access.principal or "") for grant in grants]
    for issuer, principal in filled:
        for other, second in filled:
            if issuer != other and _could_be(principal, second):
                return principal, second
    return None


def _could_be(claim: str, other: str) -> bool:
    """Return whether a claim could make one principal the other."""
    if not CLAIM.search(claim):
        return False
    heads = [CLAIM.split(each, maxsplit=1)[0] for each in (claim, other)]
    return heads[1].startswith(heads[0]) or (bool(CLAIM.search(other)) and heads[0].startswith(heads[1]))


def _values(name: str, value: Any) -> set[str]:
    """The values of a claim, as texts."""
    if isinstance(value, str):
        return {value, *(value.split() if name in _LISTED else ())}
    if isinstance(value, bool):
        return {str(value).lower()}
    if isinstance(value, list):
        return {each for each in value if isinstance(each, str)}
    return set()
