"""What a provider keeps beside the record."""

from __future__ import annotations

from typing import Any

from remit.canonical import sha256
from remit.clock import DAY
from remit.journal.erasure import erase
from remit.journal.event import Blob, HeadPatch
from remit.journal.kinds import BytesKept, TimeRecorded
from remit.tools.provider import CallContext, ToolResult
from tests.gateway.world import odd, opened

DATA = b"an artifact" * 200_000
"""More than evidence may hold."""


async def keep(args: dict[str, Any], ctx: CallContext) -> ToolResult:
    assert ctx.keeper is not None
    until = ctx.now + DAY if args.get("brief") else None
    digest = await ctx.keeper.put(DATA, until=until)
    return ToolResult({"digest": digest, "same": await ctx.keeper.get(digest) == DATA})


async def read(args: dict[str, Any], ctx: CallContext) -> ToolResult:
    assert ctx.keeper is not None
    found = await ctx.keeper.get(args["digest"])
    return ToolResult(None if found is None else len(found))


async def test_bytes_are_kept_for_good_and_on_record() -> None:
    async with opened(odd(keep)) as world:
        outcome = await world.call()
        assert outcome.value == {"digest": sha256(DATA), "same": True}
        kept = await world.last(BytesKept)
        assert (kept.digest, kept.kept_blob.bytes, kept.until) == (sha256(DATA), len(DATA), None)
        assert kept.invocation_id == outcome.invocation_id
        world.clock.advance(60 * 60 * 24 * 365)
        await world.journal.prune()
        assert await world.journal.blob(kept.digest) == DATA
        kinds = await world.kinds()
        assert kinds == ["tool_invocation_started", "bytes_kept", "tool_invocation_finished"]


async def test_bytes_kept_until_a_time_are_gone_after_it_and_nothing_is_damaged() -> None:
    async with opened(odd(keep)) as world:
        await world.call(args={"brief": True})
        kept = await world.last(BytesKept)
        assert await world.journal.prune() == 0
        world.clock.advance(60 * 60 * 24 + 1)
        assert await world.journal.prune() == 1
        assert await world.journal.blob(kept.digest) is None
        assert await world.journal.verify(world.stream) == 3


async def test_what_is_kept_about_a_subject_ends_with_it() -> None:
    async with opened(odd(keep)) as world:
        opening = TimeRecorded(step="0", value=1)
        await world.journal.append(world.writer, opening, synced=True, patch=HeadPatch(subject="customer-7"))
        outcome = await world.call()
        assert outcome.value == {"digest": sha256(DATA), "same": True}
        assert await world.journal.blob(sha256(DATA)) is None
        await erase(world.journal, "customer-7")
        kept = await world.last(BytesKept)
        assert kept.digest != sha256(DATA)
        assert await world.journal.blob(kept.digest) == b""


async def test_what_was_never_kept_is_none() -> None:
    async with opened(odd(read)) as world:
        assert (await world.call(args={"digest": sha256(DATA)})).value is None
        await world.journal.put_blobs([Blob(sha256(DATA), b"other bytes")])
        assert (await world.call(args={"digest": sha256(DATA)})).status == "failed"
