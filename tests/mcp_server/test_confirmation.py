"""Calls that a person has to approve: at the client where it can ask, and anywhere else where it cannot."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest

from remit import tool
from remit.gateway.confirmation import Confirmation
from remit.journal.kinds import UntrustedArgument
from remit.mcp_server.question import QuestionForm
from remit.mcp_server.request import AskingTerms
from remit_testing.clock import ManualClock
from tests.cli.test_prompt import question
from tests.mcp_server.links import Link, code_of, facing, kinds, text_of
from tests.opened import OpenRemit


class Notes:
    """A tool that writes, and what it wrote."""

    def __init__(self) -> None:
        self.written: list[str] = []

        @tool("note.write")
        async def write(text: str) -> dict[str, int]:
            """Write a note."""
            self.written.append(text)
            return {"notes": len(self.written)}

        self.tool = write


@pytest.fixture
def notes() -> Notes:
    return Notes()


class Person:
    """Answers what it is asked, with what the test says."""

    def __init__(self, *answers: types.ElicitResult | types.ErrorData, reason: str = "") -> None:
        self.asked: list[str] = []
        self.reason = reason
        self._answers = list(answers)

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        assert isinstance(params, types.ElicitRequestFormParams)
        if "required" not in params.requested_schema:  # why it is denied
            return types.ElicitResult(action="accept", content={"reason": self.reason})
        assert params.requested_schema["required"] == ["decision"]
        self.asked.append(params.message)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def said(decision: str, **more: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"decision": decision, **more})


def outcome_of(result: types.CallToolResult) -> dict[str, Any]:
    assert result.meta is not None
    outcome: dict[str, Any] = result.meta["dev.remit/outcome"]
    return outcome


async def test_an_approved_call_runs_once_with_the_arguments_that_were_shown(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    person = Person(said("approve"))
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        link.connect(face, elicitation_callback=person) as client,
    ):
        result = await client.call_tool("note__write", {"text": "buy milk"})
        assert not result.is_error
        assert result.structured_content == {"notes": 1}
        assert "May note.write run with these arguments?" in person.asked[0]
        assert '"text": "buy milk"' in person.asked[0]
        again = await client.call_tool("note__write", {"text": "buy milk"})
        assert again.structured_content == {"notes": 2}
        assert len(person.asked) == 2  # an approval is for one call
        assert (await remit.service.streams.verify()).ok
    assert notes.written == ["buy milk", "buy milk"]


async def test_secrets_in_arguments_are_not_shown(remit_in: OpenRemit, link: Link, notes: Notes) -> None:
    person = Person(said("deny"))
    secret = "ghp_" + "a1B2c3D4" * 5
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        link.connect(face, elicitation_callback=person) as client,
    ):
        await client.call_tool("note__write", {"text": secret})
    assert secret not in person.asked[0]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (said("deny"), "tester refused note.write: not today"),
        (types.ElicitResult(action="decline"), "tester refused note.write: declined at the client"),
    ],
)
async def test_a_denied_call_does_not_run_and_says_why(
    remit_in: OpenRemit, link: Link, notes: Notes, answer: types.ElicitResult, reason: str
) -> None:
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, terms=AskingTerms(person_s=0)) as face,
        link.connect(face, elicitation_callback=Person(answer, reason="not today")) as client,
    ):
        refused = await client.call_tool("note__write", {"text": "x"})
        assert code_of(refused) == "CONFIRMATION_DENIED"
        assert reason in text_of(refused)
    assert notes.written == []


@pytest.mark.parametrize(
    "answer",
    [
        types.ElicitResult(action="cancel"),
        types.ElicitResult(action="accept", content={}),
        types.ElicitResult(action="accept", content={"decision": "perhaps"}),
    ],
)
async def test_a_question_that_is_put_off_stays_open_and_is_asked_again(
    remit_in: OpenRemit, link: Link, notes: Notes, answer: types.ElicitResult
) -> None:
    person = Person(answer, said("approve"))
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        link.connect(face, elicitation_callback=person) as client,
    ):
        first = await client.call_tool("note__write", {"text": "x"})
        assert code_of(first) == "CONFIRMATION_REQUIRED"
        assert notes.written == []
        (question,) = await remit.service.confirmations.pending()
        second = await client.call_tool("note__write", {"text": "x"})
        assert second.structured_content == {"notes": 1}
        assert (await kinds(remit)).count("confirmation_requested") == 1
    assert outcome_of(first)["confirmation"] == question.confirmation
    assert len(person.asked) == 2


async def test_a_client_that_cannot_ask_is_told_how_a_person_confirms_and_then_it_runs_once(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    async with remit_in(tools=[notes.tool]) as remit, facing(remit) as face, link.connect(face) as client:

        async def call() -> types.CallToolResult:
            return await client.call_tool("note__write", {"text": "x"})

        first = await call()
        assert code_of(first) == "CONFIRMATION_REQUIRED"
        identifier = outcome_of(first)["confirmation"]
        assert f"remit confirm {identifier}" in text_of(first)
        assert outcome_of(first)["status"] == "pending"
        assert outcome_of(await call())["confirmation"] == identifier  # still the same question
        async with remit_in() as elsewhere:  # another hold on the journal, as another process has
            await elsewhere.service.confirmations.decide(identifier, "approve", by="bob")
        assert (await call()).structured_content == {"notes": 1}
        third = await call()
        assert code_of(third) == "CONFIRMATION_REQUIRED"
        assert outcome_of(third)["confirmation"] != identifier
    assert notes.written == ["x"]


async def test_a_question_answered_elsewhere_before_it_is_put_is_put_to_nobody(
    remit_in: OpenRemit, link: Link, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(said("deny"))
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        link.connect(face, elicitation_callback=person) as client,
    ):
        confirmations, find = remit.runtime.services.confirmations, remit.runtime.services.confirmations.find

        async def answered_first(reference: str) -> Confirmation:
            monkeypatch.setattr(confirmations, "find", find)
            await remit.service.confirmations.decide(reference, "approve", by="bob")
            return await find(reference)

        monkeypatch.setattr(confirmations, "find", answered_first)
        assert (await client.call_tool("note__write", {"text": "x"})).structured_content == {"notes": 1}
    assert person.asked == []


async def test_a_denial_from_elsewhere_comes_back_with_its_reason_once(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    async with remit_in(tools=[notes.tool]) as remit, facing(remit) as face, link.connect(face) as client:
        first = await client.call_tool("note__write", {"text": "x"})
        await remit.service.confirmations.decide(outcome_of(first)["confirmation"], "deny", by="bob", reason="too loud")
        denied = await client.call_tool("note__write", {"text": "x"})
        assert code_of(denied) == "CONFIRMATION_DENIED"
        assert "bob refused note.write: too loud" in text_of(denied)
        assert code_of(await client.call_tool("note__write", {"text": "x"})) == "CONFIRMATION_REQUIRED"
    assert notes.written == []


async def test_other_arguments_are_another_question(remit_in: OpenRemit, link: Link, notes: Notes) -> None:
    async with remit_in(tools=[notes.tool]) as remit, facing(remit) as face, link.connect(face) as client:
        first = await client.call_tool("note__write", {"text": "x"})
        await remit.service.confirmations.decide(outcome_of(first)["confirmation"], "approve", by="bob")
        other = await client.call_tool("note__write", {"text": "y"})
        assert code_of(other) == "CONFIRMATION_REQUIRED"
        assert outcome_of(other)["confirmation"] != outcome_of(first)["confirmation"]
    assert notes.written == []


async def test_what_a_person_edited_is_what_runs(remit_in: OpenRemit, link: Link, notes: Notes) -> None:
    async with remit_in(tools=[notes.tool]) as remit, facing(remit) as face, link.connect(face) as client:
        first = await client.call_tool("note__write", {"text": "x"})
        edited = await remit.service.confirmations.edit(outcome_of(first)["confirmation"], {"text": "softer"}, by="bob")
        await remit.service.confirmations.decide(edited.confirmation, "approve", by="bob")
        assert not (await client.call_tool("note__write", {"text": "x"})).is_error
    assert notes.written == ["softer"]


async def test_nobody_answering_in_time_approves_nothing(remit_in: OpenRemit, link: Link, notes: Notes) -> None:
    clock = ManualClock()
    async with (
        remit_in(tools=[notes.tool], clock=clock, flags={"confirm.expires_seconds": 60}) as remit,
        facing(remit) as face,
        link.connect(face) as client,
    ):
        await client.call_tool("note__write", {"text": "x"})
        clock.advance(61)
        assert code_of(await client.call_tool("note__write", {"text": "x"})) == "CONFIRMATION_EXPIRED"
        assert code_of(await client.call_tool("note__write", {"text": "x"})) == "CONFIRMATION_REQUIRED"
    assert notes.written == []


@pytest.mark.parametrize(
    ("rule", "others"),
    [({"approvals": 2}, ["bob", "carol"]), ({"approvers": ["bob"]}, ["bob"])],
    ids=["two must approve", "only bob may"],
)
async def test_the_person_at_the_client_does_not_suffice_where_policy_wants_others(
    remit_in: OpenRemit, link: Link, notes: Notes, rule: dict[str, Any], others: list[str]
) -> None:
    rules = [{"effect": "ask", "tools": ["note.write"], **rule}]
    async with (
        remit_in(tools=[notes.tool], flags={"policy.rules": rules}) as remit,
        facing(remit) as face,
        link.connect(face, elicitation_callback=Person(said("approve"))) as client,
    ):
        first = await client.call_tool("note__write", {"text": "x"})
        assert code_of(first) == "CONFIRMATION_REQUIRED"
        assert notes.written == []
        for other in others:
            await remit.service.confirmations.decide(outcome_of(first)["confirmation"], "approve", by=other)
        assert (await client.call_tool("note__write", {"text": "x"})).structured_content == {"notes": 1}


async def test_identical_calls_at_once_each_run_on_an_approval_of_their_own(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    both = asyncio.Event()
    asked: list[str] = []

    async def person(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        """Answers nothing before both questions are there; approves the first and denies the second."""
        asked.append(params.message)
        mine = len(asked)
        if mine == 2:
            both.set()
        await both.wait()
        return said("approve" if mine == 1 else "deny")

    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        link.connect(face, elicitation_callback=person) as client,
    ):
        calls = [asyncio.create_task(client.call_tool("note__write", {"text": "x"})) for _ in range(2)]
        results = [await call for call in calls]
        assert sorted(result.is_error for result in results) == [False, True]
    assert notes.written == ["x"]


async def test_identical_calls_at_once_without_a_person_run_once_per_approval(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    async with remit_in(tools=[notes.tool]) as remit, facing(remit) as face, link.connect(face) as client:

        async def twice() -> list[types.CallToolResult]:
            calls = [asyncio.create_task(client.call_tool("note__write", {"text": "x"})) for _ in range(2)]
            return [await call for call in calls]

        asked = {outcome_of(each)["confirmation"] for each in await twice()}
        await remit.service.confirmations.decide(max(asked), "approve", by="bob")
        results = await twice()
        assert sorted(result.is_error for result in results) == [False, True]
        assert notes.written == ["x"]
        await twice()
    assert notes.written == ["x"]


async def test_an_approval_is_found_again_where_the_client_gave_up_while_it_was_asked(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    asked = asyncio.Event()
    quiet = True

    async def person(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.set()
        if quiet:
            await asyncio.Event().wait()
        return said("approve")

    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        link.connect(face, elicitation_callback=person) as client,
    ):
        call = asyncio.create_task(client.call_tool("note__write", {"text": "x"}))
        await asked.wait()
        call.cancel()
        await asyncio.wait([call])
        (question,) = await remit.service.confirmations.pending()
        quiet = False
        if link.modern:  # the request itself was answered with the question: nobody hears that the client gave up
            assert (await client.call_tool("note__write", {"text": "x"})).structured_content == {"notes": 1}
        else:
            await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
            assert (await client.call_tool("note__write", {"text": "x"})).structured_content == {"notes": 1}
    assert notes.written == ["x"]


def test_a_question_shows_the_text_that_nobody_trusts() -> None:
    one = UntrustedArgument(
        path="iban", role="iban", value="DE89", seen="untrusted", step="2", tool="mail.read",
        before="pay to ", span="DE89", after=" now\n\n# May I?",
    )  # fmt: skip
    message = QuestionForm.of(question(untrusted=(one,))).params["message"]
    assert "iban (iban) comes from mail.read, step 2, which is not trusted" in message
    assert "…pay to »DE89« now  # May I?…\n\nThe tool is note.write." in message
