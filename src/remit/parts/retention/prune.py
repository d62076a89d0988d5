"""Keeping and forgetting: records whose time is over are archived, and then pruned.

Units: what goes together, and why one has to stay.
"""

from __future__ import annotations

import asyncio
import json
import zipfile
from collections.abc import AsyncIterator, Callable, Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from remit.atomic import replace_file
from remit.codes import Code
from remit.errors import AppendConflictError, ChainBrokenError, StateError
from remit.evidence.verify import check
from remit.gateway.sums import ModelSums
from remit.jobs.state import CODE, ENDED
from remit.journal.event import HeadQuery
from remit.journal.kinds import decode
from remit.journal.prune import StubTerms, UnitStream, Uses, look_at, prune_unit
from remit.journal.scan import every_head
from remit.journal.values import is_pruned
from remit.parts.retention.backup import Backup, back_up
from remit.parts.retention.rule import KINDS, RetentionRule, read_rules, rule_for
from remit.record.heads import CALL, SESSION
from remit.record.job_story import beside

if TYPE_CHECKING:
    from remit.journal.event import StreamHead
    from remit.journal.journal import Journal
    from remit.service.noun_means import NounOpening


_WORK_DONE: Final = ("done",)
_STOPPED: Final = ("failed", "blocked")
"""States of a ticket that can be taken up again, and was not for as long as the rule says."""
_OPEN_QUESTION: Final = ("pending", "approved")
_NO_OUTCOME: Final = ("running", "uncertain")
"""The states of a call that was announced and has no outcome."""
_OVER: Final[dict[str, Callable[[StreamHead], bool]]] = {
    "job": lambda head: head.closed and head.state in ENDED,
    "ticket": lambda head: head.closed or head.state in _STOPPED,
    "work": lambda head: head.state in _WORK_DONE,
    "session": lambda head: not head.closed,
    **dict.fromkeys(("schedule_day", "notification", "login", "push_subscription"), lambda head: head.closed),
}
"""By the kind of a root, whether nothing is going on there; sessions never end."""
_OF_PEOPLE: Final = ("notification", "login", "push_subscription")
"""Kinds of roots whose labels name people, and find nothing once it is over."""
_ABOVE: Final = (("ticket", "ticket", ""), ("work", "issue", "issue"))
"""Streams that a job may belong to: the kind, the job's label, and their label of that text; empty: their name."""


async def roots(journal: Journal, kind: str, wants: Callable[[StreamHead], bool]) -> AsyncIterator[StreamHead]:
    """Give the roots of a kind that are wanted and not pruned yet, the newest first: forks before what they fork."""
    async for head in every_head(journal, HeadQuery(kind=kind)):
        if wants(head) and not is_pruned(head):
            yield head


async def streams_of(journal: Journal, root: StreamHead) -> list[StreamHead]:
    """Return the heads of all that goes with a root, the root first."""
    below = await _below(journal, root.stream)
    streams = [root, *(head for head in below if head.kind != root.kind)]  # a device that came back goes by itself
    if root.kind == SESSION:
        for stream in await beside(journal, root.stream.partition("/")[2]):
            head = await journal.head(stream) if stream.startswith(f"{CALL}/") else None
            if head is not None and head.labels.get(SESSION) == root.stream.partition("/")[2]:  # its own
                streams += [head, *await _below(journal, stream)]
    return streams


async def _below(journal: Journal, stream: str) -> list[StreamHead]:
    heads = [head async for head in every_head(journal, HeadQuery(prefix=f"{stream}/"))]
    return sorted(heads, key=lambda head: head.stream)


async def reason_to_stay(journal: Journal, heads: list[StreamHead], now: int) -> str:
    """Say what of a unit goes on, by its heads, though its root is over; empty: nothing."""
    root = heads[0]
    for head in heads:
        if head.lease_until is not None and head.lease_until > now and not head.closed:
            return f"{head.lease_owner} works on it"
        if (
            head.kind == "confirmation"
            and head.state in _OPEN_QUESTION
            and (head.state == "pending" or root.kind == SESSION)
        ):
            return f"a question is open: {head.stream.rpartition('/')[2]}"
        if head.kind == CALL and head.state in _NO_OUTCOME:
            return f"a call is not over: {head.stream.partition('/')[2]}"
    further = _FURTHER.get(root.kind)
    return await further(journal, root) if further is not None else ""


