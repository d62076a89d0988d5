from __future__ import annotations

import gc
import weakref

import pytest

from remit.codes import Code
from remit.errors import AppendConflictError, JournalError
from remit.journal.event import HeadPatch, verify
from remit.journal.kinds import TimeRecorded
from remit.journal.writer import StreamWriter
from remit_testing.clock import ManualClock
from remit_testing.journal.storage import note, noted


def writer() -> StreamWriter:
    return StreamWriter("job/a", "job", ManualClock())


def test_appends_follow_each_other_without_a_gap() -> None:
    one = writer()
    appends = [one.stage(*noted(1, 2)), one.stage(patch=HeadPatch(state="x")), one.stage(note(3))]
    assert [(append.expect_seq, len(append.events)) for append in appends] == [(0, 2), (2, 0), (2, 1)]
    assert appends[1].expect_hash == appends[2].expect_hash == appends[0].events[-1].hash
    assert verify("job/a", [event for append in appends for event in append.events])[0] == 3


def test_a_draft_gets_its_place_when_it_is_chained() -> None:
    one = writer()
    kept, dropped = one.draft(note(2)), one.draft(note(9))
    first = one.chain(one.draft(note(1)))
    assert dropped.events == one.draft(note(9)).events
    assert one.chain(kept).expect_hash == first.events[-1].hash
    assert one.seq == 2


def test_a_payload_that_cannot_be_encoded_leaves_the_writer_where_it_was() -> None:
    one = writer()
    with pytest.raises(TypeError):
        one.stage(note(1), TimeRecorded(step="2", value=object()))  # type: ignore[arg-type] # on purpose
    assert (one.seq, one.stage(note(1)).expect_seq) == (0, 0)


def test_after_a_failure_everything_is_refused_with_the_first_error() -> None:
    one = writer()
    draft = one.draft(note(1))
    one.fail(JournalError("first", code=Code.JOURNAL_FULL))
    one.fail(JournalError("second"))
    one.supersede()
    with pytest.raises(JournalError, match="first"):
        one.stage(note(1))
    with pytest.raises(JournalError, match="first"):
        one.chain(draft)
    assert one.seq == 0


def test_an_error_that_is_raised_again_and_again_keeps_nothing_of_the_last_time() -> None:
    one = writer()
    failure = JournalError("full", code=Code.JOURNAL_FULL, remedy="make room")
    failure.__cause__ = OSError("no space")
    one.fail(failure)
    for _ in range(3):
        with pytest.raises(JournalError) as told:
            one.stage(note(1))
        assert (told.value.code, str(told.value), told.value.remedy) == (failure.code, str(failure), failure.remedy)
        assert told.value.__cause__ is failure.__cause__
    assert failure.__traceback__ is None


class Worker:
    """Something large that a writer's failure can keep alive."""


async def test_a_refused_writer_keeps_nothing_alive() -> None:
    worker = Worker()
    alive = weakref.ref(worker)

    async def work(_worker: Worker) -> None:
        one = writer()
        draft = one.draft(note(1))
        try:
            raise AppendConflictError("somebody else holds it")
        except AppendConflictError as error:
            one.fail(error)  # which knows this frame, which knows the draft, which knows the writer
        assert draft.writer is one

    await work(worker)
    del worker
    gc.collect()
    assert alive() is None


def test_a_superseded_writer_says_so() -> None:
    one = writer()
    one.supersede()
    with pytest.raises(AppendConflictError, match="took over the stream"):
        one.stage(note(1))
