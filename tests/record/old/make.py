"""Makes the journals of this folder: `python -m tests.record.old.make`, with the sources of the Remit that writes them.

`journals.tar.xz` holds what commit 21eda15 wrote: PYTHONPATH named its sources. Each function below is a journal, and
uses what that Remit knew.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
import sys
import tarfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

from remit import JobEndedError, Options, Remit, recipe
from remit.errors import RemitError
from remit.jobs.plans.source import parse_plan
from remit.journal.erasure import erase
from remit.parts.tickets.runner import RunnerConfig
from remit.parts.tickets.tickets import tickets_of
from remit.settings import load
from tests.record.old.world import FLAGS, SCRIPTS, TOOLS, acts, aged, greet, newer, older

ARCHIVE: Final = Path(__file__).with_name("journals.tar.xz")
STUB: Final = Path(__file__).with_name("stub.py").read_text(encoding="utf-8")
PLAN: Final = """
version: taskgraph-v1
name: two
inputs: {value: {type: integer, default: 3}}
nodes:
  - {id: first, tool: x.read, args: {value: "${inputs.value}"}}
  - {id: asked, wait: {human: "Go on?"}}
  - {id: second, when: "${asked}", tool: x.fails, args: {value: 4}}
output: ${first.value}
"""
EVENT: Final = {"type": "message", "thread_id": "t1", "content": "hello", "actor": "ann"}


class Maker:
    """Opens the journal that is made, as often as its story needs processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, script in SCRIPTS.items():
            (folder / f"{name}.yaml").write_text(script)
        (folder / "stub.py").write_text(STUB)

    def open(self, flags: dict[str, Any] | None = None, recipes: tuple[Any, ...] = (acts, greet)) -> Remit:
        """A Remit on the journal."""
        given = {**FLAGS, "journal.url": str(self.folder / "journal.db"), **(flags or {})}
        return Remit(settings=load(cwd=self.folder, env={}, flags=given), tools=TOOLS, recipes=recipes)


async def job(remit: Remit, *todo: list[Any], options: Options | None = None) -> str:
    """A job of these acts, once it rests."""
    made = await remit.service.jobs.start_named("acts", {"acts": list(todo)}, options)
    await remit.settled(made)
    return made


async def answer(remit: Remit, job: str, decision: Any, **more: Any) -> None:
    """Answer every question of a job."""
    for question in await remit.service.confirmations.pending(job):
        await remit.service.confirmations.decide(question.confirmation, decision, **more)
    await remit.settled(job)


def write_of(value: int, name: str = "write") -> list[Any]:
    """A call."""
    return ["tool", name, {"value": value}]


# --- the journals


async def completed(maker: Maker) -> None:
    async with maker.open() as remit:
        await job(remit, write_of(1, "read"), write_of(2), ["values"], ["sleep", 0.001], options=Options(title="All"))


async def failed(maker: Maker) -> None:
    async with maker.open() as remit:
        await job(remit, write_of(1, "fails"), write_of(2), ["boom", 3])


async def cancelled(maker: Maker) -> None:
    async with maker.open() as remit:
        made = await job(remit, write_of(1, "read"), ["signal", "go"])
        await remit.service.jobs.cancel(made, by="bob", reason="no longer wanted")
        await remit.settled(made)


async def waiting_for_approval(maker: Maker) -> None:
    async with maker.open() as remit:
        await job(remit, write_of(1, "asks"), ["confirm", "Is it right?"])


async def approved(maker: Maker) -> None:
    async with maker.open() as remit:
        made = await job(remit, write_of(1, "asks"), ["confirm", "Is it right?"])
        await answer(remit, made, "approve", by="bob", reason="looks right")
        await answer(remit, made, "approve", by="carol")


async def denied_by_rule_and_person(maker: Maker) -> None:
    async with maker.open() as remit:
        made = await job(remit, write_of(1, "denied"), write_of(2, "asks"), ["confirm", "Is it right?"])
        await answer(remit, made, "deny", by="bob", reason="not today")
        await answer(remit, made, "deny", by="bob")


async def edited(maker: Maker) -> None:
    async with maker.open() as remit:
        made = await job(remit, write_of(1, "asks"))
        (question,) = await remit.service.confirmations.pending(made)
        await remit.service.confirmations.edit(question.confirmation, {"value": 5}, by="bob", reason="five is enough")
        await answer(remit, made, "approve", by="bob")


