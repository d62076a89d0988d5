"""Each wire is passed on byte for byte, judged and recorded; whoever fails, the other side is not blamed for it."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from typing import Any, Final

import aiohttp
import pytest

from remit.canonical import sha256
from remit.codes import Code
from remit.http.access import Access
from remit.http.guard import Token, digest_of
from remit.journal.event import HeadQuery
from remit.journal.kinds import CommandCommitted, CommandStarted, GateRefused
from remit.parts.model_gateway.kinds import ModelGatewayAnswered, ModelGatewayAsked
from remit_testing.models import (
    AnthropicSpeech,
    Canned,
    ChatSpeech,
    GeminiSpeech,
    Received,
    ResponsesSpeech,
    Scene,
    SceneCall,
    Speech,
    Streamed,
)
from tests.parts.model_gateway.world import KEY, QUESTIONS, world
from tests.patience import PATIENCE_S

SPEECHES: Final[dict[str, Speech]] = {
    "chat": ChatSpeech(),
    "responses": ResponsesSpeech(),
    "messages": AnthropicSpeech(),
    "gemini": GeminiSpeech(),
}
CALLS: Final = Scene(text=("I ", "look."), calls=(SceneCall("probe", '{"x": 1}', id="call_7"),), stop="tools")


def speaks(scene: Scene = CALLS, **how: Any) -> Any:
    """Return what answers every question with a scene, on the wire that it is asked on."""

    def answers(request: Received) -> Streamed | Canned:
        path = request.path
        wire = next(
            name
            for name, end in (
                ("chat", "completions"),
                ("responses", "responses"),
                ("messages", "messages"),
                ("gemini", "?"),
            )
            if end in path
        )
        return Streamed(events=SPEECHES[wire].events(scene), **how)

    return answers


def same(response: Streamed | Canned) -> Any:
    """Return what answers every question with this."""
    return lambda _request: response


@pytest.mark.parametrize("wire", QUESTIONS)
@pytest.mark.parametrize("how", [{}, {"chunk_bytes": 7}, {"newline": b"\r\n"}, {"head": b": hello\n\n"}])
async def test_an_answer_is_that_of_the_provider(
    wire: str, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(speaks(**how), monkeypatch) as gateway:
        path, body = QUESTIONS[wire]
        rest = path.partition("/")[2].partition("/")[2]
        async with gateway.http.post(f"{gateway.provider.url}/{rest}", json=body) as direct:
            wanted = await direct.read()
        status, _, passed = await gateway.ask(wire)
        assert (status, passed) == (200, wanted)
        [direct_request, request] = gateway.provider.received
        assert request.raw == direct_request.raw
        [asked], [answered] = await gateway.events(ModelGatewayAsked), await gateway.events(ModelGatewayAnswered)
        assert (asked.sha256, answered.end, answered.size) == (sha256(request.raw), "complete", len(wanted))
        assert answered.wanted == {"call_7": "probe"}
        [committed] = await gateway.events(CommandCommitted)
        assert (committed.outcome, committed.token_count) == ("success", 42)


@pytest.mark.parametrize(
    ("header", "value"),
    [("authorization", "Bearer {}"), ("x-api-key", "{}"), ("x-goog-api-key", "{}"), ("?key", "{}")],
)
async def test_a_token_counts_wherever_a_client_puts_it(
    header: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = Token(digest_of("rmt_t"), Access("ann", frozenset({"call"})))
    async with world(speaks(), monkeypatch, tokens=(token,)) as gateway:
        path, body = QUESTIONS["messages"]
        given = {header: value.format("rmt_t")} if header != "?key" else {}
        query = "?key=rmt_t&beta=true" if header == "?key" else "?beta=true"
        async with gateway.http.post(gateway.url + path + query, json=body, headers=given) as response:
            assert response.status == 200
        [request] = gateway.provider.received
        assert request.path.endswith("?beta=true")
        assert request.headers["x-api-key"] == KEY
        assert "rmt_t" not in str(request)
        [started] = await gateway.events(CommandStarted)
        assert started.principal == "ann"


async def test_two_clients_with_one_session_id_are_two_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = tuple(Token(digest_of(f"rmt_{name}"), Access(name, frozenset({"call"}))) for name in ("ann", "bob"))
    async with world(speaks(), monkeypatch, tokens=tokens) as gateway:
        for name in ("ann", "bob", "ann"):
            headers = {"x-api-key": f"rmt_{name}", "x-claude-code-session-id": "the-same"}
            assert (await gateway.ask("messages", **headers))[0] == 200
        heads = await gateway.remit.runtime.journal.heads(HeadQuery(kind="session", limit=10))
        assert len(heads) == 2
        questions = await gateway.events(CommandStarted)
        assert sorted(started.principal for started in questions) == ["ann", "ann", "bob"]
        bases = [asked.base != "" for asked in await gateway.events(ModelGatewayAsked)]
        assert sorted(bases) == [False, False, True], "only ann's second question refers to one before"


SECRET: Final = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


async def test_a_secret_in_a_prompt_is_shown_to_no_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(speaks(), monkeypatch) as gateway:
        path, body = QUESTIONS["messages"]
        told = {**body, "messages": [{"role": "user", "content": f"My key is {SECRET}. " * 500}]}
        async with gateway.http.post(gateway.url + path, json=told) as response:
            assert response.status == 200
        assert SECRET in json.dumps(gateway.provider.received[0].body), "the provider gets what was said"
        journal = gateway.remit.runtime.journal
        await journal.drained()
        (head,) = await journal.heads(HeadQuery(kind="session", limit=1))
        events = await journal.read(head.stream)
        assert len(events) > 3
        assert not [event.kind for event in events if SECRET.encode() in event.data]


@pytest.mark.parametrize("scopes", [frozenset({"read"}), None])
@pytest.mark.parametrize("wire", QUESTIONS)
async def test_who_has_no_token_is_refused_on_its_wire(wire: str, scopes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    token = Token(digest_of("rmt_t"), Access("ann", scopes or frozenset({"call"})))
    async with world(speaks(), monkeypatch, tokens=(token,)) as gateway:
        headers = {"authorization": "Bearer rmt_t"} if scopes else {}
        status, headers, body = await gateway.ask(wire, **headers)
        assert status == 401
        assert headers["x-remit-code"] == ("SCOPE_REQUIRED" if scopes else "UNAUTHENTICATED")
        assert json.loads(body)["error"]
        assert gateway.provider.received == []


FORMS: Final = {
    "chat": {"message": ..., "type": "invalid_request_error", "param": None, "code": "POLICY_DENIED"},
    "responses": {"message": ..., "type": "invalid_request_error", "param": None, "code": "POLICY_DENIED"},
    "messages": {"message": ..., "type": "invalid_request_error"},
    "gemini": {"message": ..., "code": 400, "status": "INVALID_ARGUMENT"},
}


@pytest.mark.parametrize("wire", QUESTIONS)
async def test_a_refusal_has_the_form_that_ends_every_client(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [{"id": "no-models", "effect": "deny", "tools": ["model.*"], "reason": "not today"}]
    async with world(speaks(), monkeypatch, policy__rules=rules) as gateway:
        status, headers, body = await gateway.ask(wire)
        error = json.loads(body)["error"]
        assert (status, headers["x-remit-code"], headers["x-should-retry"]) == (400, "POLICY_DENIED", "false")
        assert error.pop("message").startswith("not today")
        assert error == {name: value for name, value in FORMS[wire].items() if name != "message"}
        assert gateway.provider.received == []
        [refused], [answered] = await gateway.events(GateRefused), await gateway.events(ModelGatewayAnswered)
        assert (refused.rule_id, answered.end, answered.status) == ("no-models", "refused", 400)


async def test_a_limit_that_passes_says_when(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(speaks(), monkeypatch, limits__tools={"model.anthropic": {"rate": "1/h"}}) as gateway:
        assert (await gateway.ask("messages"))[0] == 200
        status, headers, body = await gateway.ask("messages")
        assert (status, headers["x-remit-code"], headers["x-should-retry"]) == (429, "RATE_LIMITED", "true")
        assert int(headers["retry-after"]) > 3_000
        assert json.loads(body)["error"]["type"] == "rate_limit_error"


async def test_a_day_that_is_spent_ends_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(speaks(), monkeypatch, models__day_tokens=60) as gateway:
        assert (await gateway.ask("messages"))[0] == 400, "50 tokens and the question may take more than is left"
        [refused] = await gateway.events(GateRefused)
        assert refused.code == Code.BUDGET_EXCEEDED.name


async def test_a_question_waits_for_the_person_whom_a_rule_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [{"id": "ask", "effect": "ask", "tools": ["model.*"], "reason": "may it?"}]
    async with world(speaks(), monkeypatch, policy__rules=rules) as gateway:
        asking = asyncio.create_task(gateway.ask("chat"))
        confirmations = gateway.remit.service.confirmations
        async with asyncio.timeout(PATIENCE_S):
            mark = await gateway.remit.runtime.journal.heads_changed(0)
            while not (pending := await confirmations.pending()):
                mark = await gateway.remit.runtime.journal.heads_changed(mark)
        assert gateway.provider.received == []
        await confirmations.decide(pending[0].confirmation, "approve")
        assert (await asking)[0] == 200
        [started] = await gateway.events(CommandStarted)
        assert started.confirmation == pending[0].confirmation


async def test_a_websocket_is_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(speaks(), monkeypatch) as gateway:
        with pytest.raises(aiohttp.WSServerHandshakeError) as failure:
            await gateway.http.ws_connect(f"{gateway.url}/openai/v1/responses")
        assert failure.value.status == 426
        assert await gateway.events(ModelGatewayAsked) == []


@pytest.mark.parametrize("wire", QUESTIONS)
@pytest.mark.parametrize("ends", ["eof", "reset"])
async def test_an_answer_that_breaks_off_is_cut_for_the_client_too(
    wire: str, ends: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    speech = SPEECHES[wire]
    events = speech.events(CALLS)[: speech.complete_after(CALLS) - 1]
    async with world(same(Streamed(events=events, ends=ends)), monkeypatch) as gateway:
        with pytest.raises(aiohttp.ClientPayloadError):
            await gateway.ask(wire)
        [answered] = await gateway.until(ModelGatewayAnswered, 1)
        [committed] = await gateway.events(CommandCommitted)
        assert (answered.end, committed.outcome, committed.uncertain) == ("cut", "failure", True)
        assert answered.wanted == {}
        assert set(answered.handed_on_before_cut) <= {"call_7"}


async def test_a_call_that_was_whole_before_the_cut_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    events = AnthropicSpeech().events(CALLS)[:-2]
    async with world(same(Streamed(events=events, ends="eof")), monkeypatch) as gateway:
        with pytest.raises(aiohttp.ClientPayloadError):
            await gateway.ask("messages")
        [answered] = await gateway.until(ModelGatewayAnswered, 1)
        assert answered.handed_on_before_cut == ("call_7",)


@pytest.mark.slow
async def test_the_same_question_after_a_cut_is_a_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Canned(status=200, body=json.dumps(_message()).encode())
    cut = Streamed(events=AnthropicSpeech().events(CALLS)[:3], ends="eof")
    answers: Iterator[Streamed | Canned] = iter((cut, whole, whole))
    async with world(lambda _request: next(answers), monkeypatch) as gateway:
        path, body = QUESTIONS["messages"]
        with pytest.raises(aiohttp.ClientPayloadError):
            await gateway.ask("messages")
        for _ in range(2):  # the first without a stream, as one client asks again; the second is new
            async with gateway.http.post(gateway.url + path, json={**body, "stream": False}) as response:
                assert response.status == 200
        first, again, other = await gateway.events(ModelGatewayAsked)
        assert (again.repeats, other.repeats) == (first.step, "")


def _message() -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "served-1",
        "content": [{"type": "text", "text": "ok"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 20, "output_tokens": 3},
    }


async def test_a_client_that_vanishes_leaves_a_whole_record(monkeypatch: pytest.MonkeyPatch) -> None:
    release = asyncio.Event()
    scene = Scene(text=tuple(f"word {number} " * 400 for number in range(400)))
    async with world(speaks(scene), monkeypatch) as gateway:
        path, body = QUESTIONS["messages"]
        response = await gateway.http.post(gateway.url + path, json=body)
        await response.content.readany()
        response.close()
        release.set()
        [answered] = await gateway.until(ModelGatewayAnswered, 1)
        [committed] = await gateway.events(CommandCommitted)
        assert (answered.end, committed.outcome) == ("complete", "success")
        assert answered.client_gone_after is not None
        assert answered.client_gone_after < answered.pieces


async def test_an_answer_is_stopped_for_a_client_that_vanished_where_a_setting_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(text=tuple(f"word {number} " * 400 for number in range(400)))
    async with world(speaks(scene), monkeypatch, model_gateway__stop_upstream=True) as gateway:
        path, body = QUESTIONS["messages"]
        response = await gateway.http.post(gateway.url + path, json=body)
        await response.content.readany()
        response.close()
        [answered] = await gateway.until(ModelGatewayAnswered, 1)
        assert answered.end == "cut"


@pytest.mark.slow
async def test_a_client_that_leaves_at_the_terminal_event_took_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(speaks(ends="never"), monkeypatch, models__patience_seconds=1) as gateway:
        path, body = QUESTIONS["responses"]
        response = await gateway.http.post(gateway.url + path, json=body)
        received = b""
        while b"response.completed" not in received:
            received += await response.content.readany()
        response.close()
        [answered] = await gateway.until(ModelGatewayAnswered, 1)
        assert answered.end == "complete"


@pytest.mark.slow
async def test_a_provider_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(same(Streamed(events=[], ends="never")), monkeypatch, models__patience_seconds=1) as gateway:
        with pytest.raises(aiohttp.ClientPayloadError):
            await gateway.ask("chat")
        [committed] = await gateway.until(CommandCommitted, 1)
        assert committed.error is not None
        assert committed.error.code == Code.MODEL_TIMEOUT.name


async def test_a_provider_that_is_not_there_is_said_on_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(speaks(), monkeypatch, models__anthropic_url="http://127.0.0.1:9") as gateway:
        status, headers, body = await gateway.ask("messages")
        assert (status, headers["x-remit-code"]) == (502, "MODEL_FAILED")
        assert json.loads(body)["error"]["type"] == "api_error"
        [committed] = await gateway.events(CommandCommitted)
        assert (committed.uncertain, committed.again_ms) == (False, None)


@pytest.mark.slow
async def test_a_length_that_is_too_long_is_a_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(_message()).encode()
    answers = same(
        Canned(status=200, body=body, headers={"content-length": str(len(body) + 10), "connection": "close"})
    )
    async with world(answers, monkeypatch, models__patience_seconds=1) as gateway:
        with pytest.raises(aiohttp.ClientPayloadError):
            await gateway.ask("messages")
        [answered] = await gateway.until(ModelGatewayAnswered, 1)
        assert answered.end in {"cut", "failed"}


@pytest.mark.parametrize("encoding", ["gzip", "br"])
async def test_a_compressed_answer_is_passed_as_it_is(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body = gzip.compress(json.dumps(_message()).encode()) if encoding == "gzip" else b"\x8b\x02\x80ok\x03"
    async with (
        world(same(Canned(status=200, body=body, headers={"content-encoding": encoding})), monkeypatch) as gateway,
        aiohttp.ClientSession(auto_decompress=False) as raw,
    ):
        path, question = QUESTIONS["messages"]
        async with raw.post(gateway.url + path, json={**question, "stream": False}) as response:
            assert await response.read() == body
        [request], [committed] = gateway.provider.received, await gateway.events(CommandCommitted)
        assert "br" not in request.headers["accept-encoding"]
        assert committed.outcome == ("success" if encoding == "gzip" else "failure")
        assert committed.token_count == (23 if encoding == "gzip" else 0)


@pytest.mark.slow
async def test_a_hundred_megabytes_pass_and_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [b'{"type":"ping","x":"' + b"x" * 1_000_000 + b'"}'] * 100 + AnthropicSpeech().events(CALLS)
    async with world(same(Streamed(events=events)), monkeypatch, model_gateway__keep_bytes=1_000_000) as gateway:
        path, body = QUESTIONS["messages"]
        size = 0
        async with gateway.http.post(gateway.url + path, json=body) as response:
            async for piece in response.content.iter_any():
                size += len(piece)
        [answered] = await gateway.until(ModelGatewayAnswered, 1)
        assert (answered.end, answered.size) == ("complete", size)
        assert not hasattr(answered.answer_blob, "digest")


@pytest.mark.parametrize("wire", QUESTIONS)
async def test_a_stream_that_makes_no_sense_is_passed_and_its_question_failed(
    wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [*SPEECHES[wire].events(CALLS)[:1], b"[nonsense", *SPEECHES[wire].events(CALLS)[1:]]
    async with world(same(Streamed(events=events)), monkeypatch) as gateway:
        status, _, passed = await gateway.ask(wire)
        assert (status, passed.count(b"nonsense")) == (200, 1)
        [answered], [committed] = await gateway.events(ModelGatewayAnswered), await gateway.events(CommandCommitted)
        assert (answered.end, committed.outcome) == ("failed", "failure")


@pytest.mark.parametrize("wire", QUESTIONS)
async def test_an_error_of_the_provider_is_passed_as_it_is(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = SPEECHES[wire].failures()[0]
    async with world(same(failing.canned), monkeypatch) as gateway:
        status, _, body = await gateway.ask(wire)
        assert (status, body) == (failing.canned.status, failing.canned.body)
        [committed] = await gateway.events(CommandCommitted)
        assert committed.error is not None
        assert committed.error.code == failing.fault.code.name


@pytest.mark.parametrize(("unread", "status"), [("pass", 200), ("refuse", 400)])
async def test_a_request_that_cannot_be_read_passes_by_setting(
    unread: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(speaks(), monkeypatch, model_gateway__unread=unread) as gateway:
        answers = Canned(status=200, body=b"{}")
        gateway.provider.answers = lambda _request: answers
        async with gateway.http.post(f"{gateway.url}/openai/v1/responses", data=b'{"model": 7}') as response:
            assert response.status == status
        assert len(await gateway.events(ModelGatewayAsked)) == (unread == "pass")


async def test_a_count_of_tokens_is_judged_for_it_holds_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [{"id": "no", "effect": "deny", "tools": ["model.anthropic"], "reason": "no"}]
    for refused in (False, True):
        given = rules if refused else []
        count = same(Canned(status=200, body=b'{"input_tokens":7}'))
        async with world(count, monkeypatch, policy__rules=given) as gateway:
            path, body = QUESTIONS["messages"]
            async with gateway.http.post(f"{gateway.url}{path}/count_tokens", json=body) as response:
                assert response.status == (400 if refused else 200)
            assert len(gateway.provider.received) == (not refused)
            assert [event.token_count for event in await gateway.events(CommandCommitted)] == ([] if refused else [0])


async def test_a_list_of_models_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(same(Canned(status=200, body=b'{"data":[]}')), monkeypatch) as gateway:
        async with gateway.http.get(f"{gateway.url}/openai/models") as response:
            assert (response.status, await response.read()) == (200, b'{"data":[]}')
        assert gateway.provider.received[0].path == "/v1/models"
        assert await gateway.events(CommandStarted) == []
        [answered] = await gateway.events(ModelGatewayAnswered)
        assert answered.end == "complete"


async def test_a_request_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(speaks(), monkeypatch, model_gateway__request_bytes=50) as gateway:
        status, headers, _ = await gateway.ask("chat")
        assert (status, headers["x-remit-code"]) == (413, "REQUEST_TOO_LARGE")


async def test_a_conversation_is_recorded_by_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(speaks(), monkeypatch) as gateway:
        turns = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "call_7", "name": "probe", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_7", "content": "42"}]},
        ]
        path, body = QUESTIONS["messages"]
        for count in (1, 3):
            async with gateway.http.post(gateway.url + path, json={**body, "messages": turns[:count]}) as response:
                assert response.status == 200
        first, second = await gateway.events(ModelGatewayAsked)
        assert (second.base, second.first, second.last, len(second.segments)) == (first.step, 2, 1, 2)
        assert second.results == ("call_7",)
        assert [len(started.added) for started in await gateway.events(CommandStarted)] == [1, 2]