async def _unfinished(journal: Journal, job: StreamHead) -> str:
    """Say which ticket or issue a job belongs to that is not done."""
    for kind, label, theirs in _ABOVE:
        text = job.labels.get(label, "")
        if not text:
            continue
        if theirs:
            above = await journal.heads(HeadQuery(kind=kind, labels={theirs: text}, limit=1))
        else:
            above = [head] if (head := await journal.head(f"{kind}/{text}")) is not None else []
        if above and not _OVER[kind](above[0]):
            return f"its {kind} {text} is not done"
    return ""


async def _unanswered(journal: Journal, message: StreamHead) -> str:
    """Say which open question a message asks: its buttons count, and it is to say how that ends."""
    queued = [decode(event.kind, event.data) for event in (await journal.left(message.stream))[:1]]
    source = str(getattr(queued[0], "source", "")) if queued else ""
    question = await journal.head(source) if source else None
    is_open = question is not None and question.kind == "confirmation" and question.state == "pending"
    return f"a question is open: {source.rpartition('/')[2]}" if is_open else ""


_FURTHER: Final = {"job": _unfinished, "notification": _unanswered}
"""By the kind of a root, what else keeps it."""
_ROUND: Final = 2_000
"""Units for which the journal is read once."""
Choose = Callable[["StreamHead"], RetentionRule | None]
"""Returns the rule by which a record goes; None: it stays."""


class PrunedUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was removed, or would be."""

    stream: str
    state: str
    streams: int
    """With those that belong to it."""
    events: int
    values: int
    """Values that were removed with it; of a dry run those that it names."""
    last_at: int
    """Microseconds since the Unix epoch."""
    package: str = ""
    """The own hash of its evidence package."""
    file: str = ""


class KeptUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A record whose time is over and that stays."""

    stream: str
    why: str
    code: str = ""
    """Of damage; empty: it is needed, or not over."""


