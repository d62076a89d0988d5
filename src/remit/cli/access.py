"""The part of a Remit that most commands need, whether its journal is here or behind a server."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from remit.record.views import JobRow
    from remit.service.service import Service


class Opened(Protocol):
    """A Remit of remit.app or of remit.client."""

    async def __aenter__(self) -> Self:
        """Open it."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        ...

    @property
    def url(self) -> str:
        """Return where the journal or the server is."""
        ...

    @property
    def service(self) -> Service:
        """Everything that both can do, by noun."""
        ...

    async def ended(self, job: str) -> JobRow:
        """Wait until a job has ended, in whatever process."""
        ...
