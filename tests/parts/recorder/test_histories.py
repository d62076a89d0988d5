"""No false alarm: whatever happens to a journal that nobody forges, its checkpoints fit."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from remit.clock import DAY, SECOND
from remit.errors import RemitError
from remit.evidence.verify import check as verify_package
from remit.journal.copy import back_up, move
from remit.journal.erasure import erase
from remit.journal.event import Blob, HeadPatch, HeadQuery, StreamHead
from remit.journal.journal import Journal
from remit.journal.kinds import JobCompleted
from remit.journal.port import Store
from remit.journal.postgres.store import PostgresStore
from remit.journal.prune import StubTerms, Uses, look_at, prune_unit
from remit.journal.sqlite.store import SqliteStore
from remit.parts.audit.package import write_package
from remit.parts.recorder.log import sessions
from remit_testing.clock import START, ManualClock
from remit_testing.journal.storage import note
from tests.journal.storages import PostgresStorage
from tests.journal.test_old_journals import OLD
from tests.parts.recorder.world import EVERY_S, Process, WitnessServer, World, verify

HISTORIES = int(os.environ.get("REMIT_TEST_HISTORIES", "10"))
FIRST = int(os.environ.get("REMIT_TEST_FIRST_HISTORY", "0"))


@pytest.fixture(scope="module")
def witness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WitnessServer]:
    with WitnessServer.running(tmp_path_factory.mktemp("witness"), ManualClock(START + 1_000 * DAY)) as running:
        yield running


class History:
    """One history, told by chance."""

    def __init__(self, seed: int, folder: Path, witness: WitnessServer, url: str = "") -> None:
        self.chance, self.folder, self.url = random.Random(seed), folder, url
        self.path = folder / "journal.db"
        if seed % 5 == 0 and not url:
            shutil.copyfile(OLD, self.path)
        self.world = World(
            folder, self.store, witness=witness if seed % 2 else None, origin=f"log.example/{seed}{'p' * bool(url)}"
        )
        self.streams = 0
        self.pruned = set[str]()

    def store(self, clock: ManualClock) -> Store:
        return PostgresStore(self.url, clock) if self.url else SqliteStore(str(self.path), clock)

    async def tell(self, acts: int) -> None:
        self.world.start()
        for _ in range(acts):
            weights = {
                self.record: 8, self.look: 8, self.wait: 4, self.start: 2, self.end: 1, self.die: 3, self.rotate: 1,
                self.erase: 1, self.back_up: 1, self.move: 1, self.tear: 1, self.change_back: 1,
                self.prune: 1,
            }  # fmt: skip
            if self.url:  # those copy files
                weights |= {self.back_up: 0, self.move: 0}
            await self.chance.choices([*weights], [*weights.values()])[0]()
            if self.chance.random() < 0.25:
                await self.check("prefix", "whole")
        await self.check("prefix", "whole")

    async def finish(self) -> None:
        """Everybody ends as they should: then the journal is whole."""
        while self.world.processes:
            await self.end()
        self.world.clock.advance(86_400)  # the session of one that died is over, also by a clock that was set back
        last = self.world.start()
        await last.look(at_once=True)
        await self.end()
        await self.check("whole")
        await self.export()

    async def export(self) -> None:
        """Every stream gives a package, all of whose events are signed by one of the keys there were."""
        async with self.world.opened() as journal:
            streams = [head.stream for head in await journal.heads(HeadQuery(kind="job", limit=1_000))]
            for stream in sorted(set(streams) - self.pruned):
                with (self.folder / "one.zip").open("w+b") as file:
                    await write_package(journal, stream, file)
                verdict = verify_package(
                    str(self.folder / "one.zip"), keys=[*self.world.keys, *(one.key for one in self.world.signers)]
                )
                assert verdict.state in ("prefix", "whole"), (stream, verdict)

    # --- acts

    def process(self) -> Process:
        return self.chance.choice(self.world.processes) if self.world.processes else self.world.start()

    async def record(self) -> None:
        journal = self.process().journal
        for _ in range(self.chance.randrange(1, 6)):
            if not self.streams or self.chance.random() < 0.4:
                self.streams += 1
            number = self.chance.randrange(self.streams) + 1
            stream = f"job/{number}"
            if stream in self.pruned:
                continue
            writer = journal.writer(stream, "job", await journal.head(stream))
            patch = HeadPatch(subject="ann") if writer.seq == 0 and self.chance.random() < 0.3 else HeadPatch()
            synced = self.chance.random() < 0.5
            await journal.append(writer, note(number), synced=synced, patch=patch)
            if self.chance.random() < 0.2:
                below = journal.writer(f"{stream}/inbox", "inbox", await journal.head(f"{stream}/inbox"))
                await journal.commit(writer.draft(note(2)), below.draft(JobCompleted()), synced=True)
        await journal.drained()

    async def look(self) -> None:
        await self.process().look(at_once=self.chance.random() < 0.5)

    async def wait(self) -> None:
        self.world.clock.advance(self.chance.choice([1, 5, EVERY_S, 4 * EVERY_S, 86_400]))

    async def start(self) -> None:
        if len(self.world.processes) < 3:
            self.world.start()

    async def end(self) -> None:
        process = self.process()
        self.world.processes.remove(process)
        await process.end()

    async def die(self) -> None:
        """A process dies with one of its next writes; some are slow, and write before they find out."""
        process = self.process()
        process.store.writes_left = self.chance.randrange(1, 6)
        process.store.done = self.chance.random() < 0.5
        for _ in range(4):
            try:
                await process.look(at_once=True)
                await process.journal.post("job/last", "job", note(1))
            except RemitError:
                break
            self.world.clock.advance(self.chance.choice([1, EVERY_S]))
        await self.world.kill(process)

    async def rotate(self) -> None:
        """Another key signs; the reader believes those that may have signed first."""
        async with self.world.opened() as journal:
            began = [head async for head in sessions(journal)]
        self.world.rotate()
        if not began:
            self.world.keys = [one.key for one in self.world.signers]
        await self.end()

    async def erase(self) -> None:
        process = self.process()
        await process.journal.put_blobs([Blob("sha256:" + "0" * 64, b"x", self.world.clock.now() + 1)])
        await erase(process.journal, "ann")
        await process.journal.prune()

    async def prune(self) -> None:
        """A job and its inbox go; their stubs stay."""
        journal = self.process().journal
        head = await journal.head(f"job/{self.streams}")
        if head is not None and head.stream not in self.pruned:
            self.pruned.add(head.stream)
            heads = [head, *await journal.heads(HeadQuery(prefix=f"{head.stream}/"))]
            parts = [await look_at(journal, one) for one in heads]
            await prune_unit(journal, parts, Uses(journal, ()), StubTerms())

    async def back_up(self) -> None:
        """A copy of the file, and a copy by Remit: each is what was signed, up to where it was copied."""
        source, target = apsw.Connection(str(self.path)), apsw.Connection(str(self.folder / "file.db"))
        with target.backup("main", source, "main") as backup:
            backup.step()
        source.close()
        target.close()
        await self.check("prefix", "whole", path=self.folder / "file.db", notes="")
        (self.folder / "file.db").unlink()
        copy = self.folder / f"copy{self.chance.random()}.db"
        async with self.world.opened() as journal:
            other = Journal(SqliteStore(str(copy), self.world.clock), self.world.clock)
            await back_up(journal, other)
            await other.close()
        await self.check("prefix", "whole", path=copy, notes="")

    async def move(self) -> None:
        """The journal goes on in another place; who had it open ends."""
        while self.world.processes:
            await self.end()
        place = self.folder / f"moved{self.chance.random()}.db"
        async with self.world.opened() as journal:
            other = Journal(SqliteStore(str(place), self.world.clock), self.world.clock)
            await move(journal, other)
            await other.close()
        self.path = place
        self.world.start()

    async def tear(self) -> None:
        """A crash in the middle of writing to the second place."""
        if self.world.notes.exists():
            text = self.world.notes.read_text()
            with self.world.notes.open("a") as file:
                file.write(text[: self.chance.randrange(len(text))])

    async def change_back(self) -> None:
        """The clock of the machine is set back."""
        self.world.clock._elapsed = max(0, self.world.clock._elapsed - self.chance.randrange(1, 10**9))

    async def check(self, *answers: str, path: Path | None = None, notes: str | None = None) -> None:
        clock = self.world.clock
        journal = Journal(SqliteStore(str(path), clock) if path else self.store(clock), clock)
        kept = self.world.elsewhere if notes is None else notes
        answer, codes, findings = await verify(journal, kept, self.world.keys)
        await journal.close()
        assert answer in answers, (codes, findings)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
async def test_a_history_that_nobody_forged_is_never_rejected(
    part: int, tmp_path: Path, witness: WitnessServer
) -> None:
    for seed in range(FIRST + part, FIRST + HISTORIES, 5):
        folder = tmp_path / str(seed)
        folder.mkdir()
        history = History(seed, folder, witness)
        try:
            await history.tell(acts=random.Random(seed).randrange(5, 25))
            await history.finish()
        except BaseException as error:
            error.add_note(f"REMIT_TEST_FIRST_HISTORY={seed} REMIT_TEST_HISTORIES=1 tells it again")
            raise
        shutil.rmtree(folder)


@pytest.mark.slow
async def test_the_same_holds_on_a_server(tmp_path: Path, witness: WitnessServer, storage: PostgresStorage) -> None:
    for seed in range(FIRST, FIRST + max(2, HISTORIES // 50)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        history = History(seed, folder, witness, f"{storage.url}_{seed}")
        await history.tell(acts=10)
        await history.finish()


async def test_a_package_has_the_checkpoints_that_a_clock_signed_which_was_set_back(tmp_path: Path) -> None:
    world = World(tmp_path, lambda clock: SqliteStore(str(tmp_path / "journal.db"), clock))
    process = world.start()
    world.clock.advance(60)  # after midnight
    await process.journal.post("job/old", "job", note(1))
    world.clock._elapsed -= 3 * DAY
    await process.look(at_once=True)
    await process.end()
    for _ in range(4):
        world.clock.advance(4 * DAY / SECOND)
        later = world.start()
        await later.journal.post("job/new", "job", note(1))
        await later.look(at_once=True)
        await later.end()
    async with world.opened() as journal:
        with (tmp_path / "one.zip").open("w+b") as file:
            await write_package(journal, "job/old", file)
    verdict = verify_package(str(tmp_path / "one.zip"), keys=world.keys)
    assert (verdict.state, verdict.uncovered) == ("prefix", ()), verdict


async def test_a_copy_that_is_made_while_checkpoints_are_signed_has_what_they_cover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remit.journal.scan._HEADS", 1)
    world = World(tmp_path, lambda clock: SqliteStore(str(tmp_path / "journal.db"), clock))
    process = world.start()
    await process.journal.post("job/old", "job", note(1))
    await process.look()
    await process.journal.post("job/new", "job", note(1))
    heads = process.journal.heads

    async def busy(query: HeadQuery) -> list[StreamHead]:
        found = await heads(query)
        await process.journal.post("job/new", "job", note(2))
        await process.recorder.look(at_once=True)
        return found

    monkeypatch.setattr(process.journal, "heads", busy)
    other = Journal(SqliteStore(str(tmp_path / "copy.db"), world.clock), world.clock)
    await back_up(process.journal, other)
    assert (await verify(other, "", world.keys))[:2] == ("prefix", [])
    await other.close()
    monkeypatch.undo()
    await process.end()
