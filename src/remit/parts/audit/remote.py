"""Audit of a server: packages and traces are downloads."""

from __future__ import annotations

from typing import IO, Literal

from remit.client.twin import Twin
from remit.evidence.interval import Interval
from remit.parts.audit.formats import Form
from remit.parts.audit.noun import Audit
from remit.parts.audit.routes import IntervalQuery, PackageQuery


class RemoteAudit(Twin, Audit):
    """Evidence from a server's journal."""

    async def note_export(self, name: str, command: str, *, of: Literal["job", "interval"] = "job") -> None:
        """Do nothing: the server records what it gives."""

    async def trace(self, job: str) -> bytes:
        data: bytes = await self._connection.ask("audit.trace", job)
        return data

    async def package(self, job: str, file: IO[bytes], *, redacted: bool = False, form: Form = "package") -> None:
        data: bytes = await self._connection.ask(
            "audit.package", job, query=PackageQuery(redacted=redacted, format=form)
        )
        file.write(data)

    async def package_between(self, since: int, until: int, file: IO[bytes], *, redacted: bool = False) -> None:
        data: bytes = await self._connection.ask(
            "audit.interval", str(Interval(since, until)), query=IntervalQuery(redacted=redacted)
        )
        file.write(data)