async def retried(maker: Maker) -> None:
    async with maker.open() as remit:
        made = await job(remit, write_of(1), ["child", [write_of(2, "read"), ["values"]]], ["boom", 3])
        again = await remit.service.jobs.retry(made, repeat=True, by="bob", reason="try again")
        await remit.settled(again.job)


async def children(maker: Maker) -> None:
    async with maker.open() as remit:
        inner = ["child", [write_of(2), ["boom", 1]]]
        await job(remit, ["child", [write_of(1, "read")]], ["gather", [inner, write_of(3), ["child", [["values"]]]]])


async def models(maker: Maker) -> None:
    async with maker.open() as remit:
        await job(remit, ["model", "says"], ["model", "busy"], ["model", "rejects"])


async def agents(maker: Maker) -> None:
    async with maker.open() as remit:
        given = {"task": "Look around.", "tools": ["x.*"], "model": "scripted:works.yaml", "turns": 5}
        made = await remit.service.jobs.start_named("agent", given)
        await remit.settled(made)
        await answer(remit, made, "approve", by="bob")
        with suppress(RemitError):
            await remit.settled(await remit.service.conversations.say(made, "And again?"))


async def ticket_done(maker: Maker) -> None:
    async with maker.open() as remit:
        tickets = tickets_of(remit.service)
        triage = await tickets.create({"type": "TRIAGE", "event": EVENT})
        steps = [
            {"tool_name": "x_read", "args": {"value": 1}},
            {"tool_name": "x_long", "args": {"size": 1_700}},
            {"tool_name": "x_write", "args": {"value": 2}},
        ]
        await tickets.fill(triage.id, {"triage": "look it up", "tool_steps": steps}, by="http_fill")
        await worked(remit)


async def tickets_failed_and_blocked(maker: Maker) -> None:
    async with maker.open() as remit:
        tickets = tickets_of(remit.service)
        broken = await tool_ticket(remit, ("x_fails", {"value": 1}), ("x_read", {"value": "none"}))
        await tool_ticket(remit, ("x_denied", {"value": 1}), ("x_nothing", {}))
        await tool_ticket(remit, ("x_read", {"value": 1}), ("x_asks", {"value": 2}))
        await worked(remit)
        with suppress(RemitError):
            await tickets.retry(broken, by="bob")
            await worked(remit)


async def tool_ticket(remit: Remit, *steps: tuple[str, dict[str, Any]]) -> str:
    """A TOOL ticket of these steps."""
    given = {"event": EVENT, "tool_steps": [{"tool_name": name, "args": args} for name, args in steps]}
    return (await tickets_of(remit.service).create({"type": "TOOL", "event": EVENT, "tool_input": given})).id


async def worked(remit: Remit) -> None:
    """Work on tickets until there is none."""
    tickets = tickets_of(remit.service)
    await tickets.runner(RunnerConfig(owner="worker"), tickets.executor()).run(asyncio.Event(), once=True)


async def signals(maker: Maker) -> None:
    async with maker.open() as remit:
        made = await job(remit, ["gather", [["signal", "go"], ["signal", "stay"]]])
        await remit.service.jobs.signal(made, "go", {"said": "go"}, by="bob")
        await remit.settled(made)


async def timers(maker: Maker) -> None:
    async with maker.open() as remit:
        given = {"acts": [["sleep", 0.001], ["gather", [["sleep", 1_000_000], write_of(1, "read")]]]}
        made, mark = await remit.service.jobs.start_named("acts", given), 0
        while len(await remit.service.streams.events(f"job/{made}")) < 6:
            mark = await remit.runtime.journal.changed(mark)


async def doubts(maker: Maker) -> None:
    async with maker.open() as remit:
        await job(remit, write_of(1, "lost"))
        made = await job(remit, ["gather", [write_of(number, "lost") for number in (1, 2, 3)]])
        waits = (await remit.service.jobs.view(made)).waits
        chosen: Any = ("done", "fail", "retry")
        for wait_, decision in zip(waits, chosen, strict=True):
            await remit.service.steps.decide(made, wait_.step, decision, None, by="bob", reason="I looked")
        await remit.settled(made)


async def compensations(maker: Maker) -> None:
    async with maker.open() as remit:
        await job(remit, ["undoable", 1], ["undoable", 2], ["compensate"], ["undoable", 3], ["signal", "go"])
        await job(remit, ["undoable", 1], ["boom", 2])


