"""Two halves of a conversation: whoever asks is answered, hears why not, or is let go; and nothing is left behind."""

from __future__ import annotations

import asyncio
from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import Any

import pytest
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, REQUEST_TIMEOUT

from remit.jsonrpc.protocol import MCPError, NoBackChannelError
from tests.jsonrpc.pair import Context, Params, Side, line, running, talking, turns

# --- asking


async def test_both_sides_ask_and_answer() -> None:
    client, server = Side(), Side()
    async with talking(client, server):
        assert await client.ask("a", {"x": [1]}) == {"method": "a", "params": {"x": [1]}}
        assert await server.ask("b") == {"method": "b", "params": {}}


async def test_a_hundred_requests_at_once_are_answered_each_with_its_own() -> None:
    order: list[int] = []

    async def backwards(_context: Context, _method: str, params: Params) -> dict[str, Any]:
        number = (params or {})["n"]
        await turns(200 - number)
        order.append(number)
        return {"n": number}

    client, server = Side(), Side(backwards)
    async with talking(client, server):
        answers = await asyncio.gather(*(client.ask("n", {"n": n}) for n in range(100)))
        assert [answer["n"] for answer in answers] == list(range(100))
        assert order != sorted(order), "they were served at once"


async def test_a_handler_may_ask_back_and_report_while_it_serves() -> None:
    reports: list[dict[str, Any]] = []

    async def curious(context: Context, _method: str, _params: Params) -> dict[str, Any]:
        await context.progress({"progress": 1, "total": 2, "message": "half"})
        said = await context.send_raw_request("who", None)
        await context.progress({"progress": 2, "_meta": {"n": 2**53 + 1}})
        return {"said": said["method"]}

    async def heard(report: Mapping[str, Any]) -> None:
        reports.append({name: value for name, value in report.items() if name != "progressToken"})

    client, server = Side(), Side(curious)
    async with talking(client, server):
        assert await client.ask("x", on_progress=heard) == {"said": "who"}
        assert reports == [{"progress": 1, "total": 2, "message": "half"}, {"progress": 2, "_meta": {"n": 2**53 + 1}}]


async def test_a_handler_whose_request_is_over_can_ask_no_more() -> None:
    kept: list[Context] = []

    async def keep(context: Context, _method: str, _params: Params) -> dict[str, Any]:
        kept.append(context)
        return {}

    client, server = Side(), Side(keep)
    async with talking(client, server):
        await client.ask()
        assert not kept[0].can_send_request
        with pytest.raises(NoBackChannelError):
            await kept[0].send_raw_request("late", None)
        await kept[0].notify("late", None)
        assert [message.get("method") for message in server.wire.messages] == [None]


async def test_a_peer_that_takes_no_requests_is_asked_none() -> None:
    async def curious(context: Context, _method: str, _params: Params) -> dict[str, Any]:
        return await context.send_raw_request("who", None)

    client, server = Side(), Side(curious)
    server.dispatcher.may_ask = False
    async with talking(client, server):
        with pytest.raises(MCPError):
            await client.ask()
    assert all(message.get("method") != "who" for message in server.wire.messages)


async def test_errors_come_back_as_they_were_raised() -> None:
    async def refuse(_context: Context, _method: str, _params: Params) -> dict[str, Any]:
        raise MCPError(code=INVALID_PARAMS, message="no such thing", data={"name": "x"})

    client, server = Side(), Side(refuse)
    async with talking(client, server):
        with pytest.raises(MCPError) as caught:
            await client.ask()
        assert (caught.value.code, caught.value.message, caught.value.data) == (
            INVALID_PARAMS,
            "no such thing",
            {"name": "x"},
        )


@pytest.mark.parametrize("result", [{"text": "\ud800"}, {"thing": object()}], ids=["half a character", "no JSON"])
async def test_a_result_that_cannot_be_written_is_an_error_not_silence(result: dict[str, Any]) -> None:
    async def odd(_context: Context, _method: str, _params: Params) -> dict[str, Any]:
        return result

    client, server = Side(), Side(odd)
    async with talking(client, server):
        with pytest.raises(MCPError) as caught:
            await client.ask()
        assert caught.value.code == INTERNAL_ERROR


