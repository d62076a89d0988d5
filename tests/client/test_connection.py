"""A connection: what it sends again, what it gives up, and what it never follows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from remit import JobEndedError, RemitError, Run, recipe, tool
from remit.client import RemoteRemit
from remit.codes import Code
from remit.errors import NotSentError, ServerError, UsageError
from remit.http.access import Access
from remit.http.guard import Token, digest_of
from remit.jobs.plans.check import read_plan
from remit_testing.clock import ManualClock
from tests.client.conftest import serving
from tests.jumping import leap
from tests.opened import OpenRemit
from tests.patience import PATIENCE_S

ALLOW = {"policy.rules": [{"effect": "allow", "tools": ["desk.*"]}]}
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@tool("desk.double", level="L0")
def double(n: int) -> int:
    """Double."""
    return n * 2


@recipe("adds")
async def adds(run: Run, n: int) -> set[int]:
    """Double a number, after a signal."""
    more = await run.wait_signal("go")
    return {int((await run.call("desk.double", {"n": n})).value), more}


@recipe("fails")
async def fails(run: Run) -> None:
    """Fail."""
    await run.now()
    raise ValueError("no luck")


class HurriedClock(ManualClock):
    """A clock whose sleepers do not wait."""

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        await super().sleep(0)


class Peer:
    """A server that answers as told, and counts."""

    def __init__(self, answer: Answer) -> None:
        self.requests: list[bytes] = []
        self._answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            await self._answer(reader, writer)
        finally:
            writer.close()


@asynccontextmanager
async def peer(answer: Answer, timeout_s: float = PATIENCE_S) -> AsyncIterator[tuple[Peer, RemoteRemit]]:
    one = Peer(answer)
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url, clock = f"http://127.0.0.1:{port}", HurriedClock()
    async with server, RemoteRemit(url, "secret", timeout_s=timeout_s, clock=clock) as remit:
        yield one, remit


def clock_of(remit: RemoteRemit) -> ManualClock:
    clock = remit._connection.clock
    assert isinstance(clock, ManualClock)
    return clock


async def hang_up(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Answer nothing."""


def answering(text: bytes, status: bytes = b"200 OK", headers: bytes = b"") -> Answer:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        length = str(len(text)).encode()
        writer.write(b"HTTP/1.1 " + status + b"\r\n" + headers + b"content-length: " + length + b"\r\n\r\n" + text)
        await writer.drain()

    return answer


async def test_a_read_is_sent_again_and_then_given_up() -> None:
    async with peer(hang_up) as (one, remit):
        with pytest.raises(ServerError, match=r"127\.0\.0\.1") as caught:
            await remit.jobs()
        assert one.requests
        assert clock_of(remit).monotonic() == pytest.approx(0.1 + 0.4 + 1.6)
        assert caught.value.code is Code.SERVER_UNREACHABLE


@pytest.mark.slow
async def test_an_answer_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def dribble(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                writer.write(b" ")
                await writer.drain()
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.01):
                        await asyncio.Event().wait()
                leap(monkeypatch, PATIENCE_S / 4)

    async with peer(dribble) as (one, remit):
        with pytest.raises(ServerError, match="did not arrive in time"):
            await remit.jobs()
        assert len(one.requests) == 1


async def test_a_command_is_sent_once_and_may_have_been_carried_out() -> None:
    async with peer(hang_up) as (one, remit):
        with pytest.raises(ServerError, match=r"jobs\.cancel may have taken effect"):
            await remit.job("job_1").cancel()
        assert len(one.requests) == 1


async def test_a_command_that_reached_no_server_has_no_effect() -> None:
    async with peer(hang_up) as (one, remit):
        pass
    async with RemoteRemit(remit._connection.url, "secret", clock=HurriedClock()) as remit:
        with pytest.raises(NotSentError) as caught:
            await remit.job("job_1").cancel()
        assert "may have taken effect" not in caught.value.message
    assert not one.requests


