"""Golden jobs: made of recorded ones, and checked against the code, tools and policy of this process.

Golden jobs against today: each is replayed on its record alone, and what differs has a class.

    same             the code does what is recorded, and nothing else has changed
    annotation_only  other words for people and models
    compatible       other code, versions or schemas, under which everything recorded stays as it was
    breaking         a tool's schema or version broke, a model changed, or a call would be asked about that was not
    failed           the code departs from the record, a call would be refused, or the job cannot be replayed

Nothing is called, no server is started, no key is needed: the journal is in memory.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from remit.capability import Reread, resolve
from remit.codes import Code
from remit.errors import RemitError, StateError, UsageError
from remit.ids import new_id
from remit.jobs.replay import CallToday, Divergence
from remit.jobs.state import KIND, stream_of
from remit.jobs.versions import Difference
from remit.journal import kinds as k
from remit.journal.event import Blob, HeadPatch
from remit.parts.golden.export import golden_of
from remit.parts.golden.file import SUFFIX, Golden, files_in, read

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from remit.jobs.replay import ReplayReport
    from remit.service.jobs import Jobs
    from remit.service.noun_means import NounOpening
    from remit.service.parts import Parts


Class = Literal["same", "annotation_only", "compatible", "breaking", "failed"]
CLASSES: Final[tuple[Class, ...]] = ("same", "annotation_only", "compatible", "breaking", "failed")
MEMORY: Final = ":memory:"
_UNLISTED: Final = ("mcp.", "program")
"""The beginnings of the ids of providers whose tools a server lists, or `remit record` alone."""
_OF_CODE: Final = frozenset({"execution", "planner", "recipe"})


class CheckedJob(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One golden job, checked."""

    name: str
    recipe: str
    result: Class
    words: str = ""
    """The worst of what differs, in words for people; empty: nothing."""
    code: str = ""
    """Why it could not be replayed."""
    steps: int = 0
    divergence: Divergence | None = None
    drifts: tuple[Difference, ...] = ()
    calls: tuple[CallToday, ...] = ()
    rereads: tuple[Reread, ...] = ()
    """Recorded requests and answers of a program that are read otherwise today."""
    ungoverned: tuple[str, ...] = ()
    """Calls that ran ungoverned when it was recorded; they change no class."""
    unchecked: tuple[str, ...] = ()
    """Tools of MCP servers, which are not started: nothing is known of them today."""


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """Golden jobs, checked."""

    status: int
    """0: none reaches a threshold, 1: one reaches `warn`, 2: one reaches `fail`."""
    worst: Class
    counts: dict[str, int]
    """The number of jobs of each class."""
    jobs: tuple[CheckedJob, ...]


def report_of(jobs: Sequence[CheckedJob], *, warn: Class, fail: Class) -> CheckReport:
    """Sum up; `warn` and `fail` are the classes from which on the status is 1, or 2."""
    worst = max((CLASSES.index(job.result) for job in jobs), default=0)
    status = 2 if worst >= CLASSES.index(fail) else 1 if worst >= CLASSES.index(warn) else 0
    counts: dict[str, int] = {name: sum(job.result == name for job in jobs) for name in CLASSES}
    return CheckReport(status=status, worst=CLASSES[worst], counts=counts, jobs=tuple(jobs))


class Checking:
    """Checks golden jobs with the code, tools and policy of one process."""

    def __init__(self, parts: Parts, jobs: Jobs) -> None:
        if parts.settings.journal.url != MEMORY:
            reason = "golden jobs are checked in a journal in memory, which this is not"
            raise StateError(reason, code=Code.GOLDEN_INVALID, remedy='Open it with Remit(":memory:", …).')
        self._journal = parts.journal
        self._jobs = jobs
        self._parts = parts.parts

    async def check(self, golden: Golden | CheckedJob) -> CheckedJob:
        """Replay a golden job, and judge its calls as of today. Never raises for what is in the file."""
        if isinstance(golden, CheckedJob):
            return golden
        created = next((data for kind, data in golden.events if kind == k.JobCreated.KIND), {})
        recipe = str(created.get("name", ""))
        try:
            job = await self._loaded(golden)
            report = await self._jobs.replay(job)
            rereads = [each for part in self._parts if part.rereads for each in await self._reread(part.rereads, job)]
        except RemitError as error:
            words = f"{error.code.name}: {error.message}"
            return CheckedJob(name=golden.name, recipe=recipe, result="failed", words=words, code=error.code.name)
        checked = _judged(golden.name, recipe, report, _only_servers(golden), rereads)
        ran = [data for kind, data in golden.events if kind == k.CallUngoverned.KIND]
        ungoverned = tuple(f"{data.get('tool_name')} {data.get('call_id')}" for data in ran)
        return msgspec.structs.replace(checked, ungoverned=ungoverned)

    async def _reread(self, reference: str, job: str) -> list[Reread]:
        read: list[Reread] = await resolve(reference)(self._journal, job)
        return read

    async def _loaded(self, golden: Golden) -> str:
        """Put a golden job into the journal. Raises UsageError or JournalError for what does not fit."""
        payloads = [_payload(kind, data) for kind, data in golden.events]
        if not payloads or not isinstance(payloads[0], k.JobCreated):
            raise UsageError("it does not begin with job_created", code=Code.GOLDEN_INVALID, remedy="Export it again.")
        job = new_id("job")
        patch = HeadPatch(state=golden.state, closed=True, due_at=None, labels=golden.labels, title=golden.name[:100])
        blobs = [Blob(digest, data) for digest, data in golden.blobs.items()]
        await self._journal.create(stream_of(job), KIND, *payloads, patch=patch, blobs=blobs)
        return job


