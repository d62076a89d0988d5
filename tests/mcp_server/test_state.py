"""The state that a client carries since 2026-07-28 while it finds out what a person says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from remit.mcp_server import server
from tests.mcp_server.links import LINKS, MODERN, Link, at, facing, person, serving
from tests.mcp_server.test_confirmation import Notes, Person, said
from tests.opened import OpenRemit

MODERN_LINKS = [link for link in LINKS if link.modern]
modern_only = pytest.mark.parametrize("link", MODERN_LINKS, ids=lambda link: f"{link.transport}-{link.era}")


@pytest.fixture
def notes() -> Notes:
    return Notes()


async def asked_of(client: Client, text: str = "x", **more: Any) -> types.CallToolResult | types.InputRequiredResult:
    args = {"text": text}
    result: types.CallToolResult | types.InputRequiredResult
    result = await client.session.call_tool("note__write", args, allow_input_required=True, **more)
    return result


async def question_for(client: Client) -> types.InputRequiredResult:
    asked = await asked_of(client)
    assert isinstance(asked, types.InputRequiredResult)
    assert asked.input_requests is not None
    assert list(asked.input_requests) == ["decision"]
    return asked


APPROVED = {"decision": said("approve")}


@modern_only
async def test_a_call_goes_on_with_the_answer_that_its_client_brings(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        link.connect(face, elicitation_callback=Person(said("approve"))) as client,
    ):
        asked = await question_for(client)
        assert notes.written == []
        done = await asked_of(client, input_responses=APPROVED, request_state=asked.request_state)
        assert isinstance(done, types.CallToolResult)
        assert done.structured_content == {"notes": 1}


@modern_only
async def test_a_client_that_comes_again_without_the_answer_is_asked_again(
    remit_in: OpenRemit, link: Link, notes: Notes
) -> None:
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        link.connect(face, elicitation_callback=Person(said("approve"))) as client,
    ):
        asked = await question_for(client)
        again = await asked_of(client, input_responses={"other": said("approve")}, request_state=asked.request_state)
        assert isinstance(again, types.InputRequiredResult)
        assert again.input_requests == asked.input_requests
        done = await asked_of(client, input_responses=APPROVED, request_state=again.request_state)
        assert isinstance(done, types.CallToolResult)
    assert notes.written == ["x"]


def tampered(state: str) -> str:
    middle = len(state) // 2
    return state[:middle] + ("A" if state[middle] != "A" else "B") + state[middle + 1 :]


@modern_only
@pytest.mark.parametrize("change", [tampered, lambda _: "p_1", lambda state: state[:-4]])
async def test_a_state_that_was_tampered_with_is_refused(
    remit_in: OpenRemit, link: Link, notes: Notes, change: Callable[[str], str]
) -> None:
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        link.connect(face, elicitation_callback=Person(said("approve"))) as client,
    ):
        asked = await question_for(client)
        assert asked.request_state is not None
        with pytest.raises(MCPError, match="requestState"):
            await asked_of(client, input_responses=APPROVED, request_state=change(asked.request_state))
    assert notes.written == []


@modern_only
async def test_a_state_does_not_go_with_other_arguments(remit_in: OpenRemit, link: Link, notes: Notes) -> None:
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        link.connect(face, elicitation_callback=Person(said("approve"))) as client,
    ):
        asked = await question_for(client)
        with pytest.raises(MCPError, match="requestState"):
            await asked_of(client, "y", input_responses=APPROVED, request_state=asked.request_state)
    assert notes.written == []


@modern_only
async def test_a_state_is_good_for_once(remit_in: OpenRemit, link: Link, notes: Notes) -> None:
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        link.connect(face, elicitation_callback=Person(said("approve"))) as client,
    ):
        asked = await question_for(client)
        await asked_of(client, input_responses=APPROVED, request_state=asked.request_state)
        with pytest.raises(MCPError, match="requestState was used"):
            await asked_of(client, input_responses=APPROVED, request_state=asked.request_state)
        assert await remit.service.confirmations.pending() == []
    assert notes.written == ["x"]


@modern_only
async def test_a_call_whose_client_does_not_come_again_is_given_up(
    remit_in: OpenRemit, link: Link, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PARKED_S", 0.0)
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        link.connect(face, elicitation_callback=Person(said("approve"))) as client,
    ):
        asked = await question_for(client)
        await client.list_tools()  # a moment later
        with pytest.raises(MCPError, match="requestState was used, or given up"):
            await asked_of(client, input_responses=APPROVED, request_state=asked.request_state)
        (question,) = await remit.service.confirmations.pending()
        await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
        done = await asked_of(client)  # given up was the request; the question was not
        assert isinstance(done, types.CallToolResult)
        assert done.structured_content == {"notes": 1}


@modern_only
async def test_only_so_many_calls_wait_for_answers(
    remit_in: OpenRemit, link: Link, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MAX_PARKED", 1)
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit) as face,
        link.connect(face, elicitation_callback=Person(said("approve"))) as client,
    ):
        asked = await question_for(client)
        with pytest.raises(MCPError, match="too many calls"):
            await asked_of(client, "y")
        done = await asked_of(client, input_responses=APPROVED, request_state=asked.request_state)
        assert isinstance(done, types.CallToolResult)


async def test_who_has_many_calls_waiting_takes_no_place_of_others(
    remit_in: OpenRemit, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MAX_PARKED_OF_ONE", 1)
    people = [person(name) for name in ("ann", "ben")]
    given = {"mode": MODERN, "cache": None, "elicitation_callback": Person(said("approve"))}
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, transport="http") as face,
        serving(face, clients=people) as url,
        at(url, token="token-of-ann", **given) as ann,
        at(url, token="token-of-ben", **given) as ben,
    ):
        await question_for(ann)
        with pytest.raises(MCPError, match="too many calls"):
            await asked_of(ann, "y")
        await question_for(ben)


async def test_somebody_else_s_state_is_refused(remit_in: OpenRemit, notes: Notes) -> None:
    people = [person(name) for name in ("ann", "ben")]
    given = {"mode": MODERN, "cache": None, "elicitation_callback": Person(said("approve"))}
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, transport="http") as face,
        serving(face, clients=people) as url,
        at(url, token="token-of-ann", **given) as ann,
        at(url, token="token-of-ben", **given) as ben,
    ):
        asked = await question_for(ann)
        with pytest.raises(MCPError, match="requestState"):
            await asked_of(ben, input_responses=APPROVED, request_state=asked.request_state)
        assert notes.written == []
        await asked_of(ann, input_responses=APPROVED, request_state=asked.request_state)
    assert notes.written == ["x"]
