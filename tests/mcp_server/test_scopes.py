"""What a client's token allows, on top of what policy allows its principal."""

from __future__ import annotations

import httpx2
import pytest

from remit.http.access import Access, Scope
from remit.http.guard import Token, digest_of
from tests.mcp_server.links import MODERN, at, code_of, facing, kinds, serving, text_of
from tests.mcp_server.test_confirmation import Notes, Person, said
from tests.mcp_server.test_listing import echo, names
from tests.opened import OpenRemit

ERAS = pytest.mark.parametrize("era", ["legacy", MODERN])


def token(*scopes: Scope, tools: tuple[str, ...] = ()) -> Token:
    return Token(digest_of("hunter2"), Access("ann", frozenset(scopes), tools))


async def test_a_token_that_may_not_call_cannot_connect(remit_in: OpenRemit) -> None:
    async with (
        remit_in() as remit,
        facing(remit) as face,
        serving(face, clients=[token("read", "decide")]) as url,
        httpx2.AsyncClient() as bare,
    ):
        answer = await bare.post(url, json={}, headers={"authorization": "Bearer hunter2"})
    assert answer.status_code == 403
    assert answer.json()["error_code"] == "SCOPE_REQUIRED"


@ERAS
@pytest.mark.parametrize("scopes", [("call",), ("call", "decide"), ("admin",)])
async def test_a_client_that_may_not_decide_is_not_asked_about_its_own_call(
    remit_in: OpenRemit, era: str, scopes: tuple[Scope, ...]
) -> None:  # s07/B10: a program would answer as well
    notes, person = Notes(), Person(said("approve"))
    async with (
        remit_in(tools=[notes.tool]) as remit,
        facing(remit, transport="http") as face,
        serving(face, clients=[token(*scopes)]) as url,
        at(url, token="hunter2", mode=era, elicitation_callback=person) as client,
    ):
        assert code_of(await client.call_tool("note__write", {"text": "x"})) == "CONFIRMATION_REQUIRED"
        (question,) = await remit.service.confirmations.pending()
        await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
        assert not (await client.call_tool("note__write", {"text": "x"})).is_error
    assert person.asked == []
    assert notes.written == ["x"]


@ERAS
async def test_a_token_for_some_tools_sees_and_calls_no_others(remit_in: OpenRemit, era: str) -> None:
    notes = Notes()
    async with (
        remit_in(tools=[echo, notes.tool]) as remit,
        facing(remit, transport="http") as face,
        serving(face, clients=[token("call", tools=("text.*",))]) as url,
        at(url, token="hunter2", mode=era, cache=None) as client,
    ):
        assert await names(client) == ["text__echo"]
        assert text_of(await client.call_tool("text__echo", {"text": "hi"})) == "hi"
        for other in ("note__write", "note.write", "note_write"):
            assert code_of(await client.call_tool(other, {"text": "x"})) == "POLICY_DENIED"
        assert (await kinds(remit)).count("gate_refused") == 3
    assert notes.written == []
