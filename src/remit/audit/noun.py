"""Audit: evidence of what was recorded, for people who trust no one."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from remit.audit.package import write_package

if TYPE_CHECKING:
    from remit.journal.journal import Journal
    from remit.service.opening import NounOpening


class Audit:
    """Evidence from one journal."""

    def __init__(self, journal: Journal) -> None:
        """Look at `journal`."""
        self._journal = journal

    async def package(self, job: str, file: IO[bytes], *, redacted: bool = False) -> None:
        """Write the evidence package of a job, a session or a named stream to `file`; `redacted`: without values.

        Raise NotFoundError, and ChainBrokenError for a record that is damaged.
        """
        await write_package(self._journal, job, file, redacted=redacted)


def open_audit(opening: NounOpening) -> Audit:
    """Return the noun."""
    return Audit(opening.parts.journal)
