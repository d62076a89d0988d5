"""Whether streams are what was recorded: chains, heads, values, answers to questions, and what follows from what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from remit.capability import resolve
from remit.clock import DAY, isoformat
from remit.codes import Code
from remit.errors import ChainBrokenError
from remit.gateway.approvals import RememberedCalls
from remit.gateway.confirmation import KIND as CONFIRMATION
from remit.gateway.sums import ModelSums
from remit.record.consistency import Consistency
from remit.record.views import VerifyReport
from remit.settings.parts import settings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remit.capability import Capability
    from remit.gateway.services import Services
    from remit.journal.event import Event, StreamHead
    from remit.journal.kinds import Payload
    from remit.service.parts import Parts


class Elsewhere(NamedTuple):
    """Things that were kept elsewhere, to compare the journal with."""

    notes: str = ""
    """Signed checkpoints, one after the other."""
    keys: tuple[str, ...] = ()
    """Public keys that are believed."""
    roots: str = ""
    """A file of certificates of those whose stamps are believed."""


class StreamProblem(NamedTuple):
    """Something that is wrong with a stream."""

    stream: str
    code: Code
    text: str


class VerifierFindings(NamedTuple):
    """The last word of a verifier."""

    problems: tuple[StreamProblem, ...]
    checkpoints: int = 0
    cosigned: int = 0
    stamps: int = 0
    stamped: int = 0
    stamped_at: int = 0
    uncovered: int = 0
    keys: str = ""
    is_whole: bool = False
    skipped: str = ""


class Verifier(Protocol):
    """A part's look at the streams that are verified; the fields of its findings are those of VerifyReport."""

    async def begin(self) -> None:
        """Read what it compares with. Raises JournalError."""
        ...

    def take(self, head: StreamHead, events: Sequence[Event]) -> Iterable[StreamProblem]:
        """Look at the next events of a stream, whose chain holds up to there."""
        ...

    def end_stream(self, head: StreamHead, *, intact: bool) -> Iterable[StreamProblem]:
        """Look at a stream whose events were all given; not `intact`: it is damaged, and not all were."""
        ...

    def end(self, *, everything: bool) -> VerifierFindings:
        """Return what it comes to; `everything`: every stream was checked."""
        ...


def verifiers_of(parts: Parts, elsewhere: Elsewhere) -> list[Verifier]:
    """The verifiers of the parts of a process. Raises SettingsError or UsageError."""
    verifiers: list[Verifier] = []
    for part in parts.parts:
        if part.verifies and part.missing and elsewhere == Elsewhere():
            verifiers.append(_Absent(part))
        elif part.verifies:
            own: Any = settings_of(parts.settings, part.name, resolve(part.settings)) if part.settings else None
            verifiers.append(resolve(part.verifies)(parts.journal, own, elsewhere))
    return verifiers


class _Absent:
    """Stands for the verifier of a part whose extra is missing, and says so if the part recorded anything."""

    def __init__(self, part: Capability) -> None:
        self._part, self._met = part, False

    async def begin(self) -> None:
        """Read nothing."""

    def take(self, head: StreamHead, events: Sequence[Event]) -> Iterable[StreamProblem]:  # noqa: ARG002 - as Verifier says
        self._met = self._met or any(event.kind in self._part.kinds for event in events)
        return ()

    def end_stream(self, head: StreamHead, *, intact: bool) -> Iterable[StreamProblem]:  # noqa: ARG002 - as Verifier says
        return ()

    def end(self, *, everything: bool) -> VerifierFindings:  # noqa: ARG002 - as Verifier says
        part = self._part
        return VerifierFindings((), skipped=f"{part.name}: pip install 'remit[{part.extra}]'" if self._met else "")


