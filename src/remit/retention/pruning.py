"""Keeping and forgetting: records whose time is over are archived, and then pruned."""

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
from remit.jobs.state import CODE
from remit.journal.pruning import Part, Terms, Uses, look_at, prune_unit
from remit.retention.backup import Backup, back_up
from remit.retention.rule import KINDS, Rule, read_rules, rule_for
from remit.retention.units import reason_to_stay, roots, streams_of

if TYPE_CHECKING:
    from remit.journal.event import Head
    from remit.journal.journal import Journal
    from remit.service.opening import NounOpening

_ROUND: Final = 2_000
"""Units for which the journal is read once."""
Choose = Callable[["Head"], Rule | None]
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

    async def _rounds(self, choose: Choose, kinds: Sequence[str]) -> AsyncIterator[list[tuple[Rule, Head]]]:
        chosen: list[tuple[Rule, Head]] = []
        for kind in kinds:
            async for head in roots(self._journal, kind, lambda head: choose(head) is not None):
                if (rule := choose(head)) is not None:
                    chosen.append((rule, head))
                if len(chosen) == _ROUND:
                    yield chosen
                    chosen = []
        if chosen:
            yield chosen

    async def _round(self, chosen: Sequence[tuple[Rule, Head]], done: Pruning) -> None:
        units: list[tuple[Rule, list[Part]]] = []
        for rule, root in chosen:
            heads = await streams_of(self._journal, root)
            if why := await reason_to_stay(self._journal, heads, self._journal.clock.now()):
                done.kept.append(KeptUnit(stream=root.stream, why=why))
                continue
            try:
                units.append((rule, [await look_at(self._journal, head) for head in heads]))
            except ChainBrokenError as error:
                done.kept.append(KeptUnit(stream=root.stream, why=error.message, code=error.code.name))
        uses = Uses(self._journal, (digest for _, parts in units for part in parts for digest in part.blobs))
        await uses.refresh()
        for rule, parts in units:
            root = parts[0].head
            if why := uses.reason([part.head.stream for part in parts]):
                done.kept.append(KeptUnit(stream=root.stream, why=why))
                continue
            try:
                done.pruned.append(await self._unit(rule, parts, uses, dry_run=done.dry_run))
            except (AppendConflictError, StateError) as error:
                done.kept.append(KeptUnit(stream=root.stream, why=error.message, code=error.code.name))

    async def _unit(self, rule: Rule, parts: Sequence[Part], uses: Uses, *, dry_run: bool) -> PrunedUnit:
        root, package, file = parts[0].head, "", ""
        if dry_run:
            values = len(uses.own(parts))
            uses.forget(parts)
        else:
            if rule.archive:
                package, file = await self._archive(Path(rule.archive), parts)
            labels = {CODE: Code.RECORD_PRUNED.name} if root.kind == "job" else {}
            terms = Terms(package=package, by=self._principal, reason=f"kept for {rule.keep}", labels=labels)
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

    async def _archive(self, folder: Path, parts: Sequence[Part]) -> tuple[str, str]:
        """Write the package of a unit; return its own hash and its file. Raise StateError: nothing is removed then."""
        root, package = parts[0].head.stream, BytesIO()
        kind, _, name = root.partition("/")
        await self._service.audit.package(name if kind in {"job", "session"} else root, package)
        return await asyncio.to_thread(_archived, folder, package.getvalue(), parts)


def _archived(folder: Path, data: bytes, parts: Sequence[Part]) -> tuple[str, str]:
    """Put a package into a folder, and check it as it lies there."""
    name = parts[0].head.stream.replace("/", "-")
    place = folder / f"{name}.zip"
    if place.exists() and place.read_bytes() != data:  # of an earlier pruning, after which it went on
        place = folder / f"{name}.{sha256(data).hexdigest()[:12]}.zip"
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(place, data)
    verdict, why = check(str(place)), ""
    if verdict.state == "rejected":
        why = verdict.problem
    else:
        with zipfile.ZipFile(place) as package:
            proof = json.loads(package.read("proof.json"))
        held = {(one["stream"], one["events"], one["hash"]) for one in proof["streams"]}
        heads = [part.head for part in parts]
        why = next((f"it lacks {h.stream} as it is" for h in heads if (h.stream, h.seq, h.hash.hex()) not in held), "")
    if why:
        raise StateError(f"{place}: {why}", code=Code.ARCHIVE_UNFIT, remedy="Run it again.")
    return verdict.hash, str(place)


def open_retention(opening: NounOpening) -> Retention:
    """Return the noun. Raise SettingsError for a rule that cannot be understood."""
    return Retention(opening)
