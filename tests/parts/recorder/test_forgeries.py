"""Whoever can write to the journal and knows all of the code, but has no key, is found; what is not found is said.

The cases are those of two public corpora of the package `agent-evidence-vectors`, acted out on our own checkpoints:
`receipt-chain-end` (verified there is whole here, if a checkpoint that was kept elsewhere shows the end) and
`anchored-chain` (verified there is whole, or a prefix where records follow the last anchor).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import asyncpg
import pytest

from remit.evidence.note import notes_in
from remit.journal.postgres.store import PostgresStore
from remit.journal.sqlite.store import SqliteStore
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import note
from tests.parts.recorder.acts import (
    Act,
    Scene,
    believe_nobody,
    both_branches,
    change,
    change_time,
    close,
    cut_everything,
    cut_tail,
    cut_uncovered,
    forge_size,
    fork,
    go_on,
    insert,
    leave_open,
    nothing,
    other_run,
    put_back,
    put_back_and_go_on,
    reanchor,
    remove_in_the_middle,
    remove_log,
    remove_log_and_key,
    remove_session,
    remove_stream,
    replay_other_stream,
    rewrite,
    rotate,
    sign_all_anew,
    swap,
    take_over_without_handover,
    tamper_signature,
)
from tests.parts.recorder.world import WitnessServer, World
from tests.security.test_seals import FileThief, ServerThief


class Case(NamedTuple):
    """A case of a corpus, what we do for it, what the reader has, and the answer."""

    name: str
    act: Act
    elsewhere: bool
    answer: str


ENDS = (
    Case("control-closed-run", close, True, "whole"),
    Case("control-closed-run-retained-head", close, True, "whole"),
    Case("control-open-prefix", leave_open, True, "prefix"),
    Case("control-open-run-final-head", nothing, True, "whole"),
    Case("control-rotation-endorsed", rotate, True, "whole"),
    Case("control-timestamp-tie", nothing, True, "whole"),
    Case("tail-truncation", put_back, False, "prefix"),
    Case("tail-truncation-retained-head", put_back, True, "rejected"),
    Case("prefix-replay-shared-session-close", cut_everything, False, "prefix"),
    Case("prefix-replay-other-run", other_run, True, "rejected"),
    Case("fork-branch-against-retained-head", fork, True, "rejected"),
    Case("fork-branch-against-retained-seq", put_back_and_go_on, False, "prefix"),
    Case("fork-both-branches", both_branches, False, "rejected"),
    Case("rotation-resigned-tail-keys-pinned", remove_session, True, "rejected"),
    Case("rotation-resigned-tail-endorsement", take_over_without_handover, False, "rejected"),
    Case("stale-head-honest-extension", go_on, True, "prefix"),
    Case("stale-head-truncated-to-it", cut_everything, True, "whole"),
    Case("seq-reset-hides-gap", remove_session, False, "rejected"),
    Case("reorder-timestamp-tie", swap, False, "rejected"),
    Case("signature-tamper", tamper_signature, False, "rejected"),
    Case("untrusted-genesis-key", sign_all_anew, False, "rejected"),
    Case("close-count-forged", forge_size, False, "rejected"),
    Case("final-head-not-at-end", put_back_and_go_on, True, "rejected"),
    Case("seq-reset-control-endorsed", rotate, True, "whole"),
)
"""`receipt-chain-end`. Two differ. `stale-head-honest-extension` is verified there by a close, after which nobody goes
on; a journal goes on, so only a checkpoint of its end makes it whole. `stale-head-truncated-to-it` is a prefix there,
for the reader says that the head is an interim one; here the newest checkpoint that the reader has is the end."""
ANCHORS = (
    Case("intact", nothing, True, "whole"),
    Case("records-after-last-anchor", leave_open, True, "prefix"),
    Case("t1-content-tamper", change, True, "rejected"),
    Case("t2-tail-removal", put_back, True, "rejected"),
    Case("t2-tail-removal-after-last-anchor", cut_uncovered, True, "whole"),
    Case("t3-middle-deletion", remove_in_the_middle, True, "rejected"),
    Case("t4-reorder", swap, True, "rejected"),
    Case("t5-forged-insertion", insert, True, "rejected"),
    Case("t6-cross-context-replay", replay_other_stream, True, "rejected"),
    Case("t7-rollback-older-record", cut_tail, True, "rejected"),
    Case("t8-metadata-tamper", change_time, True, "rejected"),
    Case("t9-snapshot-rollback", put_back, True, "rejected"),
    Case("rollback-to-abandoned-branch", put_back_and_go_on, True, "rejected"),
    Case("tail-removal-reanchored", reanchor, True, "rejected"),
)
"""`anchored-chain`: the anchor is what the second place and the witness hold."""
MORE = (
    Case("a stream was written again, every hash right", rewrite, False, "rejected"),
    Case("a stream was taken away", remove_stream, False, "rejected"),
    Case("the log was taken away", remove_log, True, "rejected"),
    Case("the log was taken away, and the reader has no key", remove_log_and_key, True, "rejected"),
    Case("the log was taken away, and nothing was kept elsewhere", remove_log, False, "prefix"),
    Case("all was signed anew, and the reader has no key", believe_nobody, True, "rejected"),
)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    clock, folder = ManualClock(), tmp_path / "witness"
    folder.mkdir()
    with WitnessServer.running(folder, clock) as witness:
        if request.param == "sqlite":
            path = tmp_path / "journal.db"
            world = World(tmp_path, lambda clock: SqliteStore(str(path), clock), witness=witness)
            yield Scene(world, FileThief(path))
            return
        url = request.getfixturevalue("storage").url
        connection = await asyncpg.connect(url.replace("&schema=", "&search_path="))
        yield Scene(World(tmp_path, lambda clock: PostgresStore(url, clock), witness=witness), ServerThief(connection))
        await connection.close()


@pytest.mark.parametrize("case", [*ENDS, *ANCHORS, *MORE], ids=lambda case: case.name)
async def test_the_answer_is_the_one_that_the_case_asks_for(scene: Scene, case: Case) -> None:
    await scene.tell()
    scene.notes = None if case.elsewhere else ""
    await case.act(scene)
    answer, codes, findings = await scene.world.verify(scene.notes, scene.keys)
    assert answer == case.answer, (codes, findings)


async def test_of_many_checkpoints_that_do_not_fit_one_is_named(scene: Scene) -> None:
    await scene.tell()
    await remove_log(scene)
    _, codes, _ = await scene.world.verify()
    assert len(notes_in(scene.world.elsewhere)) > 1
    (missing,) = (one for one in codes if "it was put back or cut" in one)
    assert f"has {max(note.checkpoint.size for note in notes_in(scene.world.elsewhere))} leaves" in missing


async def test_the_witness_refuses_a_journal_that_was_put_back(scene: Scene) -> None:
    await scene.tell()
    await put_back(scene)
    scene.world.clock.advance(1_000)
    process = scene.world.start()
    await process.look()
    assert "the witness" in process.publisher.failures
    for _ in range(3):
        await process.journal.post("job/1", "job", note(1))
        await process.recorder.look(at_once=True)
    await process.publisher.publish()
    assert "it refuses the checkpoint: HTTP 422" in process.publisher.failures["the witness"]
    assert scene.world.witness is not None
    held = notes_in(scene.world.witness.held(scene.world.origin))[0].checkpoint
    assert held in [one.checkpoint for one in notes_in(scene.world.notes.read_text())]
    await scene.world.kill(process)
