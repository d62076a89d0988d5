"""A client's dialog: who answered it, where else the question was answered, and a call that does not wait for it."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest

from remit import Remit, tool
from remit.http.access import OPERATOR, SCOPES, Access
from remit.journal.event import HeadQuery
from remit.journal.kinds import ConfirmationPutOff, decode
from remit.mcp_server import calls
from remit.mcp_server.request import AskingTerms
from tests.mcp_server.links import Link, code_of, facing, text_of
from tests.mcp_server.test_confirmation import Notes, Person, outcome_of, said
from tests.opened import OpenRemit
from tests.patience import PATIENCE_S

DECLINED = types.ElicitResult(action="decline")
A_DAY_S = 86_400.0
LEGACY = Link("lines", "legacy")


@pytest.fixture
def notes() -> Notes:
    return Notes()


class Slow:
    """A person who answers once the test lets them."""

    def __init__(self, *answers: types.ElicitResult) -> None:
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()
        self.times = 0
        self.closed = asyncio.Event()
        self._answers = list(answers)

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.times += 1
        self.asked.set()
        try:
            await self.answers.wait()
        except BaseException:
            self.closed.set()
            raise
        return self._answers.pop(0)


async def put_off(remit: Remit) -> list[ConfirmationPutOff]:
    """What the record says of answers that decided nothing."""
    journal = remit.runtime.journal
    heads = await journal.heads(HeadQuery(kind="confirmation", limit=100))
    read = [decode(event.kind, event.data) for head in heads for event in await journal.read(head.stream)]
    return [event for event in read if isinstance(event, ConfirmationPutOff)]


# --- a program's answer is not a person's


async def test_a_program_that_declines_by_itself_leaves_the_question_open(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, terms=AskingTerms(person_s=A_DAY_S)) as face,
        link.connect(face, elicitation_callback=Person(DECLINED)) as client,
    ):
        waits = await client.call_tool("note__write", {"text": "x"})
        assert code_of(waits) == "CONFIRMATION_REQUIRED"
        (question,) = await remit.service.confirmations.pending()
        (answer,) = await put_off(remit)
        assert (answer.answer, answer.by_program, answer.client) == ("decline", True, "mcp")
        record = await remit.service.confirmations.answers(question.confirmation)
        assert record.decisions == ()
        assert "declined by itself" in record.put_off[0].words
        await remit.service.confirmations.decide(question.confirmation, "approve", by="ann")
        assert (await client.call_tool("note__write", {"text": "x"})).structured_content == {"notes": 1}
        assert (await remit.service.streams.verify()).ok
    assert notes.written == ["x"]


async def test_a_program_that_says_that_nobody_is_there_declines_by_itself_however_long_it_takes(
    remit_in: OpenRemit, notes: Notes
) -> None:
    meta: Any = {"x-codex-turn-metadata": '{"turn_trigger": "exec"}'}
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, terms=AskingTerms(person_s=0)) as face,
        LEGACY.connect(face, elicitation_callback=Person(DECLINED)) as client,
    ):
        assert code_of(await client.call_tool("note__write", {"text": "x"}, meta=meta)) == "CONFIRMATION_REQUIRED"
        assert code_of(await client.call_tool("note__write", {"text": "x"})) == "CONFIRMATION_DENIED"
    assert notes.written == []


async def test_a_dialog_that_was_closed_is_recorded_with_the_time_it_took(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, terms=AskingTerms(person_s=0)) as face,
        link.connect(face, elicitation_callback=Person(types.ElicitResult(action="cancel"))) as client,
    ):
        await client.call_tool("note__write", {"text": "x"})
        (answer,) = await put_off(remit)
    assert (answer.answer, answer.by_program) == ("cancel", False)
    assert answer.after_ms >= 0


# --- where people are asked


async def test_nobody_is_asked_at_the_client_where_only_the_terminal_is_meant(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    person = Person(said("approve"))
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, terms=AskingTerms(ask="terminal")) as face,
        link.connect(face, elicitation_callback=person) as client,
    ):
        assert code_of(await client.call_tool("note__write", {"text": "x"})) == "CONFIRMATION_REQUIRED"
    assert person.asked == []


@pytest.mark.parametrize("transport", ["lines", "http"])
async def test_an_answer_from_elsewhere_counts_and_closes_the_dialog(
    remit_in: OpenRemit, notes: Notes, transport: str
) -> None:
    person = Slow(said("deny"))
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        Link(transport, "legacy").connect(face, elicitation_callback=person) as client,
        asyncio.timeout(PATIENCE_S),
    ):
        call = asyncio.create_task(client.call_tool("note__write", {"text": "x"}))
        await person.asked.wait()
        (question,) = await remit.service.confirmations.pending()
        await remit.service.confirmations.decide(question.confirmation, "approve", by="ann")
        assert (await call).structured_content == {"notes": 1}
        await person.closed.wait()
    assert notes.written == ["x"]


async def test_with_the_client_alone_its_dialog_stays_open(remit_in: OpenRemit, notes: Notes) -> None:
    person = Slow(said("approve"))
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, terms=AskingTerms(ask="client")) as face,
        LEGACY.connect(face, elicitation_callback=person) as client,
        asyncio.timeout(PATIENCE_S),
    ):
        call = asyncio.create_task(client.call_tool("note__write", {"text": "x"}))
        await person.asked.wait()
        (question,) = await remit.service.confirmations.pending()
        await remit.service.confirmations.decide(question.confirmation, "deny", by="ann", reason="no")
        person.answers.set()
        assert code_of(await call) == "CONFIRMATION_DENIED"
        assert not person.closed.is_set()


# --- while a person decides


@pytest.mark.parametrize("transport", ["lines", "http"])
async def test_a_late_answer_in_the_dialog_counts_and_the_same_call_meets_the_same_dialog(
    remit_in: OpenRemit, notes: Notes, transport: str
) -> None:
    person = Slow(said("approve"))
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, terms=AskingTerms(patience_s=0.05)) as face,
        Link(transport, "legacy").connect(face, elicitation_callback=person) as client,
        asyncio.timeout(PATIENCE_S),
    ):
        waits = [await client.call_tool("note__write", {"text": "x"}) for _ in range(2)]
        assert {code_of(each) for each in waits} == {"CONFIRMATION_REQUIRED"}
        (question,) = await remit.service.confirmations.pending()
        assert {outcome_of(each)["confirmation"] for each in waits} == {question.confirmation}
        assert person.times == 1
        person.answers.set()
        await remit.service.confirmations.decided(question.confirmation)
        assert (await client.call_tool("note__write", {"text": "x"})).structured_content == {"notes": 1}
        assert (await remit.service.confirmations.view(question.confirmation)).approved_by == ("tester",)
    assert notes.written == ["x"]


async def test_a_client_that_wants_progress_hears_what_the_call_waits_for(
    remit_in: OpenRemit, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "TELL_S", 0.01)
    person = Slow(said("approve"))
    heard: list[tuple[float, str | None]] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))
        if len(heard) == 3:
            person.answers.set()

    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        LEGACY.connect(face, elicitation_callback=person) as client,
        asyncio.timeout(PATIENCE_S),
    ):
        result = await client.call_tool("note__write", {"text": "x"}, progress_callback=progressed)
        assert result.structured_content == {"notes": 1}
    steps = [done for done, _ in heard]
    assert steps == sorted(set(steps))  # the protocol wants each to be more than the last
    assert all(message is not None and message.startswith("waits for tester, c_") for _, message in heard)


# --- waiting is not failing


@tool("note.send")
async def send(text: str) -> str:
    """Send a note."""
    return text


@pytest.mark.parametrize("waiting", ["error", "result"])
async def test_a_call_that_waits_is_an_error_or_a_result(remit_in: OpenRemit, link: Link, waiting: str) -> None:
    async with (
        remit_in(tools=[send]) as remit,
        facing(remit, terms=AskingTerms(waiting=waiting)) as face,
        link.connect(face) as client,
    ):
        waits = await client.call_tool("note__send", {"text": "x"})
        assert waits.is_error is (waiting == "error")
        assert outcome_of(waits)["status"] == "pending"
        assert "Do something else meanwhile" in text_of(waits)


async def test_a_tool_with_an_output_schema_waits_with_an_error_since_clients_check_results(
    remit_in: OpenRemit, notes: Notes
) -> None:
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, terms=AskingTerms(waiting="result")) as face,
        LEGACY.connect(face) as client,
    ):
        waits = await client.call_tool("note__write", {"text": "x"})
        assert waits.is_error


# --- approvals that last


@pytest.mark.parametrize("choice", ["approve for this session", "approve for 8 hours"])
async def test_a_longer_approval_lets_the_next_calls_run_unasked(
    remit_in: OpenRemit, link: Link, notes: Notes, choice: str
) -> None:
    person = Person(said(choice))
    async with remit_in(tools=[notes.tool]) as remit, facing(remit) as face:
        async with link.connect(face, elicitation_callback=person) as client:
            for text in ("x", "y"):
                assert not (await client.call_tool("note__write", {"text": text})).is_error
        assert len(person.asked) == 1
        (rule,) = await remit.service.approvals.active()
        assert rule.made_by == ("tester",)
        assert rule.args_digest is None
        assert rule.scope == ("session" if "session" in choice else "everything")
    assert notes.written == ["x", "y"]


async def test_an_approval_for_the_session_is_not_offered_in_another_one(remit_in: OpenRemit, notes: Notes) -> None:
    schemas: list[dict[str, Any]] = []

    async def person(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        schemas.append(params.requested_schema)
        return types.ElicitResult(action="cancel")

    async with remit_in(tools=[notes.tool]) as remit:
        for _ in range(2):
            async with facing(remit) as face, LEGACY.connect(face, elicitation_callback=person) as client:
                await client.call_tool("note__write", {"text": "x"})
    offered = [schema["properties"]["decision"]["enum"] for schema in schemas]
    assert offered == [
        ["approve", "approve for this session", "approve for 8 hours", "deny"],
        ["approve", "approve for 8 hours", "deny"],
    ]


def test_the_terms_of_a_client_are_those_of_its_table_then_ours() -> None:
    ours = AskingTerms(patience_s=50, patience_is_ours=True)
    assert ours.of(OPERATOR, "some-client").patience_s == 50
    assert ours.of(OPERATOR, "codex-mcp-client").patience_s is None
    assert ours._replace(patience_is_ours=False).of(OPERATOR, "codex-mcp-client").patience_s == 50
    own = Access("ci", SCOPES, ask="terminal", patience=7, waiting="result")
    told = ours.of(own, "codex-mcp-client")
    assert (told.ask, told.patience_s, told.waiting) == ("terminal", 7, "result")
    assert ours.of(Access("ci", SCOPES, patience=0), "x").patience_s is None


# --- the console


async def test_a_dialog_links_to_the_question_in_the_console_where_the_client_opens_pages(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    person = Person(said("approve"))
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, terms=AskingTerms(console="https://remit.example")) as face,
        link.connect(face, elicitation_callback=person) as client,
    ):
        await client.call_tool("note__write", {"text": "x"})
    assert "The question in the console: https://remit.example/inbox/c_" in person.asked[0]


async def test_a_call_that_cannot_be_approved_in_the_dialog_leads_to_the_console(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    opened: list[str] = []
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, terms=AskingTerms(console="https://r.example")) as face,
    ):

        async def open_page(context: Any, params: Any) -> types.ElicitResult:
            assert isinstance(params, types.ElicitRequestURLParams)
            opened.append(params.url)
            (question,) = await remit.service.confirmations.pending()
            assert params.url.endswith(question.confirmation)
            await remit.service.confirmations.decide(question.confirmation, "approve", by="ann")
            return types.ElicitResult(action="accept")

        async with link.connect(face, elicitation_callback=open_page) as client:
            result = await client.call_tool("note__write", {"text": "ghp_" + "a1B2c3D4" * 5})
    assert not result.is_error
    assert (len(opened), len(notes.written)) == (1, 1)


async def test_a_page_that_the_person_does_not_open_leaves_the_question_open(remit_in: OpenRemit, notes: Notes) -> None:
    async def closed(context: Any, params: Any) -> types.ElicitResult:
        return DECLINED

    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, terms=AskingTerms(console="https://r.example", person_s=0)) as face,
        LEGACY.connect(face, elicitation_callback=closed) as client,
    ):
        waits = await client.call_tool("note__write", {"text": "ghp_" + "a1B2c3D4" * 5})
        assert code_of(waits) == "CONFIRMATION_REQUIRED"
        assert len(await remit.service.confirmations.pending()) == 1
    assert notes.written == []
