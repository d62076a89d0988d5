"""A link in a message opens its question once a person has logged in, and answers nothing by itself."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlsplit

from remit import Remit, Run, recipe, tool
from remit.parts.notify.occasion import read_occasion
from remit.parts.notify.sender import message_of
from remit_testing.clock import ManualClock
from tests.opened import until_waiting
from tests.parts.login.conftest import Idp, people_of, serving_people


@tool("pay.wire", level="L1")
async def wire(amount: int) -> int:
    """Pay."""
    return amount


@recipe("pays")
async def pays(run: Run) -> int:
    """Pay once someone says so."""
    return int((await run.call("pay.wire", {"amount": 5})).value)


async def test_it_leads_through_the_login_to_the_question_and_answers_nothing(idp: Idp, clock: ManualClock) -> None:
    rules = [{"id": "wires", "tools": ["pay.*"], "effect": "ask", "approvers": ["@idp:payments"]}]
    async with (
        Remit(":memory:", clock=clock, tools=[wire], recipes=[pays], policy=rules) as remit,
        serving_people(remit, people_of(remit, idp)) as person,
    ):
        await until_waiting(remit, (await remit.start(pays())).id)
        (question,) = await remit.service.confirmations.pending()
        stream = f"{question.caller}/confirmation/{question.confirmation}"
        occasion = await read_occasion(remit.runtime.journal, stream, 1)
        assert occasion is not None
        link = urlsplit(message_of("n_1", occasion, details=True, console="https://remit.example").url).path
        stranger = await person.get(link)
        assert "pay.wire" not in stranger.text
        page = await person.get(stranger.headers["location"]) if stranger.status == HTTPStatus.SEE_OTHER else stranger
        assert f"to={link}" in page.text.replace("%2F", "/"), "the login leads back"
        asked = await person.begin(link)
        idp.nonce = asked["nonce"]
        status, headers, _ = await person.back(idp, asked["state"])
        assert (status, headers["location"]) == (HTTPStatus.SEE_OTHER, link)
        assert "pay.wire" in (await person.get(link)).text
        for answer in ("approve", "deny"):
            await person.get(f"{link}/{answer}")
            await person.get(f"{link}?decision={answer}")
        assert (await remit.service.confirmations.view(question.confirmation)).state == "pending"
