"""Events of people's sessions. All of them are ours; no secret of a session or of the provider stands in them."""

from __future__ import annotations

from typing import ClassVar, Literal

from remit.journal.kinds.payload import Payload

Face = Literal["console", "cli"]
Reason = Literal["logout", "provider", "refused", "expired", "replaced"]


class LoginBegun(Payload, frozen=True, kw_only=True):
    """Ours, first in the stream of a session: a person logged in."""

    KIND: ClassVar[str] = "login_begun"
    principal: str
    issuer: str
    subject: str
    """The person, as the provider names them (`sub`)."""
    sid: str = ""
    """The session at the provider, if it names one."""
    groups: tuple[str, ...] = ()
    face: Face
    until: int
    """When it ends at the latest, in microseconds since the Unix epoch."""
    form_key: str
    """Makes the tokens of its forms, together with its cookie."""
    sealed: str = ""
    """The provider's refresh token, encrypted with the secret of the session."""

    def words(self) -> str:
        """Return a line for people."""
        return f"{self.principal} logged in"


class LoginRenewal(Payload, frozen=True, kw_only=True):
    """Ours: one process asks the provider about the person once more, and the others do not."""

    KIND: ClassVar[str] = "login_renewal"


class LoginRefreshed(Payload, frozen=True, kw_only=True):
    """Ours: what the provider says of the person now."""

    KIND: ClassVar[str] = "login_refreshed"
    groups: tuple[str, ...] = ()
    sealed: str = ""
    """As in `login_begun`."""


class LoginEnded(Payload, frozen=True, kw_only=True):
    """Ours: the session is over."""

    KIND: ClassVar[str] = "login_ended"
    reason: Reason
    """`provider`: it told us so; `refused`: it says nothing more of the person; `replaced`: by newer ones."""

    def words(self) -> str:
        """Return a line for people."""
        return f"the login ended: {self.reason}"