def _payload(kind: str, data: object) -> k.Payload:
    payload = k.decode(kind, msgspec.json.encode(data))
    if payload is None:
        reason = f"it has an event of the kind {kind:.80}, which is not known here"
        raise UsageError(
            reason, code=Code.GOLDEN_INVALID, remedy="Upgrade Remit, or name the part in app.capabilities."
        )
    return payload


def _only_servers(golden: Golden) -> frozenset[str]:
    """Tools that only MCP servers list, and no server is started."""
    return frozenset(
        str(data.get("tool_name", ""))
        for kind, data in golden.events
        if kind == k.ToolInvocationStarted.KIND and str(data.get("provider_id", "")).startswith(_UNLISTED)
    )


def _judged(
    name: str, recipe: str, report: ReplayReport, unlisted: frozenset[str], rereads: Sequence[Reread]
) -> CheckedJob:
    drifts = tuple(drift for drift in report.drifts if drift.about != "registry" and drift.subject not in unlisted)
    calls = tuple(call for call in report.calls if call.tool not in unlisted or call.code != Code.UNKNOWN_TOOL.name)
    classes: list[tuple[Class, str]] = [_class_of(drift) for drift in drifts]
    classes += [("failed" if call.change == "refused" else "breaking", call_words(call)) for call in calls]
    classes += [("breaking", reread_words(each)) for each in rereads]
    if report.divergence is not None:
        parted = report.divergence
        classes.append(("failed", f"step {parted.step}: recorded {parted.recorded}, now {parted.now}"))
    worst = max(classes, key=lambda class_: CLASSES.index(class_[0]), default=("same", ""))
    return CheckedJob(
        name=name,
        recipe=recipe,
        result=worst[0],
        words=worst[1],
        steps=report.steps,
        divergence=report.divergence,
        drifts=drifts,
        calls=calls,
        rereads=tuple(rereads),
        unchecked=tuple(sorted(unlisted)),
    )


def drift_words(drift: Difference) -> str:
    """Return what was recorded, what is today, and the class of the difference if it has one."""
    kind = f" ({drift.drift})" if drift.drift else ""
    recorded, current = drift.recorded[:24] or "none", drift.current[:24] or "gone"
    return f"{drift.subject}, {drift.about}: was {recorded}, is {current}{kind}"


def reread_words(reread: Reread) -> str:
    """Return what was recorded of a program's request or answer, and what is read of it today."""
    return f"step {reread.step}, {reread.about}: was {reread.recorded or 'none'}, is {reread.current or 'none'}"


def call_words(call: CallToday) -> str:
    """Return what would become of a recorded call today, and why."""
    about = f"step {call.step} {call.tool}: {call.code} {call.reason}".rstrip(": ")
    words = {"refused": "would be refused", "asks": "would be asked about", "runs": "would run"}[call.change]
    return f"{about} ({words} today)"


def _class_of(drift: Difference) -> tuple[Class, str]:
    words = drift_words(drift)
    if drift.about in _OF_CODE or drift.migrated:
        return "compatible", words
    if drift.drift in {"annotation_only", "compatible"}:
        return ("annotation_only" if drift.drift == "annotation_only" else "compatible"), words
    if drift.about == "tool" and drift.current:
        return "compatible", words  # another version with the same schemas; they are compared by themselves
    return "breaking", words


def read_all(paths: Iterable[Path], labels: Mapping[str, str] = MappingProxyType({})) -> list[Golden | CheckedJob]:
    """Read files, and those in folders, of golden jobs with these labels; one that cannot be read has failed.

    Raises UsageError (GOLDEN_INVALID) if there is none.
    """
    goldens: list[Golden | CheckedJob] = []
    for path in files_in(paths):
        try:
            golden = read(path)
        except UsageError as error:
            name = path.name.removesuffix(SUFFIX)
            goldens.append(CheckedJob(name=name, recipe="", result="failed", words=error.message, code=error.code.name))
            continue
        if all(golden.labels.get(name) == text for name, text in labels.items()):
            goldens.append(golden)
    return goldens


class Goldens:
    """The golden jobs of one process; only one with the journal makes or checks them."""

    def __init__(self, opening: NounOpening) -> None:
        self._opening = opening

    async def export(self, job: str, name: str = "", *, secrets: Iterable[str] = ()) -> Golden:
        """Make a golden job of a recorded one, without secrets: those that are found, and the texts in `secrets`.

        Raises NotFoundError, StateError, UsageError or PayloadErasedError.
        """
        return await golden_of(self._opening.parts.journal, job, name or job, secrets)

    async def check(
        self, goldens: Iterable[Golden | CheckedJob], *, warn: Class = "breaking", fail: Class = "failed"
    ) -> CheckReport:
        """Check golden jobs; the journal has to be in memory. Raises StateError."""
        checking = Checking(self._opening.parts, self._opening.service.jobs)
        return report_of([await checking.check(golden) for golden in goldens], warn=warn, fail=fail)


def open_goldens(opening: NounOpening) -> Goldens:
    """Return the golden jobs of a process."""
    return Goldens(opening)
