"""Which versions open jobs need, who has them, and what can be retired; and the registry of versions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from remit import Run, migration, recipe, tool
from remit.errors import UsageError
from remit.tools.listings import ToolUse, ToolVersion
from tests.opened import OpenRemit, until, until_waiting

ALLOW = {"policy.rules": [{"id": "all", "effect": "allow", "tools": ["*"]}], "jobs.drain_seconds": 0}


@tool("mail.send", level="L1", version="1")
async def send(text: str) -> str:
    return text


@tool("mail.send", level="L1", version="2")
async def send_later(text: str, at: str = "") -> str:
    return text + at


@migration("mail.send", recorded="1")
def to_later(args: dict[str, Any]) -> dict[str, Any]:
    return args


@migration("mail.send", recorded="0")
def from_zero(args: dict[str, Any]) -> dict[str, Any]:
    return args


def waits(version: str, *, patched: bool = False) -> Any:
    @recipe("waits", version=version)
    async def waits(run: Run) -> str:
        if patched:
            await run.patched("louder")
        await run.call("mail.send", {"text": "hello"})
        return str(await run.wait_signal("go"))

    return waits


OLD, NEW = waits("1"), waits("2", patched=True)


async def parked(remit_in: OpenRemit) -> str:
    async with remit_in(tools=[send], recipes=[OLD], flags=ALLOW) as remit:
        job = await remit.start(OLD())
        await until_waiting(remit, job.id)
    return job.id


async def test_an_open_job_needs_its_code_and_its_tools_and_says_whether_they_are_served(remit_in: OpenRemit) -> None:
    job = await parked(remit_in)
    async with remit_in(tools=[send_later], recipes=[NEW], flags=ALLOW, migrations=[to_later, from_zero]) as remit:
        await remit.runtime.journal.heads_changed(0)
        report = await remit.service.drift.versions()
        assert report.open == 1
        needs = {(one.kind, one.name): one for one in report.needs}
        assert needs["recipe", "waits"].served == "no"
        assert needs["recipe", "waits"].open_jobs == (job,)
        assert (needs["tool", "mail.send"].version, needs["tool", "mail.send"].served) == ("1", "no")
        assert [(one.kind, one.version) for one in report.retirable] == [("migration", "0")]


ASK = {"policy.rules": [{"effect": "ask", "tools": ["*"]}], "jobs.drain_seconds": 0}


@pytest.mark.parametrize(("decision", "needed"), [("", True), ("approve", True), ("deny", False)])
async def test_a_tool_that_an_open_question_asks_for_is_needed(
    remit_in: OpenRemit, decision: Any, needed: bool
) -> None:
    @recipe("asks", version="1")
    async def asks(run: Run) -> str:
        await run.attempt("mail.send", {"text": "hello"})
        return str(await run.wait_signal("go"))

    async with remit_in(tools=[send], recipes=[asks], flags=ASK) as remit:
        job = await remit.start(asks())
        await until_waiting(remit, job.id)
        if decision:
            (question,) = await remit.service.confirmations.pending(job.id)
            await remit.service.confirmations.decide(question.confirmation, decision, by="bob")
            await until(remit, job.id, lambda row: "signal" in row.waiting_for)
    async with remit_in(tools=[send_later], recipes=[asks], flags=ASK, work=False) as remit:
        report = await remit.service.drift.versions()
        needs = [(one.version, one.served, one.open_jobs) for one in report.needs if one.kind == "tool"]
        assert needs == ([("1", "no", (job.id,))] if needed else [])


async def test_what_a_fork_shares_counts_as_its_own(remit_in: OpenRemit) -> None:
    job = await parked(remit_in)
    async with remit_in(tools=[send], recipes=[OLD], flags=ALLOW) as remit:
        fork = (await remit.service.forks.make(job, "2")).job
        await until_waiting(remit, fork)
        again = (await remit.service.forks.make(fork, "2")).job
        before = (await remit.service.forks.make(fork, "1", repeat=True)).job
        for one in (job, before):
            await remit.service.jobs.cancel(one, by="bob", reason="over")
            await until(remit, one, lambda row: row.state == "cancelled")
    async with remit_in(tools=[send_later], recipes=[OLD], flags=ALLOW, work=False) as remit:
        report = await remit.service.drift.versions()
        (need,) = [one for one in report.needs if one.kind == "tool"]
        assert (need.version, need.served, set(need.open_jobs)) == ("1", "no", {fork, again})
        for one in (fork, again):
            (drift,) = (await remit.service.drift.report(one)).tools
            assert (drift.tool, drift.calls, drift.open, drift.open_jobs) == ("mail.send", 1, 1, (one,))
        assert (await remit.service.drift.report(fork, tool="mail.burn")).tools == ()
        (all_of_it,) = (await remit.service.drift.report()).tools
        assert all_of_it.calls == 2, "the first job's and the repeated one"


def parent(child: Any) -> Any:
    @recipe("parent", version="1")
    async def parent(run: Run) -> str:
        await run.patched("kinder")
        await run.child(child())
        await run.model("Shall we?")
        return str(await run.wait_signal("go"))

    return parent


async def test_a_fork_needs_the_recipes_and_models_that_it_shares(remit_in: OpenRemit, tmp_path: Path) -> None:
    (tmp_path / "says.yaml").write_text("[{say: Yes.}, {say: No.}]")
    flags = {**ALLOW, "models.default": f"scripted:{tmp_path / 'says.yaml'}"}
    old, new = (recipe("part", version=version)(part) for version in ("1", "2"))
    first, second = parent(old), parent(new)
    async with remit_in(recipes=[old, first], flags=flags) as remit:
        job = (await remit.start(first())).id
        await until_waiting(remit, job)
        fork = (await remit.service.forks.make(job, "3")).job
        await until_waiting(remit, fork)
        again = (await remit.service.forks.make(fork, "3")).job
        await until_waiting(remit, again)
        before = (await remit.service.forks.make(job, "1")).job
        await until_waiting(remit, before)
        await remit.service.jobs.cancel(job, by="bob", reason="over")
        await until(remit, job, lambda row: row.state == "cancelled")
    async with remit_in(recipes=[new, second], flags=flags, work=False) as remit:
        drift = remit.service.drift
        (need,) = [one for one in (await drift.versions()).needs if one.kind == "child"]
        assert (need.name, need.served, set(need.open_jobs)) == ("part", "no", {fork, again, before})
        assert [one.version for one in (await drift.versions()).retirable if one.kind == "patch"] == ["kinder"]
        whole = await drift.report()
        (model,) = whole.models
        assert (model.open, model.ended, model.answered[0].answers) == (3, 1, 2)
        report = await drift.report(again)
        (own,) = report.models
        first_answer = model.answered[0]
        shared = msgspec.structs.replace(first_answer, answers=1, last_at=first_answer.first_at)
        assert (own.open, own.ended, own.answered) == (1, 0, (shared,))
        assert [(one.name, one.kind, one.open_jobs) for one in report.code if one.kind == "child"] == [
            ("part", "child", (again,))
        ]


async def part(run: Run) -> str:
    return str(await run.uuid())


async def test_a_process_that_has_the_code_serves_the_job_and_what_no_job_needs_can_go(remit_in: OpenRemit) -> None:
    job = await parked(remit_in)
    async with remit_in(tools=[send], recipes=[OLD, NEW], flags=ALLOW) as remit:
        await remit.run(until_present())
        report = await remit.service.drift.versions()
        (need,) = [one for one in report.needs if one.kind == "recipe"]
        assert (need.served, len(need.served_by)) == ("yes", 1)
        assert [one for one in report.retirable if one.kind == "recipe"] == []
        await remit.job(job).signal("go")
        await remit.job(job)
        fresh = await remit.start(NEW())
        await until_waiting(remit, fresh.id)
        report = await remit.service.drift.versions()
        found = {(one.kind, one.name, one.version) for one in report.retirable}
        assert found == {("recipe", "waits", "1"), ("patch", "waits", "louder")}


@recipe("until_present", version="1")
async def until_present(run: Run) -> str:
    """Ended by a worker, which has said by then which code it runs."""
    return str(await run.uuid())


async def test_the_journal_is_a_registry_of_versions(remit_in: OpenRemit) -> None:
    job = await parked(remit_in)
    async with remit_in(tools=[send_later], recipes=[NEW], flags=ALLOW) as remit:
        fresh = await remit.start(NEW())
        await until_waiting(remit, fresh.id)
        newest, first = await remit.service.drift.uses("mail.send")
        assert (newest.version, newest.calls, newest.users) == ("2", 1, (fresh.id,))
        assert (first.version, first.open_jobs) == ("1", (job,))
        assert (await remit.service.drift.schema(first.request_schema_hash))["required"] == ["text"]
        known = await remit.runtime.versions.get_tool_version("mail.send")
        assert known == ToolVersion(
            version="2",
            request_schema_hash=newest.request_schema_hash,
            response_schema_hash=newest.response_schema_hash,
        )
        assert await remit.runtime.versions.get_tool_version("mail.burn") is None


class Register:
    """A registry of the user's own."""

    async def get_tool_version(self, tool: str) -> ToolVersion | None:
        if tool == "mail.burn":
            raise OSError("the registry is away")
        known = ToolVersion(version="2026.11", request_schema_hash="sha256:0")
        return known if tool == "mail.plain" else None

    async def uses(self, tool: str) -> Sequence[ToolUse]:
        return []

    async def schema(self, digest: str) -> Any:
        return {"title": digest}


