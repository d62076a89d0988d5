"""MCP clients that an issuer's tokens let in: what they find out first, and what the record says of who came."""

from __future__ import annotations

from typing import Any

import httpx2

from remit.clock import SECOND
from remit.http.access import Access
from remit.http.grants import Grant
from remit.http.guard import LOOPBACK, Guard
from remit.http.issuers import Issuers
from remit.http.router import PartMount, Router
from remit.journal.kinds import SessionOpened
from remit.mcp_server.card import resource_mounts
from remit.mcp_server.endpoint import Endpoint
from remit.mcp_server.request import PATH
from remit_testing.clock import ManualClock
from tests.http.issuer import AUDIENCE, NOW_S, Issuer
from tests.mcp_server.links import facing, sessions
from tests.opened import OpenRemit

HERE = "http://127.0.0.1"
ASK = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}},
}
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "fs__list", "arguments": {"path": "."}}}


async def test_a_client_finds_its_issuer_and_the_record_says_whose_token_came(remit_in: OpenRemit) -> None:
    async with Issuer() as issuer, remit_in() as remit, facing(remit, transport="http") as face:
        grant = Grant(
            issuer=issuer.url, audience=(AUDIENCE,), claims={}, access=Access("okta:{sub}", frozenset({"call"}))
        )
        guard = Guard(LOOPBACK, [], ManualClock(NOW_S * SECOND), Issuers([grant], ManualClock(NOW_S * SECOND)))
        app = Router(guard, [PartMount(PATH, Endpoint(face), "call"), *resource_mounts(guard.issuers)])
        transport = httpx2.ASGITransport(app)
        async with app.running(), httpx2.AsyncClient(transport=transport, base_url=HERE, headers=ASK) as client:
            refused = await client.post(PATH, json=HELLO)
            assert refused.status_code == 401
            place = refused.headers["www-authenticate"].partition('resource_metadata="')[2].rstrip('"')
            for url in (place, f"{place}{PATH}"):
                told: dict[str, Any] = (await client.get(url)).json()
                assert told["resource"] == f"{HERE}{PATH}"
                assert told["authorization_servers"] == [issuer.url]
            assert (await client.get(f"{place}/other")).status_code == 404

            async def ask(message: dict[str, Any], token: str, session: str = "") -> httpx2.Response:
                headers = {"authorization": f"Bearer {token}", **({"mcp-session-id": session} if session else {})}
                return await client.post(PATH, json=message, headers=headers)

            ann, ben = issuer.token(sub="ann"), issuer.token(sub="ben")
            begun = await ask(HELLO, ann)
            session = begun.headers["mcp-session-id"]
            assert (await ask(CALL, ann, session)).status_code == 200
            assert (await ask(CALL, ben, session)).status_code == 404, "a session is its principal's"
            assert (await ask(HELLO, issuer.token(aud="https://other.example"))).status_code == 401
        recorded = await sessions(remit)
    (events,) = recorded.values()
    opened = events[0]
    assert isinstance(opened, SessionOpened)
    assert opened.principal == "okta:ann"
    assert (opened.token_issuer, opened.token_subject, opened.token_key) == (issuer.url, "ann", "rsa")
    assert not any(part in str(recorded) for part in ann.split(".")), "the token itself is nowhere"