async def test_what_a_handler_raises_is_told_no_more_than_that(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_context: Context, _method: str, _params: Params) -> dict[str, Any]:
        raise ZeroDivisionError("secret")

    client, server = Side(), Side(fail)
    async with talking(client, server):
        with pytest.raises(MCPError, match="Internal error"):
            await client.ask()
    assert b"secret" not in b"".join(server.wire.sent)
    assert "the handler of echo failed" in caplog.text


async def test_arguments_that_cannot_be_written_are_refused_and_leave_nothing() -> None:
    async def heard(_report: Mapping[str, Any]) -> None: ...

    client, server = Side(), Side()
    async with talking(client, server):
        with pytest.raises(ValueError, match="surrogates"):
            await client.ask("x", {"text": "\ud800"}, on_progress=heard)
        assert client.dispatcher._progress == {}
        assert client.wire.sent == []


@pytest.mark.parametrize("own", ["mine", "7", 7])
async def test_an_id_of_ones_own_is_sent_as_it_is_and_taken_once(own: str | int) -> None:
    client = Side()
    async with running(client):
        asking = asyncio.create_task(client.ask("x", request_id=own))
        await turns()
        assert client.wire.messages[0]["id"] == own
        with pytest.raises(ValueError, match="under way"):
            await client.ask("y", request_id=own)
        client.dispatcher.received(line(id=own, result={"ok": True}))
        assert await asking == {"ok": True}


async def test_a_number_that_comes_back_as_text_is_the_same_id_unless_another_has_that_text() -> None:
    client = Side()
    async with running(client):
        first = asyncio.create_task(client.ask("x", request_id="2"))
        await turns()
        second = asyncio.create_task(client.ask("y"))
        await turns()
        assert [message["id"] for message in client.wire.messages] == ["2", 1]
        client.dispatcher.received(line(id="1", result={"of": 2}))
        client.dispatcher.received(line(id="2", result={"of": 1}))
        assert (await first, await second) == ({"of": 1}, {"of": 2})


# --- letting go


async def test_no_answer_in_time_is_a_timeout_that_the_peer_hears_of() -> None:
    client = Side()
    async with running(client):
        with pytest.raises(MCPError) as caught:
            await client.ask("slow", timeout=0)
        assert caught.value.code == REQUEST_TIMEOUT
        assert client.wire.messages[-1]["method"] == "notifications/cancelled"
        assert client.wire.messages[-1]["params"] == {"requestId": 1, "reason": "timed out"}


async def test_what_must_not_be_cancelled_is_given_up_in_silence() -> None:
    client = Side()
    async with running(client):
        with pytest.raises(MCPError):
            await client.ask("initialize", timeout=0, cancel_on_abandon=False)
        assert len(client.wire.sent) == 1


async def test_a_cancellation_reaches_the_peers_handler_which_does_not_answer() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def wait(context: Context, _method: str, _params: Params) -> dict[str, Any]:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            assert context.cancelled
            ended.set()
        return {}

    client, server = Side(), Side(wait)
    async with talking(client, server):
        asking = asyncio.create_task(client.ask())
        await began.wait()
        asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled()
        await ended.wait()
        await turns()
        assert server.wire.sent == []
        assert server.dispatcher._served == {}


async def test_a_request_cancelled_before_its_handler_began_leaves_nothing_either() -> None:
    server = Side()
    async with running(server):
        server.dispatcher.received(line(id=1, method="x"))
        server.dispatcher.received(line(method="notifications/cancelled", params={"requestId": 1}))
        await turns()
        assert server.wire.sent == []
        assert server.dispatcher._served == {}
        server.dispatcher.received(line(id=1, method="y"))
        await turns()
        assert server.wire.messages == [{"jsonrpc": "2.0", "id": 1, "result": {"method": "y", "params": {}}}]


@pytest.mark.parametrize(
    "params", [None, {}, {"requestId": None}, {"requestId": True}, {"requestId": 9}, {"requestId": [1]}]
)
async def test_a_cancellation_of_nothing_is_nothing(params: dict[str, Any] | None) -> None:
    server = Side()
    async with running(server):
        server.dispatcher.received(line(method="notifications/cancelled", params=params))
        await turns()
        assert server.told.qsize() == 1


