"""Reports on a web of 200 pages on loopback, with everything that pages of real webs do."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from examples.web.town import Town
from remit import Code, JobEndedError, Remit
from remit.canonical import sha256
from remit.parts.recipes.research_report import research_report
from remit.parts.web.engine import Extractors
from tests.opened import OpenRemit
from tests.parts.documents.made import encrypted_pdf, notebook, pdf
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

QUERY = "When does the swimming pool open, and what does it cost?"
ANSWER = [
    ("Hours", "It opens at 6:30.", "The swimming pool opens at 6:30 and closes at 21:00"),
    ("Hours", "It opens at 7:30.", "The swimming pool opens at 7:30 and closes at 21:00"),
    ("Prices", "A ticket costs 5 euros.", "A ticket for the swimming pool costs 4 euros"),
    ("Prices", "A ticket costs 4 euros.", "A ticket for the swimming pool costs 4 euros"),
]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes long to start the processes that extract."""
    monkeypatch.setattr(Extractors.__init__, "__defaults__", (2, PATIENCE_S))


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    town = Town()
    runner = await town.start()
    yield town
    await runner.cleanup()


@pytest.fixture
async def remit(town: Town, remit_in: OpenRemit) -> AsyncIterator[Remit]:
    web = {"search": ("searxng",), "searxng_url": town.base, "pause_ms": 1}
    flags = {f"web.{name}": value for name, value in web.items()} | {"documents.seconds": int(PATIENCE_S)}
    async with remit_in(flags=flags) as remit:
        yield remit


async def stored(remit: Remit, job: str) -> dict[str, str]:
    """The texts that the record holds, by their digests."""
    view = await remit.service.jobs.view(job)
    values = [(await remit.service.steps.view(job, step.step)).value for step in view.steps]
    texts = [value["text"] for value in values if isinstance(value, dict) and "text" in value]
    return {sha256(text.encode()): text for text in texts}


def script(path: Path) -> str:
    sentences = [
        {"section": section, "sentence": sentence, "source": source, "quotation": quotation}
        for section, sentence, quotation in ANSWER
        for source in (1, 2, 3, 4, 5)
    ]
    answers: list[Any] = [{"queries": ["swimming pool prices"]}, {"sentences": sentences}]
    path.write_text(json.dumps([{"say": json.dumps(answer)} for answer in answers]))
    return f"scripted:{path}"


async def test_a_report_quotes_pages_of_the_web_and_replays(town: Town, remit: Remit) -> None:
    job = await remit.start(research_report(QUERY, web=True, max_sources=3))
    report = await job
    assert 0 < len(report["sources"]) <= 3
    quoted = " ".join(each["text"] for each in report["evidence"])
    assert "4 euros" in quoted
    texts = await stored(remit, job.id)
    for each in report["evidence"]:
        text = texts[each["sha256"]]
        assert sha256(text.encode()) == each["sha256"] == report["sources"][each["source_index"]]["sha256"]
        assert text[each["start"] : each["end"]] == each["text"]
        assert each["stored"] == {name: each[name] for name in ("sha256", "start", "end")}
    assert not [path for path in town.requests if path.startswith(("/private", "/calendar"))]
    assert (await remit.replay(job.id)).verdict == "same"
    rows = await remit.service.artifacts.rows(job.id)
    assert [row.path for row in rows] == ["report.md", "report.json", "report.html"]
    page = await remit.service.artifacts.read(job.id, rows[2].sha256)
    assert page.decode().count('class="claim"') == report["evidence_count"]


async def test_sources_that_fail_are_named_and_the_next_ones_read(
    town: Town, remit: Remit, monkeypatch: pytest.MonkeyPatch
) -> None:
    traps = [
        "/files/3.pdf",
        "/agree/0",
        "/check/0",
        "/check/1",
        "/private/0",
        "/round/0",
        "/broken",
        "/gone",
    ]
    good = ["/swimming-pool/prices", "/mirror/swimming-pool/overview", "/swimming-pool/overview", "/old/0"]
    paths = [*traps, *good]
    monkeypatch.setattr(town, "found", lambda _query: [town.pages[path] for path in paths])
    report = await (await remit.start(research_report(QUERY, web=True, max_sources=2)))
    whys = {each["path"].removeprefix(town.base): each["why"] for each in report["unread"]}
    assert whys == {
        "/files/3.pdf": "parse_failed",
        "/agree/0": "consent",
        "/check/0": "captcha_required",
        "/check/1": "captcha_required",
        "/private/0": "WebBlocked",
        "/round/0": "NetworkError",
        "/broken": "BadGateway",
        "/gone": "BadGateway",
    }
    assert {each["path"].removeprefix(town.base) for each in report["sources"]} <= set(good)


