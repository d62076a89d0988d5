"""What was recorded and is not compared, since an extra is missing, is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit.capability import Capability
from remit.evidence.note import notes_in
from remit.journal.blobs import pack
from remit.journal.sqlite.store import SqliteStore
from remit.parts.recorder.publisher import PublishedState
from remit_testing.journal.storage import note
from tests.opened import OpenRemit
from tests.parts.recorder.world import World


async def test_checkpoints_that_are_not_compared_are_said(
    remit_in: OpenRemit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Capability, "missing", property(lambda part: part.modules))
    async with remit_in() as remit:
        assert (await remit.service.streams.verify()).skipped == (), "nothing was signed"
        world = World(tmp_path, lambda clock: SqliteStore(str(tmp_path / "journal.db"), clock))
        process = world.start()
        await process.journal.post("job/1", "job", note(1))
        await process.look(at_once=True)
        await process.end()
        report = await remit.service.streams.verify()
        assert (report.state, report.checkpoints) == ("prefix", 0)
        assert report.skipped == ("recorder: pip install 'remit[audit]'",)


async def test_stamps_that_cannot_be_read_are_said(
    remit_in: OpenRemit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remit.parts.recorder.verifier.can_read", lambda: False)
    world = World(tmp_path, lambda clock: SqliteStore(str(tmp_path / "journal.db"), clock))
    process = world.start()
    await process.journal.post("job/1", "job", note(1))
    await process.look(at_once=True)
    (size,) = (one.checkpoint.size for one in notes_in(world.elsewhere))
    assert notes_in("\ufeff" + world.elsewhere) == notes_in(world.elsewhere)
    process.publisher.published = PublishedState(stamped=size, stamp=pack(b'"AAAA"'))
    await process.journal.post("job/2", "job", note(1))
    await process.end()
    async with remit_in() as remit:
        report = await remit.service.streams.verify()
    assert (report.problems, report.stamps, report.stamped) == ((), 1, 0)
    assert report.skipped == ("recorder: stamps: pip install 'remit[audit]'",)