async def erased(maker: Maker) -> None:
    async with maker.open() as remit:
        options = Options(subject="customer-7")
        made = (await remit.start(greet(name="Zaphod"), options)).id
        await remit.settled(made)
        await remit.service.jobs.signal(made, "word", "hello, Zaphod")
        await remit.settled(made)
        await job(remit, write_of(1, "asks"), ["model", "says"], ["child", [["values"]]], options=options)
        await erase(remit.runtime.journal, "customer-7", by="ann", reason="asked for")


async def sessions(maker: Maker) -> None:
    async with maker.open() as remit:
        for name, args in (("read", {"value": 1}), ("denied", {"value": 2}), ("fails", {"value": 3})):
            await remit.call(f"x.{name}", args)
        await remit.call("x.asks", {"value": 4}, key="once")
        for question in await remit.service.confirmations.pending():
            await remit.service.confirmations.decide(question.confirmation, "approve", by="bob")
        await remit.call("x.asks", {"value": 4}, key="once")
        session = await remit.service.sessions.open("mcp", client="editor", client_version="1")
        await remit.service.sessions.relayed(session, "mcp.stub", "prompts/get", "greeting", "")
        await remit.service.sessions.call(session, "x.write", {"value": 5})


async def mcp(maker: Maker) -> None:
    command = [sys.executable, "-I", "-S", str(maker.folder / "stub.py")]
    async with maker.open({"mcp.servers": [{"name": "stub", "command": command}]}) as remit:
        for text in ("again", "fail"):
            await remit.call("mcp.stub.echo", {"text": text})


async def sandbox(maker: Maker) -> None:
    async with maker.open({"sandbox.bwrap": "/nowhere/bwrap"}) as remit:
        made = await remit.service.jobs.start_named("run_code_snippet", {"code": "print(1)", "language": "python"})
        await remit.settled(made)


async def long_results(maker: Maker) -> None:
    async with maker.open() as remit:
        await job(remit, ["tool", "long", {"size": 1_700}], ["child", [["tool", "long", {"size": 10}]]])


async def migrated(maker: Maker) -> None:
    async with maker.open(recipes=(older,)) as remit:
        made = (await remit.start(older())).id
        await remit.settled(made)
    async with maker.open(recipes=(newer,)) as remit:
        await remit.service.jobs.signal(made, "word", "hello")
        await remit.settled(made)


async def stuck(maker: Maker) -> None:
    async with maker.open(recipes=(older,)) as remit:
        made = (await remit.start(older())).id
        await remit.settled(made)
    async with maker.open(recipes=(recipe("aging", version="3")(aged),)) as remit:
        await remit.service.jobs.signal(made, "word", "hello")
        await remit.settled(made)


async def recovered(maker: Maker) -> None:
    process = multiprocessing.get_context("fork").Process(target=lambda: asyncio.run(_die(maker)))
    process.start()
    process.join()
    async with maker.open() as remit:
        await remit.settled()


async def _die(maker: Maker) -> None:
    async with maker.open() as remit:
        await job(remit, write_of(1), write_of(2, "dies"))


async def plans(maker: Maker) -> None:
    async with maker.open() as remit:
        made = (await remit.start_plan(parse_plan(PLAN))).id
        await remit.settled(made)
        await answer(remit, made, "approve", by="bob")
        with suppress(JobEndedError):
            await remit.job(made)


STORIES: Final[dict[str, Callable[[Maker], Coroutine[Any, Any, None]]]] = {
    story.__name__: story
    for story in (
        *(completed, failed, cancelled, waiting_for_approval, approved, denied_by_rule_and_person, edited, retried),
        *(children, models, agents, ticket_done, tickets_failed_and_blocked, signals, timers, doubts, compensations),
        *(erased, sessions, mcp, sandbox, long_results, migrated, stuck, recovered, plans),
    )
}


def pack(path: Path) -> None:
    """Write every journal into one archive."""
    with tarfile.open(path, "w:xz") as archive:
        for name, story in STORIES.items():
            with TemporaryDirectory() as folder:
                asyncio.run(story(Maker(Path(folder))))
                database = sqlite3.connect(Path(folder) / "journal.db")
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                database.execute("VACUUM")
                database.close()
                plain = tarfile.TarInfo(f"{name}.db")
                plain.size = (Path(folder) / "journal.db").stat().st_size
                with (Path(folder) / "journal.db").open("rb") as file:
                    archive.addfile(plain, file)


if __name__ == "__main__":
    with patch("remit.engines.owner._host", lambda: "worker.example/00000000/1"):
        pack(ARCHIVE)
