"""The port of people who log in at a provider of identities: the sessions they have here, and their groups there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from remit.http.access import Access

SESSION: Final = "rms_"
"""The beginning of the secret of a session that a program carries as its bearer token."""


class PersonSession(NamedTuple):
    """A session that goes on."""

    access: Access
    until: int
    """When it ends at the latest, in microseconds since the epoch."""
    form_key: bytes
    """Makes the tokens of its forms, the same in every process."""


class People(Protocol):
    """Everyone who logs in at one provider."""

    @property
    def issuer(self) -> str:
        """The URL of the provider, as its tokens name it."""
        ...

    async def session(self, secret: str, *, renews: bool = True) -> PersonSession | None:
        """The session of a cookie or a bearer token; None if there is none, or it has ended.

        `renews`: the provider is asked about the person once more where that is due.
        """
        ...

    async def end(self, secret: str) -> None:
        """End a session, if there is one."""
        ...

    async def groups(self, principal: str) -> frozenset[str]:
        """The groups that the provider counted a person among, when it was asked in a session that goes on."""
        ...
