"""A journal that processes record in, and what is kept of it elsewhere; they may die between any two writes."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from remit.clock import DAY
from remit.codes import Code
from remit.errors import ChainBrokenError, JournalError
from remit.evidence.note import WITNESS, NoteKey, notes_in
from remit.journal.event import HeadQuery, StreamHead
from remit.journal.journal import Journal
from remit.journal.kinds import declare
from remit.journal.port import Store
from remit.parts.recorder.keys import RecordSigner, roots_in
from remit.parts.recorder.publisher import Publisher
from remit.parts.recorder.recorder import LogRecorder, RecorderTerms
from remit.parts.recorder.settings import RecorderSettings
from remit.parts.recorder.verifier import LogVerifier
from remit.parts.recorder.witness import Witness, server_of
from remit.service.verification import VerifierFindings
from remit.wiring.capabilities import FIRST_PARTY
from remit_testing.clock import START, ManualClock

for part in FIRST_PARTY:
    declare(part.kinds)

EVERY_S = 60


def signer(name: str, seed: int, kind: Any = 1) -> RecordSigner:
    return RecordSigner(name, Ed25519PrivateKey.from_private_bytes(seed.to_bytes(32, "big")), kind)


class WitnessServer:
    """A witness that listens; logs are added while it runs."""

    def __init__(self, folder: Path, clock: ManualClock) -> None:
        self.logs: list[NoteKey] = []
        self.clock = clock
        self.signer = signer("witness.example", 99, WITNESS)
        self.witness = Witness(folder, self.logs, self.signer, clock)
        self.server: ThreadingHTTPServer = server_of({"/add-checkpoint": self.witness.add}, "127.0.0.1", 0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def held(self, origin: str) -> str:
        place = self.witness.place(origin)
        return place.read_text(encoding="utf-8") if place.exists() else ""

    @classmethod
    @contextmanager
    def running(cls, folder: Path, clock: ManualClock) -> Iterator[WitnessServer]:
        witness = cls(folder, clock)
        thread = threading.Thread(target=witness.server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield witness
        finally:
            witness.server.shutdown()
            witness.server.server_close()
            thread.join()


class Mortal:
    """A store whose process dies with one of its writes: before it is done, or after and before anyone is told."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.writes_left = -1
        self.done = False
        """Whether the last write is done."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @property
    def dead(self) -> bool:
        return self.writes_left == 0

    def submit(self, commit: Any) -> None:
        if self._dies():
            if self.done:
                self._store.submit(type(commit)(**{**_fields(commit), "on_done": None, "on_error": None}))
            if commit.on_done is not None:
                commit.on_done(_death())
            return
        self._store.submit(commit)

    async def keep_folds(self, folds: Any, before: int) -> bool:
        if self._dies():
            if self.done:
                await self._store.keep_folds(folds, before)
            raise _death()
        return await self._store.keep_folds(folds, before)

    def _dies(self) -> bool:
        if self.writes_left == 0:
            raise _death()
        if self.writes_left > 0:
            self.writes_left -= 1
        return self.writes_left == 0


def _fields(commit: Any) -> dict[str, Any]:
    return {name: getattr(commit, name) for name in type(commit).__struct_fields__ if name not in {"size", "erases"}}


def _death() -> JournalError:
    return JournalError("the process died", code=Code.JOURNAL_CLOSED, remedy="")


class Process:
    """One process that has the journal open, and may be its recorder."""

    def __init__(self, world: World, store: Store) -> None:
        self.store = Mortal(store)
        self.journal = Journal(self.store, world.clock, seals=world.seals)
        own = RecorderSettings(
            origin=world.origin,
            file=str(world.notes),
            witness=world.witness.url if world.witness else "",
            witness_key=str(world.witness.signer.key) if world.witness else "",
            stamp_url=world.authority,
            stamp_roots=world.roots,
        )
        self.publisher = Publisher(self.journal, own, {}, world.folder)
        terms = RecorderTerms(origin=world.origin, every_events=10, every_seconds=EVERY_S, settings=b"{}")
        self.recorder = LogRecorder(self.journal, terms, world.signers, self.publisher)

    async def look(self, *, at_once: bool = False) -> None:
        """One tick of the recorder, and of what publishes."""
        await self.recorder.look(at_once=at_once)
        if not self.store.dead:
            await self.publisher.publish()

    async def end(self) -> None:
        """End as a process does that is told to."""
        await self.recorder.cover()
        await self.publisher.publish(last=True)
        await self.recorder.end()
        await self.journal.close()


class World:
    """A journal, its keys, its second place, and its witness."""

    def __init__(
        self, folder: Path, open_store: Any, *, witness: WitnessServer | None = None, origin: str = "log.example/a"
    ) -> None:
        self.folder, self._open_store, self.witness, self.origin = folder, open_store, witness, origin
        self.clock = witness.clock if witness else ManualClock(START + 1_000 * DAY)
        self.seals: Any = None
        self.authority = self.roots = ""
        self.notes = folder / "second.notes"
        self.signers = [signer(origin, 1)]
        self.keys = [self.signers[0].key]
        """Those that the reader believes."""
        if witness is not None:
            witness.logs.append(self.signers[0].key)
        self.processes: list[Process] = []

    def start(self) -> Process:
        """Begin another process."""
        process = Process(self, self._open_store(self.clock))
        self.processes.append(process)
        return process

    async def kill(self, process: Process) -> None:
        """End a process as `kill -9` does: what it had written stays, and nobody is told."""
        self.processes.remove(process)
        await process.journal.close()

    def rotate(self) -> None:
        """Sign with another key from now on, and keep the former ones to hand the log over."""
        self.signers = [signer(self.origin, len(self.signers) + 1), *self.signers]
        if self.witness is not None:
            self.witness.logs.append(self.signers[0].key)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Journal]:
        journal = Journal(self._open_store(self.clock), self.clock, seals=self.seals)
        try:
            yield journal
        finally:
            await journal.close()

    @property
    def elsewhere(self) -> str:
        """What was kept elsewhere."""
        kept = self.notes.read_text(encoding="utf-8") if self.notes.exists() else ""
        return kept + (self.witness.held(self.origin) if self.witness is not None else "")

    async def verify(
        self, notes: str | None = None, keys: list[NoteKey] | None = None
    ) -> tuple[str, list[str], VerifierFindings]:
        """The answer, the codes of what is wrong, and the findings."""
        kept = self.elsewhere if notes is None else notes
        async with self.opened() as journal:
            return await verify(journal, kept, self.keys if keys is None else keys, self.roots)


async def verify(
    journal: Journal, notes: str, keys: list[NoteKey], roots: str = ""
) -> tuple[str, list[str], VerifierFindings]:
    """As `remit verify` does, without what has nothing to do with checkpoints."""
    verifier, codes = LogVerifier(journal, keys, notes_in(notes), roots_in(roots, "roots")), list[str]()
    await verifier.begin()
    before = None
    while page := await journal.heads(HeadQuery(before=before)):
        before = page[-1].stream
        for head in page:
            intact = True

            async def visit(events: Any, _payloads: Any, head: StreamHead = head, codes: list[str] = codes) -> None:
                codes.extend(problem.text for problem in verifier.take(head, events))

            try:
                await journal.examine(head.stream, None, visit)
            except ChainBrokenError as error:
                codes.append(error.code.name)
                intact = False
            codes += [problem.text for problem in verifier.end_stream(head, intact=intact)]
    findings = verifier.end(everything=True)
    codes += [problem.text for problem in findings.problems]
    return ("rejected" if codes else "whole" if findings.is_whole else "prefix"), codes, findings
