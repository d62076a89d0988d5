"""The caller, as far as a tool may talk to them while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from remit.regex import regex

if TYPE_CHECKING:
    from remit.http.access import Assertion

ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
ROOTS: Final = "roots/list"
CAPABILITY: Final[Mapping[str, str]] = {ELICIT: "elicitation", SAMPLE: "sampling", ROOTS: "roots"}
"""The capability that a client has to have declared to be asked, by the method."""
_OF_THE_PROTOCOL: Final = regex(
    r"(completion|elicitation|logging|prompts|resources|roots|sampling|server|subscriptions|tasks|tools)/"
    r"|initialize$|ping$|notifications/(cancelled|initialized|message|progress|roots|subscriptions|tasks|tools)"
)
Requests = Mapping[str, Mapping[str, Any]]
"""Requests by keys of the asker's choice, each with `method` and `params`."""


def is_foreign(method: str) -> bool:
    """Return whether a request or notification is of no version of MCP, but a server's or client's own.

    What a careless server might take for one of MCP's, such as `Tools/call`, is not.
    """
    return not _OF_THE_PROTOCOL.match(method.strip().casefold())


class Peer(Protocol):
    """The other end of a face that can be asked back, such as an MCP client's; messages are worded as in MCP."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """Return what it says of itself in the `_meta` of its request: capabilities, the log level it wants to hear."""
        ...

    @property
    def attached(self) -> Mapping[str, Any]:
        """Return what it attached to its request for the server (`_meta`), without what is the protocol's."""
        ...

    @property
    def assertion(self) -> Assertion | None:
        """Return its own token of an issuer, if it came with one."""
        ...

    def given(self, invocation_id: str, result: Mapping[str, Any]) -> None:
        """Take a server's own result of a call, as it came, beside the outcome that Remit makes of it."""
        ...

    def can(self, method: str) -> bool:
        """Return whether it answers requests of this method."""
        ...

    @property
    def deferred(self) -> bool:
        """Return whether its request is answered before the call is made, with a task that it asks about later."""
        ...

    def defer(self, message: str) -> bool:
        """Have its request answered so from now on, as the call takes long; `message` says why. False: it waits."""
        ...

    async def ask(self, requests: Requests) -> dict[str, dict[str, Any]]:
        """Its answers to requests such as `elicitation/create`, by their keys. Raises PeerError where it gives none."""
        ...

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass a notification on, such as a log message; never fails, never waits."""
        ...


class OnlyPeer(Peer, Protocol):
    """The one peer of a process, outside of its calls, too: nothing that a server asks can be for another."""

    async def declared(self) -> Mapping[str, Any] | None:
        """Return its capabilities as it declared them, once it has said something; None if they are not known."""
        ...

    async def served(self) -> bool:
        """Wait a little until it can be asked outside of its calls; whether it can."""
        ...

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Have `changed` called when its roots changed."""
        ...


class PeerError(Exception):
    """The peer cannot be asked, or refused to answer."""