async def test_a_start_that_was_sent_before_the_server_went_may_have_taken_effect() -> None:
    async def leave(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        server.close()

    one = Peer(leave)
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, RemoteRemit(url, "secret", clock=HurriedClock()) as remit:
        with pytest.raises(ServerError, match="may have taken effect") as caught:
            await (await remit.start_named("adds", {"n": 1}))
    assert not isinstance(caught.value, NotSentError)
    assert len(one.requests) == 1


async def test_a_start_whose_answer_was_lost_is_sent_again_under_its_key() -> None:
    async with peer(hang_up) as (one, remit):
        with pytest.raises(ServerError):
            await (await remit.start_named("adds", {"n": 1}))
        keys = [re.findall(rb"idempotency-key: (\S+)", request.lower()) for request in one.requests]
        assert len(keys) > 1
        assert keys == [keys[0]] * len(keys)


async def test_a_read_goes_on_once_the_server_answers() -> None:
    async def recover(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(one.requests) > 2:
            await answering(b'{"items": [], "next": null}')(reader, writer)

    async with peer(recover) as (one, remit):
        assert await remit.jobs() == []
        assert b"authorization: bearer secret" in one.requests[-1].lower()


@pytest.mark.parametrize(
    ("text", "status", "headers"),
    [
        (b"<html>", b"200 OK", b""),
        (b'{"items": 1, "next": null}', b"200 OK", b""),
        (b"", b"302 Found", b"location: /elsewhere\r\n"),
        (b"gone", b"502 Bad Gateway", b""),
    ],
)
async def test_an_answer_that_is_not_ours_is_refused_and_a_redirection_is_not_followed(
    text: bytes, status: bytes, headers: bytes
) -> None:
    async with peer(answering(text, status, headers)) as (one, remit):
        with pytest.raises(ServerError) as caught:
            await remit.jobs()
        assert caught.value.code is Code.SERVER_ANSWER_INVALID
        assert len(one.requests) == 1


async def test_nothing_is_sent_outside_the_block() -> None:
    with pytest.raises(ServerError, match="not open"):
        await RemoteRemit("http://127.0.0.1:1", "").jobs()


async def test_jobs_and_calls_are_the_same_as_here(remit_in: OpenRemit) -> None:
    given = {"tools": [double], "recipes": [adds, fails], "flags": ALLOW}
    async with remit_in(**given) as remit, serving(remit.service) as url, RemoteRemit(url, "") as far:
        assert far.url == url
        job = await far.start(adds(n=2))
        await far.service.jobs.signal(job.id, "go", 7)
        assert await job == {4, 7}
        assert (await far.ended(job.id)).state == (await job.row()).state == "completed"
        assert (await far.replay(job.id)).verdict == (await far.replay(job)).verdict == "same"
        assert (await far.ended(job)).state == "completed"
        assert [row.job for row in await far.jobs("completed")] == [job.id]
        with pytest.raises(JobEndedError, match="no luck"):
            await far.run(fails())
        with pytest.raises(RemitError, match="no recipe"):
            assert await far.start_named("none") is None
        plan = read_plan({"version": "taskgraph-v1", "name": "p", "nodes": [{"id": "a", "wait": {"signal": "go"}}]})
        waiting = await far.start_plan(plan)
        await waiting.signal("go")
        await far.ended(waiting.id)
        assert await waiting.questions() == []
        outcome = await far.call("desk.double", {"n": 4}, key="k")
        assert (outcome.ok, outcome.value) == (True, 8)
        again = await far.call("desk.double", {"n": 5}, key="k", timeout=PATIENCE_S)
        assert again.code is Code.IDEMPOTENCY_MISMATCH


async def test_a_token_says_who_asks_and_no_request_speaks_for_another(remit_in: OpenRemit) -> None:
    tokens = [Token(digest_of("secret"), Access("ann", frozenset({"admin"})))]
    async with remit_in(recipes=[adds]) as remit, serving(remit.service, tokens) as url:
        async with RemoteRemit(url, "wrong") as far:
            with pytest.raises(UsageError, match="no valid token") as caught:
                await far.jobs()
            assert "REMIT_TOKEN" in caught.value.remedy
        async with RemoteRemit(url, "secret") as far:
            job = await far.start(adds(n=1))
            assert (await job.view()).principal == "ann"
            with pytest.raises(UsageError) as caught:
                await far.service.jobs.cancel(job.id, by="bob")
            assert caught.value.code is Code.LOCAL_ONLY
            with pytest.raises(UsageError, match="whole journal"):
                await far.service.streams.verify()
