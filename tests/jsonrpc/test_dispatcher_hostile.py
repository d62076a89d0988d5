"""What peers do wrong on the wire is dropped, counted or refused, and no honest request suffers from it."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR

from remit.codes import Code
from remit.jsonrpc import dispatcher as module
from remit.jsonrpc.message import LEVELS, REPAIRED, UnreadableMessageError, read
from remit.jsonrpc.protocol import MCPError, UnansweredError
from tests.jsonrpc.pair import Context, Params, Side, line, running, turns


@pytest.mark.parametrize("other", [line(id=5, result={}), line(id="x", result={}), line(id=1, error={"code": 1})])
async def test_doubled_late_and_made_up_answers_are_dropped(other: bytes) -> None:
    client = Side()
    async with running(client):
        asking = asyncio.create_task(client.ask())
        await turns()
        client.dispatcher.received(line(id=1, result={"first": True}))
        client.dispatcher.received(other)
        client.dispatcher.received(line(id=1, result={"first": False}))
        assert await asking == {"first": True}
        client.dispatcher.received(line(id=1, result={"first": False}))
        assert await answered_next(client) == {}


async def answered_next(client: Side) -> dict[str, Any]:
    asking = asyncio.create_task(client.ask())
    await turns()
    client.dispatcher.received(line(id=client.wire.messages[-1]["id"], result={}))
    return await asking


@pytest.mark.parametrize("result", [None, 5, [1], "text"])
async def test_an_answer_that_is_no_object_is_an_error(result: object) -> None:
    client = Side()
    async with running(client):
        asking = asyncio.create_task(client.ask())
        await turns()
        client.dispatcher.received(line(id=1, result=result))
        with pytest.raises(UnansweredError, match="neither a result nor an error") as caught:
            await asking
        assert caught.value.cause is Code.BadGateway, "it is no answer, so nobody knows what was done"


@pytest.mark.parametrize("error", [{}, {"code": "x", "message": 5}, {"message": None, "data": [1]}])
async def test_an_error_that_says_nothing_is_an_error_all_the_same(error: dict[str, Any]) -> None:
    client = Side()
    async with running(client):
        asking = asyncio.create_task(client.ask())
        await turns()
        client.dispatcher.received(line(id=1, error=error))
        with pytest.raises(MCPError, match="without a message") as caught:
            await asking
        assert caught.value.code == INTERNAL_ERROR


NONSENSE = [
    b"Listening on stdio...",
    b"[1, 2]",
    b"5",
    b"null",
    b'"text"',
    b"\xff\xfe",
    b"{",
    b"{}",
    b'{"id": null, "method": "x"}',
    b'{"id": true, "method": "x"}',
    b"[" * 100_000,
    b'{"id": "' + b"9" * 10_000 + b"x",
]


@pytest.mark.parametrize("bad", NONSENSE, ids=lambda bad: repr(bad[:20]))
async def test_nonsense_is_counted_and_answered_by_a_server(bad: bytes) -> None:
    server = Side(answers_invalid=True)
    async with running(server):
        server.dispatcher.received(bad)
        server.dispatcher.received(line(id=2, method="x"))
        await turns()
        assert server.dispatcher.invalid_messages == 1
        error, answer = server.wire.messages
        assert error["id"] is None
        assert error["error"]["code"] in {PARSE_ERROR, INVALID_REQUEST}
        assert answer["id"] == 2


@pytest.mark.parametrize("bad", NONSENSE, ids=lambda bad: repr(bad[:20]))
async def test_nonsense_is_counted_and_passed_over_by_a_client(bad: bytes) -> None:
    client = Side()
    async with running(client):
        client.dispatcher.received(bad)
        assert client.dispatcher.invalid_messages == 1
        assert client.wire.sent == []


@pytest.mark.parametrize("blank", [b"", b"  ", b"\r"])
async def test_an_empty_line_is_nothing(blank: bytes) -> None:
    server = Side(answers_invalid=True)
    async with running(server):
        server.dispatcher.received(blank)
        assert (server.dispatcher.invalid_messages, server.wire.sent) == (0, [])


async def test_an_id_of_ten_thousand_digits_is_an_id_like_another() -> None:
    server = Side()
    async with running(server):
        server.dispatcher.received(line(id="9" * 10_000, method="x"))
        await turns()
        assert server.wire.messages[0]["id"] == "9" * 10_000


@pytest.mark.parametrize(
    ("answer", "result", "repaired"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{"text":"a\xff"}}', {"text": "a\ufffd"}, {"not_utf8": 1}),
        (
            b'{"jsonrpc": "2.0", "id": 1, "result": {"text": "\\ud800 \\\\ud83d \\ufffd"}}',
            {"text": "\ufffd \\ud83d \ufffd"},
            {"half_pair": 1},
        ),
        (
            b'{"result":{"text":"\\ude00\\ud83d\\ude00\\ud83d"},"jsonrpc":"2.0","id":1}',
            {"text": "\ufffd\U0001f600\ufffd"},
            {"half_pair": 2},
        ),
        (
            b'{"result":{"list":[NaN,-Infinity,null,1E400,2]},"jsonrpc":"2.0","id":1}',
            {"list": [None, None, None, None, 2]},
            {"not_json": 3},
        ),
        (
            b'{"result":{"number":-' + b"9" * 5_000 + b'},"jsonrpc":"2.0","id":1}',
            {"number": None},
            {"not_json": 1},
        ),
        (
            b'{"result":{"text":"\\x tab\there"},"jsonrpc":"2.0","id":1}',
            {"text": "\ufffdx tab\there"},
            {"not_escape": 1},
        ),
        (b'\xef\xbb\xbf{"result":{"text":"\xe9"},"id":1.0}', {"text": "\ufffd"}, {"not_utf8": 1}),
    ],
    ids=["invalid UTF-8", "half a character", "other halves", "numbers", "5,000 digits", "escapes", "a mark before it"],
)
async def test_a_value_that_cannot_be_read_costs_itself_and_the_result_says_so(
    answer: bytes, result: dict[str, Any], repaired: dict[str, int]
) -> None:
    client = Side()
    async with running(client):
        asking = asyncio.create_task(client.ask())
        await turns()
        client.dispatcher.received(answer)
        assert await asking == {**result, "_meta": {REPAIRED: repaired}}
        assert client.dispatcher.invalid_messages == 0


@pytest.mark.parametrize("text", ["a", "\\ud83d"])
async def test_no_server_says_itself_what_was_repaired(text: str) -> None:
    client = Side()
    async with running(client):
        asking = asyncio.create_task(client.ask())
        await turns()
        meta = '{"dev.remit/repaired":{"claim":7},"own":1}'
        client.dispatcher.received(f'{{"jsonrpc":"2.0","id":1,"result":{{"text":"{text}","_meta":{meta}}}}}'.encode())
        assert (await asking)["_meta"] == {"own": 1} | ({REPAIRED: {"half_pair": 1}} if text != "a" else {})


async def test_what_is_too_deep_in_an_answer_is_null() -> None:
    client = Side()
    async with running(client):
        asking = asyncio.create_task(client.ask())
        await turns()
        deep = b"[" * 100_000 + b"]" * 100_000
        client.dispatcher.received(b'{"result":{"deep":' + deep + b',"text":"[ok]"},"jsonrpc":"2.0","id":1}')
        result = await asking
        assert (result["text"], result["_meta"]) == ("[ok]", {REPAIRED: {"too_deep": 1}})
        assert result["deep"] == json.loads("[" * (LEVELS - 2) + "null" + "]" * (LEVELS - 2))


@pytest.mark.parametrize(
    "answer",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"text":"ok"',
        b'{"result":{"text":{"id":2}},"jsonrpc":"2.0","id":1,"x',
        b'{"jsonrpc":"2.0","id":1,"error" "x"}',
    ],
)
async def test_whoever_waits_for_an_answer_that_cannot_be_read_hears_so(answer: bytes) -> None:
    client = Side()
    async with running(client):
        asking = asyncio.create_task(client.ask())
        await turns()
        client.dispatcher.received(answer)
        with pytest.raises(UnansweredError, match="its answer cannot be read") as caught:
            await asking
        assert caught.value.cause is Code.BadGateway
        assert client.dispatcher.invalid_messages == 1


@pytest.mark.parametrize(
    ("request_", "request_id"),
    [
        (b'{"method":"x","params":{"n":NaN},"jsonrpc":"2.0","id":7}', 7),
        (b'{"jsonrpc":"2.0","id":"7","method":"x","params":{"n":1E400}}', "7"),
        (b'{"jsonrpc":"2.0","id":7.5,"method":"x","params":' + b"[" * 3_000 + b"]" * 3_000 + b"}", 7.5),
        (b'{"method":"x","params":{"id":1,"n":"\\x"},"jsonrpc":"2.0","id":-3}', -3),
        (b'{"jsonrpc":"2.0","id":"a\\u0041","method":"x","params":{"n":oops', "aA"),
        (b'{"method":"\\"id\\":5,","params":{"n":oops},"jsonrpc":"2.0","id":7}', 7),
        (b'{"jsonrpc":"2.0","method":"x","params":{"n":oops},"id":12', None),
        (b'{"method":"x","id":7,oops', None),
    ],
)
@pytest.mark.parametrize("answers_invalid", [True, False])
async def test_a_request_that_cannot_be_read_is_refused_under_its_id(
    request_: bytes, request_id: object, answers_invalid: bool
) -> None:
    side = Side(answers_invalid=answers_invalid)
    async with running(side):
        side.dispatcher.received(request_)
        await turns()
        answers = [(each["id"], each["error"]["code"]) for each in side.wire.messages]
        assert answers == ([] if request_id is None and not answers_invalid else [(request_id, PARSE_ERROR)])


@pytest.mark.parametrize("text", [b'"a\\ud83d"', b'"a\xff"'])
async def test_half_a_character_in_a_request_is_one_that_stands_for_it(text: bytes) -> None:
    server = Side(answers_invalid=True)
    async with running(server):
        server.dispatcher.received(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"text":' + text + b"}}")
        await turns()
        assert server.wire.messages[0]["result"]["params"] == {"text": "a\ufffd"}


async def test_ids_of_requests_are_json_values_and_come_back_as_they_were() -> None:
    server = Side(answers_invalid=True)
    ids = [b"5", b'"5"', b'"05"', b"1.0", b"1e3", b"0", b'""', b"-1", b"7.5", b"12345678901234567890123"]
    async with running(server):
        for each in ids:
            server.dispatcher.received(b'{"jsonrpc":"2.0","id":' + each + b',"method":"x"}')
        await turns()
        assert [(type(each["id"]), each["id"]) for each in server.wire.messages] == [
            (type(json.loads(each)), json.loads(each)) for each in ids
        ]
        assert not any("error" in each for each in server.wire.messages)


@pytest.mark.parametrize("request_id", [b"1", b"1.0", b"1e0", b'"1"'])
async def test_an_answer_is_known_by_its_id_however_it_is_written(request_id: bytes) -> None:
    client = Side()
    async with running(client):
        asking = asyncio.create_task(client.ask())
        await turns()
        client.dispatcher.received(b'{"jsonrpc":"2.0","id":"01","result":{"wrong":1}}')
        client.dispatcher.received(b'{"jsonrpc":"2.0","id":' + request_id + b',"result":{}}')
        assert await asking == {}


def test_the_time_to_mend_a_message_grows_with_its_length() -> None:
    for filler in (b"\\", b"[", b'"', b"\\ud83d", b"1,", b'\\"', b" "):
        with suppress(UnreadableMessageError):
            read(b'{"jsonrpc":"2.0","id":1,"result":NaN,"x":"' + filler * 50_000)


@pytest.mark.parametrize("printed", [b'{"id":1,"result": oops', b'{"jsonrpc":"2.0","id":1,"method":"x", oops'])
async def test_what_only_looks_like_an_answer_ends_no_waiting(printed: bytes) -> None:
    client = Side()
    async with running(client):
        asking = asyncio.create_task(client.ask())
        await turns()
        client.dispatcher.received(printed)
        client.dispatcher.received(line(id=1, result={"ok": 1}))
        assert await asking == {"ok": 1}


async def test_an_id_under_way_is_refused_and_one_that_is_free_again_is_not() -> None:
    gate = asyncio.Event()

    async def wait(_context: Context, _method: str, _params: Params) -> dict[str, Any]:
        await gate.wait()
        return {}

    server = Side(wait)
    async with running(server):
        server.dispatcher.received(line(id=1, method="x"))
        server.dispatcher.received(line(id=1.0, method="x"))
        gate.set()
        await turns()
        server.dispatcher.received(line(id=1, method="x"))
        await turns()
        refused, *answers = server.wire.messages
        assert "under way" in refused["error"]["message"]
        assert [answer["result"] for answer in answers] == [{}, {}]


async def test_more_requests_than_are_served_at_a_time_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REQUESTS", 3)

    async def wait(_context: Context, _method: str, _params: Params) -> dict[str, Any]:
        return await asyncio.Future()

    server = Side(wait)
    async with running(server):
        for number in range(5):
            server.dispatcher.received(line(id=number, method="x"))
        assert [message["id"] for message in server.wire.messages] == [3, 4]
        assert "too many" in server.wire.messages[0]["error"]["message"]
