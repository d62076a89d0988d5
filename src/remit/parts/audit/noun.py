"""Audit: evidence of what was recorded, for people who trust no one, and answers to their questions."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Annotated, Any, Final, Literal
from zipfile import ZIP_STORED

import msgspec

from remit.capability import Check, Look, resolve
from remit.clock import DAY
from remit.codes import Code
from remit.errors import RemitError, UsageError
from remit.evidence.interval import Interval
from remit.jobs.plans.problem import parse_duration
from remit.operation import operation
from remit.parts.audit.answers import Answer, AuditQuestion, answer
from remit.parts.audit.index import AuditIndex
from remit.parts.audit.kinds import OutputRead
from remit.parts.audit.package import write_interval, write_package
from remit.parts.audit.read_recorder import recorder_of
from remit.parts.audit.report import Report, duty_rows, kept_rows
from remit.parts.audit.settings import AuditSettings
from remit.redact import words_of
from remit.settings.parts import settings_of
from remit.settings.pictures import address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remit.http.access import Access
    from remit.parts.audit.facts import What
    from remit.parts.audit.formats import Form
    from remit.parts.audit.formats.keys import OperatorSigner
    from remit.service.noun_means import NounOpening
    from remit.service.parts import Parts
    from remit.service.service import Service


_TICKET: Final = "tkt_"
_DAY_MS: Final = DAY // 1_000


async def for_all_tools(_audit: Audit, access: Access, _path: Mapping[str, Any]) -> None:
    """Raise Problem for a token that is for some tools only: an answer tells of all."""
    access.require_all_tools("the calls that it tells of")


class Audit:
    """Evidence from one journal."""

    def __init__(self, parts: Parts, service: Service, principal: str, own: AuditSettings) -> None:
        self._recorder = recorder_of(parts)
        self._who = principal
        self._parts = parts
        self._service = service
        self._own = own
        self._journal = parts.journal

    # --- queries

    @operation(
        "audit.ask",
        "GET /v1/audit",
        "read",
        "Say who did, allowed and refused what, in which versions, and what is not known.",
        codes=(Code.JOB_NOT_FOUND, Code.SCOPE_REQUIRED),
        check=for_all_tools,
        held_s=60.0,
    )
    async def ask(
        self,
        job: str = "",
        *,
        tool: str = "",
        model: str = "",
        principal: str = "",
        since: int = 0,
        until: int | None = None,
        what: What | None = None,
        before: int = 0,
        limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 50,
        today: bool = False,
        against: str = "",
        again: bool = False,
    ) -> Answer:
        """Say who did, allowed and refused what: of one job or session, or of the whole journal.

        `since` and `until` are in microseconds since the Unix epoch. Acts come newest first; `before` is the `next` of
        an earlier page. Of a job, `today` also says what is different today and whether it would go on, and `against`
        what another job did otherwise. `again` reads every event, and says whether the index says the same. Raises
        NotFoundError, UsageError or JournalError.
        """
        if not job and (today or against):
            raise UsageError("only one job can be compared", code=Code.INVALID_INPUT, remedy="Name a job.")
        job = await self._service.jobs.find(job) if job else ""
        question = AuditQuestion(
            job=job, tool=tool, model=model, principal=principal, since=since, until=until, what=what,
            before=before, limit=limit,
        )  # fmt: skip
        answer_found = await answer(self._journal, question, again=again)
        changes: dict[str, Any] = {}
        if today:
            report = await self._service.drift.report(job)
            changes["resumes"], changes["because"] = report.resumes, report.because
            changes["today"] = msgspec.to_builtins(report)
        if against:
            other = await self._service.jobs.find(against)
            changes["against"] = msgspec.to_builtins(await self._service.forks.diff(job, other))
        return msgspec.structs.replace(answer_found, **changes)

    @operation(
        "audit.report",
        "GET /v1/audit/report",
        "read",
        "Say which duties of record-keeping the record answers, and what is not recorded.",
        codes=(Code.SCOPE_REQUIRED,),
        check=for_all_tools,
        held_s=60.0,
    )
    async def report(self, since: int = 0, *, until: int | None = None) -> Report:
        """Say which events answer which duty, what is not recorded, and how long records are kept.

        Of what was recorded from `since` to before `until` (microseconds since the Unix epoch). Raises JournalError.
        """
        sums, settings = await AuditIndex(self._journal).sums(since, until), self._parts.settings
        return Report(
            since=since,
            until=until,
            made_at=self._journal.clock.now(),
            events=sum(sums.counts.kinds.values()),
            duties=duty_rows(sums.counts, reads=self._recorder is not None),
            kept=kept_rows(self._rules(), settings.evidence.retention_days),
        )

    def _rules(self) -> list[tuple[str, int]]:
        """The times after which records are removed, if a part does that: which records, and days."""
        part = next(
            (part_found for part_found in self._parts.parts if part_found.name == "retention" and part_found.settings),
            None,
        )
        section: Any = (
            settings_of(self._parts.settings, part.name, resolve(part.settings)) if part is not None else None
        )
        rules = section.rules if section is not None else ()
        return [(_which(rule), (parse_duration(str(rule.get("keep"))) or 0) // _DAY_MS) for rule in rules]

    async def note_export(self, name: str, command: str, *, of: Literal["job", "interval"] = "job") -> None:
        """Record that a command of this process exports what is recorded of a job or a time, if reads are recorded."""
        if self._recorder is not None:
            names: dict[str, str] = {of: name}
            await self._recorder.note(OutputRead(face="command", operation=command, principal=self._who, names=names))

    async def trace(self, job: str) -> bytes:
        """Return what a job or session did as one HTML file that needs nothing else. Raise NotFoundError."""
        from remit.parts.audit.trace import trace  # noqa: PLC0415 - templates are loaded for it

        return await trace(self._journal, job)

    async def package(self, job: str, file: IO[bytes], *, redacted: bool = False, form: Form = "package") -> None:
        """Write the evidence package of a job, a session or a named stream to `file`; `redacted`: without values.

        `form` is `package`, or a format of others: `ael`, `in-toto`, `receipts`, `ocsf`, `otlp`. Raise NotFoundError,
        ChainBrokenError for a record that is damaged, and SettingsError without a key to sign with.
        """
        if form == "package":
            await write_package(self._journal, job, file, redacted=redacted)
            return
        from remit.parts.audit.formats.account import ExportAccount  # noqa: PLC0415 - few packages are made for others
        from remit.parts.audit.formats.catalog import SIGNED, UNSIGNED  # noqa: PLC0415 - the same
        from remit.parts.audit.sessions import sessions_of  # noqa: PLC0415 - the same

        with TemporaryFile() as package:
            await write_package(self._journal, job, package, redacted=redacted, method=ZIP_STORED)
            account = await asyncio.to_thread(ExportAccount, package)
            if form == "ael":
                times = [entry.at for entry in account.entries]
                account.sessions = await sessions_of(self._journal, account.last, (min(times), max(times)))
            signed = SIGNED.get(form)
            write = partial(signed, account, await self._signer()) if signed else partial(UNSIGNED[form], account)
            file.write(await asyncio.to_thread(write))

    async def package_between(self, since: int, until: int, file: IO[bytes], *, redacted: bool = False) -> None:
        """Write one evidence package of all streams written to from `since` (µs) to before `until` to `file`.

        Raise UsageError for a time that is not over, NotFoundError if nothing was recorded in it, and ChainBrokenError
        for a record that is damaged.
        """
        await write_interval(self._journal, Interval(since, until), file, redacted=redacted)

    async def published(self) -> dict[str, bytes]:
        """Return the files that others check signatures with, by name. Raise SettingsError without a key."""
        return (await self._signer()).published()

    async def _signer(self) -> OperatorSigner:
        from remit.parts.audit.formats.keys import load_signer  # noqa: PLC0415 - the same

        return await load_signer(self._own, os.environ, self._parts.settings.folder)


async def scope_of(service: Service, reference: str) -> str:
    """Return what a package is of: a ticket named by its id, a named stream, or what Jobs.find says."""
    if reference.startswith(_TICKET):
        return f"ticket/{reference}"
    return reference if "/" in reference else await service.jobs.find(reference)


def file_name(scope: str) -> str:
    """Return the name that the package of a job, session, ticket or stream gets, without its ending."""
    return scope.removeprefix("ticket/").replace("/", "-")


def _which(rule: Mapping[str, Any]) -> str:
    """The records that a rule of retention is about, in words."""
    parts = {name: value for name, value in rule.items() if name not in {"keep", "archive"}}
    words = (
        f"{name} {', '.join(value) if isinstance(value, list) else words_of(value)}" for name, value in parts.items()
    )
    return "; ".join(words) or "jobs, sessions, tickets, work, schedules, messages and logins"


async def check_audit(look: Look) -> list[Check]:
    """Check the key that exports are signed with, and the log of anchors; a program that prints a key is not run."""
    own = settings_of(look.settings, "audit", AuditSettings)
    if not own.key and not own.anchor_url:
        return []
    from remit.parts.audit.anchoring.client import AnchorClient  # noqa: PLC0415 - few processes sign
    from remit.parts.audit.formats.keys import load_signer  # noqa: PLC0415 - the same

    words = "there is a key to sign exports with"
    try:
        if not own.key_command:
            await load_signer(own, os.environ, look.settings.folder)
        if own.anchor_url:
            AnchorClient.of(own)
            words = f"{words}; anchors go to {address(own.anchor_url)}"
    except RemitError as error:
        return [Check.failed("audit", error)]
    return [Check("audit", "ok", words)]


def open_audit(opening: NounOpening) -> Audit:
    """Return the noun."""
    own = opening.part if isinstance(opening.part, AuditSettings) else AuditSettings()
    return Audit(opening.parts, opening.service, opening.principal, own)
