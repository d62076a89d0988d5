"""Which processes work on jobs now, and with which code: each leases a stream that says so, for as long as it lives.

A lease is a heartbeat: it lapses with its process, and on the same machine a dead process is known at once. A process
that starts takes the stream of one that is gone, so there are never more of them than processes worked at once. Killed
between any two lines here, a process leaves a stream that is not leased, or will not be for long.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from remit.errors import AppendConflictError
from remit.journal.event import HeadPatch, HeadQuery
from remit.journal.kinds import WorkerStarted, decode
from remit.journal.leases import HeldLease, LeaseTerms, Owner, alive
from remit.journal.sharded.placement import new_identifier
from remit.settings.file import NO_FILE, SettingsFile
from remit.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remit.journal.event import StreamHead
    from remit.journal.journal import Journal

KIND: Final = "worker"
"""The kind of the streams."""
_MOST: Final = 1_000
_WORKING: Final = "working"


class Present(msgspec.Struct, frozen=True, kw_only=True):
    """A process that works."""

    since: int
    """Microseconds since the Unix epoch."""
    started: WorkerStarted

    def outdated(self) -> bool:
        """Return whether the process is of this machine, and its remit.toml says something else than when it began."""
        file = SettingsFile(self.started.settings_file, self.started.settings_digest)
        return alive(self.started.owner) and file.differs


class Presence:
    """One process among those that work on a journal."""

    def __init__(self, journal: Journal, owner: str, lease_s: float, settings: SettingsFile = NO_FILE) -> None:
        self._settings = settings
        self._journal = journal
        self._terms = LeaseTerms(kind=KIND, owner=owner, seconds=lease_s, state="starting")
        self._held: HeldLease | None = None
        self._role, self._recipes = "", dict[str, tuple[str, ...]]()

    async def keep(self, role: str, recipes: Mapping[str, tuple[str, ...]]) -> None:
        """Say that this process works, until this is cancelled."""
        while True:
            held = await self._taken(role, recipes)
            await held.keep(self._terms)

    async def reread(self, settings: SettingsFile) -> None:
        """Say that it runs with the settings of this file now."""
        self._settings = settings
        if self._held is not None:
            patch = HeadPatch(state=_WORKING)
            with suppress(AppendConflictError):  # it is lost: the next one says it
                await self._journal.append(self._held.writer, self._started(), synced=True, patch=patch)

    async def leave(self) -> None:
        """Say that it works no more."""
        if self._held is not None:
            await self._held.give_up(HeadPatch(state="stopped", due_at=self._journal.clock.now()))

    def _started(self) -> WorkerStarted:
        return WorkerStarted(
            owner=self._terms.owner,
            role=self._role,
            remit=__version__,
            recipes=self._recipes,
            settings_file=self._settings.path,
            settings_digest=self._settings.digest,
        )

    async def _taken(self, role: str, recipes: Mapping[str, tuple[str, ...]]) -> HeldLease:
        """A stream of this process's own, which says so."""
        self._role, self._recipes = role, dict(recipes)
        while True:
            leases = await self._journal.claim(self._terms.claim(self._journal.clock.now()))
            if leases:
                self._held = held = HeldLease(self._journal, leases[0].head)
                # Frozen since the claim, this process may have lost it to another, which says the same of itself.
                with suppress(AppendConflictError):
                    await self._journal.append(
                        held.writer, self._started(), synced=True, patch=HeadPatch(state=_WORKING)
                    )
                    return held
            patch = HeadPatch(state="stopped", due_at=self._journal.clock.now())
            worker = await new_identifier("w", KIND, self._journal.answers)
            await self._journal.create(f"{KIND}/{worker}", KIND, self._started(), patch=patch)


async def present(journal: Journal) -> list[Present]:
    """Every process that works now, the newest stream first."""
    presences = [await _said(journal, head) for head in await journal.heads(HeadQuery(kind=KIND, limit=_MOST))]
    return [presence for presence in presences if presence is not None]


async def with_code(journal: Journal, recipe: str, version: str, but: str) -> str:
    """The owner of a process that works now and has a version of a recipe; empty if none but `but` has it."""
    every = [presence.started for presence in await present(journal)]
    return next(
        (presence.owner for presence in every if presence.owner != but and version in presence.recipes.get(recipe, ())),
        "",
    )


async def _said(journal: Journal, head: StreamHead) -> Present | None:
    """Return what a process says of itself; None if it works no more, or has not said it yet."""
    owner = Owner.parse(head.lease_owner or "")
    if owner is None or head.state != _WORKING or owner.dead() or (head.lease_until or 0) < journal.clock.now():
        return None
    events = await journal.read(head.stream, head.seq - 1)
    started = decode(events[-1].kind, events[-1].data) if events else None
    if not isinstance(started, WorkerStarted) or started.owner != head.lease_owner:
        return None
    return Present(since=events[-1].at, started=started)