class Verification:
    """Checks streams one after the other, then what they say of each other."""

    def __init__(self, services: Services, verifiers: Sequence[Verifier] = ()) -> None:
        self._journal = services.journal
        self._confirmations = services.confirmations
        self._allowed = RememberedCalls(services.journal, services.confirmations)
        self._consistency = Consistency(services.journal)
        self._proven = set[str]()
        self._streams = self._events = self._erased = self._sealed = self._signed = self._unchecked = 0
        self._pruned = self._removed = self._keyless = self._reported = 0
        self._verifiers = verifiers
        self._findings: list[VerifierFindings] = []
        self._damaged = set[str]()
        self._problems: list[tuple[Code, str]] = []

    async def begin(self) -> None:
        """Have the verifiers of parts read what they compare with. Raises JournalError."""
        for verifier in self._verifiers:
            await verifier.begin()

    async def check(self, head: StreamHead) -> None:
        """Check a stream."""
        self._streams += 1
        reading = self._consistency.reading(head.stream)

        async def visit(events: Sequence[Event], payloads: Sequence[Payload | None]) -> None:
            self._allowed.note(events, payloads)
            self._reported += sum(bool(getattr(payload, "reported_by", "")) for payload in payloads)
            await reading.take(events, payloads)
            for verifier in self._verifiers:
                self._told(head.stream, verifier.take(head, events))

        try:
            examined = await self._journal.examine(head.stream, self._proven, visit, keyless_too=True)
        except ChainBrokenError as error:
            self._report(head.stream, [(error.code, error.message)])
            self._told(
                head.stream, (problem for each in self._verifiers for problem in each.end_stream(head, intact=False))
            )
            return
        self._events, self._erased = self._events + examined.events, self._erased + examined.erased
        self._sealed, self._keyless = self._sealed + examined.sealed, self._keyless + examined.keyless
        self._told(
            head.stream, (problem for verifier in self._verifiers for problem in verifier.end_stream(head, intact=True))
        )
        if examined.pruned:
            self._pruned, self._removed = self._pruned + 1, self._removed + examined.pruned
            return
        await self._consistency.add(reading)
        self._report(head.stream, ((Code.RECORD_CONTRADICTED, text) for text in reading.contradictions))
        if head.kind == CONFIRMATION:
            checked = await self._confirmations.check(head)
            self._signed, self._unchecked = self._signed + checked.signed, self._unchecked + checked.unchecked
            self._report(head.stream, checked.problems)

    async def check_all(self) -> None:
        """Check what belongs to no stream: the storage itself, and sums that are kept."""
        self._problems += [(Code.JOURNAL_CORRUPT, line) for line in await self._journal.integrity()]
        for day in await ModelSums(self._journal).differing():
            text = f"what models took on {isoformat(day * DAY)[:10]} is not what is kept of it in the table folds"
            self._problems.append((Code.JOURNAL_CORRUPT, f"{text}; empty the table: it is made again from the events"))

    def end(self, *, everything: bool) -> None:
        """Have the verifiers of parts say what it comes to; `everything`: every stream was checked."""
        self._findings = [verifier.end(everything=everything) for verifier in self._verifiers]
        for findings in self._findings:
            for problem in findings.problems:
                self._report(problem.stream, [(problem.code, problem.text)])

    async def check_calls(self) -> None:
        """Check the calls of all streams against the approvals that they rest on."""
        for stream, text in await self._allowed.problems():
            self._report(stream, [(Code.APPROVAL_UNPROVEN, text)])
        for stream, words in await self._consistency.between():
            self._report(stream, [(Code.RECORD_CONTRADICTED, f"{stream}: {words}")])

    @property
    def report(self) -> VerifyReport:
        """The findings, and the counts of what was checked."""
        parts = self._findings
        return VerifyReport(
            state="rejected" if self._problems else "whole" if any(part.is_whole for part in parts) else "prefix",
            checkpoints=sum(part.checkpoints for part in parts),
            cosigned=max((part.cosigned for part in parts), default=0),
            stamps=sum(part.stamps for part in parts),
            stamped=max((part.stamped for part in parts), default=0),
            stamped_at=max((part.stamped_at for part in parts), default=0),
            reported=self._reported,
            skipped=tuple(part.skipped for part in parts if part.skipped),
            uncovered=sum(part.uncovered for part in parts),
            keys=next((part.keys for part in parts if part.keys), ""),
            streams=self._streams,
            events=self._events,
            problems=tuple(text for _, text in self._problems),
            erased=self._erased,
            codes=tuple(code.name for code, _ in self._problems),
            sealed=self._sealed,
            damaged=len(self._damaged),
            signed=self._signed,
            unchecked=self._unchecked,
            pruned=self._pruned,
            removed=self._removed,
            keyless=self._keyless,
            key=self._journal.missing_key.hex(),
        )

    def _told(self, stream: str, problems: Iterable[StreamProblem]) -> None:
        self._report(stream, [(problem.code, problem.text) for problem in problems])

    def _report(self, stream: str, problems: Iterable[tuple[Code, str]]) -> None:
        rows = [*problems]
        self._problems += rows
        if rows:
            self._damaged.add(stream)
