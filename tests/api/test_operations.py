"""Every declared operation has a route, a twin and a call that works; every scope of the table is enforced."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, get_type_hints
from urllib.parse import urlencode

import msgspec
import pytest

from remit import Remit, Run, recipe, tool
from remit.api.table import ROUTES, route_of
from remit.client.connection import ServerConnection
from remit.client.service import service_at
from remit.http.access import SCOPES
from remit.operation import Operation, operations
from remit.parts.schedules.schedule import Schedule
from remit.parts.tickets.tickets import tickets_of
from remit.record.views import ConfirmationView
from remit.service.service import Service
from remit.wiring.capabilities import FIRST_PARTY
from remit.wiring.parts import nouns_of
from tests.api.conftest import Served, bearer, token
from tests.opened import OpenRemit, until_waiting
from tests.parts.skills.project import skill
from tests.parts.work.executors.repository import make_repository
from tests.service.test_mcp import READ, Far
from tests.service.test_steps import Door, passes

pytestmark = pytest.mark.slow

BY_NAME: Final = {route.name: route for route in ROUTES}
NOUNS: Final = {**get_type_hints(Service), **{noun.name: kind for noun, kind in nouns_of(FIRST_PARTY)}}
DECLARED: Final = [(noun, one) for noun, kind in NOUNS.items() for one in operations(kind)]
Prepare = Callable[["World"], Awaitable["Prepared"]]
Prepared = tuple[list[str], Any]
"""What stands in the braces of the path, and the body."""
MAY: Final = [{"effect": "allow", "tools": ["pad.*", "door.*", "outbox.*", "executor.*"]}]
EVENT: Final = {"type": "message", "thread_id": "t1", "content": "hello"}


@recipe("writes")
async def writes(run: Run) -> str:
    """Write, which asks a person."""
    return str((await run.call("desk.write", {"text": "hello"})).value)


@recipe("ends")
async def ends(_run: Run) -> str:
    """End at once."""
    return "over"


@recipe("fails")
async def fails(run: Run) -> None:
    """Fail."""
    await run.now()
    raise ValueError("no luck")


@recipe("waits")
async def waits(run: Run) -> Any:
    """Wait for a signal."""
    return await run.wait_signal("go")


@tool("desk.write", level="L1")
def write(text: str) -> str:
    """Write something."""
    return text


class World(NamedTuple):
    """What an operation is tried on."""

    remit: Remit
    operation: Operation
    doubtful: str
    """A job one of whose steps has an outcome that is not known."""

    @property
    def example(self) -> Any:
        return self.operation.declaration.example

    @property
    def work(self) -> Any:
        return self.remit.service.work

    async def ticket(self) -> str:
        return (await tickets_of(self.remit.service).create({"type": "TRIAGE", "event": EVENT})).id

    async def question(self) -> ConfirmationView:
        await until_waiting(self.remit, (await self.remit.start(writes())).id)
        (question,) = await self.remit.service.confirmations.pending()
        return question


async def ticket(world: World) -> Prepared:
    return [await world.ticket()], world.example


async def leased_ticket(world: World) -> Prepared:
    leased = await world.remit.service.tickets.lease_by_id(await world.ticket(), owner="me")
    given = {"lease_owner": "me", "lease_token": leased.lease_token, "code": "X", "reason": "why"}
    return [leased.ticket.id], {name: given[name] for name in world.operation.shape.__struct_fields__ if name in given}


async def blocked_ticket(world: World) -> Prepared:
    name = await world.ticket()
    await world.remit.service.tickets.block(name, code="X", reason="why", source="me")
    return [name], None


async def nothing(world: World) -> Prepared:
    return [], world.example


def named(*path: str) -> Prepare:
    async def prepare(world: World) -> Prepared:
        return [*path], world.example

    return prepare


def job_of(recipe: Any, *more: str) -> Prepare:
    async def prepare(world: World) -> Prepared:
        job = await world.remit.start(recipe())
        await world.remit.service.jobs.settled([job.id])
        return [job.id, *more], world.example

    return prepare


def job_at_rest(recipe: Any) -> Prepare:
    async def prepare(world: World) -> Prepared:
        job = await world.remit.start(recipe())
        await until_waiting(world.remit, job.id)
        return [job.id], world.example

    return prepare


async def question(world: World) -> Prepared:
    return [(await world.question()).confirmation], world.example


async def edited_question(world: World) -> Prepared:
    return [(await world.question()).confirmation], {"args": {"text": "bye"}}


async def shown_question(world: World) -> Prepared:
    shown = await world.question()
    return [shown.confirmation], {**world.example, "digest": shown.digest}


async def approved_question(world: World) -> Prepared:
    """A question that is approved, while no worker continues its job."""
    shown = await world.question()
    await world.remit.engine.drain(0)
    await world.remit.service.confirmations.decide(shown.confirmation, "approve")
    return [shown.confirmation], world.example


async def remembered_approval(world: World) -> Prepared:
    shown = await world.question()
    kept = await world.remit.service.approvals.remember(
        shown.confirmation, "everything", seconds=60, digest=shown.digest
    )
    assert kept is not None
    return [kept.id], world.example


async def doubtful_step(world: World) -> Prepared:
    await until_waiting(world.remit, world.doubtful)
    return [world.doubtful, "1"], world.example


async def pinned_server(world: World) -> Prepared:
    await world.remit.service.servers.pin("far")
    diff = await world.remit.service.servers.diff("far")
    return ["far"], {"digest": diff.digest} if world.operation.shape is not None else world.example


async def forked(world: World) -> Prepared:
    path, _ = await job_of(fails)(world)
    return path, {"at": "1"}


async def two_jobs(world: World) -> Prepared:
    jobs = [(await world.remit.start(ends())).id for _ in range(2)]
    await world.remit.service.jobs.settled(jobs)
    return jobs, world.example


async def open_issue(world: World) -> dict[str, Any]:
    return {"issue_ref": await world.work.issue("Ask the vendor")}


async def hand_out(world: World) -> dict[str, Any]:
    started = await world.work.start((await open_issue(world))["issue_ref"], "manual")
    told = {"issue_ref": started.issue_ref, "run_id": started.run_id}
    text = f"IssueRef: {started.issue_ref}\nRunId: {started.run_id}\nStatus: ok\n\nAsked.\n"
    return {**told, "result": {**told, "status": "ok"}, "document": b64encode(text.encode()).decode()}


async def take_back(world: World) -> dict[str, Any]:
    handed = await hand_out(world)
    await world.work.stop(handed["issue_ref"], "late")
    return handed


def work(*begin: Callable[[World], Awaitable[dict[str, Any]]], **more: Any) -> Prepare:
    """Prepare what `begin` does, and give what the operation takes of it."""

    async def prepare(world: World) -> Prepared:
        known = {name: value for each in begin for name, value in (await each(world)).items()}
        example = {} if world.example is msgspec.UNSET else world.example
        fields = world.operation.shape.__struct_fields__ if world.operation.shape is not None else ()
        return [], {**example, **{name: value for name, value in {**known, **more}.items() if name in fields}}

    return prepare


async def schedule(world: World) -> Prepared:
    await world.remit.service.schedules.add(Schedule(name="nightly", recipe="ends", every="1d"))
    return ["nightly"], world.example


CALLS: Final[dict[str, Prepare]] = {
    "approvals.active": nothing,
    "approvals.revoke": remembered_approval,
    "artifacts.rows": job_of(ends),
    "confirmations.edit": edited_question,
    "confirmations.preview": question,
    "confirmations.remember": shown_question,
    "confirmations.revoke": approved_question,
    "confirmations.view": question,
    "conversations.view": job_of(ends),
    "jobs.cancel": job_at_rest(waits),
    "jobs.resume": job_at_rest(waits),
    "jobs.retry": job_of(fails),
    "jobs.signal": job_at_rest(waits),
    "jobs.step": job_of(fails, "1"),
    "jobs.trace": job_of(ends),
    "jobs.verify": job_of(ends),
    "recipes.page": nothing,
    "recipes.view": named("ends"),
    "servers.page": nothing,
    "servers.status": named("far"),
    "servers.restart": named("far"),
    "servers.pinned": named("far"),
    "servers.pin": named("far"),
    "servers.diff": pinned_server,
    "servers.approve": pinned_server,
    "sessions.page": nothing,
    "steps.decide": doubtful_step,
    "tickets.view": ticket,
    "tickets.report": ticket,
    "tickets.create": nothing,
    "tickets.lease": nothing,
    "tickets.lease_one": ticket,
    "tickets.renew": leased_ticket,
    "tickets.release": leased_ticket,
    "tickets.fill": ticket,
    "tickets.fail": leased_ticket,
    "tickets.block": ticket,
    "tickets.retry": blocked_ticket,
    "tools.page": nothing,
    "tools.view": named("desk.write"),
    "tools.failures": nothing,
    "workers.page": nothing,
    "drift.schema": named("sha256:0"),
    "drift.uses": named("desk.write"),
    "forks.diff": two_jobs,
    "forks.make": forked,
    "schedules.next": schedule,
    "schedules.pause": schedule,
    "schedules.remove": schedule,
    "schedules.replace": schedule,
    "schedules.resume": schedule,
    "schedules.run": schedule,
    "schedules.view": schedule,
    "skills.disable": named("mail"),
    "skills.enable": named("mail"),
    "skills.view": named("mail"),
    "work.decide": work(take_back, state="needs-human", reason="odd"),
    "work.issue": work(),
    "work.late": work(hand_out),
    "work.result": work(hand_out),
    "work.staged": work(open_issue, verb="stop", args={"issue_ref": "local#1", "reason": "late"}),
    "work.start": work(open_issue, executor="manual"),
    "work.stop": work(hand_out),
    "work.submit": work(hand_out),
    "work.switch": work(hand_out, executor="manual"),
    "work.turn": work(open_issue, staged=False),
    "work.view": work(open_issue),
    "work.write": work(hand_out),
}
"""What each operation is called with, beside its example; one that is not here needs no more than that."""


def lay_out(folder: Path) -> None:
    """Make a folder a repository with a person as its executor, and with a skill."""
    for path in make_repository(folder / "made").iterdir():
        path.rename(folder / path.name)
    (folder / "workflow.toml").write_text('[executors.manual]\nprogram = "manual"\nisolation = "none"\n')
    skill(folder / "skills", "mail")


async def doubted(remit_in: OpenRemit, given: dict[str, Any]) -> str:
    """A job whose worker stopped within a call."""
    async with remit_in(**given) as remit:
        job = (await remit.start(passes())).id
        await given["providers"][0].began.wait()
    return job


def test_no_name_and_no_place_is_taken_twice() -> None:
    assert len(BY_NAME) == len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


@pytest.mark.parametrize(("noun", "operation"), DECLARED, ids=[one.declaration.name for _, one in DECLARED])
def test_an_operation_has_its_route_and_its_twin(noun: str, operation: Operation) -> None:
    declared = operation.declaration
    made, route = route_of(noun, operation), BY_NAME[declared.name]
    assert [getattr(made, name) for name in ("method", "path", "scope", "codes", "status", "answer")] == [
        getattr(route, name) for name in ("method", "path", "scope", "codes", "status", "answer")
    ]
    method = getattr(
        type(getattr(service_at(ServerConnection("http://127.0.0.1:1")), noun)), operation.function.__name__
    )
    assert method is not operation.function
    assert method.__doc__


@pytest.mark.parametrize("operation", [one for _, one in DECLARED], ids=lambda one: one.declaration.name)
async def test_an_operation_works_over_http(
    tmp_path: Path, remit_in: OpenRemit, served: Served, operation: Operation
) -> None:
    declared = operation.declaration
    recipes, flags = [ends, fails, passes, waits, writes], {"policy.rules": MAY, "jobs.drain_seconds": 0}
    if declared.name.startswith(("skills.", "work.")):
        lay_out(tmp_path)
        flags["skills.folders"] = [str(tmp_path / "skills")]
    given = {"providers": [Door(), Far(READ)], "recipes": recipes, "tools": [write], "flags": flags}
    doubtful = await doubted(remit_in, given) if declared.name == "steps.decide" else ""
    async with remit_in(**given) as remit, served(remit) as client:
        path, body = await CALLS.get(declared.name, nothing)(World(remit, operation, doubtful))
        route, names = BY_NAME[declared.name], iter(path)
        filled = "/".join(next(names) if part.startswith("{") else part for part in route.path.split("/"))
        sent = None if body is msgspec.UNSET else body
        if route.method == "GET" and sent:
            filled, sent = f"{filled}?{urlencode(sent)}", None
        answer = await client.ask(route.method, filled, sent)
        assert answer.status == route.status, answer.json
        if route.answer is not None:
            msgspec.convert(answer.json, route.answer)


async def test_a_token_without_the_scope_of_a_route_is_refused(remit_in: OpenRemit, served: Served) -> None:
    scopes = sorted(SCOPES - {"admin"})
    tokens = [token(f"without-{scope}", *(SCOPES - {scope, "admin"})) for scope in (*scopes, "admin")]
    async with remit_in() as remit, served(remit, tokens) as client:
        for route in ROUTES:
            if route.scope is not None:
                path = "/".join("x" if part.startswith("{") else part for part in route.path.split("/"))
                answer = await client.ask(route.method, path, headers=bearer(f"without-{route.scope}"))
                assert (answer.status, answer.json["error_code"]) == (403, "SCOPE_REQUIRED"), route.name
