"""A recorded schema hash can be resolved."""

from __future__ import annotations

from contextlib import suppress

import pytest

from remit.errors import AppendConflictError, ChainBrokenError
from remit.journal.copy import copy
from remit.journal.event import Blob
from remit.journal.journal import Journal
from remit.journal.kinds import ToolInvocationFinished, ToolInvocationStarted
from remit.journal.sqlite.store import MEMORY, SqliteStore
from remit.tools.provider import ToolResult
from remit_testing.clock import ManualClock
from tests.gateway.samples import add
from tests.gateway.world import odd, opened


async def test_both_schemas_of_a_call_are_found_behind_their_hashes() -> None:
    async with opened(add) as world:
        await world.call("math.add", {"a": 1, "b": 2})
        tool, _ = await world.catalog.resolve("math.add", {})
        started = await world.last(ToolInvocationStarted)
        finished = await world.last(ToolInvocationFinished)
        assert await world.journal.schema(started.request_schema_hash) == tool.meta.input_schema
        assert await world.journal.schema(finished.response_schema_hash) == tool.meta.output_schema
        assert await world.journal.schema("sha256:0") is None


async def test_a_schema_and_the_rules_are_written_once() -> None:
    async with opened(add) as world:
        for _ in range(3):
            await world.call("math.add", {"a": 1, "b": 2})
        kept = [len(commit.blobs) for commit in world.store.commits if commit.blobs]
        assert kept == [3]
        assert await world.journal.blob(world.policy.hash) == world.policy.text


async def test_a_schema_whose_announcement_was_refused_is_written_with_the_next() -> None:
    async with opened(odd(lambda _a, _c: ToolResult(None))) as world:
        stream = world.writer.stream
        other = world.journal.writer(stream, "session", await world.journal.head(stream))
        await world.journal.append(
            other, ToolInvocationStarted(invocation_id="i", step="0", tool_name="t"), synced=True
        )
        with suppress(AppendConflictError):  # as soon as it is known: the announcement of a read is not waited for
            await world.call()
        await world.journal.drained()
        assert world.writer.failure is not None
        world.writer = world.journal.writer(stream, "session", await world.journal.head(stream))
        await world.call()
        started = await world.last(ToolInvocationStarted)
        assert await world.journal.schema(started.request_schema_hash) is not None


async def test_a_copy_of_the_journal_keeps_them_and_a_changed_one_is_found() -> None:
    async with opened(add) as world:
        await world.call("math.add", {"a": 1, "b": 2})
        digest = (await world.last(ToolInvocationStarted)).request_schema_hash
        copied = Journal(SqliteStore(MEMORY, ManualClock()), ManualClock())
        await copy(world.journal, copied)
        assert await copied.schema(digest) == await world.journal.schema(digest)
        await copied.close()
        wrong = Journal(SqliteStore(MEMORY, ManualClock()), ManualClock())
        await wrong.put_blobs([Blob(digest, b"{}")])
        with pytest.raises(ChainBrokenError):
            await wrong.schema(digest)
        await wrong.close()
