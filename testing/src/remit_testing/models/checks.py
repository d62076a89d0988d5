"""The checks themselves; each is one promise of `remit.models.port.Model`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import msgspec

from remit.models.arguments import InvalidArgumentsError, arguments_of
from remit.models.faults import CutAnswer, ModelFault, Overloaded, Rejected, ServerFault, Timeout
from remit.models.message import Message, Text, ToolCall, ToolMessage, results, system, user
from remit.models.port import Model
from remit.models.prompt import Ask, Sampling, ToolSpec, toolset_of
from remit.models.reply import Delta, ModelReply, unwatched
from remit.models.thread import thread_of
from remit_testing.models.scene import Canned, Scene, SceneCall, Speech
from remit_testing.models.server import ModelServer, Response, Streamed
from remit_testing.suite import checks_in

PATIENCE_S: Final = 10.0
"""Seconds after which a model that does not come to an end has failed."""
KEY: Final = "sk-made-up-for-tests"

Factory = Callable[[str, float], Awaitable[Model]]
"""Makes a model that asks a server at this address, with the key `KEY`, and waits so many seconds for its next byte."""


class Subject(NamedTuple):
    """The subject of the checks."""

    new: Factory
    speech: Speech


Check = Callable[[Subject], Awaitable[None]]

PAY: Final = ToolSpec(
    name="bank__pay",
    description="Pay someone.",
    schema={
        "type": "object",
        "properties": {"to": {"type": "string"}, "amount": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["to", "amount"],
    },
)
ASK: Final = Ask(thread=thread_of([system("Be brief."), user("Pay Bob.")]), tools=toolset_of([PAY]), id="7")
ANSWER: Final = Scene(text=("Hello, ", "wörld", " ✓"))
CALLS: Final = Scene(
    text=("On it.",),
    calls=(SceneCall("bank__pay", '{"to":"bob","amount":100}'), SceneCall("bank__pay", '{"to":"eve","amount":7}')),
    stop="tools",
)


async def check_an_answer_arrives_whole(subject: Subject) -> None:
    """Text, reason, tokens, model and identifiers; the pieces that were watched make the same text."""
    deltas: list[Delta] = []
    reply = await _ask(subject, Streamed(events=subject.speech.events(ANSWER)), watch=deltas.append)
    assert reply.text == "Hello, wörld ✓"
    assert reply.stop == "answer"
    assert reply.usage == ANSWER.usage
    assert reply.usage_raw
    assert (reply.model, reply.request_id) == ("served-1", "req_1")
    assert reply.response_id
    assert "".join(delta.text for delta in deltas if delta.kind == "text") == reply.text
    assert reply.first_us is not None
    assert 0 <= reply.first_us <= reply.duration_us


async def check_parallel_calls_keep_their_order_and_get_our_identifiers(subject: Subject) -> None:
    """Calls of one answer, each with its own arguments."""
    reply = await _ask(subject, Streamed(events=subject.speech.events(CALLS)))
    assert reply.stop == "tools"
    assert [call.id for call in reply.calls] == ["7-0", "7-1"]
    calls = [(call.name, arguments_of(call.arguments)) for call in reply.calls]
    assert calls == [("bank__pay", {"to": "bob", "amount": 100}), ("bank__pay", {"to": "eve", "amount": 7})]
    assert reply.message.producer


async def check_a_stream_that_breaks_off_anywhere_gives_no_reply(subject: Subject) -> None:
    """Cut after each event, politely or by a reset: a fault until the answer is complete, then the reply."""
    speech, scene = subject.speech, CALLS
    events, complete = speech.events(scene), speech.complete_after(scene)
    for ends in ("eof", "reset", "well"):
        for count in range(len(events)):
            if count < complete:
                fault = await _fault(subject, Streamed(events=events[:count], ends=ends))
                assert isinstance(fault, CutAnswer), f"{ends} after {count} events is {fault!r}"
                assert (fault.retry, fault.billed) == ("now", "maybe")
            elif ends != "reset":  # a reset may overtake what was sent before it
                assert (await _ask(subject, Streamed(events=events[:count], ends=ends))).stop == "tools"


async def check_an_error_within_a_stream_is_a_fault(subject: Subject) -> None:
    """The provider says after HTTP 200 that it is overloaded."""
    events = [*subject.speech.events(ANSWER)[:2], subject.speech.error_event()]
    fault = await _fault(subject, Streamed(events=events))
    assert isinstance(fault, Overloaded), repr(fault)
    assert fault.retry == "at"


async def check_every_failure_is_told_apart(subject: Subject) -> None:
    """By its body if it says more than its status; with the time that the provider wants to be left alone."""
    for failing in subject.speech.failures():
        fault = await _fault(subject, failing.canned)
        assert type(fault) is failing.fault, f"{failing.canned} is {fault!r}"
        assert fault.after_s == failing.after_s, repr(failing.canned)
        assert fault.status == failing.canned.status


async def check_a_failure_without_a_body_goes_by_its_status(subject: Subject) -> None:
    """Proxies answer in their own words."""
    fault = await _fault(subject, Canned(status=502, body=b"<html>Bad Gateway</html>"))
    assert isinstance(fault, ServerFault)
    assert fault.retry == "now"


async def check_one_request_is_made_for_one_question(subject: Subject) -> None:
    """Nothing is asked again unseen."""
    async with _served(subject, Canned(status=500, body=b"{}")) as (model, server):
        for count in (1, 2):
            try:
                await model.send(model.prepare(ASK), unwatched)
            except ModelFault:
                assert len(server.received) == count
            else:
                raise AssertionError("HTTP 500 is not an answer")


async def check_calls_of_a_turn_that_ran_into_its_length_are_not_given(subject: Subject) -> None:
    """Even if the arguments happen to parse."""
    for arguments in ('{"to":"bob","amount":1}', '{"to":"bob","amount":1'):
        if subject.speech.whole_calls and not arguments.endswith("}"):
            continue
        scene = Scene(calls=(SceneCall("bank__pay", arguments),), stop="length")
        reply = await _ask(subject, Streamed(events=subject.speech.events(scene)))
        assert reply.stop == "length"
        assert reply.calls == ()


async def check_arguments_are_what_the_model_wrote(subject: Subject) -> None:
    """Nothing at all means none; whatever else is not JSON stays as it is and is refused."""
    reply = await _ask(subject, Streamed(events=subject.speech.events(_calling(""))))
    assert arguments_of(reply.calls[0].arguments) == {}
    if subject.speech.whole_calls:
        return
    for broken in ('{"to":"bob","amount":100,', '{"to":"bob"', "[1]", "null"):
        reply = await _ask(subject, Streamed(events=subject.speech.events(_calling(broken))))
        assert reply.calls[0].arguments == broken
        try:
            arguments_of(broken)
        except InvalidArgumentsError:
            continue
        raise AssertionError(f"{broken} counts as arguments")


async def check_unknown_events_and_comments_are_passed_over(subject: Subject) -> None:
    """Providers add kinds of events, and proxies keep streams alive with comments."""
    events = [item for event in subject.speech.events(CALLS) for item in (subject.speech.unknown_event(), event)]
    reply = await _ask(subject, Streamed(events=events, head=b": KEEP-ALIVE\n\n:\n"))
    assert (reply.text, len(reply.calls)) == ("On it.", 2)


async def check_large_events_arrive(subject: Subject) -> None:
    """An event of more than a mebibyte, which the last one of a response may be."""
    scene = Scene(text=("x" * 1_500_000,))
    assert len((await _ask(subject, Streamed(events=subject.speech.events(scene)))).text) == 1_500_000


async def check_any_cut_of_the_bytes_is_the_same_stream(subject: Subject) -> None:
    """Lines that end with CRLF, and bytes that come one by one, in the middle of a character too."""
    events = subject.speech.events(ANSWER)
    for newline in (b"\n", b"\r\n"):
        for chunk_bytes in (1, 7):
            reply = await _ask(subject, Streamed(events=events, newline=newline, chunk_bytes=chunk_bytes))
            assert reply.text == "Hello, wörld ✓"


async def check_nonsense_is_a_fault(subject: Subject) -> None:
    """Hold that what is not JSON, or no stream at all."""
    for response in (Streamed(events=[b"<html>"]), Canned(status=200, body=b"{}")):
        assert isinstance(await _fault(subject, response), ServerFault)


async def check_silence_ends(subject: Subject) -> None:
    """A stream on which nothing comes any more."""
    silent = Streamed(events=subject.speech.events(ANSWER)[:1], ends="never")
    fault = await _fault(subject, silent, patience_s=0.05)
    assert isinstance(fault, Timeout)


async def check_the_same_prompt_is_the_same_bytes(subject: Subject) -> None:
    """Hold that what was recorded as sent is what is sent, whenever it is asked."""
    async with _served(subject, Streamed(events=subject.speech.events(ANSWER))) as (model, server):
        first, second = model.prepare(ASK), model.prepare(ASK)
        assert (first.body, first.hash) == (second.body, second.hash)
        other = msgspec.structs.replace(ASK, sampling=Sampling(temperature=0.5))
        assert model.prepare(other).hash != first.hash
        await model.send(first, unwatched)
        assert server.received[0].raw == first.body


async def check_the_key_goes_into_a_header_only(subject: Subject) -> None:
    """It is neither in what is recorded nor sent to where a server redirects."""
    elsewhere = Canned(status=307, body=b"", headers={"location": "/elsewhere"})
    async with _served(subject, elsewhere) as (model, server):
        sending = model.prepare(ASK)
        assert KEY.encode() not in sending.body
        assert KEY not in sending.path + repr(model)
        try:
            await model.send(sending, unwatched)
        except Rejected:
            assert len(server.received) == 1
            assert any(KEY in value for value in server.received[0].headers.values())
        else:
            raise AssertionError("a redirection is not an answer")


async def check_every_call_is_sent_with_its_result(subject: Subject) -> None:
    """Calls of another provider, with repeated and missing identifiers, are paired under identifiers that fit."""
    first = Message(
        "assistant",
        (Text("Both."), ToolCall("1-0", "bank__pay", "{}", "call_1"), ToolCall("1-1", "bank__pay", "", "call_1")),
        "elsewhere/other",
    )
    second = Message("assistant", (ToolCall("2-0", "bank__pay", "not json", ""),), "elsewhere/other")
    history = [
        *(system("Be brief."), user("Pay them."), first),
        results(ToolMessage("1-0", "bank__pay", "paid"), ToolMessage("1-1", "bank__pay", "no", failed=True)),
        *(second, results(ToolMessage("2-0", "bank__pay", "invalid", failed=True)), user("And?")),
    ]
    ask = msgspec.structs.replace(ASK, thread=thread_of(history))
    async with _served(subject, Streamed(events=subject.speech.events(ANSWER))) as (model, server):
        await model.send(model.prepare(ask), unwatched)
        calls, answers = subject.speech.pairs(server.received[0].body)
    assert calls == answers
    assert len(calls) == 3
    assert all(calls)


async def check_cancellation_closes_the_connection(subject: Subject) -> None:
    """Nothing goes on at the provider for an answer that is not wanted any more."""
    started = asyncio.Event()
    events = subject.speech.events(ANSWER)[:-2] or subject.speech.events(ANSWER)[:1]
    async with _served(subject, Streamed(events=events, ends="never")) as (model, server):
        task = asyncio.create_task(model.send(model.prepare(ASK), lambda _: started.set()))
        async with asyncio.timeout(PATIENCE_S):
            await started.wait()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            await server.left.wait()


async def check_what_a_watcher_raises_is_not_the_models(subject: Subject) -> None:
    """A watcher cannot break the answer."""

    def broken(_delta: Delta) -> None:
        raise ValueError("the terminal is gone")

    reply = await _ask(subject, Streamed(events=subject.speech.events(ANSWER)), watch=broken)
    assert reply.text == "Hello, wörld ✓"


async def check_close_may_be_repeated(subject: Subject) -> None:
    """Before and after use."""
    async with _served(subject, Streamed(events=subject.speech.events(ANSWER))) as (model, _server):
        await model.send(model.prepare(ASK), unwatched)
        await model.close()
        await model.close()


MODEL_CHECKS: Final[tuple[Check, ...]] = checks_in(globals())
"""Every check, each for one promise of the port."""


def _calling(arguments: str) -> Scene:
    return Scene(calls=(SceneCall("bank__pay", arguments),), stop="tools")


@asynccontextmanager
async def _served(
    subject: Subject, response: Response, patience_s: float = PATIENCE_S
) -> AsyncIterator[tuple[Model, ModelServer]]:
    async with ModelServer(lambda _: response).listening() as server:
        model = await subject.new(server.url, patience_s)
        try:
            yield model, server
        finally:
            await model.close()


async def _ask(subject: Subject, response: Response, watch: Any = unwatched) -> ModelReply:
    async with _served(subject, response) as (model, _server), asyncio.timeout(PATIENCE_S):
        return await model.send(model.prepare(ASK), watch)


async def _fault(subject: Subject, response: Response, patience_s: float = PATIENCE_S) -> ModelFault:
    async with _served(subject, response, patience_s) as (model, _server), asyncio.timeout(PATIENCE_S):
        try:
            reply = await model.send(model.prepare(ASK), unwatched)
        except ModelFault as fault:
            return fault
    raise AssertionError(f"the model answered {reply!r}")
