"""Journals of older Remits go through drift, versions and backtest: nothing is missing but what they did not record."""

from __future__ import annotations

from pathlib import Path

import pytest

from remit import Remit
from remit.journal.event import HeadQuery
from remit.record.walk import walk
from remit.settings import load
from tests.record.old.golden import NAMES, unpack
from tests.record.old.world import FLAGS, TOOLS, acts

KNOWN = {
    "its arguments are not recorded",
    "its values were erased",
    "what its tool was is not recorded",
}


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("journals")
    unpack(folder)
    return folder


@pytest.mark.parametrize("name", NAMES)
async def test_an_old_journal_goes_through_every_report(journals: Path, name: str) -> None:
    flags = {**FLAGS, "journal.url": str(journals / f"{name}.db")}
    settings = load(cwd=journals, env={}, flags=flags)
    async with Remit(settings=settings, tools=TOOLS, recipes=[acts], work=False) as remit:
        drift = remit.service.drift
        report = await drift.report()
        assert set(report.missing) <= KNOWN
        gone = {one.tool for one in report.tools if one.drift == "gone"}
        assert not any(name.startswith("x.") for name in gone)
        versions = await drift.versions()
        counts = await remit.service.jobs.counts()
        assert versions.open == sum(counts.get(state, 0) for state in OPEN)
        tried = await drift.backtest(list(FLAGS["policy.rules"]))
        assert set(tried.missing) <= KNOWN
        looser = [one for one in tried.changes if one.direction == "looser"]
        assert [one for one in looser if one.tool.startswith("x.") and one.recorded == "deny"] == []


@pytest.mark.parametrize("name", NAMES)
async def test_a_report_about_one_job_is_the_same_without_a_look_at_the_others(
    journals: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = {**FLAGS, "journal.url": str(journals / f"{name}.db")}
    settings = load(cwd=journals, env={}, flags=flags)
    async with Remit(settings=settings, tools=TOOLS, recipes=[acts], work=False) as remit:
        drift = remit.service.drift
        heads = [
            *await remit.runtime.journal.heads(HeadQuery(kind="job", limit=4)),
            *await remit.runtime.journal.heads(HeadQuery(kind="session", limit=2)),
        ]
        jobs = [head.stream.partition("/")[2] for head in heads]
        scan = remit.runtime.journal.scan
        monkeypatch.setattr(remit.runtime.journal, "scan", None)
        alone = [await drift.report(job) for job in jobs]
        monkeypatch.setattr(remit.runtime.journal, "scan", scan)
        monkeypatch.setattr("remit.parts.drift.noun.walk", lambda journal, collectors, _job: walk(journal, collectors))
        assert alone == [await drift.report(job) for job in jobs]
        assert jobs


OPEN = ("pending", "running", "waiting")