async def test_a_handler_that_gives_up_by_itself_is_an_error() -> None:
    async def give_up(_context: Context, _method: str, _params: Params) -> dict[str, Any]:
        raise asyncio.CancelledError

    client, server = Side(), Side(give_up)
    async with talking(client, server):
        with pytest.raises(MCPError, match="given up"):
            await client.ask()


async def test_a_slow_reader_makes_senders_wait_and_they_can_be_cancelled() -> None:
    client = Side()
    async with running(client):
        client.wire.free.clear()
        telling = asyncio.create_task(client.dispatcher.notify("x", None))
        asking = asyncio.create_task(client.ask())
        await turns()
        assert not telling.done()
        asking.cancel()
        await asyncio.wait([asking])
        client.wire.free.set()
        await telling
        assert client.wire.messages[-1]["method"] == "notifications/cancelled"


# --- notifications


async def test_notifications_are_told_in_order() -> None:
    client, server = Side(), Side()
    async with talking(client, server):
        for number in range(20):
            await client.dispatcher.notify("n", {"number": number})
        assert [(await server.told.get())[1]["number"] for _ in range(20)] == list(range(20))


async def test_what_is_intercepted_is_not_told() -> None:
    seen: list[str] = []

    def intercept(method: str, _params: Params) -> bool:
        seen.append(method)
        return method == "mine"

    client, server = Side(), Side(intercept=intercept)
    async with talking(client, server):
        await client.dispatcher.notify("mine", None)
        await client.dispatcher.notify("other", None)
        assert (await server.told.get())[0] == "other"
        assert seen == ["mine", "other"]
        assert server.told.empty()


async def test_a_handler_of_notifications_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_report: Mapping[str, Any]) -> None:
        raise ZeroDivisionError

    async def report(context: Context, _method: str, _params: Params) -> dict[str, Any]:
        await context.progress({"progress": 1})
        return {}

    client, server = Side(), Side(report)
    async with talking(client, server):
        assert await client.ask(on_progress=broken) == {}
    assert "the handler of a notification failed" in caplog.text


@pytest.mark.parametrize(
    "params",
    [
        None,
        {"progressToken": 1},
        {"progressToken": 1, "progress": "1"},
        {"progressToken": 1, "progress": True},
        {"progressToken": 1, "progress": 10**400},
        {"progressToken": 99, "progress": 1},
        {"progressToken": None, "progress": 1},
    ],
)
async def test_progress_of_nothing_or_in_no_numbers_is_passed_over(params: dict[str, Any] | None) -> None:
    heard: list[Any] = []

    async def report(params: Mapping[str, Any]) -> None:
        heard.append(params)

    client = Side()
    async with running(client):
        asking = asyncio.create_task(client.ask(on_progress=report))
        await turns()
        client.dispatcher.received(line(method="notifications/progress", params=params))
        client.dispatcher.received(line(id=1, result={}))
        assert await asking == {}
        assert heard == []


async def test_a_byte_order_mark_before_a_message_is_skipped() -> None:
    client = Side()
    async with running(client):
        asking = asyncio.create_task(client.ask())
        await turns()
        client.dispatcher.received(BOM_UTF8 + line(id=1, result={"a": 1}))
        assert await asking == {"a": 1}


@pytest.mark.parametrize(
    ("params", "passed"),
    [
        ({"progressToken": 1, "progress": 1}, True),
        ({"progressToken": 1, "progress": 1, "total": 2, "message": "m"}, True),
        ({"progressToken": 99, "progress": 1}, True),
        ({}, False),
        ({"progressToken": 1}, False),
        ({"progressToken": 1, "progress": "1"}, False),
        ({"progressToken": 1, "progress": 1, "total": "2"}, False),
        ({"progressToken": 1, "progress": 1, "message": 5}, False),
    ],
)
async def test_only_progress_that_is_one_is_passed_on(params: dict[str, Any], passed: bool) -> None:
    client = Side()
    async with running(client):
        client.dispatcher.received(line(method="notifications/progress", params=params))
        await turns()
    assert client.told.empty() is not passed