class SeedsRegister:
    """A registry as the seed has it, and not even asynchronous."""

    def get_tool_version(self, tool: str) -> ToolVersion | None:
        return ToolVersion(version=tool)


def test_a_registry_that_lacks_methods_is_refused_where_it_is_handed_in(remit_in: OpenRemit) -> None:
    with pytest.raises(UsageError, match="get_tool_version, uses, schema"):
        remit_in(versions=SeedsRegister())


async def test_a_registry_that_is_handed_in_gives_tools_their_versions(
    remit_in: OpenRemit, caplog: pytest.LogCaptureFixture
) -> None:
    @tool("mail.plain", level="L0")
    async def plain() -> int:
        return 1

    @tool("mail.burn", level="L0")
    async def burn() -> int:
        return 2

    async with remit_in(tools=[plain, burn, send], versions=Register(), flags=ALLOW) as remit:
        versions = {one.name: one.version for one in await remit.service.tools.views()}
        assert (versions["mail.plain"], versions["mail.burn"], versions["mail.send"]) == ("2026.11", "", "1")
        assert await remit.service.drift.schema("sha256:0") == {"title": "sha256:0"}
        assert await remit.service.drift.uses("mail.plain") == []
    assert "the registry of versions failed" in caplog.text
    assert "mail.plain 2026.11 has another input schema in the registry" in caplog.text