async def test_a_model_writes_and_what_no_source_says_is_dropped(town: Town, remit: Remit, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text(
        "# The swimming pool\n\nThe swimming pool opens at noon on Sundays, it is said.\n"
    )
    folder, model = str(tmp_path), script(tmp_path / "model.json")
    job = await remit.start(research_report(QUERY, folder=folder, web=True, max_sources=5, model=model))
    report = await job
    assert {each["claim"] for each in report["evidence"]} <= {"It opens at 6:30.", "A ticket costs 4 euros."}
    assert report["dropped"] == len(ANSWER) * 5 - report["evidence_count"] > 0
    assert report["searched"]["queries"] == [QUERY, "swimming pool prices"]
    assert report["searched"]["files"] > 0
    assert (await remit.replay(job.id)).verdict == "same"


async def test_files_documents_and_pages_are_quoted_together_with_their_places(
    town: Town, remit: Remit, tmp_path: Path
) -> None:
    query = "What does a season ticket for the swimming pool cost?"
    notes, papers = tmp_path / "notes", tmp_path / "papers"
    notes.mkdir()
    papers.mkdir()
    (notes / "a.md").write_text("# Costs\n\nLast year a season ticket for the swimming pool cost 55 euros.\n")
    minutes = ["Minutes of the council.", "The council set the season ticket of the swimming pool at 58 euros."]
    (papers / "minutes.pdf").write_bytes(pdf(minutes))
    (papers / "costs.ipynb").write_bytes(
        notebook([{"cell_type": "markdown", "source": "Swimming pool season ticket: sum."}])
    )
    job = await remit.start(research_report(query, str(notes), web=True, documents="papers", max_sources=8))
    report = await job
    places = {
        (source["kind"], source["path"].removeprefix(town.base)): each["page"]
        for each in report["evidence"]
        for source in [report["sources"][each["source_index"]]]
    }
    assert len(report["sources"]) <= 8
    assert places["page", "/files/0.pdf"] == 2
    assert places["document", "papers/minutes.pdf"] == 2
    assert places["file", "a.md"] is None
    texts = await stored(remit, job.id)
    for each in report["evidence"]:
        span = each["stored"]
        assert texts[span["sha256"]][span["start"] : span["end"]] == each["text"]
    searched = report["searched"]
    assert (searched["files"], searched["documents"], searched["looked_in"]) == (1, 2, "papers")
    assert "page 2, characters" in report["report"]
    assert "2 documents in `papers`" in report["report"]
    rows = await remit.service.artifacts.rows(job.id)
    page = (await remit.service.artifacts.read(job.id, rows[2].sha256)).decode()
    assert f'href="{town.base}/files/0.pdf#page=2"' in page
    assert (await remit.replay(job.id)).verdict == "same"
    few = await (await remit.start(research_report(query, str(notes), web=True, documents="papers", max_sources=2)))
    assert len(few["sources"]) == 2


async def test_documents_alone_are_quoted(remit_in: OpenRemit, tmp_path: Path) -> None:
    (tmp_path / "minutes.pdf").write_bytes(pdf(["Minutes.", "The council set the season ticket at 58 euros."]))
    (tmp_path / "locked.pdf").write_bytes(encrypted_pdf())
    async with remit_in(flags={"documents.seconds": int(PATIENCE_S)}) as remit:
        report = await (await remit.start(research_report("season ticket euros", documents=".")))
    assert [(each["path"], each["kind"]) for each in report["sources"]] == [("minutes.pdf", "document")]
    assert [each["page"] for each in report["evidence"]] == [2]
    assert report["searched"]["queries"] == []
    assert report["unread"] == [{"path": "locked.pdf", "why": "no_text"}]
    assert "- `locked.pdf`: no_text" in report["report"]


async def test_without_a_backend_nothing_leaves_the_machine_and_it_says_so(remit_in: OpenRemit) -> None:
    async with remit_in() as remit:
        report = await (await remit.start(research_report(QUERY, web=True)))
    assert report["evidence"] == []
    assert "WEB_SEARCH_BACKEND" in report["note"]


async def test_a_search_that_fails_fails_the_report(remit_in: OpenRemit) -> None:
    flags = {"web.search": ("searxng",), "web.searxng_url": "http://127.0.0.1:1"}
    async with remit_in(flags=flags) as remit:
        job = await remit.start(research_report(QUERY, web=True))
        with pytest.raises(JobEndedError) as caught:
            await job
    assert caught.value.code is Code.TOOL_EXEC_FAILED
