"""The package of an interval: every stream that was written to in it, whole, in the same bytes each time."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pytest

from remit import Options, Run, recipe
from remit.canonical import canonical
from remit.client import RemoteRemit
from remit.clock import DAY, SystemClock
from remit.errors import NotFoundError, RecordPrunedError, UsageError
from remit.evidence import verify
from remit.evidence.interval import Interval, read_interval
from remit.evidence.program import sources
from remit.journal.erasure import erase
from remit.parts.audit.package import write_interval
from remit.parts.retention.rule import RetentionRule
from tests.client.conftest import serving
from tests.jumping import JumpingClock
from tests.opened import OpenRemit
from tests.parts.audit.packages import GIVEN, bought, repacked

BEGIN: Final = SystemClock().now()
GLANCES: Final = 500


@recipe("glance")
async def glance(run: Run, times: int = 1) -> None:
    """Look at large texts."""
    for number in range(times):
        await run.call("desk.look", {"text": f"{number}" * 8_000})


def on_day(number: int) -> dict[str, Any]:
    """A Remit some days from now."""
    clock = JumpingClock(SystemClock(), ahead_s=number * 86_400)
    return {"tools": GIVEN["tools"], "recipes": [*GIVEN["recipes"], glance], "clock": clock}


def days(first: int, last: int) -> Interval:
    """From half a day before a day to half a day after another."""
    return Interval(BEGIN + first * DAY - DAY // 2, BEGIN + last * DAY + DAY // 2)


async def glanced(remit_in: OpenRemit, number: int, **options: Any) -> str:
    """A job that ended on a day."""
    async with remit_in(**on_day(number)) as remit:
        job = await remit.start(glance(), **options)
        await job
    return f"job/{job.id}"


async def exported(remit_in: OpenRemit, interval: Interval, place: Path, **form: Any) -> verify.PackageVerdict:
    """Write the package of an interval, long after it, and check it."""
    async with remit_in(**on_day(1_000), work=False) as remit:
        with place.open("w+b") as file:
            await write_interval(remit.runtime.journal, interval, file, **form)
    return verify.check(str(place), sources())


def jobs_in(place: Path) -> set[str]:
    """The jobs in a package."""
    with zipfile.ZipFile(place) as package:
        rows = json.loads(package.read("proof.json"))["streams"]
    return {row["stream"] for row in rows if row["kind"] == "job"}


@pytest.mark.slow
async def test_it_holds_the_streams_written_to_in_it_and_no_others(remit_in: OpenRemit, tmp_path: Path) -> None:
    jobs = [await glanced(remit_in, number) for number in (1, 2, 3)]
    for (first, last), jobs_then in {(1, 1): jobs[:1], (2, 3): jobs[1:], (0, 9): jobs}.items():
        verdict = await exported(remit_in, days(first, last), tmp_path / "one.zip")
        assert (verdict.state, verdict.problem, verdict.scope) == ("whole", "", str(days(first, last)))
        assert verdict.decisions is not None
        assert (verdict.decisions.decisions, verdict.decisions.not_derived) == (len(jobs_then), ())
        assert jobs_in(tmp_path / "one.zip") == set(jobs_then)


@pytest.mark.slow
async def test_a_stream_that_was_written_to_before_and_after_but_not_in_it_is_left_out(
    remit_in: OpenRemit, tmp_path: Path
) -> None:
    async with remit_in(**on_day(1)) as remit:
        session = await remit.service.sessions.open("mcp", principal="ann")
        await remit.service.sessions.call(session, "desk.look", {"text": "a"})
    other = await glanced(remit_in, 2)
    async with remit_in(**on_day(3)) as remit:
        await remit.service.sessions.call(session, "desk.look", {"text": "b"})
    assert (await exported(remit_in, days(2, 2), tmp_path / "two.zip")).state == "whole"
    assert jobs_in(tmp_path / "two.zip") == {other}
    verdict = await exported(remit_in, days(3, 3), tmp_path / "three.zip")
    assert (verdict.state, verdict.problem) == ("prefix", "")  # a session never ends
    assert verdict.decisions is not None
    assert verdict.decisions.decisions == 2  # whole: what came before is in it


@pytest.mark.slow
async def test_the_same_interval_gives_the_same_bytes_whatever_came_later(remit_in: OpenRemit, tmp_path: Path) -> None:
    await glanced(remit_in, 1)
    await exported(remit_in, days(1, 1), tmp_path / "one.zip")
    await glanced(remit_in, 5)
    await exported(remit_in, days(1, 1), tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


@pytest.mark.slow
async def test_what_has_not_ended_makes_it_a_prefix(remit_in: OpenRemit, tmp_path: Path) -> None:
    await bought(remit_in)
    assert (await exported(remit_in, days(0, 0), tmp_path / "one.zip")).state == "whole"
    await bought(remit_in, approved=False)
    assert (await exported(remit_in, days(0, 0), tmp_path / "one.zip")).state == "prefix"


@pytest.mark.slow
async def test_values_are_left_out_or_were_erased(remit_in: OpenRemit, tmp_path: Path) -> None:
    await glanced(remit_in, 1, options=Options(subject="customer-7"))
    await glanced(remit_in, 1)
    verdict = await exported(remit_in, days(1, 1), tmp_path / "one.zip", redacted=True)
    assert (verdict.state, [*dict(verdict.values)]) == ("whole", ["redacted"])
    async with remit_in(**on_day(2), work=False) as remit:
        await erase(remit.runtime.journal, "customer-7", by="ann")
    verdict = await exported(remit_in, days(1, 1), tmp_path / "two.zip")
    assert (verdict.state, verdict.problem, [*dict(verdict.values)]) == ("whole", "", ["erased", "kept"])


async def test_what_was_pruned_is_named(remit_in: OpenRemit, tmp_path: Path) -> None:
    gone, there = await glanced(remit_in, 1), await glanced(remit_in, 2)
    async with remit_in(**on_day(3), work=False) as remit:
        await remit.service.retention.prune(
            lambda head: RetentionRule(keep="1d") if head.stream == gone else None, ("job",)
        )
    with pytest.raises(RecordPrunedError):
        await exported(remit_in, days(1, 1), tmp_path / "none.zip")
    assert (await exported(remit_in, days(1, 2), tmp_path / "one.zip")).state == "whole"
    assert jobs_in(tmp_path / "one.zip") == {there}
    with zipfile.ZipFile(tmp_path / "one.zip") as package:
        assert [row["stream"] for row in json.loads(package.read("metadata.json"))["pruned"]] == [gone]


@pytest.mark.parametrize(
    ("interval", "error"),
    [(days(5, 6), NotFoundError), (days(2, 1), UsageError), (days(900, 1_100), UsageError)],
    ids=["nothing", "backwards", "not over"],
)
async def test_what_cannot_be_exported_is_said(
    remit_in: OpenRemit, tmp_path: Path, interval: Interval, error: type[Exception]
) -> None:
    await glanced(remit_in, 1)
    with pytest.raises(error):
        await exported(remit_in, interval, tmp_path / "one.zip")


async def test_a_package_that_names_another_interval_is_rejected(remit_in: OpenRemit, tmp_path: Path) -> None:
    await glanced(remit_in, 1)
    await exported(remit_in, days(1, 1), tmp_path / "one.zip")
    for scope in (str(days(2, 3)), "2026-01-01/2026-02-01", f"{days(0, 0)}/x", "job/other"):

        def renamed(data: bytes, scope: str = scope) -> bytes:
            return canonical(json.loads(data) | {"scope": scope})

        repacked(tmp_path / "one.zip", tmp_path / "bad.zip", {"manifest.json": renamed})
        assert verify.check(str(tmp_path / "bad.zip")).reason == "chain_broken", scope


async def test_a_server_gives_the_bytes_that_its_journal_gives(remit_in: OpenRemit, tmp_path: Path) -> None:
    await glanced(remit_in, 1)
    await exported(remit_in, days(1, 1), tmp_path / "here.zip")
    async with (
        remit_in(**on_day(1_000), work=False) as remit,
        serving(remit.service) as url,
        RemoteRemit(url, "") as far,
    ):
        file = BytesIO()
        await far.service.audit.package_between(*days(1, 1), file)
        with pytest.raises(NotFoundError):
            await far.service.audit.package_between(*days(5, 6), file)
        with pytest.raises(UsageError, match="is not an interval"):
            await far.ask("audit.interval", "last week")
    assert file.getvalue() == (tmp_path / "here.zip").read_bytes()


@pytest.mark.slow
async def test_memory_does_not_grow_with_events_and_values(remit_in: OpenRemit, tmp_path: Path) -> None:
    async with remit_in(**on_day(0)) as remit:
        for _ in range(3):
            await (await remit.start(glance(times=GLANCES)))
    async with remit_in(**on_day(1), work=False) as remit:
        with (tmp_path / "one.zip").open("w+b") as file:
            tracemalloc.start()
            try:
                await write_interval(remit.runtime.journal, days(0, 0), file)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
    verdict = verify.check(str(tmp_path / "one.zip"))
    assert (verdict.state, verdict.events > 6 * GLANCES) == ("whole", True)
    with zipfile.ZipFile(tmp_path / "one.zip") as package:
        size = sum(entry.file_size for entry in package.infolist())
    assert peak < size / 3, (peak, size)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-01T00:00:00Z/2026-12-01T00:00:00Z",
        "2026-11-01T00:00:00.000000Z/2026-11-01T00:00:00.000000Z",
        "2026-12-01T00:00:00.000000Z/2026-11-01T00:00:00.000000Z",
        "2026-11-01T00:00:00.000000Z",
        "/",
        "job/job_1",
    ],
)
def test_an_interval_has_one_form(text: str) -> None:
    assert read_interval(text) is None
    assert read_interval(str(days(1, 2))) == days(1, 2)
