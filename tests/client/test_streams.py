"""Following events: a stream that breaks off goes on after the last event, and nothing comes twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from remit import Run, recipe
from remit.client import RemoteRemit
from remit.errors import NotFoundError, ServerError
from remit.jobs.state import stream_of
from remit.models.reply import Delta
from remit.models.tail import AnswerPiece
from tests.client.conftest import serving
from tests.client.test_connection import clock_of, peer
from tests.opened import OpenRemit, until_waiting


@recipe("waits")
async def waits(run: Run) -> Any:
    """Wait for a signal."""
    return await run.wait_signal("go")


async def test_a_follower_goes_on_after_a_restart_of_the_server(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[waits]) as remit:
        job = (await remit.start(waits())).id
        await until_waiting(remit, job)
        events: asyncio.Queue[int | None] = asyncio.Queue()

        async def follow(far: RemoteRemit) -> None:
            async for event in far.service.streams.follow(stream_of(job)):
                events.put_nowait(event.seq)
            events.put_nowait(None)

        async with serving(remit.service) as url:
            port = int(url.rpartition(":")[2])
            far = RemoteRemit(url, "")
            await far.__aenter__()
            following = asyncio.create_task(follow(far))
            assert await events.get() == 1
        async with serving(remit.service, port=port):
            await remit.service.jobs.signal(job, "go")
            seen = [1]
            while (seq := await events.get()) is not None:
                seen.append(seq)
            await following
            await far.__aexit__(None, None, None)
        assert seen == [event.seq for event in await remit.service.streams.events(stream_of(job))]


async def test_what_does_not_exist_is_not_tried_again(remit_in: OpenRemit) -> None:
    async with remit_in() as remit, serving(remit.service) as url, RemoteRemit(url, "") as far:
        with pytest.raises(NotFoundError):
            await anext(far.service.streams.follow("job/job_none"))


async def test_a_server_that_stays_away_is_given_up() -> None:
    async def hang_up(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        """Answer nothing."""

    async with peer(hang_up) as (one, remit):
        with pytest.raises(ServerError):
            await anext(remit.service.streams.follow("job/job_1"))
        assert one.requests
        assert 30 < clock_of(remit).monotonic() < 32


async def test_an_event_that_cannot_be_read_is_refused() -> None:
    async def nonsense(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nid: 1\ndata: nonsense\n\n")
        await writer.drain()

    async with peer(nonsense) as (one, remit):
        with pytest.raises(ServerError, match="cannot be read"):
            await anext(remit.service.streams.follow("job/job_1"))
        assert len(one.requests) == 1


async def test_what_models_say_is_heard_while_they_say_it_until_the_job_ends(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[waits]) as remit:
        job = (await remit.start(waits())).id
        await until_waiting(remit, job)
        async with serving(remit.service) as url, RemoteRemit(url, "") as far:
            heard = far.service.streams.said(job)
            with remit.runtime.gateway.services.tails.open(stream_of(job), "3") as say:
                say(Delta("text", "It is "))
                say(Delta("reasoning", "hm"))
                pieces = [await anext(heard), await anext(heard)]
                say(Delta("text", "the \u2028 moon."))
                pieces.append(await anext(heard))
            await remit.service.jobs.signal(job, "go")
            assert [piece async for piece in heard] == []
        assert pieces == [
            AnswerPiece("3", 0, Delta("text", "It is ")),
            AnswerPiece("3", 6, Delta("reasoning", "hm")),
            AnswerPiece("3", 8, Delta("text", "the \u2028 moon.")),
        ]


async def test_listening_to_a_job_that_is_not_there_is_refused_and_a_lost_server_ends_it(remit_in: OpenRemit) -> None:
    async with remit_in(recipes=[waits]) as remit:
        job = (await remit.start(waits())).id
        await until_waiting(remit, job)
        async with serving(remit.service) as url, RemoteRemit(url, "") as far:
            with pytest.raises(NotFoundError):
                await anext(far.service.streams.said("job_none"))
        async with RemoteRemit(url, "") as far:
            assert [piece async for piece in far.service.streams.said(job)] == []
