"""A recorded job, exported without secrets, is checked against the code, tools and policy of today."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest

from remit import Options, Remit, Run, recipe, tool
from remit.codes import Code
from remit.errors import RemitError
from remit.journal.erasure import erase
from remit.parts.golden.export import golden_of
from remit.parts.golden.file import Golden, decoded, encoded
from remit.parts.golden.noun import CLASSES, CheckedJob, report_of
from remit.parts.golden.report import junit, markdown

TOKEN = "ghp_" + "a1B2" * 9
ALLOWED = {"effect": "allow", "tools": ["g.send"]}


@tool("g.login", level="L0")
def login(user: str) -> dict[str, str]:
    """Log in."""
    return {"session": TOKEN, "user": user}


@tool("g.send")
def send(to: str, token: str, text: str = "") -> str:
    """Send."""
    return f"sent to {to} with {token}{text}"


@recipe("inner")
async def inner(run: Run, token: str) -> str:
    """Send with a token."""
    return str((await run.call("g.send", {"to": "bob", "token": token})).value)


@recipe("mails")
async def mails(run: Run, user: str, password: str) -> list[str]:
    """Log in, and send twice."""
    session = (await run.call("g.login", {"user": f"{user} {password}"})).value["session"]
    first = await run.child(inner(session))
    return [first, str((await run.call("g.send", {"to": "ann", "token": session, "text": "x" * 9_000})).value)]


async def recorded(remit: Remit, **options: Any) -> str:
    given = {"user": "eve", "password": "hunter22"}
    job = await remit.service.jobs.start_named("mails", given, Options(**options))
    await remit.ended(job)
    return job


def opened(**given: Any) -> Remit:
    return Remit(":memory:", **{"tools": [login, send], "recipes": [mails, inner], "policy": [ALLOWED], **given})


async def exported(**options: Any) -> Golden:
    async with opened() as remit:
        found: Golden = await remit.service.golden.export(await recorded(remit, **options), "one")
        return found


async def checked(golden: Golden, **given: Any) -> CheckedJob:
    async with opened(work=False, **given) as remit:
        (found,) = (await remit.service.golden.check([golden])).jobs
        assert isinstance(found, CheckedJob)
        return found


async def test_a_job_without_its_secrets_does_the_same() -> None:
    golden = await exported(labels={"suite": "ci"})
    data = encoded(golden)
    assert (TOKEN.encode() in data, b"hunter22" in data, golden.secrets >= 2) == (False, False, True)
    assert golden.labels == {"suite": "ci"}
    assert decoded(data, Path("one")) == golden
    found = await checked(golden)
    assert (found.result, found.words, found.steps) == ("same", "", 4)


@tool("g.send", version="2")
def send_more(to: str, token: str, text: str = "", urgent: bool = False) -> str:
    """Send."""
    return f"sent to {to} with {token}{text}{urgent}"


@tool("g.send")
def send_less(to: int, token: str) -> str:
    """Send."""
    return f"sent to {to} with {token}"


@tool("g.send")
def send_described(to: str, token: str, text: str = "") -> str:
    """Send a message."""
    return f"sent to {to} with {token}{text}"


@pytest.mark.parametrize(
    ("given", "result", "code"),
    [
        ({"tools": [login, send_described]}, "same", ""),
        ({"tools": [login, send_more]}, "compatible", ""),
        ({"tools": [login, send_less]}, "failed", ""),
        ({"tools": [login]}, "failed", ""),
        ({"policy": []}, "breaking", ""),
        ({"policy": [{"effect": "deny", "tools": ["g.send"]}]}, "failed", ""),
        ({"recipes": [inner]}, "failed", "UNKNOWN_RECIPE"),
    ],
)
async def test_what_differs_today_has_a_class(given: dict[str, Any], result: str, code: str) -> None:
    found = await checked(await exported(), **given)
    assert (found.result, found.code) == (result, code)
    assert bool(found.words) == (result != "same")


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ((), "GOLDEN_INVALID"),
        ((("job_completed", {}),), "GOLDEN_INVALID"),
        ((("job_created", {"kind": "recipe", "name": "mails"}), ("of_tomorrow", {})), "GOLDEN_INVALID"),
        ((("job_created", {"kind": 5}),), "CHAIN_BROKEN"),
        ((("job_created", {"kind": "recipe", "name": "mails", "input": {"nope": 1}}),), "EXECUTION_VERSION_MISMATCH"),
        ((("job_created", {"kind": "plan", "name": "x"}),), "JOB_FAILED"),
    ],
)
async def test_a_file_that_does_not_fit_has_failed_and_says_why(events: Any, code: str) -> None:
    found = await checked(Golden(name="x", job="j", state="completed", events=events))
    assert (found.result, found.code) == ("failed", code)


async def test_a_fork_is_exported_with_what_it_shares() -> None:
    async with opened() as remit:
        job = await recorded(remit)
        made = await remit.service.forks.make(job, "3", repeat=True)
        await remit.ended(made.job)
        golden = await golden_of(remit.runtime.journal, made.job, "fork")
        with pytest.raises(RemitError):
            await golden_of(remit.runtime.journal, made.job, "../fork")
    assert (await checked(golden)).result == "same"


async def test_neither_sessions_nor_erased_jobs_nor_journals_on_disk_are_checked(tmp_path: Path) -> None:
    async with Remit(tmp_path / "j.db", tools=[login, send], recipes=[mails, inner], policy=[ALLOWED]) as remit:
        job = await recorded(remit, subject="eve")
        await erase(remit.runtime.journal, "eve")
        await remit.call("g.login", {"user": "a"})
        (session,) = await remit.service.sessions.rows()
        codes = []
        for identifier in (job, session.session, "job_00000000000000000000000000"):
            with pytest.raises(RemitError) as caught:
                await remit.service.golden.export(identifier, "x")
            codes.append(caught.value.code)
        assert codes == [Code.PAYLOAD_ERASED, Code.JOB_NOT_REPLAYABLE, Code.JOB_NOT_FOUND]
        with pytest.raises(RemitError):
            await remit.service.golden.check([])


def test_thresholds_decide_on_the_status() -> None:
    for worst, name in enumerate(CLASSES):
        jobs = [
            CheckedJob(name="a", recipe="r", result="same"),
            CheckedJob(name="b", recipe="r", result=name, words="w"),
        ]
        for warn in CLASSES[1:]:
            for fail in CLASSES[1:]:
                report = report_of(jobs, warn=warn, fail=fail)
                reached = (worst >= CLASSES.index(warn)) or 2 * (worst >= CLASSES.index(fail))
                expected = 2 if worst >= CLASSES.index(fail) else int(reached)
                assert (report.status, report.worst) == (expected, name)


def test_reports_hold_whatever_a_recipe_says() -> None:
    words = "a|b <script> \x00 \ud800 ]]> `x`\nnext"
    report = report_of([CheckedJob(name="n", recipe="r", result="failed", words=words)], warn="breaking", fail="failed")
    (case,) = ET.fromstring(junit(report, "failed")).iter("testcase")  # noqa: S314 - our own
    assert case.find("failure") is not None
    row = markdown(report).splitlines()[-1]
    assert (row.count(" | "), "<script>" in row) == (4, False)
    assert msgspec.json.decode(msgspec.json.encode(report.counts))["failed"] == 1
