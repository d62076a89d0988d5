"""Lists with conditions, plans that are checked, and MCP servers over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from remit import Remit, Run, recipe, tool
from remit.client.remote import RemoteRemit
from remit.gateway.confirmation import Confirmation
from remit.gateway.confirmations import Confirmations
from remit.journal.event import StreamHead
from tests.api.conftest import Client, Served, bearer, token
from tests.opened import OpenRemit, until_waiting
from tests.service.test_mcp import READ, Far


@recipe("greet")
async def greet(_run: Run, name: str) -> str:
    """Greet."""
    return f"Hello {name}"


@recipe("asks")
async def asks(run: Run, text: str) -> str:
    """Write, with approval."""
    return str((await run.call("desk.write", {"text": text})).value)


@tool("desk.write", level="L1")
def write(text: str) -> str:
    """Write something."""
    return text


@pytest.fixture
def far() -> Far:
    return Far(READ)


@pytest.fixture
async def remit(remit_in: OpenRemit, far: Far) -> AsyncIterator[Remit]:
    async with remit_in(recipes=[greet, asks], tools=[write], providers=[far]) as one:
        yield one


ADMIN = {"headers": bearer("ann")}
BOB = {"headers": bearer("bob")}


@pytest.fixture
async def client(remit: Remit, served: Served) -> AsyncIterator[Client]:
    async with served(remit, [token("ann", "admin"), token("bob", "read", "call")]) as one:
        yield one


async def started(client: Client, who: dict[str, Any], title: str, **body: Any) -> dict[str, Any]:
    """A job that has come to rest."""
    given = {"recipe": "greet", "input": {"name": "x"}, "title": title, **body}
    found: dict[str, Any] = (await client.post("/v1/jobs?wait=60", given, **who)).json
    return found


async def titles(client: Client, query: str) -> list[str]:
    """The titles that a list shows, newest first, from all its pages."""
    found: list[str] = []
    page = (await client.get(f"/v1/jobs?{query}", **ADMIN)).json
    found += [one["title"] for one in page["items"]]
    while page["next"] is not None:
        page = (await client.get(f"/v1/jobs?{query}&before={page['next']}", **ADMIN)).json
        found += [one["title"] for one in page["items"]]
    return found


async def test_jobs_are_listed_by_time_words_and_who_asked(client: Client) -> None:
    jobs = [await started(client, who, title) for who, title in ((ADMIN, "Red"), (BOB, "Green"), (ADMIN, "Redder"))]
    assert await titles(client, "text=RED") == ["Redder", "Red"]
    assert await titles(client, "text=nothing") == []
    assert await titles(client, f"text={jobs[1]['job']}") == ["Green"]
    assert await titles(client, "principal=bob") == ["Green"]
    assert await titles(client, "principal=ann&text=redd") == ["Redder"]
    assert await titles(client, f"since={jobs[1]['created_at']}") == ["Redder", "Green"]
    assert await titles(client, f"until={jobs[1]['created_at']}") == ["Red"]
    assert await titles(client, "limit=1") == ["Redder", "Green", "Red"]
    assert await titles(client, "limit=1&principal=ann") == ["Redder", "Red"]
    assert (await client.get("/v1/jobs?since=yesterday", **ADMIN)).status == 400


async def test_jobs_are_listed_by_the_size_of_a_label_and_as_a_table(client: Client) -> None:
    jobs = [await started(client, ADMIN, str(size), labels={"size": str(size)}) for size in (9, 10, 11)]
    assert await titles(client, "label=size%3E9&label=size%3C11") == ["10"]
    assert await titles(client, "label=size%3C%3D10") == ["10", "9"]
    assert (await client.get("/v1/jobs?label=size%3Ebig", **ADMIN)).status == 400
    answer = await client.get("/v1/jobs.csv?label=size%3E9", **ADMIN)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    header, *lines = answer.body.decode().splitlines()
    assert header.split(",")[-1] == "label.size"
    assert [line.split(",")[0] for line in lines] == [jobs[2]["job"], jobs[1]["job"]]


async def test_questions_are_listed_by_what_came_of_them(client: Client) -> None:
    jobs = [await started(client, who, "t", recipe="asks", input={"text": "x"}) for who in (ADMIN, BOB)]
    (of_bob,) = (await client.get("/v1/confirmations?principal=bob", **ADMIN)).json
    assert of_bob["caller"] == f"job/{jobs[1]['job']}"
    assert len((await client.get("/v1/confirmations?tool=desk.write", **ADMIN)).json) == 2
    assert (await client.get("/v1/confirmations?tool=desk.look", **ADMIN)).json == []
    assert len((await client.get("/v1/confirmations?recipe=asks", **ADMIN)).json) == 2
    assert (await client.get("/v1/confirmations?label=team%3Da", **ADMIN)).json == []
    assert (await client.get("/v1/confirmations?state=answered", **ADMIN)).json == []
    answer = {"digest": of_bob["digest"]}
    await client.post(f"/v1/confirmations/{of_bob['confirmation']}/deny", answer, **ADMIN)
    (denied,) = (await client.get("/v1/confirmations?state=answered", **ADMIN)).json
    assert (denied["confirmation"], denied["state"]) == (of_bob["confirmation"], "denied")
    assert (await client.get(f"/v1/confirmations?state=answered&job={jobs[0]['job']}", **ADMIN)).json == []


async def test_a_plan_is_checked_without_being_started(client: Client) -> None:
    plan = {"version": "taskgraph-v1", "name": "p", "nodes": [{"id": "w", "tool": "desk.write", "args": {"text": "x"}}]}
    good = (await client.post("/v1/plans/check", {"plan": plan}, **BOB)).json
    assert (good["ok"], good["problems"]) == (True, [])
    assert good["plan_hash"].startswith("sha256:")
    wrong = {
        "version": "taskgraph-v1",
        "name": "p",
        "nodes": [{"id": "w", "tool": "desk.wrote"}, {"id": "w", "recipe": "none"}],
    }
    bad = (await client.post("/v1/plans/check", {"plan": wrong}, **BOB)).json
    assert not bad["ok"]
    assert any("desk.write" in one["expected"] for one in bad["problems"])
    assert (await client.get("/v1/jobs", **ADMIN)).json["items"] == []


async def test_a_servers_tools_are_pinned_and_what_changed_is_approved_by_its_digest(client: Client, far: Far) -> None:
    one = "/v1/mcp/servers/far"
    (row,) = (await client.get("/v1/mcp/servers", **BOB)).json
    assert row == {
        "name": "far",
        "outage": "",
        "tools_pinned": None,
        "transport": "",
        "where": "",
        "isolation": "",
    }
    assert (await client.get(f"{one}/pin", **BOB)).json is None
    assert (await client.post(f"{one}/pin", **BOB)).status == 403
    assert (await client.post(f"{one}/connect", **ADMIN)).json["name"] == "far"
    assert (await client.post(f"{one}/diff", **ADMIN)).json["error_code"] == "STREAM_NOT_FOUND"
    pin = (await client.post(f"{one}/pin", **ADMIN)).json
    assert (pin["by"], pin["how"], list(pin["tools"])) == ("ann", "pin", ["read"])
    far.worded = {"read": {**READ, "description": "Reads all."}}
    seen = (await client.post(f"{one}/diff", **ADMIN)).json
    assert seen["changes"]["changed"] == ["read"]
    wrong = await client.post(f"{one}/approve", {"digest": "sha256:0"}, **ADMIN)
    assert (wrong.status, wrong.json["error_code"]) == (409, "CONFIRMATION_MISMATCH")
    taken = await client.post(f"{one}/approve", {"digest": seen["digest"]}, **ADMIN)
    assert (taken.json["how"], taken.json["by"]) == ("approve", "ann")
    assert (await client.get("/v1/mcp/servers", **BOB)).json[0]["tools_pinned"] == 1
    far.down = True
    down = await client.post(f"{one}/connect", **ADMIN)
    assert (down.status, down.json["error_code"]) == (503, "TOOL_UNAVAILABLE")
    assert (await client.get("/v1/mcp/servers/none/pin", **BOB)).json["error_code"] == "UNKNOWN_TOOL"


async def test_no_more_questions_are_read_than_are_listed(
    remit: Remit, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        await until_waiting(remit, (await remit.start(asks(text=str(number)))).id)
    read: list[str] = []
    fold = Confirmations._fold

    async def counting(store: Confirmations, head: StreamHead) -> Confirmation | None:
        read.append(head.stream)
        return await fold(store, head)

    monkeypatch.setattr(Confirmations, "_fold", counting)
    async with served(remit) as client:
        assert len((await client.get("/v1/confirmations?limit=2")).json) == 2
        assert len(read) == 2
        assert len((await client.get("/v1/confirmations?limit=3&tool=none.such")).json) == 0
        assert len(read) == 8


async def test_the_oldest_questions_come_first_however_many_are_open(
    remit: Remit, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remit.journal.scan._HEADS", 2)
    for number in range(5):
        await until_waiting(remit, (await remit.start(asks(text=str(number)))).id)
    outcome = await remit.call("desk.write", {"text": "5"})
    few = token("few", "read", tools=("desk.write",))
    async with served(remit, [token("ann", "admin"), few, token("other", "read", tools=("x.*",))]) as client:
        found: list[dict[str, Any]] = []
        for who in (ADMIN, {"headers": bearer("few")}):
            found.clear()
            while page := (
                await client.get(f"/v1/confirmations?limit=2&after={found[-1]['confirmation'] if found else ''}", **who)
            ).json:
                assert len(page) <= 2
                found += page
            assert [one["args"]["text"] for one in found] == ["0", "1", "2", "3", "4", "5"]
        assert found[-1]["confirmation"] == outcome.confirmation
        assert (await client.get("/v1/confirmations?limit=2", headers=bearer("other"))).json == []
        assert (await client.get("/v1/confirmations?after=c_none", **ADMIN)).json["error_code"] == (
            "CONFIRMATION_NOT_FOUND"
        )
        last = found[0]["confirmation"]
        digest = {"digest": found[0]["digest"]}
        assert (await client.post(f"/v1/confirmations/{last}/deny", digest, **ADMIN)).status == 200
        assert len((await client.get(f"/v1/confirmations?after={last}", **ADMIN)).json) == 5, "an answered one too"


async def test_a_client_lists_more_questions_than_one_page_holds(
    remit: Remit, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remit.client.service.MOST", 2)
    for number in range(4):
        await until_waiting(remit, (await remit.start(asks(text=str(number)))).id)
    async with served(remit) as client, RemoteRemit(client.url) as far:
        assert [one.args["text"] for one in await far.service.confirmations.pending()] == ["0", "1", "2", "3"]