class Pruning(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed, and what stays though its time is over."""

    pruned: list[PrunedUnit]
    kept: list[KeptUnit]
    dry_run: bool = False
    freed_bytes: int = 0
    """The space that the journal's file lost; 0 if that was not asked for."""


class Retention:
    """The keeping and forgetting of one journal."""

    def __init__(self, opening: NounOpening) -> None:
        self._journal: Journal = opening.parts.journal
        self._service: Any = opening.service
        self._principal = opening.principal
        self.rules = read_rules(opening.parts.settings)

    async def apply(self) -> Pruning:
        """Prune what the rules of the settings do not keep any longer."""
        now = self._journal.clock.now()
        kinds = tuple(kind for kind in KINDS if any(kind in rule.kinds for rule in self.rules))
        return await self.prune(lambda head: rule_for(self.rules, head, now), kinds)

    async def prune(
        self, choose: Choose, kinds: Sequence[str] = KINDS, *, dry_run: bool = False, compact: bool = False
    ) -> Pruning:
        """Prune the records that are chosen, with their packages first. Raise JournalError, OSError for an archive."""
        done = Pruning(pruned=[], kept=[], dry_run=dry_run)
        if not dry_run:
            await ModelSums(self._journal).keep()  # `remit usage` goes on saying what was spent
        async for chosen in self._rounds(choose, kinds):
            await self._round(chosen, done)
        if compact and done.pruned and not dry_run:
            done = msgspec.structs.replace(done, freed_bytes=await self._journal.compact())
        return done

    async def back_up(self, file: Path, *, verify: bool = False) -> Backup:
        """Write the journal to a file while others work in it. Raise StateError (BACKUP_ELSEWHERE)."""
        return await back_up(self._journal, file, verify=verify)

    async def _rounds(
        self, choose: Choose, kinds: Sequence[str]
    ) -> AsyncIterator[list[tuple[RetentionRule, StreamHead]]]:
        chosen: list[tuple[RetentionRule, StreamHead]] = []
        for kind in kinds:
            async for head in roots(self._journal, kind, lambda head: choose(head) is not None):
                if (rule := choose(head)) is not None:
                    chosen.append((rule, head))
                if len(chosen) == _ROUND:
                    yield chosen
                    chosen = []
        if chosen:
            yield chosen

    async def _round(self, chosen: Sequence[tuple[RetentionRule, StreamHead]], done: Pruning) -> None:
        units: list[tuple[RetentionRule, list[UnitStream]]] = []
        for rule, root in chosen:
            if not _OVER[root.kind](root):
                done.kept.append(KeptUnit(stream=root.stream, why=f"it is {root.state or 'open'}"))
                continue
            heads = await streams_of(self._journal, root)
            try:
                if reason := await reason_to_stay(self._journal, heads, self._journal.clock.now()):
                    done.kept.append(KeptUnit(stream=root.stream, why=reason))
                    continue
                units.append((rule, [await look_at(self._journal, head) for head in heads]))
            except ChainBrokenError as error:
                done.kept.append(KeptUnit(stream=root.stream, why=error.message, code=error.code.name))
        uses = Uses(self._journal, (digest for _, parts in units for part in parts for digest in part.blobs))
        await uses.refresh()
        for rule, parts in units:
            root = parts[0].head
            if reason := uses.reason([part.head.stream for part in parts]):
                done.kept.append(KeptUnit(stream=root.stream, why=reason))
                continue
            try:
                done.pruned.append(await self._unit(rule, parts, uses, dry_run=done.dry_run))
            except (AppendConflictError, StateError) as error:
                done.kept.append(KeptUnit(stream=root.stream, why=error.message, code=error.code.name))

    async def _unit(self, rule: RetentionRule, parts: Sequence[UnitStream], uses: Uses, *, dry_run: bool) -> PrunedUnit:
        root, package, file = parts[0].head, "", ""
        if dry_run:
            values = len(uses.own(parts))
            uses.forget(parts)
        else:
            if rule.archive:
                package, file = await self._archive(Path(rule.archive), parts)
            labels = {} if root.kind in _OF_PEOPLE else dict(root.labels)
            labels |= {CODE: Code.RECORD_PRUNED.name} if root.kind == "job" else {}
            terms = StubTerms(package=package, by=self._principal, reason=f"kept for {rule.keep}", labels=labels)
            values = await prune_unit(self._journal, parts, uses, terms)
        return PrunedUnit(
            stream=root.stream,
            state=root.state,
            streams=len(parts),
            events=sum(part.head.seq for part in parts),
            values=values,
            last_at=max(part.last_at for part in parts),
            package=package,
            file=file,
        )

    async def _archive(self, folder: Path, parts: Sequence[UnitStream]) -> tuple[str, str]:
        """Write the package of a unit; return its own hash and its file. Raise StateError: nothing is removed then."""
        root, package = parts[0].head.stream, BytesIO()
        kind, _, name = root.partition("/")
        await self._service.audit.package(name if kind in {"job", "session"} else root, package)
        return await asyncio.to_thread(_archived, folder, package.getvalue(), parts)


def _archived(folder: Path, data: bytes, parts: Sequence[UnitStream]) -> tuple[str, str]:
    """Put a package into a folder, and check it as it lies there."""
    name = parts[0].head.stream.replace("/", "-")
    place = folder / f"{name}.zip"
    if place.exists() and place.read_bytes() != data:  # of an earlier pruning, after which it went on
        place = folder / f"{name}.{sha256(data).hexdigest()[:12]}.zip"
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(place, data)
    verdict, reason = check(str(place)), ""
    if verdict.state == "rejected":
        reason = verdict.problem
    else:
        with zipfile.ZipFile(place) as package:
            proof = json.loads(package.read("proof.json"))
        held = {(stream["stream"], stream["events"], stream["hash"]) for stream in proof["streams"]}
        heads = [part.head for part in parts]
        reason = next(
            (f"it lacks {h.stream} as it is" for h in heads if (h.stream, h.seq, h.hash.hex()) not in held), ""
        )
    if reason:
        raise StateError(f"{place}: {reason}", code=Code.ARCHIVE_UNFIT, remedy="Run it again.")
    return verdict.hash, str(place)


def open_retention(opening: NounOpening) -> Retention:
    """Return the noun. Raise SettingsError for a rule that cannot be understood."""
    return Retention(opening)
